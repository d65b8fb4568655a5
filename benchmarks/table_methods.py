"""Who is compared in :mod:`benchmarks.tables`, each called as its users call it.

A method takes a :class:`Task` and parameters, fits, and gives predictions for the test rows: a
column a level, or one column where the mean is asked for. The parameters are those of its own
constructor beside what the task fixes, so ``{}`` is its default call. Kernel and linear methods get
standardised features, trees get them as they are. Nothing is told the test targets.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .worker import settings

Array = NDArray[np.float64]
Parameters = dict[str, Any]

#: the levels that are asked for
TAUS = (0.05, 0.25, 0.5, 0.75, 0.95)
#: of everything that draws
SEED = 0
#: share of its training rows on which xRFM validates: its documentation's
XRFM_VALIDATION = 0.2


@dataclass(frozen=True)
class Task:
    """Rows to fit, rows to predict, levels, and threads that may be used."""

    X: Array
    y: Array
    new: Array
    taus: tuple[float, ...]
    jobs: int


Run = Callable[[Task, Parameters], Array]


@dataclass(frozen=True)
class Method:
    """A line of the comparison."""

    run: Run
    #: modules that have to be there
    modules: tuple[str, ...] = ()
    #: whether its features are standardised
    scaled: bool = False
    #: what a random search draws from: (low, high) on a log scale, or a list; empty: not tuned
    space: dict[str, Any] = field(default_factory=dict)


def missing(method: Method) -> list[str]:
    """Modules that are not installed here."""
    return [name for name in method.modules if importlib.util.find_spec(name) is None]


# ------------------------------------------------------------------- ours


def _ours(task: Task, parameters: Parameters) -> Array:
    """``QuantileSVRCV``, or the class that the parameters name."""
    fixed = {"class": "tausvm.QuantileSVRCV", "tau": list(task.taus), "n_jobs": task.jobs}
    model = settings({**fixed, **parameters})
    return np.asarray(model.fit(task.X, task.y).predict(task.new))


def _our_mean(task: Task, parameters: Parameters) -> Array:
    """``ExpectileSVRCV`` at τ = ½, which is the mean."""
    fixed = {"class": "tausvm.ExpectileSVRCV", "tau": 0.5, "n_jobs": task.jobs}
    return np.asarray(settings({**fixed, **parameters}).fit(task.X, task.y).predict(task.new))


# -------------------------------------------------------------- quantiles


def _level_by_level(task: Task, make: Callable[[float], Any]) -> Array:
    """A model a level."""
    return np.column_stack(
        [make(tau).fit(task.X, task.y).predict(task.new) for tau in task.taus]
    ).astype(np.float64)


def _lightgbm(task: Task, parameters: Parameters) -> Array:
    from lightgbm import LGBMRegressor

    fixed: Parameters = {
        "objective": "quantile",
        "n_jobs": task.jobs,
        "verbose": -1,
        "random_state": SEED,
    }
    return _level_by_level(task, lambda tau: LGBMRegressor(alpha=tau, **fixed, **parameters))


def _boosting(task: Task, parameters: Parameters) -> Array:
    from sklearn.ensemble import HistGradientBoostingRegressor

    fixed: Parameters = {"loss": "quantile", "random_state": SEED}
    return _level_by_level(
        task, lambda tau: HistGradientBoostingRegressor(quantile=tau, **fixed, **parameters)
    )


def _forest(task: Task, parameters: Parameters) -> Array:
    """300 trees and leaves of 5: its defaults, 100 and 1, are no match."""
    from quantile_forest import RandomForestQuantileRegressor

    fixed = {"n_estimators": 300, "min_samples_leaf": 5, "random_state": SEED}
    model = RandomForestQuantileRegressor(n_jobs=task.jobs, **{**fixed, **parameters})
    found = model.fit(task.X, task.y).predict(task.new, quantiles=list(task.taus))
    return np.asarray(found, dtype=np.float64).reshape(len(task.new), len(task.taus))


def _catboost(task: Task, parameters: Parameters) -> Array:
    """One model for all levels."""
    levels = ",".join(f"{tau:g}" for tau in task.taus)
    loss = f"MultiQuantile:alpha={levels}" if len(task.taus) > 1 else f"Quantile:alpha={levels}"
    found = _catboost_model(loss, task, parameters).predict(task.new)
    return np.asarray(found, dtype=np.float64).reshape(len(task.new), len(task.taus))


def _catboost_by_level(task: Task, parameters: Parameters) -> Array:
    """A model a level, whose leaves it then computes exactly."""
    return np.hstack([_catboost(replace(task, taus=(tau,)), parameters) for tau in task.taus])


def _catboost_model(loss: str, task: Task, parameters: Parameters) -> Any:
    from catboost import CatBoostRegressor

    model = CatBoostRegressor(
        loss_function=loss,
        thread_count=task.jobs,
        random_seed=SEED,
        verbose=False,
        allow_writing_files=False,
        **parameters,
    )
    return model.fit(task.X, task.y)


def _liquidsvm(task: Task, parameters: Parameters) -> Array:
    """Its selection as it comes: 10 × 10 points, five folds."""
    from .liquid import cores_given_back, load_liquidsvm

    library = load_liquidsvm()
    with cores_given_back():
        model = library.qtSVM(
            task.X, task.y, weights=list(task.taus), threads=task.jobs, display=0, **parameters
        )
        # it wants labels for its own errors; what they are does not change what it predicts
        found = model.test(task.new, np.zeros(len(task.new)))[0]
    return np.asarray(found, dtype=np.float64).reshape(len(task.new), len(task.taus))


def _linear(task: Task, parameters: Parameters) -> Array:
    """Linear programs without a penalty: scikit-learn's default, alpha = 1, depends on y's unit."""
    from sklearn.linear_model import QuantileRegressor

    fixed = {"alpha": 0.0, "solver": "highs"}
    return _level_by_level(task, lambda tau: QuantileRegressor(quantile=tau, **fixed, **parameters))


# ------------------------------------------------------------------- means


def _lightgbm_mean(task: Task, parameters: Parameters) -> Array:
    from lightgbm import LGBMRegressor

    model = LGBMRegressor(n_jobs=task.jobs, verbose=-1, random_state=SEED, **parameters)
    return np.asarray(model.fit(task.X, task.y).predict(task.new))


def _catboost_mean(task: Task, parameters: Parameters) -> Array:
    return np.asarray(_catboost_model("RMSE", task, parameters).predict(task.new))


def _xrfm(task: Task, parameters: Parameters) -> Array:
    """A fifth of the rows to validate on and targets of variance 1, as its documentation has it."""
    import torch
    from sklearn.model_selection import train_test_split
    from xrfm import xRFM

    centre, spread = task.y.mean(), task.y.std()
    labels = ((task.y - centre) / spread)[:, None]
    parts = train_test_split(task.X, labels, test_size=XRFM_VALIDATION, random_state=SEED)
    X, X_held, y, y_held = (torch.as_tensor(part, dtype=torch.float32) for part in parts)
    fixed = {"device": "cpu", "tuning_metric": "mse", "random_state": SEED, "verbose": False}
    model = xRFM(n_threads=task.jobs, **{**fixed, **parameters})
    model.fit(X, y, X_held, y_held)
    found = model.predict(torch.as_tensor(task.new, dtype=torch.float32))
    return np.asarray(found, dtype=np.float64).ravel() * spread + centre


# ---------------------------------------------------------------- the lists

#: rates, leaves and penalties as boosted trees are tuned by hand
LIGHTGBM_SPACE = {
    "n_estimators": [50, 100, 200, 400, 800],
    "learning_rate": (0.01, 0.3),
    "num_leaves": [4, 8, 16, 31, 63],
    "min_child_samples": [5, 10, 20, 40],
    "colsample_bytree": [0.5, 0.75, 1.0],
    "reg_lambda": (1e-3, 10.0),
}
BOOSTING_SPACE = {
    "max_iter": [50, 100, 200, 400, 800],
    "learning_rate": (0.01, 0.3),
    "max_leaf_nodes": [4, 8, 16, 31, 63],
    "min_samples_leaf": [5, 10, 20, 40],
    "l2_regularization": (1e-3, 10.0),
}
FOREST_SPACE = {
    "min_samples_leaf": [1, 2, 5, 10, 20],
    "max_features": [0.2, 0.33, 0.5, 0.75, 1.0],
    "n_estimators": [100, 300],
}
CATBOOST_SPACE = {
    "iterations": [250, 500, 1000, 2000],
    "learning_rate": (0.01, 0.3),
    "depth": [3, 4, 6, 8],
    "l2_leaf_reg": (0.3, 30.0),
}

OURS = "tausvm"

QUANTILES = {
    OURS: Method(_ours, scaled=True),
    "lightgbm": Method(_lightgbm, ("lightgbm",), space=LIGHTGBM_SPACE),
    "sklearn boosting": Method(_boosting, space=BOOSTING_SPACE),
    "quantile forest": Method(_forest, ("quantile_forest",), space=FOREST_SPACE),
    "catboost": Method(_catboost, ("catboost",), space=CATBOOST_SPACE),
    "catboost by level": Method(_catboost_by_level, ("catboost",), space=CATBOOST_SPACE),
    "liquidSVM": Method(_liquidsvm, ("liquidSVM",), scaled=True),
    "linear": Method(_linear, scaled=True),
}
MEANS = {
    OURS: Method(_our_mean, scaled=True),
    "xRFM": Method(_xrfm, ("xrfm", "torch"), scaled=True),
    "lightgbm": Method(_lightgbm_mean, ("lightgbm",), space=LIGHTGBM_SPACE),
    "catboost": Method(_catboost_mean, ("catboost",), space=CATBOOST_SPACE),
}


def methods(mean: bool) -> dict[str, Method]:
    """Those that answer for levels, or for the mean."""
    return MEANS if mean else QUANTILES
