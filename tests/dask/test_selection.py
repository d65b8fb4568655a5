"""C by cross-validation on partitions."""

from __future__ import annotations

from collections.abc import Iterator

import dask
import numpy as np
import pytest

import tausvm
import tausvm.dask as lazy

from .data import SMALL, assert_same, chunked, rows


@pytest.fixture(autouse=True)
def in_this_thread() -> Iterator[None]:
    with dask.config.set(scheduler="synchronous"):
        yield


@pytest.mark.parametrize("loss", ["epsilon_insensitive", "squared_epsilon_insensitive"])
def test_scores_and_the_last_fit_are_those_of_the_single_machine(loss: str) -> None:
    X, y, weight = rows(3000)
    given = {"Cs": [1e-5, 1e-3, 1e-1], "cv": 3, "loss": loss, "epsilon": 0.1}
    model = lazy.LinearSVRCV(**given)
    model.fit(chunked(X), chunked(y), sample_weight=chunked(weight), plan=SMALL)
    single = tausvm.LinearSVRCV(**given).fit(X, y, sample_weight=weight)
    # other folds, the same rows
    for name in ("mean_test_score", "mean_test_mse", "mean_test_squared_correlation"):
        np.testing.assert_allclose(model.cv_results_[name], single.cv_results_[name], rtol=0.03)
    best = tausvm.LinearSVR(C=model.best_params_["C"], loss=loss, epsilon=0.1).fit(
        X, y, sample_weight=weight
    )
    assert_same(model.best_estimator_, best)
    assert model.n_passes_ <= 15
    np.testing.assert_allclose(model.predict(chunked(X)).compute(), model.predict(X))


@pytest.mark.parametrize("kind", ["Quantile", "Expectile"])
def test_levels_and_tubes_are_chosen_as_by_the_single_machine(kind: str) -> None:
    X, y, weight = rows(3000)
    given = {"tau": [0.8, 0.3], "Cs": [1e-4, 1e-1], "epsilons": [0.0, 1.0], "cv": 3}
    model = getattr(lazy, f"Linear{kind}SVRCV")(**given)
    model.fit(chunked(X), chunked(y), sample_weight=chunked(weight), plan=SMALL)
    single = getattr(tausvm, f"Linear{kind}SVRCV")(**given).fit(X, y, sample_weight=weight)
    machine = getattr(tausvm, f"Linear{kind}SVR")
    for k, tau in enumerate(given["tau"]):
        assert model.cv_results_[k]["params"] == single.cv_results_[k]["params"]
        for name in ("mean_test_score", "mean_test_mse"):
            ours, theirs = model.cv_results_[k][name], single.cv_results_[k][name]
            np.testing.assert_allclose(ours, theirs, rtol=0.05)
        best = machine(tau=tau, **model.best_params_[k]).fit(X, y, sample_weight=weight)
        assert_same(model.best_estimator_[k], best)
    lazily = model.predict(chunked(X))
    assert lazily.shape[1:] == (2,)
    np.testing.assert_allclose(lazily.compute(), model.predict(X))
    assert type(model.single()) is getattr(tausvm, f"Linear{kind}SVRCV")
    np.testing.assert_allclose(model.single().predict(X), model.predict(X))


def test_the_grid_is_that_of_the_single_machine() -> None:
    X, y, weight = rows(800)
    model = lazy.LinearSVRCV(Cs=4, cv=2, refit=False)
    model.fit(chunked(X), chunked(y), sample_weight=chunked(weight), plan=SMALL)
    single = tausvm.LinearSVRCV(Cs=4, cv=2, refit=False).fit(X, y, sample_weight=weight)
    np.testing.assert_allclose(model.Cs_, single.Cs_)
    assert not hasattr(model, "best_estimator_")


def test_bad_parameters() -> None:
    X, y, _ = rows(100)
    with pytest.raises(ValueError, match="cv must be a number of folds, got"):
        lazy.LinearSVRCV(cv=[([0], [1])]).fit(chunked(X), chunked(y))
    with pytest.raises(ValueError, match="scoring must be"):
        lazy.LinearSVRCV(scoring="r2").fit(chunked(X), chunked(y))
    with pytest.raises(ValueError, match="cv=200 folds need more rows"):
        lazy.LinearSVRCV(cv=200).fit(chunked(X), chunked(y))
