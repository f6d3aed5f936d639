"""The figures of the paper, drawn by matplotlib (extra ``plots``) from the records alone."""

from __future__ import annotations

import io
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from omegagnn.errors import WrongUse
from omegagnn.paper.nodes import CITATION, ENERGY_OMEGAS, energy_networks, map_networks, mean_omega_networks
from omegagnn.paper.outcome import chosen_members, summary
from omegagnn.paper.results import Record, Results
from omegagnn.training.checkpoint import write_bytes

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure, SubFigure

STYLE = {
    "font.family": "DejaVu Sans", "font.size": 10, "axes.titleweight": "bold", "axes.titlesize": 11,
    "axes.spines.top": False, "axes.spines.right": False, "axes.edgecolor": "#5b6675", "axes.labelcolor": "#1c2430",
    "xtick.color": "#5b6675", "ytick.color": "#5b6675", "figure.facecolor": "white",
    "svg.hashsalt": "omegagnn", "svg.fonttype": "none",
}  # fmt: skip
DATA_COLOURS = {"cora": "#b5342c", "citeseer": "#2a6fbb", "pubmed": "#3f8f5b"}
OMEGA_COLOURS = {
    "1": "#e0301e",
    "0.1": "#c8791b",
    "0.01": "#8a6d1f",
    "0.001": "#7b3fa0",
    "0.0001": "#1c2430",
    "learnt": "#2a6fbb",
}
NO_ERROR = 1e-12
LINE, GREY = "#cfd6df", "#5b6675"
TITLES = {"cora": "Cora", "citeseer": "CiteSeer", "pubmed": "PubMed", "texas": "Texas"}
DEPTHS = (2, 4, 8, 16, 32, 64)


@dataclass(frozen=True)
class Picture:
    """A picture: its item, what it shows in words, a note, and how it is drawn; drawing says whether there was anything."""

    item: str
    alt: str
    note: str
    draw: Callable[[Figure, Results], bool]
    size: tuple[float, float]


def draw_pictures(results: Results, folder: Path, items: Sequence[str]) -> list[Path]:
    """Write the pictures of items for which there are records; return their paths."""
    try:
        import matplotlib as mpl
        from matplotlib.figure import Figure
    except ImportError:
        raise WrongUse("Pictures need matplotlib: install it with `pip install omegagnn[plots]`.") from None
    written = []
    for name, picture in PICTURES.items():
        if picture.item not in items:
            continue
        with mpl.rc_context(STYLE):  # type: ignore[arg-type]
            figure = Figure(figsize=picture.size, layout="constrained")
            if not picture.draw(figure, results):
                continue
            if results.quick:
                figure.suptitle("made with --quick: shows that it runs, nothing else", fontsize=8, color="#b5342c")
            stream = io.BytesIO()
            figure.savefig(stream, format="svg", metadata={"Date": None, "Creator": None})
        write_bytes(folder / f"{name}.svg", stream.getvalue())
        written.append(folder / f"{name}.svg")
    return written


# ------------------------------------------------------------------------------------------------------ small graphs


def _impulse(figure: Figure, results: Results) -> bool:
    """Where one unit of the dashed node is after one propagation, for each ω."""
    record = results.find("impulse")
    if record is None:
        return False
    values = record["values"]
    bound = max(abs(v) for response in values["responses"].values() for v in response)
    axes = figure.subplots(1, len(values["responses"]), squeeze=False)[0]
    for axis, (omega, response) in zip(axes, values["responses"].items(), strict=True):
        drawn = _draw_graph(axis, values, response, -bound, bound, "RdBu_r", marked=values["node"])
        kind = "mixed signs" if min(response) < 0 else "no negative value"
        axis.set_title(f"ω = {omega}: {kind}")
        told = f"at the node {response[values['node']]:.2f}, at a neighbour {response[values['node'] - 1]:.2f}"
        axis.set_xlabel(told.replace("-", "−"))
    figure.colorbar(drawn, ax=list(axes), label="response to a unit at the dashed node", shrink=0.85)
    return True


