"""Other libraries at the places of the map, each called as its users call it.

A peer gets the place's data and parameters and solves the nearest problem it can pose, to its own
default accuracy; where that is another problem than ours, its function here says so. Many levels
are as many fits unless the peer knows better. What is not installed is left out by name.
"""

from __future__ import annotations

import functools
import importlib.util
import warnings
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from .machines import MACHINES, class_name

if TYPE_CHECKING:
    from .places import Place

Array = NDArray[np.float64]
Run = Callable[[], Any]
#: what a peer is given
Data = tuple[Array, Array, Array]

#: the module that has to be there
MODULES = {
    "sklearn SVR": "sklearn",
    "sklearn SVC": "sklearn",
    "sklearn LinearSVR": "sklearn",
    "sklearn QuantileRegressor": "sklearn",
    "liblinear": "liblinear",
    "liquidSVM": "liquidSVM",
    "cvxopt": "cvxopt",
}

#: variables of the quadratic programs that CVXOPT is given: it holds their matrix densely
CVXOPT_LARGEST = 2_000
#: columns × rows of the linear programs of QuantileRegressor
QUANTILE_REGRESSOR_LARGEST = 1_000_000
#: a path answers for every level: as many single fits stand against it
PATH_LEVELS = 99
FOLDS = 5
GRID = 10


def missing() -> list[str]:
    """Peers that are not installed here."""
    return [name for name, module in MODULES.items() if importlib.util.find_spec(module) is None]


def peers_of(place: Place) -> list[str]:
    """The peers that this place can be put to."""
    absent = missing()
    return [
        name
        for name in MACHINES[place.estimator].peers
        if name not in absent and _serves(name, place)
    ]


def _serves(name: str, place: Place) -> bool:
    """Whether a peer can pose this place's problem, and within its memory."""
    if name == "cvxopt":
        return place.n * place.levels <= CVXOPT_LARGEST
    if name == "sklearn QuantileRegressor":
        return place.n * place.d <= QUANTILE_REGRESSOR_LARGEST
    if place.estimator == "LinearExpectileSVR":
        return place.levels == 1  # τ = ½ is least squares, other levels are not
    return True


def build(name: str, place: Place, parts: Data) -> Run:
    """What is timed: one call that fits, or predicts after a fit that is not timed."""
    warnings.simplefilter("ignore")  # a peer that did not converge says so to nobody here
    builder = {
        "sklearn SVR": _support_vector_machine,
        "sklearn SVC": _support_vector_machine,
        "sklearn LinearSVR": _linear_svr,
        "sklearn QuantileRegressor": _quantile_regressor,
        "liblinear": _liblinear,
        "liquidSVM": _liquidsvm,
        "cvxopt": _cvxopt,
    }[name]
    return builder(place, parts)


# ----------------------------------------------------------------- scikit-learn


def _support_vector_machine(place: Place, parts: Data) -> Run:
    """LIBSVM with its default tolerance: one fit, a grid search, or 99 levels against a path."""
    from sklearn.svm import SVC, SVR

    X, y, new = parts
    machine = class_name(place.estimator)
    common = {"C": place.C, "gamma": "scale", "cache_size": 2000}
    if machine == "SVRCV":
        return functools.partial(_grid_search(SVR(), True).fit, X, y)
    if machine == "TauPathSVC":
        taus = np.arange(1, PATH_LEVELS + 1) / (PATH_LEVELS + 1)
        fits = [SVC(**common, class_weight={1: 2 - 2 * tau, -1: 2 * tau}) for tau in taus]
        return lambda: [fit.fit(X, y) for fit in fits]
    model = SVC(**common) if machine == "TauSVC" else SVR(**common)
    if place.task == "predict":
        return functools.partial(model.fit(X, y).predict, new)
    return functools.partial(model.fit, X, y)


def _linear_svr(place: Place, parts: Data) -> Run:
    """LIBLINEAR by way of scikit-learn; its offset is penalised, ours is free.

    An expectile at τ = ½ is half the squared loss, hence C/2.
    """
    from sklearn.svm import LinearSVR

    X, y, _ = parts
    if place.estimator == "LinearSVRCV":
        search = _grid_search(LinearSVR(max_iter=10_000), False)
        return functools.partial(search.fit, X, y)
    if place.estimator == "LinearExpectileSVR":
        squared = "squared_epsilon_insensitive"
        model = LinearSVR(C=place.C / 2, loss=squared, dual=False, max_iter=10_000)
    else:
        model = LinearSVR(C=place.C, max_iter=10_000)
    return functools.partial(model.fit, X, y)


