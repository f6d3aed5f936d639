"""What the tests ask of every page, whatever it shows."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from playwright.sync_api import Page

OpenPage = Callable[..., Page]

# A small phone, as `Browser.new_context` wants it.
PHONE: dict[str, Any] = {
    "viewport": {"width": 360, "height": 740},
    "has_touch": True,
    "is_mobile": True,
    "device_scale_factor": 2,
}
CONTROLS = {"button", "slider", "spinbutton", "combobox", "textbox", "radio", "radiogroup", "link", "img", "image"}


def accessible_names(page: Page) -> dict[str, list[str]]:
    """Return the names of all controls and pictures by role, as the browser tells them to a screen reader."""
    session = page.context.new_cdp_session(page)
    found: dict[str, list[str]] = {}
    for node in session.send("Accessibility.getFullAXTree")["nodes"]:
        role = node.get("role", {}).get("value", "")
        if not node.get("ignored") and role in CONTROLS:
            found.setdefault(role, []).append(node.get("name", {}).get("value", ""))
    return found


def assert_no_sideways_scrolling(page: Page) -> None:
    """Nothing of the page is wider than the window."""
    wide, window = page.evaluate("[document.documentElement.scrollWidth, document.documentElement.clientWidth]")
    assert wide <= window


def assert_readable(page: Page, *places: str) -> None:
    """The text at each place (a CSS selector) has a contrast of at least 4.5 (WCAG AA) to the background of the page."""
    paper = page.evaluate("getComputedStyle(document.body).backgroundColor")
    for place in places:
        colour = page.evaluate("place => getComputedStyle(document.querySelector(place)).color", place)
        assert contrast(colour, paper) >= 4.5, place


def channels(colour: str) -> list[float]:
    """Return red, green and blue (0 to 255) of a colour as the browser computes it, rgb(r, g, b)."""
    return [float(each) for each in re.findall(r"[\d.]+", colour)][:3]


def contrast(one: str, other: str) -> float:
    """Return the contrast ratio of WCAG 2 between two computed colours."""

    def luminance(colour: str) -> float:
        parts = [each / 255 for each in channels(colour)]
        linear = [each / 12.92 if each <= 0.04045 else ((each + 0.055) / 1.055) ** 2.4 for each in parts]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)
