"""What cannot be had is refused with the reason, and with what can be had instead."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.calibration import CalibratedClassifierCV

from tausvm import SVR, LinearSVR, QuantileSVR, TauPathSVC, TauSVC

X = np.random.default_rng(0).normal(size=(24, 2))
Y = X[:, 0]


@pytest.mark.parametrize("model", [SVR(), QuantileSVR(), LinearSVR(), TauSVC()])
@pytest.mark.parametrize("infinite", [float("inf"), np.float64(np.inf)])
def test_an_infinite_C_is_refused_as_a_hard_margin(model, infinite: float) -> None:
    with pytest.raises(ValueError, match="finite number > 0, got inf: a hard margin"):
        model.set_params(C=infinite).fit(X, Y > 0 if isinstance(model, TauSVC) else Y)


def test_predict_proba_says_what_to_use() -> None:
    model = TauSVC().fit(X, Y > 0)
    with pytest.raises(AttributeError, match=r"TauPathSVC.*CalibratedClassifierCV"):
        model.predict_proba(X)
    assert not hasattr(model, "predict_proba")
    for other in (TauPathSVC(), CalibratedClassifierCV(TauSVC(), cv=2)):
        assert other.fit(X, Y > 0).predict_proba(X).shape == (24, 2)
