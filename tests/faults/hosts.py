"""Four hosts on one machine: network namespaces joined by a bridge, or loopback addresses where namespaces are refused."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass


@dataclass(frozen=True)
class Host:
    """Where an agent runs: what stands before its command, its address, and the network interface that has it."""

    prefix: tuple[str, ...]
    address: str
    interface: str


@contextmanager
def hosts(count: int) -> Iterator[list[Host]]:
    """Yield hosts that see each other through their addresses only; namespaces are removed again."""
    mark = f"omg{os.getpid()}"
    made: list[str] = []
    try:
        yield _namespaces(mark, count, made) or [Host((), f"127.0.0.{k + 1}", "lo") for k in range(count)]
    finally:
        for name in made:
            _ip("netns", "delete", name)


def _namespaces(mark: str, count: int, made: list[str]) -> list[Host]:
    """Return hosts in namespaces of their own around a bridge in one more; none where that is not allowed."""
    switch = f"{mark}-switch"
    if shutil.which("ip") is None or not _ip("netns", "add", switch):
        return []
    made.append(switch)
    works = _ip("-n", switch, "link", "add", "bridge", "type", "bridge") and _ip(
        "-n", switch, "link", "set", "bridge", "up"
    )
    found = []
    for k in range(count):
        name, port, address = f"{mark}-{k}", f"port{k}", f"10.77.0.{k + 1}"
        works = works and _ip("netns", "add", name)
        made.append(name)
        steps = [
            ("-n", switch, "link", "add", port, "type", "veth", "peer", "name", "eth0", "netns", name),
            ("-n", switch, "link", "set", port, "master", "bridge", "up"),
            ("-n", name, "address", "add", f"{address}/24", "dev", "eth0"),
            ("-n", name, "link", "set", "eth0", "up"),
            ("-n", name, "link", "set", "lo", "up"),
        ]
        works = works and all(_ip(*step) for step in steps)
        found.append(Host(("ip", "netns", "exec", name), address, "eth0"))
    return found if works else []


def _ip(*words: str) -> bool:
    return subprocess.run(["ip", *words], capture_output=True, check=False).returncode == 0
