"""What is computed rather than trained: sizes of data sets, run times, and the figures that need no benchmark graph."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import networkx as nx
import torch

from omegagnn.analysis.gradient_task import BIASED_GCN, GCN, OMEGA_GCN, ParallelNets, gradient_task, train_nets
from omegagnn.analysis.impulse import impulse_response
from omegagnn.analysis.theory import EULER_DEPTHS, euler_errors
from omegagnn.data.dataset import Dataset
from omegagnn.data.homophily import edge_homophily, simple
from omegagnn.graph import Graph
from omegagnn.training.batch import RunBatch
from omegagnn.training.config import RunConfig
from omegagnn.training.presets.preset import read_preset
from omegagnn.training.tasks import make_task

Values = dict[str, Any]
IMPULSE_OMEGAS = (0.5, 1.0, 1.5)
TIMED = {"GCN": "gcn", "GAT": "gat", "ωGCN": "omega-gcn", "ωGAT": "omega-gat"}
GRADIENT_NETWORKS = (GCN, BIASED_GCN, OMEGA_GCN)


@dataclass(frozen=True)
class Setting:
    """Where and on what to measure; `load` gives a data set that is on this machine, `quick` asks for little."""

    device: torch.device
    load: Callable[[str, str | None], Dataset]
    quick: bool = False


@dataclass(frozen=True, eq=False)
class Measurement:
    """A named measurement; its tag is its name in the results."""

    tag: str
    name: str
    measure: Callable[[Setting], Values]


def statistics_of(dataset: str) -> Measurement:
    """Return the measurement of a data set's sizes."""

    def measure(setting: Setting) -> Values:
        data = setting.load(dataset, None)
        homophily = None if data.task == "graph" or data.is_multilabel else edge_homophily(data)
        return {
            "classes": data.num_classes,
            "graphs": data.num_graphs,
            "nodes": data.num_nodes,
            "entries": data.graph.num_edges,
            "edges": simple(data.graph).num_edges // 2,
            "features": data.num_features,
            "homophily": None if homophily is None else round(homophily, 4),
        }

    return Measurement(f"statistics-{dataset}", f"sizes of {dataset}", measure)


def _run_times(setting: Setting) -> Values:
    """Return the milliseconds of a training step and of an inference on Cora with 2 layers, medians over rounds in turns."""
    data = setting.load("cora", "public")
    batches = {title: _batch(model, data, setting.device) for title, model in TIMED.items()}
    rounds = 10 if setting.quick else 100
    times: dict[str, dict[str, list[float]]] = {title: {"training": [], "inference": []} for title in batches}
    for number in range(rounds + 3):
        for title, batch in batches.items():
            training = _milliseconds(partial(batch.train_steps, number + 1), setting.device)
            inference = _milliseconds(partial(_infer, batch), setting.device)
            if number >= 3:  # the first rounds compile and fill caches
                times[title]["training"].append(training)
                times[title]["inference"].append(inference)
    medians = {
        title: {part: round(statistics.median(found), 4) for part, found in parts.items()}
        for title, parts in times.items()
    }
    return {"rounds": rounds, "milliseconds": medians}


def _batch(model: str, data: Dataset, device: torch.device) -> RunBatch:
    config: RunConfig = read_preset(f"semi/cora-{model}-2").config
    task = make_task(data, config.data, [data.splits[0]], torch.float32, config.training.batch_size).to(device)
    return RunBatch(config, task, [0], torch.tensor([0]), [{}], device)


@torch.no_grad()
def _infer(batch: RunBatch) -> None:
    batch.net.eval()
    batch.task.logits(batch.net, batch.operator)


def _milliseconds(call: Callable[[], object], device: torch.device) -> float:
    if device.type == "cuda":
        torch.cuda.synchronize(device)
    began = time.perf_counter()
    call()
    if device.type == "cuda":
        torch.cuda.synchronize(device)
    return 1000 * (time.perf_counter() - began)


def _impulse(_: Setting) -> Values:
    """Return where one unit of the middle node of a grid is after one propagation, for each ω."""
    side = 5
    grid = nx.convert_node_labels_to_integers(nx.grid_2d_graph(side, side), ordering="sorted")
    graph, node = Graph.from_networkx(grid), side * side // 2
    return {
        "places": [[k % side, k // side] for k in range(side * side)],
        "edges": [list(edge) for edge in grid.edges],
        "node": node,
        "responses": {f"{omega:g}": impulse_response(graph, node, omega).tolist() for omega in IMPULSE_OMEGAS},
    }


def _gradient(setting: Setting) -> Values:
    """Return the upwind gradient of random graphs as networks estimate it: every loss, and the first graph in full."""
    tasks = [gradient_task(seed) for seed in range(2 if setting.quick else 20)]
    pairs = [(network, task) for network in GRADIENT_NETWORKS for task in tasks]
    steps = 200 if setting.quick else 5000
    nets = train_nets(ParallelNets(pairs), steps)
    with torch.no_grad():
        estimates, losses = nets().squeeze(-1), nets.losses()
    first = tasks[0]
    edges = [(i, j) for i, j in first.graph.to_edge_index()[0].t().tolist() if i < j]
    drawn: nx.Graph[int] = nx.Graph()
    drawn.add_edges_from(edges)
    places = nx.spring_layout(drawn, seed=0)
    return {
        "steps": steps,
        "graphs": len(tasks),
        "places": [[round(float(value), 4) for value in places[k]] for k in range(first.graph.num_nodes)],
        "edges": edges,
        "features": first.features.squeeze(-1).tolist(),
        "gradient": first.target.squeeze(-1).tolist(),
        "estimates": {net.name: estimates[k * len(tasks)].tolist() for k, net in enumerate(GRADIENT_NETWORKS)},
        "losses": {
            net.name: losses[k * len(tasks) : (k + 1) * len(tasks)].tolist() for k, net in enumerate(GRADIENT_NETWORKS)
        },
    }


def _euler(setting: Setting) -> Values:
    """Return the error of forward Euler at each depth, for several random matrices."""
    seeds = range(2 if setting.quick else 10)
    return {"depths": list(EULER_DEPTHS), "errors": [euler_errors(seed=seed) for seed in seeds]}


RUN_TIMES = Measurement("runtimes", "run times on Cora", _run_times)
IMPULSE = Measurement("impulse", "impulse response", _impulse)
GRADIENT = Measurement("gradient", "gradient task", _gradient)
EULER = Measurement("euler", "error of forward Euler", _euler)

__all__ = ["EULER", "GRADIENT", "IMPULSE", "RUN_TIMES", "Measurement", "Setting", "statistics_of"]
