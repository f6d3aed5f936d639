"""The picture is well-formed, has a bar for each comparison with a peer and its bars lie where the axis says."""

from __future__ import annotations

from xml.etree import ElementTree

import pytest

from omegagnn.benchmark.cases import Case
from omegagnn.benchmark.picture import LEFT, RIGHT, WIDTH, ratio_chart

SVG = "{http://www.w3.org/2000/svg}"


def row(name: str, peer: str, ratio: float) -> Case:
    return Case(name, "cpu", 2.0, 0.1, peer, 2.0 * ratio, 0.1, ratio)


def bars(chart: str) -> list[tuple[str, float, float]]:
    root = ElementTree.fromstring(chart)
    found = [rect for rect in root.iter(f"{SVG}rect") if rect.get("height") == "16"]
    return [(str(rect.get("class")), float(rect.get("x", 0)), float(rect.get("width", 0))) for rect in found]


def test_bars_start_at_equally_fast_and_grow_by_the_logarithm() -> None:
    found = bars(ratio_chart([row("a", "x <1>", 2.0), row("a", "y", 4.0), row("b", "ours, again", 9.0)]))
    (best, start, short), (peer, other_start, long) = found  # ours against ours is not drawn
    assert (best, peer) == ("best", "peer")
    assert start == other_start == pytest.approx(LEFT, abs=0.1)
    assert long == pytest.approx(2 * short, abs=0.2)
    assert LEFT + long < WIDTH - RIGHT


def test_a_peer_faster_than_ours_is_drawn_to_the_left() -> None:
    (kind, start, width), (_, one, _) = bars(ratio_chart([row("a", "x", 0.5), row("a", "y", 2.0)]))
    assert kind == "faster"
    assert start + width == pytest.approx(one, abs=0.2)


def test_extreme_ratios_stay_in_the_picture() -> None:
    for _, start, width in bars(ratio_chart([row("a", "x", 1e-4), row("a", "y", 1e5)])):
        assert start >= LEFT - 0.1
        assert start + width <= WIDTH - RIGHT + 0.1


def test_text_says_times_and_machine() -> None:
    chart = ratio_chart([row("a & b", "x", 50.0), row("a & b", "y", 1.2)], "this CPU")
    said = " ".join("".join(text.itertext()) for text in ElementTree.fromstring(chart).iter(f"{SVG}text"))
    for words in ("a & b", "ours 2.0 ms", "50.0×", "100 ms", "1.20×", "2.4 ms", "this CPU"):
        assert words in said
