"""A fit shows its results at once, or not at all."""

import threading
import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.exceptions import ConvergenceWarning

import tausvm
from tausvm import SVR, LinearSVR

from .data import output, wave
from .test_bad_input import PUBLIC, public

SIZES = (12, 20, 30, 45)


@pytest.mark.parametrize("name", [name for name in PUBLIC if not name.endswith("CV")])
def test_one_estimator_fitted_from_four_threads(name):
    """No error from inside, and it is left as one of the fits leaves it."""
    model = public(name)
    data = [wave(size, 2 + k, seed=k) for k, size in enumerate(SIZES)]
    errors = []
    start = threading.Barrier(len(data))

    def fit(X, y):
        try:
            start.wait(10)
            for _ in range(5):
                model.fit(X, y > 0 if "SVC" in name else y)
        except Exception as error:
            errors.append(error)

    threads = [threading.Thread(target=fit, args=part) for part in data]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors
    X, y = data[model.n_features_in_ - 2]
    alone = public(name).fit(X, y > 0 if "SVC" in name else y)
    np.testing.assert_array_equal(output(model, X), output(alone, X))
    assert vars(model).keys() == vars(alone).keys()


@pytest.mark.parametrize("name", PUBLIC)
def test_a_fit_that_fails_changes_nothing(name):
    X, y = wave(20)
    y = y > 0 if "SVC" in name else y
    model = public(name).fit(X, y)
    before, expected = dict(vars(model)), model.predict(X)
    with pytest.raises(ValueError, match="sample_weight"):
        model.fit(np.c_[X, X], y, -np.ones(20))
    assert vars(model) == before
    np.testing.assert_array_equal(model.predict(X), expected)


def test_an_interrupted_fit_changes_nothing():
    X, y = wave(20)

    def interrupted(a, b):
        raise KeyboardInterrupt

    model = SVR(kernel=lambda a, b: a @ b.T).fit(X, y)
    before = dict(vars(model))
    model.kernel = before["kernel"] = interrupted
    with pytest.raises(KeyboardInterrupt):
        model.fit(X, y)
    assert vars(model) == before


def test_what_a_second_fit_does_not_have_is_gone():
    X, y = wave(20)
    model = SVR().fit(pd.DataFrame(X, columns=["a", "b"]), y)
    assert list(model.feature_names_in_) == ["a", "b"]
    assert not hasattr(model.fit(X, y), "feature_names_in_")


def test_subclasses_and_their_own_attributes():
    class Mine(SVR):
        def fit(self, X, y, sample_weight=None):
            self.seen_ = len(X)
            return super().fit(X, y, sample_weight)

    X, y = wave(20)
    model = Mine(C=2.0).fit(X, y)
    assert model.seen_ == 20
    assert model.dual_gap_ <= model.tol


@pytest.mark.parametrize("estimator", [SVR, LinearSVR, tausvm.JointQuantileSVR])
def test_warnings_are_about_the_line_that_fits(estimator):
    X, y = wave(60)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        estimator(max_iter=1, tol=1e-14, C=1e4, solver="auto").fit(X, y)
    caught = [warning for warning in caught if warning.category is ConvergenceWarning]
    assert [warning.filename for warning in caught] == [__file__]
