"""The report in a real browser: readable in every form, sorted by its heads, whole without its script."""

from __future__ import annotations

from pathlib import Path

import pytest
from pages import PHONE, OpenPage, accessible_names, assert_no_sideways_scrolling, assert_readable

from omegagnn import fit
from omegagnn.cli import main
from omegagnn.report import gather, write_report

TEXT = ("h1", ".score", ".rule", "figcaption", "td", "th", "caption", "summary", "dt", "dd")


@pytest.fixture(scope="session")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The report of two short runs."""
    folder = tmp_path_factory.mktemp("report")
    settings = {
        "seeds": 3,
        "runs_dir": folder,
        "model__channels": 8,
        "training__epochs": 30,
        "training__lr_omega": 0.05,
    }
    runs = [fit("karate", model__layers=layers, **settings) for layers in (2, 6)]
    write_report([gather(run) for run in runs], folder / "report.html")
    return folder / "report.html"


def column(page: object, table: int, cell: int) -> list[str]:
    return page.evaluate(  # type: ignore[attr-defined,no-any-return]
        "([t, c]) => [...document.querySelectorAll('table.sortable')[t].tBodies[0].rows].map(r => r.cells[c].textContent)",
        [table, cell],
    )


def test_it_opens_silently_and_asks_for_nothing(open_page: OpenPage, report: Path) -> None:
    page = open_page(report)
    assert page.title() == "2 runs compared"
    assert page.locator("article").count() == 2
    assert page.locator("figure svg").count() >= 20
    names = accessible_names(page)
    assert all(name.strip() for role in names.values() for name in role)


def test_heads_sort_their_columns_both_ways(open_page: OpenPage, report: Path) -> None:
    page = open_page(report)
    layers = page.locator("table.sortable").first.get_by_role("button", name="layers")
    assert column(page, 0, 3) == ["2", "6"]
    layers.focus()
    page.keyboard.press("Enter")
    assert column(page, 0, 3) == ["2", "6"]
    layers.click()
    assert column(page, 0, 3) == ["6", "2"]
    assert page.locator("th[aria-sort=descending]").inner_text().startswith("layers")
    page.locator("table.sortable").first.get_by_role("button", name="run").click()
    runs = column(page, 0, 0)
    assert runs == sorted(runs)
    assert page.locator("th[aria-sort]").count() == 1


def test_numbers_are_sorted_as_numbers_and_words_after_them(open_page: OpenPage, report: Path) -> None:
    page = open_page(report)
    order = page.evaluate("['10', 'none', '9', '1,000', '–', '-3'].sort(compare)")
    assert order[:4] == ["-3", "9", "10", "1,000"]


@pytest.mark.parametrize("form", ["light", "dark", "phone", "paper"])
def test_it_is_readable_in_every_form(form: str, open_page: OpenPage, report: Path) -> None:
    context = PHONE if form == "phone" else {"color_scheme": "dark" if form == "dark" else "light"}
    page = open_page(report, **context)
    if form == "paper":
        page.emulate_media(media="print")
        page.evaluate("dispatchEvent(new Event('beforeprint'))")
        assert page.locator("details:not([open])").count() == 0
    assert_readable(page, *TEXT)
    assert_no_sideways_scrolling(page)


def test_without_its_script_everything_is_there(open_page: OpenPage, report: Path) -> None:
    page = open_page(report, java_script_enabled=False)
    assert page.locator("table.sortable").count() >= 10
    assert page.locator("figure svg").count() >= 20
    assert page.get_by_role("button").count() == 0
    page.locator("summary").first.click()
    assert page.locator("details[open] table").first.is_visible()


def test_a_link_leads_to_its_run(open_page: OpenPage, report: Path) -> None:
    page = open_page(report)
    page.locator("ul.contents a").last.click()
    assert page.evaluate("Math.abs(document.querySelectorAll('article h1')[1].getBoundingClientRect().top) < 60")


def test_points_of_the_curves_stand_where_their_numbers_say(open_page: OpenPage, report: Path) -> None:
    """The rank of a layer, read back from the picture through its ticks, is the one of the table."""
    page = open_page(report)
    read = page.evaluate(
        """() => {
          const figure = [...document.querySelectorAll('article')][1].querySelectorAll('figure');
          const chart = [...figure].find(f => f.querySelector('figcaption').textContent === 'effective rank');
          const labels = [...chart.querySelectorAll('text.tick[text-anchor=end]')];
          const ticks = labels.map(t => [+t.textContent, +t.getAttribute('y') - 4]);
          const [a, b] = [ticks[0], ticks.at(-1)];
          const value = y => a[0] + (y - a[1]) / (b[1] - a[1]) * (b[0] - a[0]);
          const table = [...document.querySelectorAll('article')][1].querySelectorAll('table');
          const depth = [...table].find(t => t.tHead.textContent.includes('features behind'));
          const place = [...depth.tHead.rows[0].cells].findIndex(c => c.textContent === 'rank');
          return [[...chart.querySelectorAll('circle')].map(c => value(+c.getAttribute('cy'))),
                  [...depth.tBodies[0].rows].map(r => +r.cells[place].textContent)];
        }"""
    )
    assert len(read[0]) == 7
    assert read[0] == pytest.approx(read[1], abs=0.05)


# -------------------------------------------------------------------------------------------------------------- studies


@pytest.fixture(scope="session")
def study(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The page of a short study."""
    pytest.importorskip("optuna")
    runs = tmp_path_factory.mktemp("study")
    line = "tune karate --trials 4 --seeds 1 --epochs 10 --batch 4 --set model.channels=4 --study short --json"
    assert main([*line.split(), "--runs-dir", str(runs)]) == 0
    assert main(["report", "short", "--runs-dir", str(runs), "--json"]) == 0
    return runs / "studies" / "short" / "report.html"


@pytest.mark.parametrize("form", ["light", "dark", "phone"])
def test_the_page_of_a_study_is_readable_and_sorts(form: str, open_page: OpenPage, study: Path) -> None:
    context = PHONE if form == "phone" else {"color_scheme": "dark" if form == "dark" else "light"}
    page = open_page(study, **context)
    assert_readable(page, "h1", ".score", ".rule", "figcaption", "td", "th", "summary", "dt", "dd", "pre")
    assert_no_sideways_scrolling(page)
    assert all(name.strip() for role in accessible_names(page).values() for name in role)
    trials = page.locator("table.sortable").last
    trials.get_by_role("button", name="trial").click()
    values = trials.locator("tbody tr td:first-child").all_inner_texts()
    assert sorted(values) == ["0", "1", "2", "3"]
