"""One HTML file out of a frame, a style sheet and scripts, allowed to run what it holds and to load nothing."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Sequence
from html import escape
from importlib.resources import files
from string import Template


def self_contained(frame: str, style: str, scripts: Sequence[str], **content: str) -> str:
    """Return the frame with its ``$style``, ``$script``, ``$policy`` and the places of `content` filled in.

    The scripts become one, in strict mode and in the order given. The content security policy names that script and
    that style by their SHA-256 and forbids everything else, so that no browser lets the page ask anybody for anything.

    Args:
        frame: HTML with the places; a dollar sign of its own is written ``$$``.
        style: CSS.
        scripts: JavaScript, what is used before who uses it.
        **content: HTML for further places of the frame. Styles belong to the style sheet: the policy forbids ``style="..."``.

    >>> self_contained("<style>$style</style><script>$script</script>", "p {}", ["let x = 1;"])
    '<style>p {}</style><script>"use strict";\\nlet x = 1;</script>'
    """
    script = "\n".join(['"use strict";', *scripts])
    for text, closing in ((script, "</script"), (style, "</style")):
        if closing in text.lower():
            raise ValueError(f"A page cannot hold the text {closing!r} inside that element: write it in two pieces.")
    policy = (
        f"default-src 'none'; script-src 'sha256-{_digest(script)}'; style-src 'sha256-{_digest(style)}'; "
        "img-src data:; base-uri 'none'; form-action 'none'"
    )
    return Template(frame).substitute(style=style, script=script, policy=policy, **content)


def _digest(text: str) -> str:
    return base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def report_frame(title: str, body: str) -> str:
    """Return a page in the manner of all reports: their style, tables that sort."""
    pieces = files("omegagnn.report") / "report_page"
    html, style, script = (
        (pieces / name).read_text(encoding="utf-8") for name in ("report.html", "style.css", "report.js")
    )
    return self_contained(html, style, [script], title=escape(title), body=body)


__all__ = ["report_frame", "self_contained"]
