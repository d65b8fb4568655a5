"""LinearSVRCV: the same choice as a plain search, the paper's measures, bad input."""

from __future__ import annotations

import joblib
import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.exceptions import NotFittedError
from sklearn.metrics import mean_squared_error
from sklearn.model_selection import GridSearchCV, GroupKFold, KFold

from tausvm import LinearSVR, LinearSVRCV
from tausvm.metrics import squared_correlation

RNG = np.random.default_rng(0)
X = RNG.normal(size=(150, 8))
Y = X[:, 0] - X[:, 1] + RNG.standard_t(3, size=150)
CS = [1e-3, 1e-2, 0.1, 1.0]


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("loss", ["epsilon_insensitive", "squared_epsilon_insensitive"])
def test_same_choice_as_a_grid_search(loss: str, sparse: bool) -> None:
    folds = KFold(4, shuffle=True, random_state=1)
    data = sp.csr_matrix(X) if sparse else X
    given = {"cv": folds, "scoring": "neg_mean_squared_error"}
    ours = LinearSVRCV(Cs=CS, loss=loss, selection_tol=1e-9, tol=1e-9, **given).fit(data, Y)
    plain = GridSearchCV(LinearSVR(loss=loss, tol=1e-9), {"C": CS}, **given).fit(data, Y)
    np.testing.assert_allclose(
        ours.cv_results_["mean_test_score"], plain.cv_results_["mean_test_score"], rtol=1e-5
    )
    assert ours.best_params_ == plain.best_params_
    np.testing.assert_allclose(ours.predict(data), plain.predict(data), atol=1e-4)


def test_reports_the_papers_measures() -> None:
    folds = KFold(3)
    model = LinearSVRCV(Cs=[0.1], cv=folds, selection_tol=1e-9).fit(X, Y)
    for k, (train, validation) in enumerate(folds.split(X)):
        prediction = LinearSVR(C=0.1, tol=1e-9).fit(X[train], Y[train]).predict(X[validation])
        error = mean_squared_error(Y[validation], prediction)
        agreement = squared_correlation(Y[validation], prediction)
        assert model.cv_results_[f"split{k}_test_mse"][0] == pytest.approx(error, rel=1e-4)
        assert model.cv_results_[f"split{k}_test_squared_correlation"][0] == pytest.approx(
            agreement, rel=1e-4
        )
    assert set(model.cv_results_) >= {"mean_test_mse", "mean_test_squared_correlation"}


def test_squared_correlation_by_the_papers_formula() -> None:
    y, f = RNG.normal(size=20), RNG.normal(size=20)
    n = 20
    above = (n * (f * y).sum() - f.sum() * y.sum()) ** 2
    below = (n * (y**2).sum() - y.sum() ** 2) * (n * (f**2).sum() - f.sum() ** 2)
    assert squared_correlation(y, f) == pytest.approx(above / below)
    assert squared_correlation(y, np.ones(20)) == 0.0
    weight = RNG.integers(1, 4, size=20)
    index = np.repeat(np.arange(20), weight)
    assert squared_correlation(y, f, weight) == pytest.approx(
        squared_correlation(y[index], f[index])
    )


def test_default_grid_is_free_of_units() -> None:
    """Scaled features and targets get the same choice in their own unit."""
    plain = LinearSVRCV().fit(X, Y)
    scaled = LinearSVRCV().fit(10.0 * X, 5.0 * Y)
    np.testing.assert_allclose(plain.Cs_ * 5.0 / 100.0, scaled.Cs_)
    assert plain.best_index_ == scaled.best_index_
    assert 0 < plain.best_index_ < 9 or plain.best_score_ >= max(
        plain.cv_results_["mean_test_score"]
    )


def test_weights_groups_and_jobs() -> None:
    weight = RNG.integers(0, 3, size=150)
    model = LinearSVRCV(Cs=CS, n_jobs=2).fit(X, Y, sample_weight=weight)
    alone = LinearSVRCV(Cs=CS).fit(X, Y, sample_weight=weight)
    np.testing.assert_array_equal(
        model.cv_results_["mean_test_score"], alone.cv_results_["mean_test_score"]
    )
    groups = np.repeat(np.arange(15), 10)
    grouped = LinearSVRCV(Cs=CS, cv=GroupKFold(3)).fit(X, Y, groups=groups)
    assert grouped.n_splits_ == 3


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"Cs": []}, "Cs must be"),
        ({"Cs": [0.0]}, "Cs must be"),
        ({"cv": 1}, "cv must be an integer >= 2, got 1"),
        ({"cv": 200}, "cv=200 folds need as many rows"),
        ({"scoring": "nonsense"}, "scoring must be"),
        ({"selection_tol": 0}, "selection_tol must be a finite number > 0, got 0"),
        ({"n_jobs": 0}, "n_jobs must be None or an integer other than 0, got 0"),
        ({"solver": "smo"}, "solver must be"),
    ],
)
def test_parameters_that_cannot_be_used(parameters: dict, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        LinearSVRCV(**parameters).fit(X, Y)


def test_refit_false_has_no_predictions() -> None:
    with pytest.raises(NotFittedError):
        LinearSVRCV().predict(X)
    model = LinearSVRCV(Cs=CS, refit=False).fit(X, Y)
    with pytest.raises(AttributeError, match="refit=False"):
        model.predict(X)


def test_folds_run_in_threads_whatever_backend_is_chosen() -> None:
    """They share X, and a halt for Ctrl-C, which other processes could not."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 3))
    y = X[:, 0] + 0.1 * rng.normal(size=60)
    alone = LinearSVRCV(Cs=[0.1, 1.0], cv=3).fit(X, y)
    with joblib.parallel_config(backend="loky", n_jobs=2):
        several = LinearSVRCV(Cs=[0.1, 1.0], cv=3, n_jobs=2).fit(X, y)
    np.testing.assert_array_equal(
        alone.cv_results_["mean_test_score"], several.cv_results_["mean_test_score"]
    )
