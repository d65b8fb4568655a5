"""liquidSVM as a peer: one fit at one (γ, λ), and its problem in our terms.

With folds=1 and a grid of one value each way it trains once, on all samples, and validates
nothing. Inside, it shifts the labels by their τ-level (quantile or expectile), scales them
by half their range, and then solves, without offset,

    min_f  λ‖f‖² + (1/n) Σ ℓ(yᵢ − f(xᵢ)),   k(x, x') = exp(−‖x − x'‖²/g²)

which on labels prepared in the same way is our problem with C = 1/(2λn) and γ = 1/g².
"""

from __future__ import annotations

import os
import sysconfig
from collections.abc import Iterator
from contextlib import contextmanager
from types import ModuleType
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

#: its name for the learning scenario, by loss
SCENARIOS = {"quantile": "QT", "expectile": "EX"}

#: its default stopping rule, a gap in the units of its objective: ≤ STOP·n·C in ours
STOP = 1e-3


def load_liquidsvm() -> ModuleType:
    """The module; an ImportError that says what to install without it."""
    # its loader asks for the suffix of extension modules by a name of old Python versions
    sysconfig.get_config_vars()["SO"] = ".so"
    try:
        import liquidSVM
    except ImportError as error:
        raise ImportError('liquidSVM is missing: pip install liquidSVM "setuptools<81"') from error
    return liquidSVM


@contextmanager
def cores_given_back() -> Iterator[None]:
    """It leaves the thread that called it bound to one core: undo that for what runs next."""
    before = os.sched_getaffinity(0)
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)


def level(kind: str, y: Array, tau: float) -> float:
    """The τ-quantile or τ-expectile of y."""
    if kind == "quantile":
        return float(np.quantile(y, tau))
    value = float(y.mean())
    for _ in range(100):
        weight = np.where(y > value, tau, 1.0 - tau)
        value = float(weight @ y / weight.sum())
    return value


def prepare_labels(kind: str, y: Array, tau: float) -> Array:
    """The labels that it solves for."""
    return (y - level(kind, y, tau)) / (0.5 * np.ptp(y))


class LiquidFit:
    """One untrained model; ``train`` is what is timed.

    ``y`` are labels from :func:`prepare_labels`: it then changes nothing more about them.
    """

    def __init__(self, kind: str, X: Array, y: Array, tau: float, C: float, gamma: float) -> None:
        lam = 1.0 / (2.0 * len(y) * C)
        self.model = load_liquidsvm().SVM(
            X,
            y,
            scenario=SCENARIOS[kind],
            weights=[tau],
            gammas=[decimal(gamma**-0.5)],
            lambdas=[decimal(lam)],
            folds=1,
            threads=1,
            random_seed=1,
            display=0,
        )

    def train(self, stop: float = STOP, clip: float = -1.0) -> None:
        """Train to a gap of ``stop``; clip −1 is its default, 0 is none."""
        with cores_given_back():
            self.model.train(s=[decimal(clip), decimal(stop)])

    def predict(self, X: Array, y: Array) -> Array:
        """Predictions after training (it must select before it can test)."""
        with cores_given_back():
            self.model.select()
            result: Any = self.model.test(X, y)[0]
        return np.asarray(result, dtype=np.float64).ravel()


def decimal(value: float) -> str:
    """A number as its parser reads it: without an exponent."""
    return f"{value:.15f}"
