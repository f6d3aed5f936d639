"""Reads the docstrings' marks of formulas and of code the way the pages write them.

The docstrings are written in the manner of PyTorch Geometric (``:math:`x``` and ``.. math::`` blocks, which a terminal and an
editor show well); the pages are Markdown.
"""

from __future__ import annotations

import re
import textwrap
from typing import Any

import griffe

_BLOCK = re.compile(r"^(?P<indent> *)\.\. math::\n(?:\s*\n)*(?P<body>(?:(?P=indent) +.*\n?|\s*\n)+)", re.MULTILINE)
_INLINE = re.compile(r":math:`([^`]+)`", re.DOTALL)
_EXAMPLE = re.compile(r"^>>> (?:.+\n)+", re.MULTILINE)
_BOXED = re.compile(r"^=+( +=+)+$\n(?P<rows>(?:.*\n)+?)^=+( +=+)+$", re.MULTILINE)


def to_markdown(text: str) -> str:
    """Return a docstring with its formulas between dollars."""
    text = _BLOCK.sub(lambda m: f"\n$$\n{textwrap.dedent(m['body']).strip()}\n$$\n\n", text + "\n")
    text = _BOXED.sub(lambda m: "```text\n" + m["rows"] + "```", text)
    text = _EXAMPLE.sub(lambda m: f"```pycon\n{m[0]}```\n", text)
    return _INLINE.sub(lambda m: f"${' '.join(m[1].split())}$", text).rstrip()


class Docstrings(griffe.Extension):
    """Rewrites every docstring of the package before it is parsed."""

    def on_object(self, *, obj: griffe.Object, **_: Any) -> None:
        """Rewrite one docstring."""
        if obj.docstring is not None:
            obj.docstring.value = to_markdown(obj.docstring.value)
