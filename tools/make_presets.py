"""Write src/omegagnn/training/presets/: a file for each row of the paper's tables, and those that studies here have chosen.

    python tools/make_presets.py

The tables stand in src/omegagnn/paper/published.toml as the paper prints them, once; what the paper does not say is filled in
here, with its source. The tuned presets are read from results/*.json.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from paper_tables import runtime_scores, score_of, semi_scores, settings_of

from omegagnn.training.presets.names import FOLDER, TASKS
from omegagnn.training.presets.preset import text_of

ROOT = Path(__file__).resolve().parent.parent
RATES = ("lr_gnn", "lr_oc", "lr_omega", "wd_gnn", "wd_oc", "wd_omega")
DEPTHS = (2, 4, 8, 16, 32, 64)
TITLES = {
    "cora": "Cora", "citeseer": "CiteSeer", "pubmed": "PubMed", "chameleon": "Chameleon", "film": "Film",
    "cornell": "Cornell (as released)", "texas": "Texas", "wisconsin": "Wisconsin", "ogbn-arxiv": "ogbn-arxiv",
    "mutag": "MUTAG", "ptc": "PTC", "proteins": "PROTEINS", "nci1": "NCI1", "nci109": "NCI109",
}  # fmt: skip
MODELS = {"omega-gcn": "ωGCN", "omega-gat": "ωGAT", "gcn": "GCN", "gat": "GAT"}

Leaf = dict[str, Any]
Tree = dict[str, Any]


def paper(value: Any, note: str | None = None) -> Leaf:
    return _leaf(value, "paper", note)


def script(value: Any, note: str | None = None) -> Leaf:
    return _leaf(value, "script", note)


def assumed(value: Any, note: str | None = None) -> Leaf:
    return _leaf(value, "assumed", note)


def measured(value: Any, note: str | None = None) -> Leaf:
    return _leaf(value, "measured", note)


def _leaf(value: Any, source: str, note: str | None) -> Leaf:
    return {"value": value, "source": source, **({} if note is None else {"note": note})}


def number(text: str) -> int | float:
    return int(text) if text.isdecimal() else float(text)


def omega_model(name: str, layers: Leaf, channels: Leaf, scope: str, dropout: Leaf, is_node: bool) -> Tree:
    """Return the part `model` of an ωGNN as the paper draws it."""
    tree = {
        "name": paper(name), "layers": layers, "channels": channels, "omega": paper(scope), "dropout": dropout,
        "variant": paper("paper"), "init": paper("identity"), "activation": paper("relu"),
    }  # fmt: skip
    if is_node:
        tree["norm"] = paper(None)
    if name == "omega-gat":
        tree["heads"] = assumed(1, "several are mentioned, but neither a number nor what they are")
    return tree


def rates_of(cells: list[str]) -> Tree:
    return {rate: paper(number(cell)) for rate, cell in zip(RATES, cells, strict=True)}


CONSTANT = assumed("constant", "no schedule is mentioned")
SYMMETRIC = paper(True, "the graph is called undirected")
GCNII = "as in the released code of GCNII, whose scheme the paper follows"


# ------------------------------------------------------------------------------------------------------ the four tasks


def semi() -> Iterator[tuple[str, Tree]]:
    settings = settings_of("semi-settings")
    for model, data, scope, table, scores in semi_scores():
        cells = settings[model, data]
        for depth, score in zip(DEPTHS, scores, strict=True):
            rows = [f"Table 12 (settings): {MODELS[model]}, {TITLES[data]}", f"Table {table} (accuracy)"]
            rows += ["Table 15 (run times)"] if (data, scope, depth) == ("cora", "channel", 2) else []
            tree = _semi_tree(data, rows, score, table)
            tree["about"] = (
                f"{MODELS[model]}, {depth} layers, {_scope(scope)}, on {TITLES[data]} with 20 labels a class"
            )
            tree["model"] = omega_model(
                model, paper(depth), paper(number(cells[6])), scope, paper(number(cells[7])), is_node=True
            )
            tree["training"] = {**rates_of(cells[:6]), **tree["training"]}
            yield _name("semi", tree), tree
    for model, score in runtime_scores().items():
        cells = settings[f"omega-{model}", "cora"]
        tree = _semi_tree("cora", ["Table 15 (run times)"], score, 15)
        tree["published"].pop("rule")
        tree["about"] = f"{MODELS[model]}, 2 layers, on Cora with 20 labels a class: a baseline of the run times"
        same = f"that of ω{MODELS[model]} on Cora, for equal work"
        tree["model"] = {
            "name": paper(model),
            "layers": paper(2),
            "channels": assumed(number(cells[6]), same),
            "dropout": assumed(number(cells[7]), same),
        }
        rates = {
            rate: assumed(number(cell), same) for rate, cell in zip(RATES, cells, strict=False) if "omega" not in rate
        }
        tree["training"] = {**rates, **tree["training"]}
        yield _name("semi", tree), tree


def _semi_tree(data: str, rows: list[str], score: float, table: int) -> Tree:
    rule = script("validation-accuracy", "the paper names the scheme of GCNII, which is rule gcnii")
    return {
        "about": "",
        "rows": rows,
        "published": {"score": score, "where": f"Table {table}", "rule": rule},
        "seeds": assumed(10, "the script trains one, which has no interval"),
        "data": {"name": paper(data), "split": paper("public"), "row_normalize": script(True), "symmetrize": SYMMETRIC},
        "model": {},
        "training": {"epochs": script(10000), "patience": script(400), "schedule": CONSTANT},
    }


def full() -> Iterator[tuple[str, Tree]]:
    for (model, data), cells in settings_of("full-settings").items():
        table, score, _ = score_of(model, data, ("homophilic", "heterophilic", "arxiv"))
        arxiv = data == "ogbn-arxiv"
        shallow = (
            "no depth is published for these splits; at the published rates deep networks leave their start at once"
        )
        depth = paper(8) if arxiv else assumed(2, shallow)
        like = "the paper leaves the cell empty; as in its other rows"
        channels = assumed(64, like) if cells[6] == "-" else paper(number(cells[6]))
        dropout = assumed(0.5, like) if cells[7] == "-" else paper(number(cells[7]))
        tree: Tree = {
            "about": f"{MODELS[model]}, {depth['value']} layers, on {TITLES[data]}, fully supervised",
            "rows": [f"Table 13 (settings): {MODELS[model]}, {TITLES[data]}", f"Table {table} (accuracy)"],
            "published": {
                "score": score,
                "where": f"Table {table}",
                "rule": paper("gcnii", "'the scheme of' GCNII"),
            },
            "seeds": assumed(1, "the paper averages over the splits") if not arxiv else assumed(10),
            "data": {
                "name": paper(data),
                "split": assumed("time", "the benchmark's own") if arxiv else paper("geom"),
                "row_normalize": _rows_sum_to_1(data),
                "symmetrize": SYMMETRIC,
            },
            "model": omega_model(model, depth, channels, "channel", dropout, is_node=True),
            "training": {
                **rates_of(cells[:6]),
                "epochs": assumed(1500, GCNII),
                "patience": assumed(100, GCNII),
                "schedule": CONSTANT,
            },
        }
        if arxiv:
            tree["model"]["activation"]["note"] = tree["model"]["norm"]["note"] = (
                "the script has batch norm instead of ReLU"
            )
        yield _name("full", tree), tree


def _rows_sum_to_1(data: str) -> Leaf:
    if data in ("cora", "citeseer", "pubmed"):
        return script(True)
    if data == "ogbn-arxiv":
        return assumed(False, "its features are averaged word vectors")
    if data == "chameleon":
        return assumed(False, "no scaling is mentioned, and its features are not counts of words")
    return assumed(True, "as for the citation data")


def inductive() -> Iterator[tuple[str, Tree]]:
    for model in ("omega-gcn", "omega-gat"):
        _, score, _ = score_of(model, "ppi", ("ppi",))
        tree: Tree = {
            "about": f"{MODELS[model]}, 8 layers, on PPI",
            "rows": ["Section 'Inductive learning' (settings)", "Table 5 (micro-averaged F1)"],
            "published": {"score": score, "where": "Table 5"},
            "seeds": assumed(1, "no number is stated, and a run is long"),
            "data": {
                "name": paper("ppi"),
                "split": paper("public"),
                "row_normalize": assumed(False, "no scaling is mentioned"),
                "symmetrize": SYMMETRIC,
            },
            "model": omega_model(model, paper(8), assumed(2048, GCNII), "channel", paper(0.2), is_node=True),
            "training": {
                **{rate: paper(0.001 if rate.startswith("lr") else 0) for rate in RATES},
                "batch_size": assumed(1, GCNII),
                "epochs": assumed(8000, GCNII),
                "patience": assumed(2000, GCNII),
                "schedule": CONSTANT,
            },
        }
        tree["model"]["activation"]["note"] = tree["model"]["norm"]["note"] = (
            "the script has batch norm instead of ReLU"
        )
        yield _name("inductive", tree), tree


def graph() -> Iterator[tuple[str, Tree]]:
    gin = "as in the released code of GIN, whose settings the paper follows"
    for (model, data), (*cells, batch) in settings_of("tu-settings").items():
        _, score, sd = score_of(model, data, ("tu",))
        tree: Tree = {
            "about": f"{MODELS[model]}, 4 layers behind the embedding, on {TITLES[data]}",
            "rows": [f"Table 14 (settings): {MODELS[model]}, {TITLES[data]}", "Table 6 (accuracy)"],
            "published": {"score": score, "sd": sd, "where": "Table 6", "rule": script("authors-tu")},
            "seeds": assumed(1, "one a fold"),
            "data": {
                "name": paper(data),
                "split": paper(
                    "kfold:10", "how the folds are drawn, and that a tenth of each training part validates, is ours"
                ),
                "row_normalize": assumed(False, "its features are one-hot labels"),
                "symmetrize": SYMMETRIC,
            },
            "model": omega_model(
                model,
                paper(4, "'a 5 layer (including the initial embedding layer)' network"),
                paper(number(cells[6])),
                "channel",
                paper(number(cells[7])),
                is_node=False,
            ),
            "training": {
                **rates_of(cells[:6]),
                "batch_size": paper(number(batch)),
                "epochs": script(300, "GIN has 350"),
                "patience": script(None, "its rule needs as many epochs on every fold"),
                "schedule": assumed("step", gin),
                "schedule_every": assumed(50, gin),
                "schedule_factor": assumed(0.5, gin),
            },
        }
        yield _name("graph", tree), tree


# ---------------------------------------------------------------------------------------- chosen here, read from results


def tuned() -> Iterator[tuple[str, Tree]]:
    depth_study = json.loads((ROOT / "results" / "depth_cora.json").read_text(encoding="utf-8"))
    settings = depth_study["settings"]
    ours = "ωGCN, small rate for K"
    for row in (row for row in depth_study["rows"] if row["row"] == ours):
        fixed = {key: settings[key] for key in settings if key.startswith(("model.", "training."))}
        fixed |= {key: value for key, value in settings["rows"][ours].items() if key != "choices"}
        fixed |= {"data.name": "cora", "model.layers": row["layers"], "training.epochs": row["epochs_at_most"]}
        chosen = {f"training.{key}": value for key, value in row["chosen"].items()}
        about = (
            f"ωGCN, {row['layers']} layers, on Cora with 20 labels a class: a small rate for K, chosen on validation"
        )
        yield _tuned(about, "results/depth_cora.json", fixed, chosen, settings["seeds"], row["test"])
    study = json.loads((ROOT / "results" / "default_job.json").read_text(encoding="utf-8"))
    fixed = {
        key: study["settings"][key] for key in study["settings"] if key.startswith(("data.", "model.", "training."))
    }
    chosen = {f"training.{key}": study["chosen"][key] for key in ("lr_gnn", "lr_oc", "wd_oc", "lr_omega")}
    chosen["model.dropout"] = study["chosen"]["dropout"]
    about = "ωGCN, 2 layers, on CiteSeer with 20 labels a class: the default job, chosen on validation"
    yield _tuned(about, "results/default_job.json", fixed, chosen, study["settings"]["seeds"], None)


def _tuned(about: str, file: str, fixed: Tree, chosen: Tree, seeds: int, test: Tree | None) -> tuple[str, Tree]:
    """Return a preset of a study: what it chose is measured, what it held fixed is assumed."""
    tree: Tree = {
        "about": about,
        "rows": [f"{file}: the setting with the best validation accuracy"],
        "seeds": assumed(seeds, "as many as in the study"),
        "data": {"name": assumed("cora"), "split": assumed("public"), "row_normalize": script(True), "symmetrize": SYMMETRIC},
        "model": {
            "name": assumed("omega-gcn"), "layers": assumed(2), "channels": assumed(64), "omega": assumed("channel"),
            "dropout": assumed(0.5), "variant": paper("paper"), "init": paper("identity"), "activation": paper("relu"),
            "norm": paper(None),
        },
        "training": {**dict.fromkeys(RATES), "epochs": None, "patience": None, "schedule": CONSTANT},
    }  # fmt: skip
    if test is not None:
        rule = measured("honest")
        tree["measured"] = {"score": round(test["mean"], 2), "sd": round(test["sd"], 2), "where": file, "rule": rule}
    for values, leaf in ((fixed, assumed), (chosen, measured)):
        for key, value in values.items():
            part, name = key.split(".")
            tree[part][name] = leaf(value, "held fixed in the study" if leaf is assumed else None)
    return _name("tuned", tree), tree


# ------------------------------------------------------------------------------------------------------------- writing


def _scope(scope: str) -> str:
    return {"channel": "an ω for each layer and channel", "layer": "an ω for each layer", "global": "one ω"}[scope]


def _name(task: str, tree: Tree) -> str:
    model = {key: leaf["value"] for key, leaf in tree["model"].items()}
    scope = f"-{model['omega']}" if model.get("omega", "channel") != "channel" else ""
    return f"{task}/{tree['data']['name']['value']}-{model['name']}-{model['layers']}{scope}"


def presets() -> dict[str, str]:
    """Return every preset's text by its name."""
    return {name: text_of(tree) for make in (semi, full, inductive, graph, tuned) for name, tree in make()}


def main() -> None:
    written = presets()
    for name, text in written.items():
        path = FOLDER / f"{name}.yaml"
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, encoding="utf-8")
    stale = [path for task in TASKS for path in (FOLDER / task).glob("*.yaml") if f"{task}/{path.stem}" not in written]
    for path in stale:
        path.unlink()
    print(f"{len(written)} presets in {FOLDER}, {len(stale)} removed")


if __name__ == "__main__":
    main()
