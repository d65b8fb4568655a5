"""The synthetic problem of the joint quantile paper's Figure 3, and CVXOPT's way to solve it."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.distance import cdist

from tausvm.kernels import level_kernel
from tausvm.losses import GroupTerms, Pinball
from tausvm.operators import SeparableKernel
from tausvm.solvers import Certificate, Point, Problem, certificate

Array = NDArray[np.float64]

TAUS = np.array([0.25, 0.5, 0.75])
GAMMA_TAU = 1.0
#: k = exp(−‖x − x'‖²/2)
GAMMA = 0.5
#: the paper's 1/(λn)
C = 100.0
EPSILONS = (0.1, 1.0, 5.0)
#: points of a curve without progress before it ends: a gap of 1 lasts for many passes at first
PATIENCE = 25


def sine(n: int, seed: int = 0) -> tuple[Array, Array]:
    """A sine at 1 Hz within a sine envelope at 1/3 Hz, with noise that falls along x."""
    rng = np.random.default_rng(seed)
    x = np.sort(rng.uniform(0.0, 1.5, n))
    spread = 1.2 - x / 1.5
    y = np.sin(2 * np.pi * x) * (1.0 + np.sin(2 * np.pi * x / 3)) + spread * rng.normal(size=n)
    return x, y


def five_features(n: int, seed: int = 0) -> tuple[Array, Array]:
    """A curve in two of five features, whose Gram matrix has no small rank."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 5))
    noise = 0.5 * (1.0 + 0.3 * X[:, 0]) * rng.normal(size=n)
    return X, np.sin(2 * X[:, 0]) + 0.5 * X[:, 1] + noise


def build(x: Array, y: Array, epsilon: float, taus: Array = TAUS) -> Problem:
    """The joint quantile problem with offsets."""
    X = np.asarray(x).reshape(len(y), -1)
    K = np.exp(-GAMMA * cdist(X, X, "sqeuclidean"))
    targets = np.ascontiguousarray(np.repeat(y[:, None], len(taus), axis=1))
    cost = np.full(len(y), C)
    terms = GroupTerms.build([Pinball(t) for t in taus], targets, cost, epsilon)
    return Problem(SeparableKernel(K, level_kernel(taus, GAMMA_TAU)), targets, terms, True)


def certify(problem: Problem, alpha: Array) -> Certificate:
    """Primal, dual and true gap at α, made feasible, with the best offsets for it."""
    return certificate(problem, Point.of(problem.feasible(alpha)))


def coneqp(problem: Problem, max_iter: int = 100, tol: float = 1e-7) -> Array:
    """α by CVXOPT's cone program solver, in the paper's scaling α/C."""
    from cvxopt import matrix, solvers, spmatrix

    n, p = problem.y.shape
    m = n * p
    epsilon = problem.terms.epsilon
    P = matrix(0.0, (m + n, m + n))
    P[:m, :m] = matrix(C * np.kron(problem.operator.K, problem.operator.B))
    q = matrix(np.concatenate([-problem.y.ravel(), np.full(n, epsilon)]))
    # upper bounds, lower bounds, then a cone (tᵢ, αᵢ) a sample
    entries = np.arange(m)
    cone = 2 * m + (p + 1) * (entries // p) + 1 + entries % p
    top = 2 * m + (p + 1) * np.arange(n)
    rows = np.concatenate([entries, m + entries, top, cone])
    columns = np.concatenate([entries, entries, m + np.arange(n), entries])
    values = np.concatenate([np.ones(m), -np.ones(m), -np.ones(n), -np.ones(m)])
    size = (2 * m + (p + 1) * n, m + n)
    G = spmatrix(values.tolist(), rows.tolist(), columns.tolist(), size)
    ends = np.tile(TAUS, n), np.tile(1.0 - TAUS, n)
    h = matrix(np.concatenate([*ends, np.zeros((p + 1) * n)]))
    A = spmatrix(1.0, (entries % p).tolist(), entries.tolist(), (p, m + n))
    solution = solvers.coneqp(
        P,
        q,
        G,
        h,
        {"l": 2 * m, "q": [p + 1] * n, "s": []},
        A,
        matrix(0.0, (p, 1)),
        options={
            "show_progress": False,
            "maxiters": max(max_iter, 1),
            "reltol": tol,
            "abstol": 1e-12,
            "feastol": min(1e-7, tol),
        },
    )
    return C * np.array(solution["x"])[:m].reshape(n, p)