def _grid_search(model: Any, with_gamma: bool) -> Any:
    """The exhaustive search over the grid of the first version of tausvm's defaults."""
    from sklearn.model_selection import GridSearchCV

    grid = {"C": np.geomspace(1e-2, 1e4, GRID)}
    if with_gamma:
        grid["gamma"] = np.geomspace(1e-3, 1e1, GRID)
    return GridSearchCV(model, grid, cv=FOLDS)


def _quantile_regressor(place: Place, parts: Data) -> Run:
    """A linear program a level, without the penalty: it has none of ours."""
    from sklearn.linear_model import QuantileRegressor

    X, y, _ = parts
    models = [QuantileRegressor(quantile=tau, alpha=0.0) for tau in place.taus]
    return lambda: [model.fit(X, y) for model in models]


# ---------------------------------------------------------------------- LIBLINEAR


def _liblinear(place: Place, parts: Data) -> Run:
    """LIBLINEAR's own Python interface, from X to model: its conversion counts as our checks do."""
    import scipy.sparse as sp
    from liblinear.liblinear import parameter, problem
    from liblinear.liblinearutil import train

    X, y, _ = parts
    options = f"-s 13 -B 1 -p 0 -c {place.C:g} -q"

    def run() -> Any:
        return train(problem(y, sp.csr_matrix(X), bias=1), parameter(options))

    return run


# ---------------------------------------------------------------------- liquidSVM


def _liquidsvm(place: Place, parts: Data) -> Run:
    """One fit a level without an offset, or its own selection with its own grid, on one thread.

    Its labels are scaled inside by half their range h: with C in standard deviations s of y, the
    problem of y/h has C·s/h for quantiles and C for expectiles.
    """
    from . import liquid

    X, y, _ = parts
    kind = "quantile" if "Quantile" in place.estimator else "expectile"
    if place.estimator.endswith("CV"):
        return _liquid_selection(kind, X, y, place.taus)
    half = 0.5 * float(np.ptp(y))
    C = place.C * (float(np.std(y)) / half if kind == "quantile" else 1.0)
    gamma = 1.0 / (X.shape[1] * float(X.var()))
    models = [
        liquid.LiquidFit(kind, X, liquid.prepare_labels(kind, y, tau), tau, C, gamma)
        for tau in place.taus
    ]
    return lambda: [model.train() for model in models]


def _liquid_selection(kind: str, X: Array, y: Array, taus: list[float]) -> Run:
    """Its whole selection as it comes: default grid of 10 × 10, five folds."""
    from . import liquid

    library = liquid.load_liquidsvm()
    train = library.qtSVM if kind == "quantile" else library.exSVM

    def run() -> Any:
        with liquid.cores_given_back():
            return train(X, y, weights=taus, threads=1, folds=FOLDS, display=0)

    return run


# ------------------------------------------------------------------------- CVXOPT


def _cvxopt(place: Place, parts: Data) -> Run:
    """The dual of the quantile machine as a quadratic program: box, and Σβ = 0 a level.

        min_β  ½ βᵀ(K ⊗ B)β − yᵀβ    −(1 − τⱼ)c ≤ βᵢⱼ ≤ τⱼc,   Σᵢ βᵢⱼ = 0

    B = exp(−(τᵢ − τⱼ)²) for joint levels; single levels are as many programs with B = 1.
    """
    from cvxopt import matrix, solvers, spdiag, spmatrix
    from scipy.spatial.distance import cdist

    X, y, _ = parts
    taus = np.array(place.taus)
    cost = place.C * float(np.std(y))
    groups = (
        [taus]
        if place.estimator.startswith("Joint")
        else [taus[k : k + 1] for k in range(len(taus))]
    )

    def program(K: Array, levels: Array) -> Any:
        n, p = len(y), len(levels)
        B = np.exp(-(np.subtract.outer(levels, levels) ** 2))
        bounds = np.concatenate([np.tile(cost * levels, n), np.tile(cost * (1 - levels), n)])
        ones = matrix(1.0, (n * p, 1))
        entries = range(n * p)
        return solvers.qp(
            matrix(np.kron(K, B)),
            matrix(-np.repeat(y, p)),
            matrix([[spdiag(ones), -spdiag(ones)]]),
            matrix(bounds),
            spmatrix(1.0, [k % p for k in entries], list(entries), (p, n * p)),
            matrix(0.0, (p, 1)),
            options={"show_progress": False, "reltol": 1e-4, "abstol": 1e-10},
        )

    def run() -> Any:
        K = np.exp(-cdist(X, X, "sqeuclidean") / (X.shape[1] * X.var()))
        return [program(K, levels) for levels in groups]

    return run
