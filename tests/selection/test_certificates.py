"""Every machine that predicts is solved to ``tol`` on its rows, and says so truly."""

import warnings

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from tausvm import SVRCV, ExpectileSVR, ExpectileSVRCV, QuantileSVR, QuantileSVRCV
from tausvm.kernels import mapped

from ..estimators.data import PLAIN, wave
from .generator import claims, fitted, members

X, Y = wave(400)
GRID = {"Cs": [0.3, 3.0, 30.0], "gammas": [0.3, 3.0], "cv": 3}
LEVELS = {"tau": [0.2, 0.7]}
SELECTIONS = [(SVRCV, {}), (QuantileSVRCV, LEVELS), (ExpectileSVRCV, LEVELS)]


def honest(seed):
    """Whether no claim is ten times better than the truth without a warning; the claims."""
    model, X, y, weight, warned = fitted(seed)
    found = claims(model, X, y, weight)
    return warned or all(true <= 10 * told + unsure for told, true, unsure in found), found


@pytest.mark.parametrize("seed", range(16))
def test_no_claim_is_better_than_the_truth(seed):
    kept, found = honest(seed)
    assert kept, found


@pytest.mark.slow
def test_no_claim_of_many_is_better_than_the_truth():
    broken = {seed: found for seed in range(16, 400) for kept, found in [honest(seed)] if not kept}
    assert not broken


@pytest.mark.parametrize("tol", [1e-3, 1e-8])
@pytest.mark.parametrize("refit", ["committee", "average", True])
@pytest.mark.parametrize("selection, levels", SELECTIONS)
def test_tol_holds_for_what_predicts(selection, levels, refit, tol):
    model = selection(refit=refit, tol=tol, **GRID, **levels).fit(X, Y)
    for told, true, unsure in claims(model, X, Y, None):
        assert told <= tol
        assert true <= 2 * told + unsure + 1e-9
    gaps = [told["dual_gap"] for told, _ in members(model)]
    assert np.max(model.dual_gap_) == max(gaps)
    assert np.shape(model.dual_gap_) == (() if selection is SVRCV else (2,))


def test_members_are_told():
    model = QuantileSVRCV(tau=[0.2, 0.7], **GRID).fit(X, Y)
    for level in range(2):
        told, committee = model.members_[level], model.best_estimator_[level]
        assert sum(member["weight"] for member in told) == pytest.approx(1.0)
        whole = [member for member in told if member["fold"] is None]
        chosen = [(p["C"], p["gamma"]) for p in model.fold_params_[level]]
        assert {(m["C"], m["gamma"]) for m in whole} == set(chosen)
        for member in whole:
            assert member["weight"] == chosen.count((member["C"], member["gamma"])) / 3
        assert model.dual_gap_[level] == committee.dual_gap_
        assert model.dual_gap_[level] == max(member["dual_gap"] for member in told)
        for member, machine in zip(told, committee.machines, strict=True):
            assert (member["C"], member["gamma"]) == (machine.C, machine.gamma)
            assert member["kernel"] == machine.kernel == model.kernel_
    assert [len(rows) for rows in model.fold_rows_] == [266, 267, 267]
    small = ExpectileSVRCV(Cs=[1.0], gammas=[1.0], cv=4, **PLAIN).fit(X[:100], Y[:100])
    assert [member["fold"] for member in small.members_] == [None, 0, 1, 2, 3]
    assert small.members_[0]["weight"] == 0.5


def test_without_refit_there_is_no_certificate():
    model = SVRCV(**GRID).fit(X, Y)
    assert hasattr(model, "members_") and hasattr(model, "dual_gap_")
    model.set_params(refit=False).fit(X, Y)
    assert not hasattr(model, "members_") and not hasattr(model, "dual_gap_")


def test_raw_predictions_are_the_mean_of_the_certified_functions():
    model = ExpectileSVRCV(tau=[0.1, 0.9], clip="range", **GRID, **PLAIN).fit(X, Y)
    far = 3 * X
    raw = model.predict(far, raw=True)
    assert (raw != model.predict(far)).any()
    for level, committee in enumerate(model.best_estimator_):
        parts = [machine.predict(far, raw=True) for machine in committee.machines]
        mean = np.average(parts, axis=0, weights=committee.shares)
        np.testing.assert_array_equal(raw[:, level], mean)


@pytest.mark.parametrize("solver", ["smo", "block"])
def test_machines_that_are_not_solved_warn(solver):
    hard = {**GRID, "Cs": [100.0, 1000.0]}
    with pytest.warns(ConvergenceWarning, match="machines that predict") as caught:
        model = QuantileSVRCV(tau=[0.3, 0.6], max_iter=2, solver=solver, **hard).fit(X, Y)
    (message,) = [str(w.message) for w in caught if "that predict" in str(w.message)]
    assert f"{model.dual_gap_.max():.2e}" in message
    assert "tau=0." in message and "max_iter=2" in message and "C=" in message
    for told, true, unsure in claims(model, X, Y, None):
        assert true <= 2 * told + unsure
    assert caught[0].filename == __file__


def test_a_copy_of_the_machine_with_the_best_parameters_is_the_machine():
    for selection, machine in ((QuantileSVRCV, QuantileSVR), (ExpectileSVRCV, ExpectileSVR)):
        for scale_C in (True, False):
            model = selection(tau=0.3, refit=True, scale_C=scale_C, **GRID).fit(X, 50 * Y + 1e3)
            assert model.learned_
            seen = mapped(X, model.feature_metric_)
            again = machine(tau=0.3, scale_C=scale_C, **model.best_params_).fit(seen, 50 * Y + 1e3)
            np.testing.assert_array_equal(model.predict(X, raw=True), again.predict(seen))


def test_a_gram_matrix_with_rows_of_no_weight():
    """Members of folds have columns of the given matrix, not of the rows that count."""
    from sklearn.metrics.pairwise import rbf_kernel

    X, y = wave(90)
    weight = np.ones(90)
    weight[::4] = 0.0
    K = rbf_kernel(X, gamma=0.5)
    given = QuantileSVRCV(kernel="precomputed", Cs=[1.0, 10.0], cv=3).fit(K, y, weight)
    plain = QuantileSVRCV(gammas=[0.5], Cs=[1.0, 10.0], cv=3, **PLAIN).fit(X, y, weight)
    np.testing.assert_allclose(given.predict(K), plain.predict(X), atol=1e-6)
    assert len(given.members_) == len(plain.members_)


def test_quiet_where_all_is_solved():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        SVRCV(**GRID).fit(X, Y)
