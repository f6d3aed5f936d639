"""One file out of its pieces, and a policy that fits what it holds."""

from __future__ import annotations

import base64
import hashlib
import re

import pytest

from omegagnn.report import explorer_page
from omegagnn.report.page import self_contained

FRAME = '<meta content="$policy"><style>$style</style><p>$$ 3</p><script>$script</script>'


def test_the_policy_names_the_script_and_the_style_by_their_digests() -> None:
    page = self_contained(FRAME, "p { color: red; }", ["const ω = 1;", "const cost = `$${ω}`;"])
    assert "<p>$ 3</p>" in page
    script = re.search(r"<script>(.*)</script>", page, re.DOTALL)[1]  # type: ignore[index]
    assert script == '"use strict";\nconst ω = 1;\nconst cost = `$${ω}`;'
    for directive, text in (("script-src", script), ("style-src", "p { color: red; }")):
        digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
        assert f"{directive} 'sha256-{digest}'" in page


@pytest.mark.parametrize(("style", "script"), [("", "x = '</SCRIPT>'"), ("/* </style > */", "")])
def test_a_piece_that_would_end_its_element_is_refused(style: str, script: str) -> None:
    with pytest.raises(ValueError, match="write it in two pieces"):
        self_contained(FRAME, style, [script])


def test_a_frame_with_an_unknown_place_is_refused() -> None:
    with pytest.raises(KeyError, match="styles"):
        self_contained("<style>$styles</style>", "", [])


def test_the_explorer_is_one_light_file_that_names_no_other() -> None:
    page = explorer_page()
    assert len(page.encode()) < 100_000
    addresses = set(re.findall(r"[a-z]+://[^\s\"'<>`]+", page))
    assert addresses == {"http://www.w3.org/2000/svg"}  # the name of a namespace, which nobody fetches
    assert re.findall(r"<(?:script|link|img|iframe)\b[^>]*(?:src|href)=[\"'](?!data:)", page) == []
    assert not re.search(r"@import|url\(|\bfetch\(|XMLHttpRequest|innerHTML", page)
