"""Charts: points stand where their values say, what cannot be drawn is left out, and every chart has a name."""

from __future__ import annotations

import math
import re
from itertools import pairwise
from xml.etree import ElementTree

import pytest

from omegagnn.report.charts import (
    Axis,
    Mark,
    Series,
    bar_chart,
    interval_chart,
    line_chart,
    map_chart,
    point_chart,
)

X, Y = Axis("layer"), Axis("energy")


def dots(chart: str) -> list[tuple[float, float]]:
    return [(float(a), float(b)) for a, b in re.findall(r'<circle class="dot[^>]* cx="([\d.]+)" cy="([\d.]+)"', chart)]


def test_a_straight_line_is_drawn_straight_and_a_power_law_on_a_logarithmic_axis_too() -> None:
    for y, axis in (([1.0, 2.0, 3.0, 4.0], Y), ([1.0, 0.1, 0.01, 0.001], Axis("energy", logarithmic=True))):
        places = dots(line_chart("t", [Series("", [0, 1, 2, 3], y)], X, axis))
        steps = [(b[0] - a[0], b[1] - a[1]) for a, b in pairwise(places)]
        assert all(step == pytest.approx(steps[0], abs=0.2) for step in steps)
        assert steps[0][0] > 0
        assert math.copysign(1, steps[0][1]) == (-1 if y[1] > y[0] else 1)  # up is a smaller number in a drawing


def test_values_that_cannot_be_drawn_are_left_out_and_nothing_at_all_gives_no_chart() -> None:
    chart = line_chart("t", [Series("", [0, 1, 2], [1.0, math.nan, 3.0], [0.5, 0.5, math.inf], [2.0, 2.0, 4.0])], X, Y)
    assert len(dots(chart)) == 2
    assert "nan" not in chart
    assert "inf" not in chart
    assert len(dots(line_chart("t", [Series("", [0, 1], [0.0, 10.0])], X, Axis("", logarithmic=True)))) == 1
    assert line_chart("t", [Series("", [0], [math.inf])], X, Y) == ""
    assert interval_chart("t", [], "x") == map_chart("t", [], "x", "y") == bar_chart("t", []) == ""
    assert point_chart("t", [("", 0, [])], "x") == ""


def test_ticks_at_whole_numbers_where_half_a_layer_means_nothing() -> None:
    chart = line_chart("t", [Series("", [0, 1, 2], [0.0, 1.0, 2.0])], Axis("layer", whole=True, tight=True), Y)
    ticks = re.findall(r'<text class="tick"[^>]*text-anchor="middle">([^<]+)<', chart)
    assert ticks == ["0", "1", "2"]


def test_a_map_has_a_cell_a_value_and_the_extremes_in_the_extreme_colours() -> None:
    chart = map_chart("ω", [[0.0, 1.0], [0.5, 0.25]], "channel", "layer")
    assert chart.count("h1v1h-1z") == 4
    assert '<path class="v0" d="M0 1' in chart  # the first row stands at the bottom
    assert '<path class="v15" d="M1 1' in chart
    assert map_chart("ω", [[1.0, 1.0]], "channel", "layer").count("h1v1h-1z") == 2


def test_names_are_escaped_and_every_chart_is_well_formed_and_named() -> None:
    evil = '<img src=x onerror="1">'
    charts = [
        line_chart(
            evil, [Series(evil, [0, 1], [1.0, 2.0]), Series("b", [0], [1.0])], Axis(evil), Axis(evil), [Mark(1.5, evil)]
        ),
        interval_chart(evil, [(evil, 1.0, 0.5, 2.0)], evil),
        point_chart(evil, [("", 0, [(0.0, 1.0), (2.0, 3.0)])], evil),
        map_chart(evil, [[1.0, 2.0]], evil, evil),
        bar_chart(evil, [(evil, 1.0, evil)]),
    ]
    for chart in charts:
        root = ElementTree.fromstring(chart)
        assert root.find("figcaption").text == evil  # type: ignore[union-attr]
        assert root.find("svg").get("aria-label") == evil  # type: ignore[union-attr]
        assert root.find(".//img") is None
        assert "style=" not in chart  # the policy of a page forbids it
