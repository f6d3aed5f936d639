"""The explorer as it is used: by mouse, by keyboard, by its address, on a phone, in the dark, on paper."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from explorer_numbers import shown
from pages import PHONE, OpenPage, accessible_names, assert_no_sideways_scrolling, assert_readable, channels
from playwright.sync_api import Page, expect

PRESETS = {
    "A GCN forgets": "smoothing",
    "ω = 0.3 remembers": "smoothing",
    "ω = 1.2 overshoots": "smoothing",
    "ω = 1.35 mixes signs": "mixed-sign",
    "ω = −0.5 sharpens": "sharpening",
    "Beyond ω₀ it grows": "sharpening",
}


def test_presets_do_what_they_are_called(explorer: Path, open_page: OpenPage) -> None:
    page = open_page(explorer)
    captions = set()
    for name, kind in PRESETS.items():
        page.get_by_role("button", name=name, exact=True).click()
        expect(page.get_by_role("button", name=name, exact=True)).to_have_attribute("aria-pressed", "true")
        expect(page.locator("#kind")).to_have_text(kind)
        state = shown(page)
        assert state["kind"] == kind
        assert (state["energies"][-1] > state["energies"][0]) is (kind == "sharpening")
        assert (state["signPattern"] == "non-negative") is (kind == "smoothing")
        captions.add(page.locator("#caption").inner_text())
    assert len(captions) == len(PRESETS)


def test_sliders_and_numbers_change_omega_and_the_steps(explorer: Path, open_page: OpenPage) -> None:
    page = open_page(explorer)
    omega, steps = (
        page.get_by_role("slider", name="ω", exact=True),
        page.get_by_role("slider", name=re.compile("steps")),
    )
    omega.fill("-0.25")
    steps.fill("3")
    state = shown(page)
    assert (state["omega"], state["steps"], len(state["energies"])) == (-0.25, 3, 4)
    expect(page.locator("#omega-number")).to_have_value("-0.25")
    omega.press("ArrowRight")
    assert shown(page)["omega"] == -0.24
    omega.press("Home")
    assert shown(page)["omega"] == -1
    steps.press("End")
    assert shown(page)["steps"] == 64
    page.get_by_label("ω as a number").fill("0.755")
    page.keyboard.press("Enter")
    assert shown(page)["omega"] == 0.755
    expect(omega).to_have_attribute("aria-valuetext", "0.755, smoothing")


def test_a_number_that_cannot_be_is_one_sentence_and_changes_nothing(explorer: Path, open_page: OpenPage) -> None:
    page = open_page(explorer)
    before = shown(page)
    for label, value, sentence in (
        ("ω as a number", "3", "ω must be a number from −1 to 2.5."),
        ("Number of steps L", "2.5", "L must be a whole number from 0 to 64."),
        ("Rows", "15", "Rows must be a whole number from 1 to 14."),
        ("Columns", "", "Columns must be a whole number from 1 to 14."),
    ):
        field = page.get_by_label(label)
        usual = field.input_value()
        field.fill(value)
        field.press("Tab")
        expect(page.get_by_role("alert")).to_have_text(sentence)
        expect(field).to_have_value(usual)
    assert shown(page) == before
    page.get_by_label("Rows").fill("3")
    page.keyboard.press("Enter")
    expect(page.get_by_role("alert")).to_be_hidden()
    assert shown(page)["graph"]["n"] == 21
    expect(page.get_by_label("Rows")).to_be_focused()


def test_nodes_are_chosen_by_click_and_by_keys(explorer: Path, open_page: OpenPage) -> None:
    page = open_page(explorer)
    page.locator("#omega-graph [data-node='0']").click()
    assert shown(page)["node"] == 0
    page.locator("#gcn-graph [data-node='17']").click()
    assert shown(page)["node"] == 17
    nodes = page.get_by_role("radiogroup", name="Node that gets the impulse")
    expect(nodes.locator("[tabindex='0']")).to_have_count(1)
    nodes.get_by_role("radio", checked=True).focus()
    for key, node in (
        ("ArrowRight", 18),
        ("ArrowDown", 25),
        ("ArrowLeft", 24),
        ("ArrowUp", 17),
        ("Home", 0),
        ("ArrowUp", 0),
        ("End", 34),
    ):
        page.keyboard.press(key)
        assert shown(page)["node"] == node, key
        expect(nodes.get_by_role("radio", checked=True)).to_be_focused()
        expect(nodes.get_by_role("radio", checked=True)).to_have_accessible_name(
            re.compile(f"^Node {node}, . neighbours, value ")
        )
    expect(page.get_by_role("status")).to_have_text(
        re.compile(r"^ω 0\.3, 8 steps, node 34: smoothing, .* of the energy is left\.$")
    )


# Of a node its ring, of everything else its outline.
SHOWS_FOCUS = """() => {
  const focused = document.activeElement;
  const style = getComputedStyle(focused.querySelector(".ring") ?? focused);
  return focused === document.body || parseFloat(style.outlineWidth) > 0 || parseFloat(style.strokeWidth) > 3;
}"""


def test_everything_is_reached_by_tab_alone(explorer: Path, open_page: OpenPage) -> None:
    page = open_page(explorer)
    reached = []
    for _ in range(40):
        page.keyboard.press("Tab")
        reached.append(page.evaluate("document.activeElement.id || document.activeElement.textContent.trim()"))
        assert page.evaluate(SHOWS_FOCUS), reached[-1]
        if "What is computed" in reached:
            break
    sliders = ["omega-number", "omega", "steps-number", "steps", "play"]
    wanted = ["To the controls", *PRESETS, *sliders, "graph", "graph-rows", "graph-columns", "draw", "edit"]
    assert reached[: len(wanted)] == wanted
    assert page.evaluate("document.querySelector('#omega-graph [tabindex=\"0\"]') !== null")
    assert reached[-1] == "What is computed"


def test_every_control_has_a_name_for_a_screen_reader(explorer: Path, open_page: OpenPage) -> None:
    page = open_page(explorer, "graph=random&n=24&p=0.12&seed=7&node=1&omega=1.4&steps=10")
    page.get_by_role("button", name="Draw").click()
    page.get_by_role("button", name="Edge list").click()
    names = accessible_names(page)
    assert all(name for each in names.values() for name in each), names
    assert len(names["radio"]) == 24
    assert {"Nodes", "Edge probability", "Seed", "ω as a number", "Number of steps L"} == set(names["spinbutton"])
    pictures = " ".join(names.get("img", []) + names.get("image", []))
    filtered = "Filter (1 − ωλ) to the power 10"
    energies = ("Energy over the steps. ", "Energy after 10 steps for every ω")
    for words in ("GCN response. Nodes: ", *energies, filtered, "Colours: red "):
        assert words in pictures


def test_the_address_holds_the_state_and_back_and_forward_work(explorer: Path, open_page: OpenPage) -> None:
    page = open_page(explorer)
    page.get_by_role("button", name="ω = −0.5 sharpens").click()
    expect(page).to_have_url(re.compile(r"#graph=karate&node=0&omega=-0\.5&steps=4$"))
    page.locator("#omega-graph [data-node='33']").click()
    expect(page).to_have_url(re.compile(r"node=33"))
    page.locator("#omega").focus()
    for _ in range(5):  # one move of the slider is one step back
        page.keyboard.press("ArrowRight")
    expect(page).to_have_url(re.compile(r"#graph=karate&node=33&omega=-0\.45&steps=4$"))
    shared = page.url
    expected = shown(page)
    assert shown(open_page(explorer, shared.partition("#")[2])) == expected
    page.go_back()
    assert (shown(page)["node"], shown(page)["omega"]) == (33, -0.5)
    page.go_back()
    assert shown(page)["node"] == 0
    page.go_back()
    assert shown(page)["graph"]["kind"] == "grid"
    page.go_forward()
    page.go_forward()
    page.go_forward()
    assert shown(page) == expected
    page.reload()
    assert shown(page) == expected


DAMAGED = "The graph in the address is damaged: copy the whole address, or paste its edges below."
WRONG_ADDRESSES = {
    "graph=torus&node=0": "The address names no graph that this page knows: choose one below.",
    "nothing": "The address names no graph that this page knows: choose one below.",
    "graph=ring&n=5&node=5": "The address says node=5, but it must be a whole number from 0 to 4.",
    "graph=ring&n=5&omega=x": "The address says omega=x, but it must be a number from -1 to 2.5.",
    "graph=ring&n=5&steps=": "The address says steps=, but it must be a whole number from 0 to 64.",
    "graph=ring&n=1e9": "The address says n=1e9, but it must be a whole number from 3 to 200.",
    "graph=own&n=3&edges=0-1,1-7": DAMAGED,
    "graph=own&n=2&edges=0-1&names=%E0%A4%A,b": DAMAGED,
    "graph=own&n=2&edges=0-1&at=1.1": DAMAGED,
}


def test_a_wrong_address_is_one_sentence_and_the_page_works_on(explorer: Path, open_page: OpenPage) -> None:
    page = open_page(explorer, "graph=nonsense")
    problem = page.get_by_role("alert")
    expect(problem).to_have_text(WRONG_ADDRESSES["nothing"])
    before = shown(page)
    assert before["graph"]["kind"] == "grid"
    for fragment, sentence in WRONG_ADDRESSES.items():
        page.evaluate("fragment => { location.hash = fragment; }", fragment)
        expect(problem).to_have_text(sentence)
    assert shown(page) == before
    page.get_by_role("combobox", name="Graph").select_option("Ring")
    expect(problem).to_be_hidden()
    assert shown(page)["graph"]["n"] == 16


def test_an_edge_list_becomes_a_graph(explorer: Path, open_page: OpenPage) -> None:
    page = open_page(explorer)
    page.get_by_role("button", name="Edge list").click()
    field = page.get_by_label(re.compile("^Edges, two names on a line"))
    expect(field).to_be_focused()
    assert len(field.input_value().splitlines()) == len(shown(page)["graph"]["edges"])
    field.fill(
        "# a triangle with a tail\nann, bob\nbob;cem\ncem ann\nann ann\n\nbob ann\ncem\t<img/src=x/onerror=1>\nlone\n"
    )
    page.get_by_role("button", name="Use these edges").click()
    graph = shown(page)["graph"]
    assert (graph["kind"], graph["n"], graph["edges"]) == ("own", 5, [[0, 1], [1, 2], [0, 2], [2, 3]])
    assert graph["names"] == ["ann", "bob", "cem", "<img/src=x/onerror=1>", "lone"]
    expect(page.get_by_role("radio", name=re.compile("^Node lone, 0 neighbours"))).to_be_attached()
    page.reload()
    assert shown(page)["graph"] == graph
    assert field.input_value().splitlines() == ["ann bob", "bob cem", "ann cem", "cem <img/src=x/onerror=1>", "lone"]


def test_a_wrong_edge_list_is_one_sentence_and_changes_nothing(explorer: Path, open_page: OpenPage) -> None:
    page = open_page(explorer)
    before = shown(page)
    page.get_by_role("button", name="Edge list").click()
    for text, sentence in (
        ("a b\nc d e", "Line 2 has 3 names: write two on a line, with a space or a comma between them."),
        ("\n # nothing\n", "There is no edge yet: write two names on a line, such as “a b”."),
        ("a " + "b" * 30, "Line 1 has a name of 30 letters: use at most 24."),
        (
            "\n".join(f"{i} {i + 1}" for i in range(300)),
            "From line 200 on there are more than the 200 nodes this page can show: paste a part of the graph.",
        ),
    ):
        page.locator("#edges").fill(text)
        page.get_by_role("button", name="Use these edges").click()
        expect(page.get_by_role("alert")).to_have_text(sentence)
        assert shown(page) == before
        assert page.locator("#edges").input_value() == text


def at(page: Page, x: float, y: float) -> tuple[float, float]:
    """Return where a point of the drawing (400 × 300) lies on the page."""
    box = page.locator("#omega-graph").bounding_box()
    assert box is not None
    return box["x"] + x * box["width"] / 400, box["y"] + y * box["height"] / 300


def drag(page: Page, start: tuple[float, float], end: tuple[float, float]) -> None:
    page.mouse.move(*at(page, *start))
    page.mouse.down()
    page.mouse.move(*at(page, *end), steps=4)
    page.mouse.up()


def test_a_graph_is_drawn_with_the_mouse(explorer: Path, open_page: OpenPage) -> None:
    page = open_page(explorer, viewport={"width": 1200, "height": 1400})
    page.get_by_role("button", name="Draw").click()
    page.get_by_role("button", name="Start blank").click()
    assert (shown(page)["graph"]["n"], shown(page)["graph"]["edges"]) == (1, [])
    page.mouse.click(*at(page, 100, 80))  # a new node
    page.mouse.click(*at(page, 300, 80))
    assert shown(page)["graph"]["n"] == 3
    drag(page, (100, 80), (300, 80))  # join two
    drag(page, (300, 80), (200, 150))
    drag(page, (100, 80), (60, 240))  # join one with a new one
    assert shown(page)["graph"]["edges"] == [[1, 2], [0, 2], [1, 3]]
    page.mouse.click(*at(page, 200, 80))  # cut the line 1–2 in its middle
    assert shown(page)["graph"]["edges"] == [[0, 2], [1, 3]]
    page.mouse.click(*at(page, 300, 80))  # put the impulse on node 2
    assert shown(page)["node"] == 2
    page.get_by_role("button", name="Delete node").click()
    assert (shown(page)["graph"]["n"], shown(page)["graph"]["edges"]) == (3, [[1, 2]])
    expect(page).to_have_url(re.compile(r"graph=own&n=3&edges=1-2&at="))
    page.go_back()  # a drawing has undo
    assert shown(page)["graph"]["n"] == 4


def test_a_graph_is_drawn_with_the_keyboard(explorer: Path, open_page: OpenPage) -> None:
    page = open_page(explorer)
    page.get_by_role("button", name="Draw").press("Enter")
    page.get_by_role("button", name="Start blank").press("Enter")
    page.get_by_role("radio").first.focus()
    for _ in range(3):
        page.keyboard.press("a")
    graph = shown(page)["graph"]
    assert (graph["n"], graph["edges"], shown(page)["node"]) == (4, [[0, 1], [1, 2], [2, 3]], 3)
    page.keyboard.press("j")
    expect(page.get_by_role("alert")).to_have_text(
        "Join node 3: choose another node, then press J or the button again."
    )
    page.keyboard.press("Home")
    page.keyboard.press("j")
    assert shown(page)["graph"]["edges"] == [[0, 1], [1, 2], [2, 3], [0, 3]]
    page.keyboard.press("Delete")
    assert shown(page)["graph"]["edges"] == [[0, 1], [1, 2]]
    expect(page.get_by_role("radio", checked=True)).to_be_focused()
    page.keyboard.press("Backspace")
    page.keyboard.press("Delete")
    page.keyboard.press("Delete")
    expect(page.get_by_role("alert")).to_have_text(
        "A graph keeps at least one node: add another before you delete this one."
    )
    assert shown(page)["graph"]["n"] == 1


def test_play_goes_through_the_steps_and_ends_where_it_began(explorer: Path, open_page: OpenPage) -> None:
    page = open_page(explorer, "graph=ring&n=6&node=0&omega=0.5&steps=12")
    page.evaluate(
        "() => { window.seen = new Set(); new MutationObserver(() => window.seen.add(window.omegaExplorer.state().steps))"
        ".observe(document.getElementById('omega-signs'), { childList: true, characterData: true, subtree: true }); }"
    )
    page.get_by_role("button", name="Play").click()
    expect(page.get_by_role("button", name="Stop")).to_be_visible()
    expect(page.get_by_role("button", name="Play")).to_be_visible()
    assert set(page.evaluate("[...window.seen]")) >= set(range(1, 13))
    assert shown(page)["steps"] == 12
    page.get_by_role("button", name="Play").click()
    page.get_by_role("button", name="Stop").click()
    assert shown(page)["steps"] == 12
    page.get_by_label("Number of steps L").fill("0")
    page.get_by_role("button", name="Play").click()  # nothing to play: it takes 16 steps, and the address says 16
    expect(page).to_have_url(re.compile(r"steps=16$"))


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_texts_stand_out_from_the_paper(explorer: Path, open_page: OpenPage, scheme: str) -> None:
    page = open_page(explorer, color_scheme=scheme)
    paper = page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert (sum(channels(paper)) < 150) is (scheme == "dark")
    for name in ("A GCN forgets", "ω = 1.35 mixes signs", "ω = −0.5 sharpens"):  # each label has a colour
        page.get_by_role("button", name=name, exact=True).click()
        assert_readable(
            page, "h1", ".lede", "#kind", "#caption", "#evidence", ".signs", ".rail-mark", "summary", ".legend"
        )


def test_a_phone_needs_no_sideways_scrolling(explorer: Path, open_page: OpenPage) -> None:
    page = open_page(explorer, **PHONE)
    for name in PRESETS:
        page.get_by_role("button", name=name, exact=True).tap()
        assert_no_sideways_scrolling(page)
    page.get_by_role("button", name="Draw").tap()
    page.get_by_role("button", name="Edge list").tap()
    for summary in ("The numbers as tables", "What is computed"):
        page.get_by_text(summary).tap()
    assert_no_sideways_scrolling(page)
    page.get_by_role("combobox", name="Graph").select_option("Erdős–Rényi")
    assert_no_sideways_scrolling(page)
    page.locator("#omega-graph [data-node='3']").tap()
    assert shown(page)["node"] == 3


def test_paper_gets_the_response_and_not_the_controls(explorer: Path, open_page: OpenPage) -> None:
    page = open_page(explorer, color_scheme="dark")
    page.emulate_media(media="print", color_scheme="dark")
    for place in (".presets", ".controls", ".hint", "#draw"):
        expect(page.locator(place)).to_be_hidden()
    for place in ("#caption", "#gcn-graph", "#omega-graph", "#filter-chart"):
        expect(page.locator(place)).to_be_visible()
    assert min(channels(page.evaluate("getComputedStyle(document.body).backgroundColor"))) > 240
    assert page.pdf().startswith(b"%PDF-")


def test_motion_is_left_out_where_it_is_not_wanted(explorer: Path, open_page: OpenPage) -> None:
    duration = "getComputedStyle(document.querySelector('.node .body')).transitionDuration.split(',')[0]"
    assert open_page(explorer, reduced_motion="no-preference").evaluate(duration) == "0.16s"
    assert open_page(explorer, reduced_motion="reduce").evaluate(duration) == "0s"


def test_the_page_may_ask_nobody_for_anything(explorer: Path, open_page: OpenPage) -> None:
    page = open_page(explorer)
    policy = page.locator("meta[http-equiv='Content-Security-Policy']").get_attribute("content")
    assert policy is not None
    assert policy.startswith("default-src 'none'; ")
    assert "unsafe" not in policy
