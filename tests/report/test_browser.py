"""Reports in a real browser: sliders move the numbers, nothing is fetched, nothing goes wrong."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from sklearn.compose import ColumnTransformer
from sklearn.datasets import load_breast_cancer
from sklearn.metrics import mean_pinball_loss
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from tausvm import SVR, ExpectileSVR, QuantileSVR, TauPathSVC, TauSVC
from tausvm.metrics import mean_expectile_loss
from tausvm.report import write_report

from ..browser import Browser, open_browser
from ..estimators.models import data as small_data
from ..estimators.models import fitted

pytestmark = pytest.mark.browser

TAUS = [0.1, 0.5, 0.9]


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with open_browser() as found:
        yield found


@pytest.fixture(scope="module")
def data() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    X = rng.uniform(-2, 2, size=(300, 2))
    return X, np.sin(2 * X[:, 0]) + (0.3 + 0.2 * X[:, 1]) * rng.normal(size=300)


def check_quiet(browser: Browser, page: Path) -> None:
    """The page ran to its end, said nothing and asked for nothing but itself."""
    assert browser.run("return document.documentElement.dataset.ready") == "yes"
    assert browser.console() == []
    assert browser.requests() == [page.resolve().as_uri()]


def number(text: str) -> float:
    return float(text.replace("%", "").replace("−", "-").replace(",", ""))


@pytest.mark.parametrize("kind", [QuantileSVR, ExpectileSVR])
def test_the_slider_moves_the_numbers(browser: Browser, tmp_path: Path, data, kind) -> None:
    X, y = data
    model = kind(tau=TAUS, C=10.0).fit(X, y)
    page = tmp_path / "report.html"
    write_report(model, X, y, page, target_name="wave <b>", feature_names=["first", "second"])
    browser.open(page)
    levels = model.predict(X)
    for k, tau in enumerate(TAUS):
        browser.set("tau", tau)
        f = levels[:, k]
        if kind is QuantileSVR:
            share, loss = np.mean(y <= f), mean_pinball_loss(y, f, alpha=tau)
        else:
            below = np.maximum(f - y, 0).sum()
            share, loss = below / np.abs(f - y).sum(), mean_expectile_loss(y, f, tau=tau)
        close = int(np.sum(np.abs(y - f) < 1e-5))  # on the level but for rounding
        allowed = 0.06 + 100 * close / len(y)
        assert number(browser.text("share")) == pytest.approx(100 * share, abs=allowed)
        assert number(browser.text("loss")) == pytest.approx(loss, rel=1e-3)
        above = int(browser.text("above"))
        assert abs(above - int(np.sum(y > f))) <= close < 0.1 * len(y)
        assert browser.text("tau-value") == f"τ = {tau:g}"
        assert browser.text("tau-words").endswith("was fitted.")
        dots = browser.run("return document.querySelectorAll('#fan .dot.above').length")
        assert dots == above
    line = browser.run("return document.querySelector('#fan .chosen').getAttribute('d')")
    browser.set("tau", 0.3)
    assert browser.run("return document.querySelector('#fan .chosen').getAttribute('d')") != line
    assert "between the fitted levels 0.1 and 0.5" in browser.text("tau-words")
    middle = 0.5 * (levels[:, 0] + levels[:, 1])
    assert int(browser.text("above")) == int(np.sum(y > middle))
    if kind is QuantileSVR:
        browser.set("tau", 0.9)
        inside = np.mean((levels[:, 0] < y) & (y <= levels[:, 2]))
        assert number(browser.text("inside")) == pytest.approx(100 * inside, abs=5)
    check_quiet(browser, page)


def test_the_slider_answers_to_the_keyboard(browser: Browser, tmp_path: Path, data) -> None:
    model = QuantileSVR(tau=TAUS).fit(*data)
    page = tmp_path / "report.html"
    write_report(model, *data, page)
    browser.open(page)
    before = browser.text("tau-value")
    browser.press("tau", "\ue014")  # the right arrow
    assert before == "τ = 0.5"
    assert browser.text("tau-value") == "τ = 0.505"


def test_features_can_be_chosen(browser: Browser, tmp_path: Path, data) -> None:
    pandas = pytest.importorskip("pandas")
    X, y = data
    frame = pandas.DataFrame({"width (mm)": X[:, 0], "kind": np.where(X[:, 1] > 0, "a", "b")})
    prepare = ColumnTransformer(
        [("n", StandardScaler(), ["width (mm)"]), ("c", OneHotEncoder(), ["kind"])]
    )
    model = make_pipeline(prepare, QuantileSVR(tau=TAUS)).fit(frame, y)
    page = tmp_path / "report.html"
    write_report(model, frame, pandas.Series(y, name="height (m)"), page)
    browser.open(page)
    names = browser.run("return [...document.querySelectorAll('#feature option')].map(o => o.text)")
    assert set(names[1:]) == {"width (mm)", "kind"}
    for k in range(len(names)):
        browser.set("feature", k)
        label = browser.run("return document.querySelector('#fan svg').getAttribute('aria-label')")
        assert names[k] in label
        assert "height (m)" in label
    check_quiet(browser, page)


def test_a_model_without_levels(browser: Browser, tmp_path: Path, data) -> None:
    X, y = data
    model = SVR(epsilon=0.2).fit(X, y)
    page = tmp_path / "report.html"
    write_report(model, X, y, page)
    browser.open(page)
    f = model.predict(X)
    loss = np.maximum(np.abs(y - f) - 0.2, 0).mean()
    assert number(browser.text("loss")) == pytest.approx(loss, rel=1e-3)
    assert int(browser.text("above")) == int(np.sum(y > f))
    assert browser.run("return document.getElementById('tau')") is None
    check_quiet(browser, page)


def test_a_classifier_moves_its_confusion_matrix(browser: Browser, tmp_path: Path) -> None:
    X, benign = load_breast_cancer(return_X_y=True)
    label = np.where(benign == 1, "benign", "malignant")
    model = make_pipeline(StandardScaler(), TauSVC(tau=0.1)).fit(X[:, :4], label)
    page = tmp_path / "report.html"
    write_report(model, X[:, :4], label, page)
    browser.open(page)
    values, actual = model.decision_function(X[:, :4]), label == "malignant"
    grid = browser.run(
        "return JSON.parse(document.getElementById('report-data').textContent).axis_values"
    )
    for place in (0, len(grid) // 3, len(grid) - 1):
        browser.set("tau", place)
        decided = values > grid[place]
        counts = {"tp": actual & decided, "fp": ~actual & decided, "fn": actual & ~decided}
        close = np.sum(np.abs(values - grid[place]) < 1e-4 * np.ptp(values))
        for name, mask in counts.items():
            assert abs(int(browser.text(name)) - int(mask.sum())) <= close
    browser.set("cost-miss", 10)
    browser.set("cost-alarm", 1)
    assert "from a chance of 0.0909 on" in browser.text("tau-words")
    browser.run("document.getElementById('best').click()")
    missed, alarms = int(browser.text("fn")), int(browser.text("fp"))
    assert number(browser.text("cost")) == 10 * missed + alarms
    assert f"a cost of {10 * missed + alarms}" in browser.text("tau-words")
    check_quiet(browser, page)


def test_a_path_moves_matrix_rates_and_threshold(browser: Browser, tmp_path: Path) -> None:
    X, benign = load_breast_cancer(return_X_y=True)
    label = np.where(benign == 1, "benign", "malignant")
    X = X[:, :3]
    model = make_pipeline(StandardScaler(), TauPathSVC()).fit(X[::2], label[::2])
    page = tmp_path / "report.html"
    write_report(model, X, label, page, target_name="tumour")
    browser.open(page)
    assert browser.text("tau-value") == "τ = 0.5"
    actual, seen = label == "malignant", set()
    for place in (19, 99, 179):
        tau = (place + 1) / 200
        browser.set("tau", place)
        decided = model.predict(X, tau=tau) == "malignant"
        counts = {
            "tp": int(np.sum(actual & decided)),
            "fp": int(np.sum(~actual & decided)),
            "fn": int(np.sum(actual & ~decided)),
            "tn": int(np.sum(~actual & ~decided)),
        }
        assert {name: int(browser.text(name)) for name in counts} == counts
        assert number(browser.text("recall")) == pytest.approx(
            100 * counts["tp"] / actual.sum(), abs=0.06
        )
        threshold = -model[-1].intercept(tau)[0]
        assert number(browser.text("threshold")) == pytest.approx(threshold, rel=1e-3, abs=1e-6)
        assert browser.text("tau-value") == f"τ = {tau:g}"
        seen.add((counts["fn"], counts["fp"], browser.text("threshold")))
    assert len(seen) == 3
    browser.set("cost-miss", 9)
    browser.set("cost-alarm", 1)
    assert "τ = 0.1." in browser.text("tau-words")
    assert number(browser.text("cost")) == 9 * counts["fn"] + counts["fp"]
    browser.run("document.getElementById('best').click()")
    assert number(browser.text("cost")) <= 9 * counts["fn"] + counts["fp"]
    check_quiet(browser, page)


def test_light_and_dark(browser: Browser, tmp_path: Path, data) -> None:
    page = tmp_path / "report.html"
    write_report(QuantileSVR(tau=TAUS).fit(*data), *data, page)
    browser.open(page)
    background = "return getComputedStyle(document.body).backgroundColor"
    before = browser.run(background)
    browser.run("document.getElementById('theme').click()")
    assert browser.run(background) != before
    # every control has a name, every picture a description
    assert browser.run(
        "return [...document.querySelectorAll('input, select')].every(e => e.labels.length > 0)"
    )
    assert browser.run(
        "return [...document.querySelectorAll('svg')].every(e => e.getAttribute('aria-label'))"
    )


def test_the_demo_ends_with_a_page_that_opens(browser: Browser, tmp_path: Path, capsys) -> None:
    pytest.importorskip("matplotlib")
    from tausvm import demo

    assert demo.main(["--output", str(tmp_path / "fan.png")]) == 0
    last = capsys.readouterr().out.splitlines()[-1]
    page = Path(last.removeprefix("Report:").split(" (")[0].strip())
    browser.open(page)
    shares = []
    for tau in (0.1, 0.9):
        browser.set("tau", tau)
        shares.append(number(browser.text("share")))
    assert shares[0] < 25 < 75 < shares[1]
    check_quiet(browser, page)


def test_learned_features_and_the_kernel_are_shown(browser: Browser, tmp_path: Path) -> None:
    model, _ = fitted("ExpectileSVRCV")
    page = tmp_path / "report.html"
    names = ["height", "weight", "age"]
    write_report(model, *small_data("ExpectileSVRCV"), page, feature_names=names)
    browser.open(page)
    shown = browser.run("return document.getElementById('main').textContent")
    assert "What the model looks at" in shown
    for name, share in zip(names, model.feature_importances_, strict=True):
        assert f"{name}{100 * share:.1f} %" in shown
    assert model.kernel_ in shown
    check_quiet(browser, page)
