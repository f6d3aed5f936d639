"""``omegagnn reproduce``: the paper's tables and figures, trained and measured, beside what it prints."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from omegagnn.cli.completion import item_names
from omegagnn.cli.console import note, show, show_json, show_table
from omegagnn.cli.frame import AsJson, DataRoot, HelpfulGroup
from omegagnn.errors import InterruptedRun, OmegaError, WrongUse

if TYPE_CHECKING:
    from omegagnn.paper.experiments import Item
    from omegagnn.paper.results import Results
    from omegagnn.paper.runner import Tally

FULL, QUICK = Path("results/paper"), Path("results/paper-quick")


class _Items(HelpfulGroup):
    """A group whose first word may be an item: ``omegagnn reproduce tu`` is ``omegagnn reproduce run tu``."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Put ``run`` before what is no command."""
        if args and args[0] not in (*self.commands, "--help", "-h"):
            args = ["run", *args]
        return super().parse_args(ctx, args)

    def shell_complete(self, ctx: Any, incomplete: str) -> list[Any]:
        """Offer the items beside the commands."""
        commands = super().shell_complete(ctx, "")
        make = type(commands[0])  # the framework's own class, which has no public name
        items = [make(name) for name in item_names(incomplete)]
        return [*items, *(each for each in commands if each.value.startswith(incomplete))]


app = typer.Typer(cls=_Items, add_completion=False, rich_markup_mode=None)


ResultsFolder = Annotated[
    Path | None,
    typer.Option(
        "--results",
        metavar="FOLDER",
        help="Where records are kept [default: results/paper, with --quick results/paper-quick].",
        show_default=False,
    ),
]
Quick = Annotated[
    bool,
    typer.Option("--quick", help="A few epochs, seeds, splits and depths: shows that everything runs, nothing else."),
]


@app.callback()
def about() -> None:
    """Train and measure what the paper's tables and figures show, and set it beside what is printed.

    ``omegagnn reproduce ITEM...`` (short for ``reproduce run ITEM...``) does what an item lacks; ``all`` is every item.
    """


@app.command("run")
def run(
    items: Annotated[
        list[str],
        typer.Argument(
            metavar="ITEM...",
            help="Tables and figures, or all: see `reproduce list`.",
            autocompletion=item_names,
            show_default=False,
        ),
    ],
    quick: Quick = False,
    only: Annotated[
        list[str] | None,
        typer.Option(
            metavar="TEXT",
            help="Only trainings with these words in their names, such as 'cora 64 published'; may be repeated.",
        ),
    ] = None,
    resume: Annotated[
        bool, typer.Option("--resume/--no-resume", help="Take up what is there, done or broken off; or train all anew.")
    ] = True,
    minutes: Annotated[
        float | None, typer.Option(min=0.0, help="Begin nothing new after so many minutes; the same command goes on.")
    ] = None,
    device: Annotated[str | None, typer.Option(help="cpu or cuda [default: a GPU where there is one].")] = None,
    results: ResultsFolder = None,
    runs_dir: Annotated[
        Path | None,
        typer.Option(help="Where runs are kept [default: $OMEGAGNN_RUNS, else ./runs].", show_default=False),
    ] = None,
    data_root: DataRoot = None,
    as_json: AsJson = False,
) -> None:
    """Do what items lack, keep a record of each training, and print their tables.

    Nothing is done twice: what has a record is left alone, what the journal holds is taken from it, what was broken off goes on.
    Several processes may work at the same items. A data set that is not on this machine is not fetched; its cells say so.
    """
    from omegagnn.paper.experiments import find_items, work_of
    from omegagnn.paper.results import Results
    from omegagnn.paper.runner import Runner
    from omegagnn.training.environment import choose_device
    from omegagnn.training.fit import runs_folder

    chosen = find_items(items)
    work = work_of(chosen, quick, only)
    where = choose_device(device)
    kept = Results(_folder(results, quick), create=True)
    if kept.all() and kept.quick != quick:
        raise WrongUse(
            f"{kept.folder} has {'quick' if kept.quick else 'full'} results: pass another --results for the others."
        )
    runner = Runner(
        kept, runs_folder(runs_dir), where, data_root, not resume, minutes, tell=note, progress=_progress, quick=quick
    )
    try:
        tally = runner.do(work)
    except InterruptedRun:
        raise InterruptedRun("Interrupted and saved: the same command goes on where it stood.") from None
    _show(chosen, kept, tally, as_json)
    if tally.failed:
        name, reason = next(iter(tally.failed.items()))
        raise OmegaError(f"{len(tally.failed)} of {len(work)} failed, the first is {name!r}: {reason}")


