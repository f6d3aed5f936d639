"""What is trained for the tables and figures on nodes: semi-supervised, fully supervised, inductive."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache

from omegagnn.paper.cells import Cell
from omegagnn.paper.networks import DEPTHS, NETWORKS, at_equal_budget, compared
from omegagnn.paper.published import published_table
from omegagnn.paper.trainings import Training, from_preset
from omegagnn.training.presets.names import preset_names

CITATION = ("cora", "citeseer", "pubmed")
OURS = {"ωGCN": "omega-gcn", "ωGAT": "omega-gat"}
SCOPES = {"_G": "global", "_PL": "layer", "": "channel"}
ENERGY_OMEGAS = (1.0, 0.1, 0.01, 0.001, 0.0001)
# Data sets that a table of the paper does not have, and whose published settings they are trained with.
MENDED = {"cornell-corrected": "cornell", "chameleon-filtered": "chameleon", "squirrel-filtered": "squirrel"}
RANDOM_SPLITS = ("diffusion:100", "random-20:100")
# As the released script has it for these two: batch norm in the place of ReLU between the layers.
SCRIPT = {"model.norm": "batch", "model.activation": None}
# A small rate for K and one for ω, as a study on Cora chose them for 64 layers (the preset tuned/cora-omega-gcn-64).
DEEP = {
    "training__lr_gnn": 1e-5,
    "training__lr_omega": 0.03,
    "training__lr_oc": 0.03,
}


# ---------------------------------------------------------------------------------------------------- semi-supervised


def _semi_published(title: str, data: str, layers: int) -> Training | None:
    """Return the training of a row of ours, such as ωGCN_PL, with the settings that the paper gives."""
    model = next((model for name, model in OURS.items() if title.startswith(name)), None)
    if model is None:
        return None
    scope = SCOPES[title.removeprefix("ωGCN").removeprefix("ωGAT")]
    suffix = "" if scope == "channel" else f"-{scope}"
    called = f"semi {data}, {title}, {layers} layers, published"
    return from_preset(f"semi/{data}-{model}-{layers}{suffix}", f"semi-{data}", called)


def depth() -> Iterator[Cell]:
    """Yield the cells of the depth table: what we can build, at every depth."""
    for data in CITATION:
        for network in compared("semi"):
            for layers in DEPTHS:
                fixed = network.title in OURS
                yield Cell(
                    network.title,
                    f"{data}-{layers}",
                    "semi-depth",
                    _semi_published(network.title, data, layers) if fixed else None,
                    at_equal_budget(network, data, "semi", layers),
                    layers,
                )


def summary() -> Iterator[Cell]:
    """Yield the cells of the depth table whose rows the summary has."""
    rows = published_table("semi-summary").columns
    yield from (cell for cell in depth() if cell.row in rows)


def _scopes(title: str) -> Iterator[Cell]:
    for data in CITATION:
        for suffix in SCOPES:
            for layers in DEPTHS:
                row = f"{title}{suffix}"
                yield Cell(
                    f"{data} / {row}",
                    str(layers),
                    f"scopes-{title[1:].lower()}",
                    _semi_published(row, data, layers),
                    at_equal_budget(NETWORKS[row], data, "semi", layers),
                    layers,
                )


def scopes_gcn() -> Iterator[Cell]:
    """Yield the cells of the ablation of ωGCN."""
    yield from _scopes("ωGCN")


def scopes_gat() -> Iterator[Cell]:
    """Yield the cells of the ablation of ωGAT."""
    yield from _scopes("ωGAT")


def timed() -> Iterator[Cell]:
    """Yield the accuracies that stand below the run times."""
    for row in ("GCN", "GAT", "ωGCN", "ωGAT"):
        model = OURS.get(row, row.lower())
        training = from_preset(
            f"semi/cora-{model}-2",
            "semi-cora",
            f"semi cora, {row}, 2 layers, published",
            rules=("validation-accuracy",),
        )
        yield Cell("Accuracy", row, "runtimes", training)


def random_splits() -> Iterator[Cell]:
    """Yield 100 random splits, drawn in two ways: published settings of 2 layers, and GCN and GAT at usual rates."""
    for split in RANDOM_SPLITS:
        kind = split.split(":")[0]
        for data in CITATION:
            for row in ("GCN", "GAT", "ωGCN", "ωGAT"):
                network, group, values = NETWORKS[row], f"random-{data}", {"data.split": split}
                called = f"random {data}, {row}, 2 layers, {kind}"
                published = None
                if row in OURS:
                    preset = f"semi/{data}-{OURS[row]}-2"
                    published = from_preset(preset, group, f"{called}, published", values, seeds=1)
                whole = at_equal_budget(network, data, "semi", 2, data__split=split)
                # One choice for everybody: four would be 400 members, and the table compares means over splits.
                first = {f"training.{key}": value for key, value in network.choices[0].items()}
                chosen = Training(f"{called}, usual", group, whole.config.with_values(first))
                yield Cell(row, data, "random-splits", published, chosen, variant=kind)


# --------------------------------------------------------------------------------------------------- fully supervised


def homophilic() -> Iterator[Cell]:
    """Yield the citation graphs on ten splits."""
    yield from _full("homophilic", CITATION)


def heterophilic() -> Iterator[Cell]:
    """Yield the heterophilic graphs on ten splits, with the corrected Cornell and the filtered Wikipedia pages."""
    released = published_table("heterophilic").columns
    order = [name for data in released for name in (data, *(new for new, old in MENDED.items() if old == data))]
    yield from _full("heterophilic", tuple(order))


def _full(table: str, names: tuple[str, ...]) -> Iterator[Cell]:
    for data in names:
        for network in compared("full"):
            yield Cell(
                network.title,
                data,
                table,
                _full_published(network.title, data),
                at_equal_budget(network, data, "full", network.depth),
            )


def _full_published(title: str, data: str) -> Training | None:
    """Return the training with the published settings, those of the released data for a mended one; None for Squirrel's."""
    released = MENDED.get(data, data)
    preset = f"full/{released}-{OURS.get(title, '')}-2"
    if preset not in _presets():
        return None
    values = {"data.name": data, "data.split": "heterophilous"} if data.endswith("-filtered") else {"data.name": data}
    return from_preset(preset, f"full-{data}", f"full {data}, {title}, 2 layers, published", values)