def _gradient(figure: Figure, results: Results) -> bool:
    """A graph with a feature, its upwind gradient, what the networks estimate, and every loss."""
    record = results.find("gradient")
    if record is None:
        return False
    values = record["values"]
    shown = {"Input f": values["features"], "Gradient ∇f": values["gradient"], **values["estimates"]}
    graphs, chart = cast("Sequence[SubFigure]", figure.subfigures(1, 2, width_ratios=(len(shown), 2.2), wspace=0.06))
    axes = graphs.subplots(1, len(shown))
    flat = [value for each in shown.values() for value in each]
    for axis, (title, each) in zip(axes, shown.items(), strict=True):
        drawn = _draw_graph(axis, values, each, min(flat), max(flat), "viridis")
        axis.set_title(title)
        if title in values["losses"]:
            axis.set_xlabel(f"squared error {values['losses'][title][0]:.1g}".replace("-", "−"))
    graphs.colorbar(drawn, ax=list(axes), label="value", shrink=0.9, pad=0.02)
    axis = chart.subplots()
    for place, errors in enumerate(values["losses"].values()):
        losses = np.maximum(errors, NO_ERROR)
        axis.scatter(np.linspace(place - 0.2, place + 0.2, len(losses)), losses, s=12, color="#2a6fbb")
        axis.hlines(np.median(losses), place - 0.35, place + 0.35, color="#1c2430", linewidth=2)
    axis.set(yscale="log", ylabel=f"squared error, ≥ {NO_ERROR:g}", title=f"{values['graphs']} graphs and their median")
    axis.set_xticks(range(len(values["losses"])), [name.replace(" with", "\nwith") for name in values["losses"]])
    return True


def _draw_graph(
    axis: Axes,
    values: dict[str, Any],
    colours: Sequence[float],
    low: float,
    high: float,
    scale: str,
    marked: int | None = None,
) -> Any:
    from matplotlib.collections import LineCollection

    places = np.array(values["places"], dtype=float)
    lines = [places[list(edge)] for edge in values["edges"]]
    axis.add_collection(LineCollection(lines, colors=LINE, linewidths=1.2, zorder=0))
    drawn = axis.scatter(
        places[:, 0], places[:, 1], c=colours, s=170, cmap=scale, vmin=low, vmax=high, edgecolors=GREY, linewidths=0.8
    )
    if marked is not None:
        axis.scatter(
            places[marked, 0],
            places[marked, 1],
            s=360,
            facecolors="none",
            edgecolors="#1c2430",
            linestyles="--",
            linewidths=1.4,
        )
    axis.set(xticks=[], yticks=[])
    axis.margins(0.14)
    axis.set_aspect("equal")
    axis.spines[:].set_visible(False)
    return drawn


# ----------------------------------------------------------------------------------------------------- energy and Euler


def _energy(figure: Figure, results: Results) -> bool:
    """Energy of each layer's features relative to the embedding's, for fixed and learnt ω."""
    networks, found = energy_networks(), False
    quick = results.quick
    axes = figure.subplots(2, len(CITATION), sharex=True, squeeze=False)
    for row, title in enumerate(("ωGCN", "ωGAT")):
        for axis, data in zip(axes[row], CITATION, strict=True):
            for omega in (*(f"{value:g}" for value in ENERGY_OMEGAS), "learnt"):
                training = networks[data, title, omega]
                record = results.find((training.quick() if quick else training).tag)
                if record is None or not record.get("energy") or not record["energy"][0]:
                    continue
                found = True
                energy = (
                    np.array([np.nan if value is None else value for value in record["energy"]]) / record["energy"][0]
                )
                axis.plot(
                    range(len(energy)), np.maximum(energy, 1e-12), color=OMEGA_COLOURS[omega], label=f"ω {_is(omega)}",
                    linewidth=3 if omega == "learnt" else 1.6, linestyle="-" if omega in ("1", "learnt") else "--",
                )  # fmt: skip
            axis.set_title(f"{title} on {TITLES[data]}")
            axis.set_yscale("log")
            if row:
                axis.set_xlabel("layer l")
            _say_if_empty(axis)
        axes[row][0].set_ylabel("E(f⁽ˡ⁾) / E(f⁽⁰⁾)" if title == "ωGCN" else "E_GAT(f⁽ˡ⁾) / E_GAT(f⁽⁰⁾)")
    _legend(figure, axes)
    return found


