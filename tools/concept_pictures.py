"""Draw the pictures of docs/concepts.md from the library's own functions: ``python tools/concept_pictures.py``."""

from __future__ import annotations

from pathlib import Path

import matplotlib as mpl
import networkx as nx
import numpy as np
import torch
from matplotlib import pyplot as plt
from matplotlib.collections import LineCollection
from matplotlib.colors import TwoSlopeNorm

from omegagnn import Graph, omega_propagate
from omegagnn.analysis import dirichlet_energy, filter_response, impulse_response
from omegagnn.data import load

PICTURES = Path(__file__).resolve().parents[1] / "docs" / "pictures"
STYLE = {
    "font.family": "DejaVu Sans", "font.size": 10, "axes.titleweight": "bold", "axes.titlesize": 11,
    "axes.spines.top": False, "axes.spines.right": False, "axes.edgecolor": "#5b6675", "axes.labelcolor": "#1c2430",
    "xtick.color": "#5b6675", "ytick.color": "#5b6675", "figure.facecolor": "white",
    "svg.hashsalt": "omegagnn", "svg.fonttype": "none",
}  # fmt: skip
COLOURS = {0.1: "#7b3fa0", 0.5: "#2a6fbb", 1.0: "#1c2430", 1.5: "#c8791b", -0.5: "#b5342c"}


def save(figure: plt.Figure, name: str) -> None:
    """Write a picture the same way every time."""
    figure.savefig(PICTURES / f"{name}.svg", bbox_inches="tight", metadata={"Date": None})
    plt.close(figure)


def impulse_picture() -> None:
    """Where one unit has gone on a grid after four propagations, for four values of ω."""
    side, steps = 9, 4
    grid = nx.convert_node_labels_to_integers(nx.grid_2d_graph(side, side), ordering="sorted")
    places = np.array([[k % side, k // side] for k in range(side * side)])
    graph = Graph.from_networkx(grid)
    shown = [
        (0.1, "ω = 0.1: hardly moves"),
        (1.0, "ω = 1, a GCN: spreads"),
        (1.5, "ω = 1.5: signs alternate"),
        (-0.5, "ω = −0.5: sharpens"),
    ]
    figure, axes = plt.subplots(1, 4, figsize=(12, 3.5), layout="constrained")
    for axis, (omega, title) in zip(axes, shown, strict=True):
        response = impulse_response(graph, side * side // 2, omega, steps).numpy()
        bound = np.abs(response).max()
        lines = [places[list(edge)] for edge in grid.edges]
        axis.add_collection(LineCollection(lines, colors="#cfd6df", linewidths=1, zorder=0))
        axis.scatter(
            *places.T,
            c=response,
            s=70,
            cmap="RdBu_r",
            norm=TwoSlopeNorm(0, -bound, bound),
            edgecolors="#5b6675",
            linewidths=0.6,
        )
        axis.set_title(title)
        axis.set_xlabel(f"largest {response.max():.2g}, smallest {response.min():.2g}")
        axis.set(aspect="equal", xticks=[], yticks=[])
        axis.spines[:].set_visible(False)
    save(figure, "impulse")


def filter_picture() -> None:
    """What one propagation does to each frequency of the graph: the factor 1 − ωλ."""
    figure, (left, right) = plt.subplots(1, 2, figsize=(12, 3.8), layout="constrained")
    frequencies = torch.linspace(0, 2, 200, dtype=torch.float64)
    for omega, colour in COLOURS.items():
        factor = filter_response([omega], frequencies)
        left.plot(frequencies, factor, color=colour, label=f"ω = {omega:g}".replace("-", "−"), linewidth=2)
        right.plot(frequencies, filter_response([omega] * 8, frequencies).abs(), color=colour, linewidth=2)
    left.axhline(0, color="#cfd6df", zorder=0)
    left.set(
        xlabel="frequency λ of L̃ (0: equal neighbours, 2: opposite neighbours)",
        ylabel="factor 1 − ωλ",
        title="One propagation",
    )
    right.set(xlabel="frequency λ of L̃", ylabel="|1 − ωλ|⁸", yscale="log", ylim=(1e-4, 1e3), title="Eight propagations")
    right.axhline(1, color="#cfd6df", zorder=0)
    left.legend(frameon=False, ncols=2)
    save(figure, "filters")


def energy_picture() -> None:
    """How the energy of CiteSeer's features falls over 64 propagations, for fixed values of ω."""
    data = load("citeseer")
    operator = data.graph.gcn_norm()
    start = data.features.to_dense()[:, :256].contiguous()
    figure, axis = plt.subplots(figsize=(7.2, 3.8), layout="constrained")
    for omega, colour in ((0.01, "#3f8f5b"), *[(w, COLOURS[w]) for w in (0.1, 0.5, 1.0)]):
        x, energies = start, []
        for _ in range(65):
            energies.append(float(dirichlet_energy(x, data.graph)))
            x = omega_propagate(x, operator, torch.full((x.size(1),), omega))
        axis.plot(range(65), np.array(energies) / energies[0], color=colour, linewidth=2, label=f"ω = {omega:g}")
    axis.set(xlabel="number of propagations", ylabel="E / E⁰", yscale="log", title="Dirichlet energy on CiteSeer")
    axis.legend(frameon=False)
    save(figure, "energy")


if __name__ == "__main__":
    with mpl.rc_context(STYLE):
        impulse_picture()
        filter_picture()
        energy_picture()
