"""What a report is made of, without a browser."""

from __future__ import annotations

import doctest
import html
import inspect
import json
import re
from importlib import resources

import numpy as np
import pytest
from scipy import sparse
from sklearn.compose import ColumnTransformer
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import roc_auc_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

import tausvm.report.page
import tausvm.report.words
from tausvm import ExpectileSVR, ExpectileSVRCV, QuantileSVR, TauPathSVC, TauSVC
from tausvm.inspection import last_step
from tausvm.report import render_report, write_report
from tausvm.report.page import SCRIPTS
from tausvm.report.words import percent
from tausvm.tabular import FramePreparation

from ..estimators.models import ESTIMATORS, data, fitted


def embedded(page: str) -> dict:
    """The JSON inside a page."""
    found = re.search(r'id="report-data">(.*?)</script>', page, re.DOTALL)
    return json.loads(found.group(1))


def test_docstrings() -> None:
    assert doctest.testmod(tausvm.report.page).failed == 0


@pytest.mark.parametrize(
    "name", sorted(set(ESTIMATORS) - {"TauSVC:classes", "JointSVR", "JointSVRCV"})
)
def test_every_estimator_has_a_report(name: str) -> None:
    model, _ = fitted(name)
    X, y = data(name)
    content = embedded(render_report(model, X, y))
    assert content["data"]["rows"] == len(y)
    assert content["parameters"][0][1] == type(last_step(model)).__name__
    if hasattr(model, "result_"):
        assert "proves that no function" in content["certificate"]
        assert content["solves"]


def test_the_page_loads_nothing() -> None:
    X, y = data("SVR")
    page = render_report(fitted("SVR")[0], X, y)
    assert "default-src 'none'" in page
    outside = [url for url in re.findall(r"https?://[^\s\"')]+", page) if "w3.org" not in url]
    assert outside == []
    assert not re.search(r"<(?:link|script|img)[^>]+(?:src|href)=\"(?!data:)", page)


def test_names_cannot_break_out_of_the_page() -> None:
    X, y = data("SVR")
    evil = "</script><script>alert(1)</script>"
    page = render_report(fitted("SVR")[0], X, y, title=evil, target_name=evil)
    assert page.count("<script") == 2
    assert html.escape(evil) in page
    assert embedded(page)["target"] == evil


def test_levels_are_sorted_whatever_their_order(tmp_path) -> None:
    X, y = data("SVR")
    model = QuantileSVR(tau=[0.9, 0.1, 0.5]).fit(X, y)
    write_report(model, X, y, tmp_path / "r.html")
    content = embedded((tmp_path / "r.html").read_text(encoding="utf-8"))
    assert content["levels"] == [0.1, 0.5, 0.9]
    np.testing.assert_allclose(
        content["rows"]["levels"], model.predict(X)[:, [1, 2, 0]].T, rtol=1e-5
    )
    assert [row["tau"] for row in content["calibration"]] == [0.1, 0.5, 0.9]


def test_sparse_data_have_the_fan_of_rows() -> None:
    X, y = data("SVR")
    model = QuantileSVR(tau=[0.1, 0.9]).fit(sparse.csr_matrix(X), y)
    content = embedded(render_report(model, sparse.csr_matrix(X), y))
    assert [fan["type"] for fan in content["fans"]] == ["order"]


def test_many_rows_are_sampled_and_the_page_says_so() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(6000, 1))
    model = QuantileSVR(tau=[0.1, 0.9]).fit(X[:100], X[:100, 0])
    content = embedded(render_report(model, X, X[:, 0]))
    assert content["rows"]["sampled"]
    assert len(content["rows"]["y"]) == 4000
    assert content["data"]["rows"] == 6000


def test_polars_frames_work() -> None:
    polars = pytest.importorskip("polars", reason="polars is not installed")
    X, y = data("SVR")
    frame = polars.DataFrame({f"x{k}": X[:, k] for k in range(3)})
    model = QuantileSVR(tau=[0.1, 0.9]).fit(frame, y)
    content = embedded(render_report(model, frame, polars.Series("height", y)))
    assert content["target"] == "height"
    assert {fan["name"] for fan in content["fans"][1:]} == {"x0", "x1", "x2"}


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda X, y: render_report(object(), X, y), "estimator of tausvm"),
        (lambda X, y: render_report(fitted("SVR")[0], X, y[:-1]), "inconsistent"),
        (lambda X, y: render_report(fitted("SVR")[0], X, y, feature_names=["a"]), "feature_names"),
        (lambda X, y: render_report(fitted("JointSVR")[0], X, X[:, :2]), "one target"),
        (lambda X, y: render_report(fitted("TauSVC:classes")[0], X, y), "two classes"),
    ],
)
def test_bad_input_is_named(call, message) -> None:
    with pytest.raises((ValueError, TypeError), match=message):
        call(*data("SVR"))