def _euler(figure: Figure, results: Results) -> bool:
    """The error of L steps of forward Euler, falling as 1/L."""
    record = results.find("euler")
    if record is None:
        return False
    depths, errors = np.array(record["values"]["depths"]), np.array(record["values"]["errors"])
    axis = figure.subplots()
    for number, each in enumerate(errors):
        axis.plot(depths, each, color="#b5342c", alpha=0.45, marker="o", markersize=3, linewidth=1,
                  label="‖f(T) − f⁽ᴸ⁾‖₂, one matrix a line" if not number else None)  # fmt: skip
    axis.plot(depths, 1 / depths, color="#2a6fbb", linestyle=":", linewidth=2, label="1/L")
    slope = np.polyfit(np.log(depths), np.log(errors.T), 1)[0]
    axis.set(xscale="log", yscale="log", xlabel="layers L", ylabel="error at T = 1",
             title=f"Forward Euler: slope {slope.min():.2f} to {slope.max():.2f}".replace("-", "−"))  # fmt: skip
    axis.set_xticks(depths, [str(depth) for depth in depths])
    axis.minorticks_off()
    axis.legend(frameon=False)
    return True


# ------------------------------------------------------------------------------------------------------------- learnt ω


def _mean_omega(figure: Figure, results: Results) -> bool:
    """Mean ω against the depth, and beside it L times the mean, which the law 1/L would keep constant."""
    found = False
    axes = figure.subplots(2, 2, sharex=True, squeeze=False)
    for row, kind in enumerate(("published", "chosen")):
        for data in CITATION:
            for name, style in (("ωGCN_PL", "-"), ("ωGCN_G", ":"), ("ωGCN", "--")):
                points = [
                    (depth, mean) for depth in DEPTHS if (mean := _mean(results, kind, data, name, depth)) is not None
                ]
                if not points:
                    continue
                found = True
                depths, means = np.array(points).T
                label = f"{TITLES[data]}, {name.replace('_', ' ') if '_' in name else name + ' (channel)'}"
                options: dict[str, Any] = {
                    "color": DATA_COLOURS[data],
                    "linestyle": style,
                    "marker": "o",
                    "markersize": 4,
                }
                axes[row][0].plot(depths, means, label=label, **options)
                axes[row][1].plot(depths, depths * means, **options)
        settings = "published settings" if kind == "published" else "small rates, chosen on validation"
        axes[row][0].set(title=f"Mean ω, {settings}", ylabel="ω̄ = (1/L) Σ ω⁽ˡ⁾")
        axes[row][1].set(title=f"L · mean ω, {settings}", ylabel="L ω̄ = Σ ω⁽ˡ⁾")
        for axis in axes[row]:
            _say_if_empty(axis)
            axis.axhline(0, color=LINE, zorder=0)
            axis.set_xscale("log", base=2)
            axis.set_xticks(DEPTHS, [str(depth) for depth in DEPTHS])
        axes[row][0].axhline(1, color=LINE, linestyle="--", zorder=0)
    for axis in axes[1]:
        axis.set_xlabel("layers L")
    _legend(figure, axes)
    return found


def _mean(results: Results, kind: str, data: str, name: str, depth: int) -> float | None:
    """Return the mean ω over the members that count."""
    training = mean_omega_networks().get((kind, data, name, depth))
    if training is None:
        return None
    record = results.find((training.quick() if results.quick else training).tag)
    if record is None or not record.get("omega"):
        return None
    members = [record["omega"]["members"][k] for k in chosen_members(record)]
    return None if None in members else float(np.mean(members))


def _maps(figure: Figure, results: Results) -> bool:
    """Learnt ω, layers across and channels up; blue smooths, red sharpens, white is 1."""
    records: dict[tuple[str, str], Record | None] = {}
    for key, training in map_networks().items():
        records[key] = results.find((training.quick() if results.quick else training).tag)
    if not any(record is not None and record.get("map") for record in records.values()):
        return False
    axes = figure.subplots(2, 2, squeeze=False)
    for row, data in enumerate(("cora", "texas")):
        for axis, kind in zip(axes[row], ("published", "small rates"), strict=True):
            record = records[data, kind]
            axis.set_title(f"{TITLES[data]}, {'published settings' if kind == 'published' else kind}")
            axis.set(xlabel="layer", ylabel="channel, by its mean ω")
            if record is None or not record.get("map"):
                _say_if_empty(axis)
                continue
            _draw_map(figure, axis, np.array(record["map"], dtype=float), summary(record))
    return True


