"""Reports as they are laid out in a real browser: on phones, tablets and desks, light and dark.

No label touches another, nothing is wider than the page, whatever the size of the numbers.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tausvm import SVR, ExpectileSVR, QuantileSVR, TauPathSVC, TauSVC
from tausvm.report import write_report

from ..browser import Browser, open_browser
from ..estimators.models import data as small_data
from ..estimators.models import fitted

pytestmark = [pytest.mark.browser, pytest.mark.slow]

WIDTHS = (390, 768, 1280)
#: what targets are multiplied with, and what is added to them
SIZES = {
    "tiny": (1e-9, 0.0),
    "one": (1.0, 0.0),
    "nine digits": (123456789.0, 0.0),
    "minus six digits": (1.0, -654321.0),
    "alike in eight digits": (1.0, 123456789.0),
}
MODELS: dict[str, Callable[[float], Any]] = {
    "one level": lambda scale: QuantileSVR(tau=0.3),
    "levels": lambda scale: QuantileSVR(tau=[0.01, 0.05, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95, 0.99]),
    "expectiles": lambda scale: ExpectileSVR(tau=[0.1, 0.5, 0.9]),
    "typical values": lambda scale: SVR(C=scale, epsilon=0.1 * scale),
}

#: pairs of labels of a chart that touch, labels that are cut off, and small ones
LABELS = """
const wrong = [];
for (const chart of document.querySelectorAll("svg")) {
  const outer = chart.getBoundingClientRect();
  if (!outer.width) continue;
  const texts = [...chart.querySelectorAll("text")].filter((t) => t.textContent.trim())
    .map((t) => [t.firstChild.textContent, t.getBoundingClientRect()]);
  texts.forEach(([name, box], k) => {
    if (box.left < outer.left - 1 || box.right > outer.right + 1 || box.bottom > outer.bottom + 1)
      wrong.push(`${name} leaves ${chart.getAttribute("aria-label")}`);
    if (box.height < 11) wrong.push(`${name} is small: ${box.height}`);
    for (const [other, at] of texts.slice(k + 1)) {
      if (box.left < at.right - 0.5 && at.left < box.right - 0.5
          && box.top < at.bottom - 2 && at.top < box.bottom - 2)
        wrong.push(`${name} touches ${other} in ${chart.getAttribute("aria-label")}`);
    }
  });
}
return wrong;
"""
#: what is wider than the window, but for what scrolls by itself
WIDE = """
const found = [...document.querySelectorAll("body *")].filter((e) => {
  if (e.closest(".scroll") && !e.matches(".scroll")) return false;
  const box = e.getBoundingClientRect();
  return box.width && (box.right > innerWidth + 1 || box.left < -1);
});
if (document.documentElement.scrollWidth > innerWidth) found.push(document.body);
return found.map((e) => e.tagName + "." + e.className + " " + e.textContent.slice(0, 40));
"""


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with open_browser() as found:
        yield found


@pytest.fixture(scope="module")
def rows() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    X = rng.uniform(-2, 2, size=(90, 2))
    return X, np.sin(2 * X[:, 0]) + (0.3 + 0.2 * X[:, 1]) * rng.normal(size=90)


def check_everywhere(browser: Browser, page: Path) -> None:
    """At every width, light and dark, once opened there and otherwise drawn anew."""
    for width in WIDTHS:
        for dark in (False, True):
            browser.view(width, dark=dark)
            if width == WIDTHS[0]:
                browser.open(page)
                browser.run("document.querySelectorAll('details').forEach(d => d.open = true)")
            browser.settle()
            where = f"{page.stem} at {width}, {'dark' if dark else 'light'}"
            options = browser.run("return document.querySelectorAll('#feature option').length")
            for k in range(options if options and not dark else 1):
                if options:
                    browser.set("feature", k)
                assert browser.run(LABELS) == [], where
            assert browser.run(WIDE) == [], where
            drawn = browser.run(
                "return [...document.querySelectorAll('.chart')].map(c => "
                "[c.clientWidth, c.querySelector('svg').viewBox.baseVal.width])"
            )
            assert drawn and all(have == made for have, made in drawn), where
            light = browser.run("return getComputedStyle(document.body).backgroundColor")
            assert (int(light.split("(")[1].split(",")[0]) < 100) == dark
    assert browser.console() == []


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("name", MODELS)
def test_regression(browser: Browser, tmp_path: Path, rows, name: str, size: str) -> None:
    scale, shift = SIZES[size]
    X, y = rows[0], scale * rows[1] + shift
    page = tmp_path / f"{name} {size}.html"
    names = ["living area (m²)", "distance to the next station (minutes on foot)"]
    model = MODELS[name](scale).fit(X, y)
    write_report(model, X, y, page, target_name="price", feature_names=names)
    check_everywhere(browser, page)


@pytest.mark.parametrize("scale", [1e-9, 1.0, 123456789.0])
@pytest.mark.parametrize("kind", [TauSVC, TauPathSVC])
def test_classifiers(browser: Browser, tmp_path: Path, rows, kind, scale: float) -> None:
    X, label = rows[0], np.where(rows[1] > 0, "will be paid back", "defaults")
    page = tmp_path / f"{kind.__name__} {scale:g}.html"
    write_report(kind().fit(X, label), X, label, page, target_name="loan", costs=(3 * scale, scale))
    check_everywhere(browser, page)


def test_a_table_of_long_names(browser: Browser, tmp_path: Path) -> None:
    """Dates, many categories with long names, a feature of nine digits, learned features."""
    pandas = pytest.importorskip("pandas")
    from tausvm import TabularQuantileSVR

    rng = np.random.default_rng(0)
    frame = pandas.DataFrame(
        {
            "day of the sale": pandas.date_range("2021-03-01", periods=120, freq="9D"),
            "population": rng.integers(1e8, 1e9, 120),
            "municipality": [f"municipality number {k % 24} of the province" for k in range(120)],
        }
    )
    y = pandas.Series(1e-7 * frame["population"] + rng.normal(size=120), name="a name " * 12)
    levels = {"tau": [0.1, 0.5, 0.9], "Cs": 2, "gammas": 2, "feature_metric": "diagonal"}
    model = TabularQuantileSVR(**levels).fit(frame, y)
    page = tmp_path / "long.html"
    write_report(model, frame, y, page, data_name="a_file_with_quite_a_long_name_" * 4 + ".csv")
    check_everywhere(browser, page)
    assert browser.text("main").count("What the model looks at") == 1


def test_wide_tables_scroll_and_say_so(browser: Browser, tmp_path: Path, rows) -> None:
    page = tmp_path / "report.html"
    write_report(QuantileSVR(tau=[0.1, 0.9]).fit(*rows), *rows, page)
    cues = (
        "return [...document.querySelectorAll('.scroller')].filter(e => !e.closest('details'))"
        ".map(e => [e.firstChild.scrollWidth > e.firstChild.clientWidth + 1,"
        " getComputedStyle(e.lastChild).display !== 'none'"
        " && getComputedStyle(e.lastChild).visibility === 'visible',"
        " e.firstChild.tabIndex])"
    )
    for width, expected in ((390, True), (1280, False)):
        browser.view(width)
        browser.open(page)
        browser.settle()
        found = browser.run(cues)
        assert all(wide == told == (index == 0) for wide, told, index in found)
        assert any(wide for wide, _, _ in found) == expected
    browser.view(390)
    browser.open(page)
    browser.settle()
    browser.run("document.querySelectorAll('.scroll').forEach(e => e.scrollLeft = 1e4)")
    browser.settle()
    assert not any(told for _, told, _ in browser.run(cues))  # at the end there is no more


TIP = "return [...document.querySelectorAll('.tip')].filter(t => !t.hidden).map(t => t.innerText)"


def test_tips_by_pointer_touch_and_keyboard(browser: Browser, tmp_path: Path, rows) -> None:
    model = QuantileSVR(tau=[0.1, 0.5, 0.9]).fit(*rows)
    page = tmp_path / "report.html"
    write_report(model, *rows, page)
    browser.view(390)
    browser.open(page)
    charts = browser.run("return document.querySelectorAll('figure svg:not(details *)').length")
    assert charts == 4
    inside = (
        "const t = [...document.querySelectorAll('.tip')].find(t => !t.hidden)"
        ".getBoundingClientRect(); return t.left >= 0 && t.right <= innerWidth"
    )
    event = (
        "const e = document.querySelectorAll('svg')[arguments[0]], b = e.getBoundingClientRect();"
        "e.dispatchEvent(new PointerEvent(arguments[1], {bubbles: true, pointerType: arguments[2],"
        " clientX: b.left + arguments[3] * b.width, clientY: b.top + b.height / 2}));"
    )
    for k in range(charts):
        for share in (0.05, 0.5, 0.99):
            browser.run(event, k, "pointermove", "mouse", share)
            (told,) = browser.run(TIP)
            assert len(told.splitlines()) >= 2
            assert browser.run(inside)
        browser.run(event, k, "pointerleave", "mouse", 0.5)
        assert browser.run(TIP) == []
    browser.run(event, 0, "pointerdown", "touch", 0.5)
    browser.run(event, 0, "pointerleave", "touch", 0.5)
    assert len(browser.run(TIP)) == 1  # a finger that is lifted leaves the tip
    press = (
        "const e = document.querySelectorAll('svg')[0]; e.focus();"
        "e.dispatchEvent(new KeyboardEvent('keydown', {key: arguments[0], bubbles: true}));"
    )
    predicted = np.sort(model.predict(rows[0])[:, 1])
    for keys, row in ((["Home"], 1), (["ArrowRight"] * 4, 5), (["End"], 90), (["ArrowLeft"], 89)):
        for key in keys:
            browser.run(press, key)
        (told,) = browser.run(TIP)
        first, *rest = told.splitlines()
        assert first == f"row {row} of 90 by prediction"
        (level,) = [line for line in rest if line.startswith("level 0.5: ")]
        assert float(level.split()[-1].replace("−", "-")) == pytest.approx(
            predicted[row - 1], abs=1e-3
        )
    browser.run(press, "Escape")
    assert browser.run(TIP) == []


def test_numbers_are_written_for_people(browser: Browser, tmp_path: Path, rows) -> None:
    page = tmp_path / "report.html"
    write_report(SVR().fit(*rows), *rows, page)
    browser.open(page)
    shown = {
        0: "0", 1234567: "1,234,567", -1234.5: "−1,235", 0.012345: "0.01235",
        123456789: "123,456,789", 1e-9: "1 × 10⁻⁹", -2.5e-7: "−2.5 × 10⁻⁷", 3e15: "3 × 10¹⁵",
        0.99999: "1", 9.9999e-5: "1 × 10⁻⁴",
    }  # fmt: skip
    for value, text in shown.items():
        assert browser.run("return number(arguments[0])", value) == text
    assert browser.run("return [null, NaN, Infinity].map(v => number(v))") == ["–"] * 3
    assert browser.run("return within(1)(123456789.1234)") == "123,456,789.123"
    told = browser.run("return scale([123456780, 123456790], 5)")
    assert told["note"] == "minus 123,456,786"
    assert [mark["text"] for mark in told["marks"]] == ["−6", "−4", "−2", "0", "2", "4"]
    told = browser.run("return scale([-2e-9, 3e-9], 5)")
    assert told["note"] == "in 10⁻⁹"
    assert [mark["text"] for mark in told["marks"]] == ["−2", "−1", "0", "1", "2", "3"]


def test_crossings_are_those_of_what_is_drawn(browser: Browser, tmp_path: Path, rows) -> None:
    """A cut may cross where no row does, and the other way round."""
    X, y = rows
    model = QuantileSVR(tau=[0.4, 0.5, 0.6], C=10.0, gamma=0.5, ordered=False).fit(X, y)
    page = tmp_path / "report.html"
    write_report(model, X, y, page)
    content = json.loads(
        page.read_text("utf-8").split('id="report-data">')[1].split("</script>")[0]
    )
    browser.open(page)
    crossed = int((np.diff(model.predict(X), axis=1) < 0).any(axis=1).sum())
    seen = set()
    for k, fan in enumerate(content["fans"]):
        browser.set("feature", k)
        drawn = int((np.diff(np.array(fan["curves"]), axis=0) < 0).any(axis=0).sum())
        if fan["type"] == "order":
            expected = f"{crossed} of {len(y)}" if crossed else "none"
        else:
            expected = f"{drawn} of {len(fan['grid'])}" if drawn else "none"
        assert browser.text("crossings") == expected
        assert drawn == 0 or browser.text("crossings") != "none"
        seen.add(expected)
    assert len(seen) == 3 and "none" in seen


def test_costs_below_zero_are_refused(browser: Browser, tmp_path: Path) -> None:
    page = tmp_path / "report.html"
    write_report(fitted("TauSVC")[0], *small_data("TauSVC"), page, costs=(4, 2))
    browser.open(page)
    before = {name: browser.text(name) for name in ("cost", "tau-words")}
    assert browser.text("cost-words") == ""
    for wrong in ("-3", "0", ""):
        browser.set("cost-miss", wrong)
        assert browser.text("cost-words").startswith("A cost must be a number above 0")
        assert "4 for a missed" in browser.text("cost-words")
        assert {name: browser.text(name) for name in before} == before
        state = "return document.getElementById('cost-miss').getAttribute('aria-invalid')"
        assert browser.run(state) == "true"
    browser.set("cost-miss", 8)
    assert browser.text("cost-words") == ""
    assert "from a chance of 0.2 on" in browser.text("tau-words")
    assert browser.console() == []


def test_what_is_shown_first(browser: Browser, tmp_path: Path, rows) -> None:
    """Several features: the rows in order. One feature: along it. The solves are folded away."""
    X, y = rows
    model = QuantileSVR(tau=[0.1, 0.9])
    page = tmp_path / "report.html"
    write_report(model.fit(X, y), X, y, page, fitted_rows=90)
    browser.open(page)
    shown = "return document.querySelector('#fan svg').getAttribute('aria-label')"
    assert "rows in order of prediction" in browser.run(shown)
    assert browser.text("fitted").startswith("All of these 90 rows were fitted")
    assert (
        browser.run("return [...document.querySelectorAll('details')].some(d => d.open)") is False
    )
    assert browser.text("main").count("proves that no function") == 1
    write_report(model.fit(X[:, :1], y), X[:, :1], y, page, fitted_rows=0)
    browser.open(page)
    assert "feature 0" in browser.run(shown)
    assert browser.text("fitted").startswith("None of these 90 rows was seen by the fit")
