"""The errors a user can mend. Each message is one sentence: what was wrong, where, and what to do."""

from __future__ import annotations


class OmegaError(Exception):
    """Something that the user can mend; the command line prints the sentence and no traceback."""

    exit_code = 1


class WrongUse(OmegaError, ValueError):
    """An option, a name or a combination that does not exist."""

    exit_code = 2


class DataError(OmegaError, ValueError):
    """A file, a table or a graph that is not what it should be."""


class InterruptedRun(OmegaError):
    """A run that was asked to stop and can go on."""

    exit_code = 130
