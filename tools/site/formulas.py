"""Turns the formulas of the pages into MathML when the site is built, so that no page needs a script to show them."""

from __future__ import annotations

import re
from html import unescape
from typing import Any

from latex2mathml.converter import convert

_FORMULA = re.compile(
    r'<span class="arithmatex">\\\((?P<inline>.*?)\\\)</span>|<div class="arithmatex">\s*\\\[(?P<block>.*?)\\\]\s*</div>',
    re.DOTALL,
)


def on_page_content(html: str, **_: Any) -> str:
    """Replace each formula that the Markdown extension marked; mkdocs calls this for every page."""
    return _FORMULA.sub(_as_mathml, html)


def _as_mathml(match: re.Match[str]) -> str:
    block = match["block"] is not None
    formula = unescape(match["block"] if block else match["inline"]).strip()
    mathml: str = convert(formula, display="block" if block else "inline")
    return f'<div class="formula">{mathml}</div>' if block else mathml
