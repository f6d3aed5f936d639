"""The picture of a diagnosis as PNG, drawn by matplotlib (extra ``plots``)."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING

from omegagnn.analysis.diagnosis_picture import chart_panels
from omegagnn.analysis.reading import headline
from omegagnn.errors import WrongUse

if TYPE_CHECKING:
    from omegagnn.analysis.diagnosis import Diagnosis


def to_png(diagnosis: Diagnosis) -> bytes:
    """Return the charts of `diagnosis_picture` as a PNG."""
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise WrongUse(
            "A PNG needs matplotlib: install it with `pip install omegagnn[plots]`, or write the picture as .svg."
        ) from None
    panels = chart_panels(diagnosis)
    lines = -(-len(panels) // 3)
    figure = Figure(figsize=(11, 0.8 + 2.6 * lines), layout="constrained")
    axes = figure.subplots(lines, 3, squeeze=False).ravel()
    for axis, panel in zip(axes, panels, strict=False):
        middle, low, high = zip(*panel.band, strict=True)
        axis.fill_between(panel.positions, low, high, alpha=0.18)
        axis.plot(panel.positions, middle, marker="o", markersize=3)
        for value, label in panel.limits:
            axis.axhline(value, color="#c2410c", linestyle="--", linewidth=1)
            axis.annotate(label, (1, value), xycoords=("axes fraction", "data"), ha="right", va="bottom", fontsize=8)
        if panel.logarithmic:
            axis.set_yscale("log")
        axis.set_title(panel.title, fontsize=10)
        axis.set_xlabel("layer")
        axis.xaxis.get_major_locator().set_params(integer=True)
        axis.set_xlim(0, max(1, diagnosis.rows[-1].position))
    for axis in axes[len(panels) :]:
        axis.set_visible(False)
    figure.suptitle(f"{diagnosis.subject}\n{headline(diagnosis.findings)}", fontsize=10)
    stream = io.BytesIO()
    figure.savefig(stream, format="png", dpi=100)
    return stream.getvalue()


__all__ = ["to_png"]