@app.command("list")
def list_items(
    item: Annotated[
        str | None, typer.Argument(help="An item, to see all its trainings.", autocompletion=item_names)
    ] = None,
    quick: Quick = False,
    results: ResultsFolder = None,
    as_json: AsJson = False,
) -> None:
    """Show all items with how much of each is done, or the trainings of one."""
    from omegagnn.paper.experiments import ALL, find_items
    from omegagnn.paper.results import Results

    folder = _folder(results, quick)
    kept = Results(folder) if folder.is_dir() else None

    def is_done(work: Any) -> bool:
        return kept is not None and kept.find(work.tag) is not None

    chosen = find_items([item or ALL])
    if item is not None:
        states = [(each.name, "done" if is_done(each) else "missing") for one in chosen for each in one.work(quick)]
        if as_json:
            show_json([{"name": name, "state": state} for name, state in states])
        else:
            show_table("Trainings", ["training", "state"], [list(row) for row in states])
        return
    counts = [(each, sum(map(is_done, work := each.work(quick))), len(work)) for each in chosen]
    if as_json:
        show_json([{"item": i.key, "kind": i.kind, "about": i.about, "done": done, "of": of} for i, done, of in counts])
        return
    rows = [[each.key, each.kind, f"{done}/{of}", each.about] for each, done, of in counts]
    show_table("Items", ["item", "kind", "done", "what"], rows, right=["done"], cut_first=["what"])


@app.command("merge")
def merge(
    folders: Annotated[
        list[Path],
        typer.Argument(metavar="FOLDER...", help="Folders of records from other machines.", show_default=False),
    ],
    results: ResultsFolder = None,
    as_json: AsJson = False,
) -> None:
    """Take over what other machines have done; what is here already stays."""
    from omegagnn.paper.results import Results

    others = [Results(folder) for folder in folders]
    kept = Results(results or FULL, create=True)
    taken = sum(kept.merge(other) for other in others)
    if as_json:
        show_json({"taken": taken, "records": len(kept.all())})
    else:
        show(f"{taken} records taken over; {kept.folder} has {len(kept.all())}")


@app.command("report")
def report(
    results: ResultsFolder = None,
    out: Annotated[Path, typer.Option(metavar="FILE", help="The page of all tables.")] = Path("docs/results.md"),
    pictures: Annotated[
        Path | None,
        typer.Option(
            metavar="FOLDER", help="Where figures go [default: pictures beside the page].", show_default=False
        ),
    ] = None,
    html: Annotated[
        Path | None,
        typer.Option("--html", metavar="FILE", help="Also write everything on one HTML page that needs no network."),
    ] = None,
    draw: Annotated[bool, typer.Option("--draw/--no-draw", help="Draw the figures too.")] = True,
    as_json: AsJson = False,
) -> None:
    """Write the page of all tables and figures from the records alone; equal records give equal bytes."""
    from omegagnn.paper.experiments import ITEMS
    from omegagnn.paper.figures import draw_pictures
    from omegagnn.paper.page import results_page
    from omegagnn.paper.results import Results
    from omegagnn.training.checkpoint import write_bytes

    if out.suffix != ".md":
        raise WrongUse(f"--out {out} is no name for a page: end it in .md.")
    if html is not None and html.suffix.lower() not in (".html", ".htm"):
        raise WrongUse(f"--html {html} is no name for a page: end it in .html.")
    kept = Results(results or FULL)
    drawn = draw_pictures(kept, pictures or out.parent / "pictures", list(ITEMS)) if draw else []
    write_bytes(out, results_page(kept).encode())
    pages = [out]
    if html is not None:
        from omegagnn.report import write_paper_page

        write_paper_page(kept, html)
        pages.append(html)
    if as_json:
        show_json(
            {
                "pages": [str(page) for page in pages],
                "pictures": [str(path) for path in drawn],
                "records": len(kept.all()),
            }
        )
        return
    for path in (*pages, *drawn):
        show(str(path))


def _folder(results: Path | None, quick: bool) -> Path:
    return results or (QUICK if quick else FULL)


def _show(items: list[Item], results: Results, tally: Tally, as_json: bool) -> None:
    from omegagnn.paper.lines import lines_of
    from omegagnn.paper.tables import item_section

    if as_json:
        cells = {item.key: [line.to_dict() for line in lines_of(item.cells(results.quick), results)] for item in items}
        facts = {"done": tally.done, "there": tally.there, "left": tally.left, "seconds": round(tally.seconds, 1)}
        show_json({**facts, "absent": tally.absent, "failed": tally.failed, "quick": results.quick, "items": cells})
        return
    for item in items:
        if item.table is not None:
            show(item_section(item, results))
            show("")
    words = [f"{tally.done} done in {tally.seconds:.0f} s", f"{tally.there} were there"]
    words += [f"{len(tally.absent)} without their data"] if tally.absent else []
    words += [f"{len(tally.failed)} failed"] if tally.failed else []
    words += [f"{tally.left} left for another time"] if tally.left else []
    note(
        f"{'; '.join(words)}. Records are in {results.folder}; `omegagnn reproduce report` writes the page and the figures."
    )


def _progress() -> Any:
    """Return a listener: a bar on a terminal, nothing elsewhere, where each training has its line."""
    import sys

    from omegagnn.cli.training_progress import BarProgress
    from omegagnn.training.engine import Progress

    return BarProgress() if sys.stderr.isatty() else Progress()
