"""The problems as the docstrings state them, evaluated in plain NumPy."""

import numpy as np
import pytest
from sklearn.metrics.pairwise import rbf_kernel

from tausvm import SVR, ExpectileSVR, QuantileSVR, TauSVC

from .data import wave

C, EPSILON, TAU = 3.0, 0.1, 0.3


def excess(r, epsilon=EPSILON):
    return np.sign(r) * np.maximum(np.abs(r) - epsilon, 0)


def linear(r, beta, c, y):
    assert (np.abs(beta) <= c).all()
    return c * np.abs(excess(r)), EPSILON * np.abs(beta)


def squared(r, beta, c, y):
    return c * excess(r) ** 2, EPSILON * np.abs(beta) + beta**2 / (4 * c)


def pinball(r, beta, c, y):
    assert ((beta >= -(1 - TAU) * c) & (beta <= TAU * c)).all()
    t = excess(r)
    return c * np.where(t >= 0, TAU * t, (TAU - 1) * t), EPSILON * np.abs(beta)


def squared_pinball(r, beta, c, y):
    t = excess(r)
    side = np.where(beta > 0, TAU, 1 - TAU)
    loss = c * np.where(t >= 0, TAU * t**2, (1 - TAU) * t**2)
    return loss, EPSILON * np.abs(beta) + beta**2 / (4 * c * side)


def hinge(r, beta, c, y):
    c = c * np.where(y > 0, 2 * (1 - TAU), 2 * TAU)
    assert ((y * beta >= 0) & (y * beta <= c * (1 + 1e-15))).all()
    return c * np.maximum(0, 1 - y * (y - r)), np.zeros_like(beta)


CASES = [
    (SVR(C=C, epsilon=EPSILON), linear),
    (SVR(C=C, epsilon=EPSILON, loss="squared_epsilon_insensitive"), squared),
    (QuantileSVR(C=C, epsilon=EPSILON, tau=TAU), pinball),
    (ExpectileSVR(C=C, epsilon=EPSILON, tau=TAU), squared_pinball),
    (TauSVC(C=C, tau=TAU), hinge),
]


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("solver", ["auto", "block", "smo", "interior_point"])
@pytest.mark.parametrize(("estimator", "terms"), CASES)
def test_docstring(estimator, terms, solver, fit_intercept):
    X, y = wave(60)
    y = np.sign(y) if terms is hinge else y
    weight = np.random.default_rng(0).integers(0, 4, size=60)
    model = estimator.set_params(
        gamma=0.7, tol=1e-6, solver=solver, fit_intercept=fit_intercept
    ).fit(X, y, weight)
    assert weight[model.support_].min() > 0

    kept = weight > 0
    K = rbf_kernel(X, gamma=0.7)
    cost = C * weight
    if model.scale_C and terms is pinball:  # C counts in weighted standard deviations
        cost = cost * np.sqrt(np.cov(y, fweights=weight, bias=True))
    beta = np.zeros(60)
    beta[model.support_] = model.dual_coef_[0]
    b = model.intercept_[0]
    loss, g = terms((y - K @ beta - b)[kept], beta[kept], cost[kept], y[kept])
    primal = beta @ K @ beta / 2 + loss.sum()
    dual = y @ beta - beta @ K @ beta / 2 - g.sum()
    gap = (primal - dual) / max(abs(primal), abs(dual))
    if fit_intercept:
        assert abs(beta.sum()) <= 1e-10 * np.abs(beta).sum()
    else:
        assert b == 0

    result = model.result_
    np.testing.assert_allclose(result.primal_objective, primal, rtol=1e-9)
    np.testing.assert_allclose(result.dual_objective, dual, rtol=1e-9)
    assert model.dual_gap_ == result.dual_gap
    assert abs(model.dual_gap_ - gap) <= 1e-9
    assert gap <= 1e-6
    assert model.n_iter_ >= 1
