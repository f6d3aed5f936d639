"""One process of a job is killed in mid-run: the others end with a sentence, and a restart ends with the same bits."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from hosts import Host, hosts
from ranks import kill_in_mid_run

# The folder of the training tests is on the path now.
from processes import SETTINGS, assert_same_bits, environment, latest, store_tiny, torchrun, words  # isort: skip

from omegagnn.cli import main
from omegagnn.training.fit import Result
from omegagnn.training.journal import Journal

LONG = {
    "runs": (["tiny-node", "--seeds", "4", "--splits", "0", "--epochs", "600"], []),
    "steps": (
        ["tiny-graph", "--seeds", "1", "--splits", "0", "--epochs", "120"],
        ["training.shards=2"],
    ),
}


def job_of(mode: str, folder: Path) -> list[str]:
    arguments, settings = LONG[mode]
    return words(folder, *arguments, "--checkpoint-seconds", "0.1", settings=SETTINGS + settings)


def start(command: list[str]) -> subprocess.Popen[str]:
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment())


@pytest.mark.parametrize(("mode", "rank"), [("runs", 1), pytest.param("steps", 0, marks=pytest.mark.slow)])
def test_torchrun_restarts_a_job_whose_process_was_killed_and_nothing_is_lost(
    mode: str, rank: int, tmp_path: Path
) -> None:
    store_tiny(tmp_path)
    job = job_of(mode, tmp_path)
    assert main(job[1:]) == 0
    whole = latest(tmp_path)
    running = start(torchrun(2, [*job[:3], str(tmp_path / "other"), *job[4:]], "--max-restarts", "1"))
    kill_in_mid_run(running, rank, tmp_path / "other", after=20)
    out, errors = running.communicate(timeout=300)
    assert running.returncode == 0, errors
    (run,) = (tmp_path / "other").glob("tiny-*")
    assert "test accuracy" in out
    (tmp_path / "runs").rename(tmp_path / "first")
    (tmp_path / "other").rename(tmp_path / "runs")
    again = latest(tmp_path)
    assert again.run == run.name, "the restarted processes went on with the run that had begun"
    assert_same_bits(Result(Journal(tmp_path / "first"), whole.run), again)


@pytest.mark.parametrize(("mode", "rank"), [("steps", 1), pytest.param("runs", 0, marks=pytest.mark.slow)])
def test_without_restarts_the_job_ends_with_a_sentence_and_can_be_resumed(mode: str, rank: int, tmp_path: Path) -> None:
    store_tiny(tmp_path)
    job = job_of(mode, tmp_path)
    assert main(job[1:]) == 0
    (tmp_path / "runs").rename(tmp_path / "first")
    running = start(torchrun(2, job))
    kill_in_mid_run(running, rank, tmp_path / "runs", after=20)
    _, errors = running.communicate(timeout=300)
    assert running.returncode == 1
    broken = latest(tmp_path)
    assert broken.row["status"] == "interrupted" or rank == 0
    sentences = [line for line in errors.splitlines() if line.startswith("omegagnn: ")]
    assert len(sentences) == 1, errors
    assert f"go on with `omegagnn train --resume {broken.run}" in sentences[0]
    # What was begun by two processes is finished by one.
    places = ["--runs-dir", str(tmp_path / "runs"), "--data-root", str(tmp_path / "data"), "--device", "cpu"]
    assert main(["train", "--resume", broken.run, *places]) == 0
    first = Journal(tmp_path / "first")
    assert_same_bits(Result(first, first.run("last")["run"]), latest(tmp_path))


@pytest.mark.slow
@pytest.mark.parametrize("mode", LONG)
def test_four_hosts_train_one_job(mode: str, tmp_path: Path) -> None:
    store_tiny(tmp_path)
    arguments, settings = LONG[mode]
    job = words(tmp_path, *arguments, settings=[*SETTINGS, *settings, *(["training.shards=4"] if settings else [])])
    assert main(job[1:]) == 0
    (tmp_path / "runs").rename(tmp_path / "first")
    with hosts(4) as machines:
        agents = [start_agent(machine, machines[0], job) for machine in machines]
        said = [agent.communicate(timeout=400) for agent in agents]
    assert [agent.returncode for agent in agents] == [0] * 4, said
    assert sum("test accuracy" in out for out, _ in said) == 1
    first = Journal(tmp_path / "first")
    assert_same_bits(Result(first, first.run("last")["run"]), latest(tmp_path))
    print(f"four hosts: {machines[0].prefix or 'loopback'}")


def start_agent(machine: Host, leader: Host, job: list[str]) -> subprocess.Popen[str]:
    """Start torchrun on a host."""
    meeting = ["--rdzv-backend", "c10d", "--rdzv-endpoint", f"{leader.address}:29411", "--rdzv-id", "four"]
    meeting += ["--rdzv-conf", f"is_host={int(machine is leader)}"]
    launcher = [sys.executable, "-m", "torch.distributed.run", "--nnodes", "4", "--nproc-per-node", "1", *meeting]
    command = [*machine.prefix, *launcher, "--local-addr", machine.address, "-m", *job]
    return subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        env=environment(GLOO_SOCKET_IFNAME=machine.interface),
    )  # fmt: skip
