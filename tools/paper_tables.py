"""What the presets need of the paper's tables: settings and accuracies of its own networks, from published.toml."""

from __future__ import annotations

from collections.abc import Iterator

from omegagnn.paper.published import published_table

MODELS = {"ωGCN": "omega-gcn", "ωGAT": "omega-gat"}
SCOPES = {"channel": "", "global": "_G", "layer": "_PL"}


def settings_of(table: str) -> dict[tuple[str, str], list[str]]:
    """Return the cells of a table of settings by model and data set."""
    found = {}
    for row, cells in published_table(table).rows.items():
        model, data = row.split(" / ")
        found[MODELS[model], data] = list(cells)
    return found


def semi_scores() -> Iterator[tuple[str, str, str, int, list[float]]]:
    """Yield model, data set, scope, number of the table and the accuracies by depth."""
    for title, model in MODELS.items():
        for scope, mark in SCOPES.items():
            for data in ("cora", "citeseer", "pubmed"):
                scopes = published_table(f"scopes-{model.removeprefix('omega-')}")
                number = published_table("semi-depth").number if scope == "channel" else scopes.number
                cells = scopes.rows[f"{data} / {title}{mark}"]
                yield model, data, scope, number, [float(cell) for cell in cells]


def score_of(model: str, data: str, tables: tuple[str, ...]) -> tuple[int, float, float | None]:
    """Return the number of the table that has a data set, the accuracy and its deviation, if one is printed."""
    title = next(title for title, name in MODELS.items() if name == model)
    for table in (published_table(name) for name in tables):
        if (cell := table.cell(title, data)) is not None:
            return table.number, cell.value, cell.sd
    raise ValueError(f"No table of {tables} has {model} on {data}.")


def runtime_scores() -> dict[str, float]:
    """Return the accuracies of the two baselines whose times are compared."""
    cells = published_table("runtimes")
    return {"gcn": float(cells.rows["Accuracy"][0]), "gat": float(cells.rows["Accuracy"][1])}