def test_a_classifier_needs_no_numbers() -> None:
    X, y = data("TauSVC")
    content = embedded(render_report(TauSVC().fit(X, y), X, y))
    assert content["classes"] == ["no", "yes"]
    assert content["positives"] == int(np.sum(y == "yes"))


def test_learned_features_are_told_in_words_and_shares() -> None:
    X, y = data("ExpectileSVRCV:diagonal")
    names = ["height", "weight", "age"]
    model = fitted("ExpectileSVRCV:diagonal")[0]
    learned = embedded(render_report(model, X, y, feature_names=names))["learned"]
    assert "1 feature makes up 90 %" in learned["words"] and "turns" not in learned["words"]
    assert learned["shares"][0][0] == "height"
    assert sum(share for _, share in learned["shares"]) == pytest.approx(1.0)
    X, y = data("SVRCV:turned")
    turned = embedded(render_report(fitted("SVRCV:turned")[0], X, y))
    assert "turns them" in turned["learned"]["words"]
    assert [name for name, _ in turned["learned"]["shares"]][-1] == "feature 2"
    plain = fitted("QuantileSVRCV:plain")[0]
    assert embedded(render_report(plain, *data("QuantileSVRCV:plain")))["learned"] is None


def test_learned_features_behind_a_preparation_have_their_names() -> None:
    pandas = pytest.importorskip("pandas")
    rng = np.random.default_rng(0)
    frame = pandas.DataFrame(rng.normal(size=(120, 3)), columns=["a", "b", "c"])
    frame["kind"] = rng.choice(["x", "z"], 120)
    y = np.sin(2 * frame["a"]) + 0.05 * rng.normal(size=120)
    prepare = ColumnTransformer(
        [("number", StandardScaler(), ["a", "b", "c"]), ("text", OneHotEncoder(), ["kind"])],
        sparse_threshold=0,
    )
    machine = ExpectileSVRCV(Cs=4, gammas=6, cv=3, feature_metric="diagonal")
    model = make_pipeline(prepare, machine).fit(frame, y)
    learned = embedded(render_report(model, frame, y))["learned"]
    assert learned["shares"][0][0] == "number__a"
    assert {"number__a", "number__b", "text__kind_x"} < {name for name, _ in learned["shares"]}


def test_a_mean_of_machines_tells_the_largest_gap_of_them() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 2))
    y = X[:, 0] + 0.1 * rng.normal(size=60)
    model = ExpectileSVRCV(tau=[0.3, 0.7], Cs=2, gammas=2, cv=3).fit(X, y)
    content = embedded(render_report(model, X, y))
    count = sum(len(level) for level in model.members_)
    assert f"a mean of {count} machines" in content["certificate"]
    assert f"by more than {percent(max(model.dual_gap_))}." in content["certificate"]
    assert content["solves"] == []
    one = embedded(render_report(ExpectileSVR(tau=0.3).fit(X, y), X, y))
    assert one["certificate"].startswith("The fit is solved: ")
    assert len(one["solves"]) == 1


def test_small_shares_are_read_at_once() -> None:
    shown = [percent(share) for share in (0.0, 1e-15, 9.4e-5, 0.0123, 0.5)]
    assert shown == ["0.0001 %", "0.0001 %", "0.0094 %", "1.2 %", "50 %"]


def test_a_fit_that_stopped_early_is_told_in_a_sentence() -> None:
    X, y = data("SVR")
    model = QuantileSVR(tau=[0.1, 0.9], max_iter=1, solver="smo", C=100.0)
    with pytest.warns(ConvergenceWarning):
        model.fit(X, y)
    words = embedded(render_report(model, X, y))["certificate"]
    assert words.startswith("2 of 2 fits stopped early (")
    assert words.count(".") - words.count("0.") <= 2


