"""The model card, ``README.md`` in the folder of a model: on what it was trained, how good it is, by which rule, its limits."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from omegagnn import __version__
from omegagnn.data.registry import find_or_none
from omegagnn.training.config import RunConfig
from omegagnn.training.metrics import commonest_class_score
from omegagnn.training.protocol import PROTOCOLS, NotApplicable
from omegagnn.training.signature import Signature

if TYPE_CHECKING:
    from omegagnn.data.dataset import Dataset
    from omegagnn.training.fit import Result
    from omegagnn.training.prediction import Predictor

SHA256_HERE = "SHA256-OF-THE-WEIGHTS"  # put in when the weights are written
MOST_NAMED = 20  # classes, columns and splits that are named one by one
MODELS = {"omega-gcn": "ωGCN", "omega-gat": "ωGAT"}


def run_card(result: Result, dataset: Dataset | None = None) -> str:
    """Return the card of a finished run; `dataset` is its own data, where it is at hand, to be audited."""
    predictor = result.predictor
    return _card(
        result.run,
        predictor,
        [
            _section("Use", _use(predictor.signature)),
            _section("Data", _data(predictor.signature, dataset)),
            _section("Metrics", _metrics(result, dataset)),
            _section("Protocol", _protocol(result)),
            _section("Limits", _limits(predictor.signature, result)),
            _section("Files", _files()),
        ],
    )


def fitted_card(predictor: Predictor, validation: Sequence[float]) -> str:
    """Return the card of a classifier that was fitted in Python; `validation` is the accuracy of each seed in ``[0, 1]``."""
    mean = 100 * sum(validation) / len(validation)
    measured = (
        f"Accuracy on the validation nodes, which also chose the epoch of the weights: {mean:.2f} %, mean of "
        f"{_count(len(validation), 'seed')}. It is no estimate for other nodes, and a test was not made."
    )
    use = '```python\nfrom omegagnn import OmegaClassifier\n\nmodel = OmegaClassifier.from_pretrained("FOLDER")\n```'
    return _card(
        "OmegaClassifier",
        predictor,
        [
            _section("Use", use),
            _section("Data", _data(predictor.signature, None)),
            _section("Metrics", measured),
            _section("Protocol", _rule_in_words(predictor)),
            _section("Limits", _limits(predictor.signature, None)),
            _section("Files", _files()),
        ],
    )


def bare_card(predictor: Predictor) -> str:
    """Return the card of a predictor alone: nothing is known of how its members did."""
    metrics = "Not told by who saved it; `omegagnn export RUN --out FOLDER` writes the scores of a run."
    return _card(
        predictor.signature.name,
        predictor,
        [
            _section("Use", _use(predictor.signature)),
            _section("Data", _data(predictor.signature, None)),
            _section("Metrics", metrics),
            _section("Protocol", _rule_in_words(predictor)),
            _section("Limits", _limits(predictor.signature, None)),
            _section("Files", _files()),
        ],
    )


def _rule_in_words(predictor: Predictor) -> str:
    return f"Rule `{predictor.rule}`: {PROTOCOLS[predictor.rule].summary}. Labels of other items were not looked at."


def _card(name: str, predictor: Predictor, sections: list[str]) -> str:
    signature = predictor.signature
    items = "graph" if signature.task == "graph" else "node"
    head = f"---\nlibrary_name: omegagnn\npipeline_tag: graph-ml\ntags:\n- {items}-classification\n---\n"
    members = "" if predictor.members == 1 else f" {predictor.members} members, whose probabilities are averaged."
    what = (
        f"{describe(predictor.config)}, made with omegagnn {__version__}. It gives each {items} "
        f"{'some of' if signature.multilabel else 'one of'} {signature.classes} classes: "
        f"{_named(signature.names_of_classes)}.{members}"
    )
    return "\n\n".join([head + f"\n# {name}", what, *sections]) + "\n"


def describe(config: RunConfig) -> str:
    """Return what the network is, in words."""
    model = config.model
    text = f"{MODELS.get(model.name, model.name)}, {_count(model.layers, 'layer')} of {model.channels} channels"
    return f"{text}, ω: {model.omega}" if model.name in MODELS else text


def _use(signature: Signature) -> str:
    where = "a folder of tables with the same columns" if signature.schema is not None else "a data set that fits"
    return (
        f"`FOLDER` is this folder, `GRAPH` the name of a data set or {where}.\n\n"
        "```bash\nomegagnn predict FOLDER --graph GRAPH --out predictions.csv\n```\n\n"
        "```python\nfrom omegagnn import Predictor\n\n"
        'table = Predictor.from_pretrained("FOLDER").table("GRAPH")  # id, predicted, p(CLASS)\n```'
    )


def _data(signature: Signature, dataset: Dataset | None) -> str:
    entry = find_or_none(signature.name)
    sizes = f"{signature.nodes:,} nodes, {signature.edges:,} edges as stored (an undirected one counts twice)"
    rows = [
        ("name", signature.name),
        (
            "task",
            {"node": "nodes of one graph", "graph": "whole graphs", "inductive": "nodes of many graphs"}[
                signature.task
            ],
        ),
        ("size", f"{signature.graphs:,} graphs, {sizes}" if signature.task != "node" else sizes),
        ("features", f"{signature.features:,}"),
        ("classes", _named(signature.names_of_classes)),
    ]
    if entry is not None:
        rows += [("licence of the data", entry.licence), ("to cite", entry.citation)]
    rows += [
        (f"SHA-256 of the {part}", f"`{getattr(signature, f'{part}_sha256')}`")
        for part in ("features", "graph", "labels")
    ]
    parts = [_table(("", ""), rows)]
    if signature.schema is not None and signature.schema.columns:
        columns = signature.schema.columns
        shown = [(column.name, column.kind, len(column.feature_names)) for column in columns[:MOST_NAMED]]
        more = f"\n\n… and {len(columns) - MOST_NAMED} more in `schema.json`." if len(columns) > MOST_NAMED else ""
        parts.append(_table(("column", "kind", "features"), shown) + more)
    if dataset is not None:
        from omegagnn.data.audit import audit

        warnings: Sequence[str] = audit(dataset).warnings
        none = "The audit of the data (`omegagnn data audit`) had no warning."
    else:
        warnings = () if entry is None else entry.problems
        none = "The data was not audited for this card."
    parts.append("\n".join(f"- {warning}" for warning in warnings) or none)
    return "\n\n".join(parts)


def _metrics(result: Result, dataset: Dataset | None) -> str:
    kind = "micro-F1" if result.predictor.signature.multilabel else "accuracy"
    rows = []
    for name, rule in PROTOCOLS.items():
        looks = "test (optimistic)" if rule.optimistic else "validation"
        own = f"**{name}**" if name == result.row["protocol"] else name
        try:
            test = result.test(name)
            rows.append(
                (own, looks, f"{test.mean:.2f}", f"{test.sd:.2f}", f"{test.low:.2f} to {test.high:.2f}", str(test.n))
            )
        except NotApplicable:
            rows.append((own, looks, "does not apply", "", "", ""))
    columns = ("rule", "selects on", "mean %", "sd", "95 % interval of the mean", "n")
    words = [f"Test {kind} of single members. The rule of this run is in bold; the others read the same curves."]
    if dataset is not None and dataset.task != "inductive" and not dataset.is_multilabel:
        from omegagnn.training.evaluation import splits_of_members

        scores = [
            commonest_class_score(dataset.labels, split.train, split.test)
            for split in splits_of_members(result, dataset)
        ]
        words.append(
            f"Always answering the commonest class of training would have {100 * sum(scores) / len(scores):.2f} %."
        )
    return " ".join(words) + "\n\n" + _table(columns, rows)


def _protocol(result: Result) -> str:
    rule, row = PROTOCOLS[result.row["protocol"]], result.row
    members = result.journal.members(result.run)
    splits = {member["split"]: member["split_hash"] for member in members}
    seeds = sorted({member["seed"] for member in members})
    training = result.config.training
    stop = "to the end" if training.patience is None else f"patience {training.patience}"
    chosen = (
        "**Test labels chose the epoch: the number is optimistic.**"
        if rule.optimistic
        else "Test labels chose nothing."
    )
    environment = json.loads(row["environment"])
    versions = ", ".join(f"{name} {version}" for name, version in environment.get("versions", {}).items())
    rows = [
        ("rule", f"`{rule.name}`: {rule.summary}. {chosen}"),
        ("seeds", _named([str(seed) for seed in seeds])),
        ("splits", _named([f"{name} (`{digest[:12]}`)" for name, digest in splits.items()])),
        ("weights", f"of the epochs that rule `{result.predictor.rule}` chose"),
        ("epochs", f"at most {training.epochs:,}, {stop}"),
        ("preset", row["preset"] or "none"),
        ("configuration", f"`{row['config_hash']}`"),
        ("trained with", f"{versions} on {environment.get('device')}"),
    ]
    return _table(("", ""), rows)


def _limits(signature: Signature, result: Result | None) -> str:
    if signature.task == "graph":
        where = f"The score is for graphs like those of {signature.name}."
    elif signature.task == "inductive":
        where = f"The score is for nodes of graphs like those of {signature.name}."
    else:
        where = (
            f"The score is for nodes of {signature.name}, whose features and edges, but not labels, were there in training; "
            "nodes added later and other graphs may do worse."
        )
    lines = [
        where,
        "It knows no class but its own, and answers with one of them whatever it is shown.",
        "Features must be those of training in kind, coding and order; `omegagnn predict` refuses others, a bare network cannot.",
        "Probabilities were not corrected: `omegagnn evaluate` tells how far they can be trusted.",
    ]
    if result is not None:
        lines.insert(
            1,
            f"Read at its best test epoch, each member would stand {result.optimism_gap:.2f} points higher; numbers made that "
            "way elsewhere do not compare.",
        )
        if result.test().n == 1:
            lines.insert(2, "One seed on one split: the spread over others is unknown.")
    return "\n".join(f"- {line}" for line in lines)


def _files() -> str:
    return _table(
        ("file", "what it holds"),
        [
            ("`config.json`", "configuration, class names, rule"),
            ("`model.safetensors`", f"weights of every member, SHA-256 `{SHA256_HERE}`"),
            ("`data.json`, `schema.json`", "sizes, names and hashes of the data; how columns were coded"),
        ],
    )


def _section(title: str, text: str) -> str:
    return f"## {title}\n\n{text}"


def _table(columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> str:
    lines = [columns, ["---"] * len(columns), *rows]
    return "\n".join("| " + " | ".join(str(cell).replace("|", "\\|") for cell in line) + " |" for line in lines)


def _named(names: Sequence[str]) -> str:
    more = f" … ({len(names)} in all)" if len(names) > MOST_NAMED else ""
    return ", ".join(names[:MOST_NAMED]) + more


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


__all__ = ["bare_card", "describe", "fitted_card", "run_card"]
