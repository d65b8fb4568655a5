"""What the features count, drawn."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from tausvm import SVR, FeatureMetric

pytest.importorskip("matplotlib", reason="displays need matplotlib")

from tausvm.plotting import FeatureImportanceDisplay

from ..estimators.models import data, fitted


def labels(display: FeatureImportanceDisplay) -> list[str]:
    return [label.get_text() for label in display.ax_.get_yticklabels()]


def test_bars_stand_in_order_with_their_names() -> None:
    model, _ = fitted("ExpectileSVRCV")
    display = FeatureImportanceDisplay.from_estimator(model, feature_names=["a", "b", "c"])
    shares = [bar.get_width() for bar in display.bars_]
    assert shares == sorted(model.feature_importances_.tolist(), reverse=True)
    order = np.argsort(-model.feature_importances_)
    assert labels(display) == ["abc"[k] for k in order]
    assert display.ax_.yaxis_inverted()  # the first one on top
    assert display.ax_.get_xlabel() == "share in the metric"


def test_the_rest_is_one_bar() -> None:
    model, _ = fitted("ExpectileSVRCV")
    display = FeatureImportanceDisplay.from_estimator(model, max_features=1)
    assert labels(display)[1] == "2 others"
    widths = [bar.get_width() for bar in display.bars_]
    assert len(widths) == 2 and sum(widths) == pytest.approx(1.0)
    assert display.plot(colour="black").bars_[0].get_facecolor()[:3] == (0.0, 0.0, 0.0)


def test_names_come_from_the_steps_before() -> None:
    pandas = pytest.importorskip("pandas")
    X, y = data("FeatureMetric")
    frame = pandas.DataFrame(X, columns=["u", "v", "w"])
    metric = FeatureMetric("diagonal", cv=3)
    for model in (metric, make_pipeline(StandardScaler(), metric)):
        display = FeatureImportanceDisplay.from_estimator(model.fit(frame, y))
        assert labels(display)[0] == "u"
    model = make_pipeline(StandardScaler(), metric).fit(X, y)
    assert labels(FeatureImportanceDisplay.from_estimator(model))[0] == "x0"


def test_bad_input_is_named() -> None:
    model, _ = fitted("ExpectileSVRCV")
    with pytest.raises(ValueError, match="feature_names must have 3 names, got 2"):
        FeatureImportanceDisplay.from_estimator(model, feature_names=["a", "b"])
    with pytest.raises(ValueError, match="max_features must be an integer >= 1"):
        FeatureImportanceDisplay.from_estimator(model, max_features=0)
    with pytest.raises(TypeError, match="SVR learns no features"):
        FeatureImportanceDisplay.from_estimator(SVR().fit(*data("SVR")))