def test_which_rows_were_fitted() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(80, 2))
    y = X[:, 0] + 0.3 * rng.normal(size=80)
    model = make_pipeline(StandardScaler(), QuantileSVR(tau=[0.1, 0.9])).fit(X[:40], y[:40])

    def told(rows, fitted_rows=None):
        return embedded(render_report(model, X[rows], y[rows], fitted_rows=fitted_rows))["fitted"]

    assert told(slice(40, 80))["state"] == "unknown"
    assert "cannot be told" in told(slice(40, 80))["words"]
    known = told(slice(0, 80))  # support vectors are among the rows
    assert known["state"] == "some"
    assert re.match(r"At least \d+ of these 80 rows were fitted", known["words"])
    support = model[-1].support_
    assert told(support)["words"].startswith(f"All of these {len(support)} rows were fitted")
    assert told(slice(40, 80), 0)["state"] == "none"
    assert told(slice(0, 80), 40)["words"].startswith("40 of these 80 rows were fitted")
    model = make_pipeline(StandardScaler(), TauPathSVC()).fit(X[:40], y[:40] > 0)  # knows them all
    y = y > 0
    assert told(slice(0, 80))["words"].startswith("40 of these 80 rows were fitted")
    assert told(slice(40, 80))["state"] == "none"


@pytest.mark.parametrize("costs", [(-1.0, 1.0), (1.0, 0.0), (np.inf, 1.0), (np.nan, 1.0)])
def test_costs_are_positive(costs) -> None:
    X, y = data("TauSVC")
    with pytest.raises(ValueError, match="costs must be finite numbers above 0"):
        render_report(fitted("TauSVC")[0], X, y, costs=costs)


def test_costs_are_those_of_the_level_or_given() -> None:
    X, y = data("TauSVC")
    assert embedded(render_report(fitted("TauSVC")[0], X, y))["costs"] == [1.4, 0.6]
    given = embedded(render_report(fitted("TauSVC")[0], X, y, costs=(9, 1)))
    assert given["costs"] == [9, 1]
    with pytest.raises(ValueError, match="classifiers"):
        render_report(fitted("SVR")[0], *data("SVR"), costs=(9, 1))


@pytest.mark.parametrize("name", ["TauSVC", "TauPathSVC"])
def test_classifiers_tell_their_auc(name: str) -> None:
    X, y = data(name)
    model = fitted(name)[0]
    known = model.classes_[1]
    values = model.decision_function(X) if name == "TauSVC" else model.predict_proba(X)[:, 1]
    found = embedded(render_report(model, X, y))["auc"]
    assert found == pytest.approx(roc_auc_score(y == known, values))
    one = embedded(render_report(model, X[y == known], y[y == known]))
    assert one["auc"] is None


def test_large_means_do_not_blur_the_rows() -> None:
    X, y = data("SVR")
    y = y / np.std(y) + 1e9
    model = QuantileSVR(tau=[0.1, 0.9]).fit(X, y)
    content = embedded(render_report(model, X, y))
    np.testing.assert_allclose(content["rows"]["y"], y, rtol=0, atol=1e-4)
    np.testing.assert_allclose(content["rows"]["levels"], model.predict(X).T, rtol=0, atol=1e-4)


def test_dates_are_drawn_along_time() -> None:
    pandas = pytest.importorskip("pandas")
    rng = np.random.default_rng(0)
    frame = pandas.DataFrame(
        {"day": pandas.date_range("2024-01-01", periods=60), "area": rng.normal(size=60)}
    )
    y = np.arange(60) / 20 + frame["area"].to_numpy()
    model = make_pipeline(FramePreparation(), QuantileSVR(tau=[0.1, 0.9])).fit(frame, y)
    content = embedded(render_report(model, frame, y))
    (fan,) = [fan for fan in content["fans"] if fan["name"] == "day"]
    assert fan["type"] == "date"
    assert fan["grid"][0] == frame["day"].iloc[0].timestamp() * 1000
    assert fan["x"][-1] == fan["grid"][-1] == frame["day"].iloc[-1].timestamp() * 1000


def test_words_that_nobody_knows_are_not_on_the_page() -> None:
    names = ["page.html", *SCRIPTS]
    parts = [resources.files("tausvm.report").joinpath(name).read_text("utf-8") for name in names]
    shown = " ".join([*parts, inspect.getsource(tausvm.report.words)])
    for word in ("rightly left", "kink", "KKT", "primal", "pinball"):
        assert word not in shown.replace("s.primal", "")