def _draw_map(figure: Figure | SubFigure, axis: Axes, layers: np.ndarray, accuracy: Any) -> None:
    from matplotlib.colors import TwoSlopeNorm

    ordered = layers[:, layers.mean(0).argsort()].T
    reach = max(float(np.nanmax(np.abs(ordered - 1))), 1e-3)
    drawn = axis.imshow(
        ordered, origin="lower", cmap="RdBu_r", norm=TwoSlopeNorm(1.0, 1 - reach, 1 + reach), interpolation="nearest",
        extent=(0.5, layers.shape[0] + 0.5, 0.5, layers.shape[1] + 0.5),
    )  # fmt: skip
    figure.colorbar(drawn, ax=axis, label="ω  (blue < 1 smooths, red > 1 sharpens)", shrink=0.9)
    accurate = f", test {accuracy.mean:.1f} %" if accuracy is not None else ""
    axis.set_title(f"{axis.get_title()}\nω from {ordered.min():.2f} to {ordered.max():.2f}{accurate}".replace("-", "−"))


# --------------------------------------------------------------------------------------------------------------- pieces


def _is(omega: str) -> str:
    return "learnt" if omega == "learnt" else f"= {omega}"


def _say_if_empty(axis: Axes) -> None:
    if not axis.has_data():
        axis.text(0.5, 0.5, "not run", transform=axis.transAxes, ha="center", va="center", color=GREY)


def _legend(figure: Figure, axes: np.ndarray) -> None:
    """Put one legend for all panels beneath them."""
    entries = {
        label: line for axis in axes.ravel() for line, label in zip(*axis.get_legend_handles_labels(), strict=True)
    }
    if entries:
        figure.legend(
            list(entries.values()), list(entries), loc="outside lower center", ncols=min(6, len(entries)), frameon=False
        )


PICTURES: dict[str, Picture] = {
    "paper_impulse": Picture(
        "impulse",
        "One propagation of one unit on a grid at ω = 0.5, 1 and 1.5",
        "The paper draws a graph of its own; here it is a grid. Signs are mixed beyond 1 + 1/d (d the degree), not beyond 1.",
        _impulse,
        (11, 3.6),
    ),
    "paper_gradient": Picture(
        "gradient",
        "A node feature, its gradient, estimates of it, all errors",
        "Two layers of 64 channels, trained on each graph. GCN with biases is not in the paper.",
        _gradient,
        (15, 2.9),
    ),
    "paper_energy": Picture(
        "energy",
        "Energy of the features against the layer for fixed and learnt ω",
        "Trained networks of 64 layers, a small rate for K (1e-5) and one for ω (0.03), first seed, at the honest epoch; the "
        "Dirichlet energy for ωGCN, that of attention for ωGAT. ω = 1 is GCN or GAT with K from the identity.",
        _energy,
        (12, 6.6),
    ),
    "paper_mean_omega": Picture(
        "mean-omega",
        "Mean ω and L times mean ω against the depth",
        "Means over the seeds. By the law ω̄ ~ 1/L the right panels would be level.",
        _mean_omega,
        (11, 7.4),
    ),
    "paper_euler": Picture(
        "euler",
        "Error of forward Euler against the number of layers, beside 1/L",
        "A is M Mᵀ with Gaussian M (100 × 100), scaled to a diagonal of ones.",
        _euler,
        (6.4, 4.2),
    ),
    "paper_omega_maps": Picture(
        "omega-maps",
        "Learnt ω of 64 layers and 64 channels on Cora and Texas",
        "First seed, on Texas first split; channels are sorted by their mean. The paper publishes no depth for Texas: its "
        "settings are taken to 64 layers. *Small rates* are 1e-5 for K and 0.03 for ω.",
        _maps,
        (10, 8.6),
    ),
}

__all__ = ["PICTURES", "Picture", "draw_pictures"]