@cache
def _presets() -> frozenset[str]:
    return frozenset(preset_names("full"))


def ppi() -> Iterator[Cell]:
    """Yield PPI, as the paper writes it and as the released script has it."""
    yield from _large("ppi", "inductive/ppi", "ppi")


def arxiv() -> Iterator[Cell]:
    """Yield ogbn-arxiv, as the paper writes it and as the released script has it."""
    yield from _large("ogbn-arxiv", "full/ogbn-arxiv", "arxiv")


def _large(data: str, preset: str, table: str) -> Iterator[Cell]:
    for title, model in OURS.items():
        for variant, values in {"": {}, "batch norm": SCRIPT}.items():
            called = f"{data}, {title}, 8 layers, {variant or 'ReLU'}, published"
            training = from_preset(f"{preset}-{model}-8", data, called, values)
            yield Cell(title, data, table, training, variant=variant)


# ------------------------------------------------------------------------------------------------------------ figures


@cache
def energy_networks() -> dict[tuple[str, str, str], Training]:
    """Return the 64-layer networks whose energies are drawn, by data set, title and ω (``learnt`` or a number)."""
    found = {}
    for data in CITATION:
        for title, model in OURS.items():
            for omega in ("learnt", *ENERGY_OMEGAS):
                scope = "channel" if omega == "learnt" else omega
                values = {"model__name": model, "model__omega": scope, **DEEP}
                base = at_equal_budget(NETWORKS[title], data, "semi", 64, **values)
                name = f"semi {data}, {title}, 64 layers, ω {omega if isinstance(omega, str) else f'{omega:g}'}, energy"
                key = (data, title, omega if isinstance(omega, str) else f"{omega:g}")
                found[key] = Training(name, f"energy-{data}", base.config, also=("energy",))
    return found


def energy_trainings() -> Iterator[Training]:
    """Yield the networks of the energy figures."""
    yield from energy_networks().values()


@cache
def mean_omega_networks() -> dict[tuple[str, str, str, int], Training]:
    """Return the networks whose mean ω is drawn, by kind of settings, data set, row and depth."""
    found = {}
    for cell in _scopes("ωGCN"):
        data, row = cell.row.split(" / ")
        for kind, training in (("published", cell.published), ("chosen", cell.chosen)):
            if training is not None and cell.depth is not None:
                found[kind, data, row, cell.depth] = training
    return found


def mean_omega_trainings() -> Iterator[Training]:
    """Yield the networks of the figure of mean ω."""
    yield from mean_omega_networks().values()


@cache
def map_networks() -> dict[tuple[str, str], Training]:
    """Return the networks of 64 layers whose ω is drawn, by data set and kind of settings."""
    found = {
        ("cora", "published"): from_preset(
            "semi/cora-omega-gcn-64", "semi-cora", "semi cora, ωGCN, 64 layers, published", also=("map",)
        )
    }
    called = "full texas, ωGCN, 64 layers, published, map"
    found["texas", "published"] = from_preset(
        "full/texas-omega-gcn-2", "maps", called, {"model.layers": 64}, also=("map",)
    )
    for data, task in (("cora", "semi"), ("texas", "full")):
        base = at_equal_budget(NETWORKS["ωGCN"], data, task, 64, **DEEP)
        name = f"{task} {data}, ωGCN, 64 layers, small rates, map"
        found[data, "small rates"] = Training(name, "maps", base.config, seeds=1, also=("map",))
    return found


def map_trainings() -> Iterator[Training]:
    """Yield the networks of the ω maps."""
    yield from map_networks().values()
