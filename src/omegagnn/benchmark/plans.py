"""Which comparisons there are, by name, on a CPU and on a GPU."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

import torch

from omegagnn.benchmark.cases import (
    Bench,
    Case,
    company_case,
    many_runs_cases,
    omega_cost_case,
    propagation_case,
    training_cases,
)

Plan = Callable[[Bench, str], list[Case]]
MODELS = ("omega-gcn", "omega-gat")


def plans(quick: bool, device: str = "cpu") -> dict[str, Plan]:
    """Return every comparison by its name; nothing is loaded or timed before it is called."""
    return _on_gpu(quick) if device == "cuda" else _on_cpu(quick)


def _on_cpu(quick: bool) -> dict[str, Plan]:
    names = ["citeseer"] if quick else ["cora", "citeseer"]
    first, depths, runs = names[0], (2,) if quick else (2, 64), 3 if quick else 10
    nodes, entries, channels = (10_000, 100_000, 64) if quick else (169_343, 2_500_000, 256)
    training: dict[str, Plan] = {
        f"train {model} {data} {layers} layers": partial(training_cases, data=data, model=model, layers=layers)
        for data in names
        for model in MODELS
        for layers in depths
        if model == "omega-gcn" or data == first
    }
    return training | {
        **_many_runs(first, runs),
        f"omega learnt against fixed, {first} 16 layers": partial(omega_cost_case, data=first, layers=16),
        f"propagation {nodes} nodes {entries} entries {channels} channels": partial(
            propagation_case, nodes=nodes, entries=entries, channels=channels
        ),
    }


def _many_runs(data: str, runs: int) -> dict[str, Plan]:
    return {
        f"epoch of {runs} runs, peers one after another, omega-gcn {data} 2 layers": partial(
            many_runs_cases, data=data, runs=runs
        ),
        f"epoch of {min(10, runs)} runs against 1, {data} 2 layers": partial(
            company_case, data=data, runs=min(10, runs)
        ),
    }


def _on_gpu(quick: bool) -> dict[str, Plan]:
    first, depths, runs = ("citeseer", (2,), 10) if quick else ("cora", (2, 64), 100)
    found: dict[str, Plan] = {
        f"train {model} {first} {layers} layers": partial(
            training_cases, data=first, model=model, layers=layers, compiling=layers == 2
        )
        for model in MODELS
        for layers in depths
    }
    found |= _many_runs(first, runs)
    found[f"omega learnt against fixed, {first} 16 layers"] = partial(omega_cost_case, data=first, layers=16)
    if quick:
        return found
    arxiv = partial(training_cases, data="arxiv-sized", layers=8, channels=256, compiling=False)
    for precision in ("float32", "tf32", "bfloat16"):
        for model in MODELS:
            found[f"train {model} arxiv-sized 8 layers 256 channels {precision}"] = partial(
                arxiv, model=model, precision=precision
            )
    products = partial(training_cases, data="products-sized", layers=3, channels=128, compiling=False)
    for model in MODELS:
        found[f"train {model} products-sized 3 layers 128 channels"] = partial(products, model=model)
    for dtype in (torch.float32, torch.bfloat16):
        name = f"propagation arxiv-sized 256 channels {str(dtype).removeprefix('torch.')}"
        found[name] = partial(propagation_case, nodes=169_343, entries=2_500_000, channels=256, dtype=dtype)
    return found


def peer_cases(bench: Bench, chosen: Callable[[str], bool]) -> Iterator[Case]:
    """Run every comparison whose name is chosen."""
    for name, plan in plans(bench.quick, bench.device.type).items():
        if chosen(name):
            bench.told(name)
            yield from plan(bench, name)
            if bench.device.type == "cuda":
                torch.cuda.empty_cache()
