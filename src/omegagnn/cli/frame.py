"""What every verb shares: the application, lazily loaded verbs, errors as one sentence, exit codes."""

from __future__ import annotations

import errno
import os
import sys
import warnings
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperGroup
from typer.main import get_command

from omegagnn.cli.verbs import VERBS
from omegagnn.errors import OmegaError

DataRoot = Annotated[
    Path | None,
    typer.Option(
        "--data-root",
        metavar="FOLDER",
        help="Where data sets lie [default: $OMEGAGNN_DATA, else the user cache folder].",
        show_default=False,
    ),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print the result as one line of JSON.")]

# Their authors' notes about unfinished corners of torch, which a user of the command can do nothing about.
_NOISE = ("Sparse CSR tensor support is in beta state", "Sparse invariant checks are implicitly disabled")


class _InterruptError(OmegaError):
    """Ctrl-C, before a framework turns it into something else."""

    exit_code = 130


class HelpfulGroup(TyperGroup):
    """A group of commands that prints its help where none is named."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Show the help for an empty line."""
        if not args and not ctx.resilient_parsing:
            typer.echo(ctx.get_help())
            ctx.exit(0)
        return super().parse_args(ctx, args)


class _Verbs(HelpfulGroup):
    """The table of verbs as a group: their names and one-line helps are known, their files are read when called."""

    def __init__(self, **attributes: Any) -> None:
        super().__init__(**attributes)
        for name, help_line in VERBS.items():
            stand_in = typer.Typer(add_completion=False)
            stand_in.command(name, help=help_line)(lambda: None)
            self.commands[name] = get_command(stand_in)

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Read the verb's file, then let the framework find the command."""
        if args and args[0] in VERBS:
            self.commands[args[0]] = load_verb(args[0])
        return super().resolve_command(ctx, args)

    def invoke(self, ctx: Any) -> Any:
        """Run the verb; Ctrl-C becomes an error of our own, since frameworks disagree about its exit code."""
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt as error:
            raise _InterruptError("interrupted by Ctrl-C.") from error


def verb_app(**settings: Any) -> typer.Typer:
    """Return the empty application of a verb; `settings` are `typer.Typer`'s."""
    return typer.Typer(cls=HelpfulGroup, add_completion=False, rich_markup_mode=None, **settings)


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code; `argv` defaults to the arguments of the process."""
    args = list(sys.argv[1:] if argv is None else argv)
    debug = "--debug" in args[: args.index("--") if "--" in args else None]
    if debug:
        args.remove("--debug")
    else:
        for message in _NOISE:
            warnings.filterwarnings("ignore", message=message)
    try:
        outcome = _application().main(args, prog_name="omegagnn", standalone_mode=False)
        sys.stdout.flush()
    except SystemExit as stop:
        return stop.code if isinstance(stop.code, int) else int(stop.code is not None)
    except BrokenPipeError:
        # The reader (`head`, a closed pager) has what it wanted; Python must not complain when it flushes at the end.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except Exception as error:
        if debug:
            import traceback

            traceback.print_exception(error)
        sentence, code = _explain(error)
        print(f"omegagnn: {sentence}", file=sys.stderr)
        return code
    return outcome if isinstance(outcome, int) else 0


def _application() -> Any:
    app = typer.Typer(cls=_Verbs, rich_markup_mode=None, context_settings={"help_option_names": ["-h", "--help"]})
    app.callback(help="Deep graph neural networks whose layers learn how much they smooth or sharpen.")(_options)
    return get_command(app)


def _show_version(asked: bool) -> None:
    if asked:
        from omegagnn import __version__

        typer.echo(f"omegagnn {__version__}")
        raise typer.Exit


def _options(
    version: Annotated[
        bool,
        typer.Option("--version", is_eager=True, callback=_show_version, help="Print the version."),
    ] = False,
    debug: Annotated[
        bool, typer.Option("--debug", help="Show the traceback of an error (anywhere on the line).")
    ] = False,
) -> None:
    """Options before the verb; `main` has taken ``--debug`` off the line already, it stands here for the help."""


def load_verb(name: str) -> Any:
    """Read a verb's file and return its command."""
    command = get_command(import_module(f"omegagnn.cli.{name}").app)
    command.name = name
    command.help = command.help or VERBS[name]
    return command


def _explain(error: Exception) -> tuple[str, int]:
    """Return the sentence and the exit code for what went wrong."""
    if isinstance(error, OmegaError):
        return str(error), error.exit_code
    if isinstance(error, OSError):
        return _explain_os_error(error), 1
    # The framework's own errors (an unknown option, a missing argument) are its private class in some versions.
    if hasattr(error, "format_message") and hasattr(error, "exit_code"):
        context = getattr(error, "ctx", None)
        path = context.command_path if context is not None else "omegagnn"
        message = " ".join(error.format_message().split()).rstrip(".")
        return f"{message} (see '{path} --help').", error.exit_code
    lines = str(error).strip().splitlines()
    detail = f" ({lines[0].rstrip('.')})" if lines else ""
    return f"an unexpected {type(error).__name__} stopped the command{detail}: run again with --debug to see where.", 1


_OS_REMEDIES = {
    errno.ENOSPC: "free some space or choose another folder",
    errno.EDQUOT: "free some space or choose another folder",
    errno.EACCES: "change its permissions or choose another path",
    errno.EPERM: "change its permissions or choose another path",
    errno.EROFS: "choose a path that can be written",
    errno.ENOENT: "check the path",
    errno.EISDIR: "name a file",
    errno.ENOTDIR: "check the path",
}


def _explain_os_error(error: OSError) -> str:
    what = error.strerror or str(error) or type(error).__name__
    where = f": {error.filename}" if error.filename is not None else ""
    remedy = _OS_REMEDIES.get(error.errno or 0, "run again with --debug to see where")
    return f"{what[:1].lower()}{what[1:]}{where}; {remedy}."
