"""The margin: free points on it, the system that keeps them there, and exact residuals."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import LinAlgError, cho_solve, cholesky

from .box import MovingBox
from .nudge import Nudged
from .settings import PathSettings
from .state import State
from .window import Windows

Array = NDArray[np.float64]

#: residuals of free points up to this share of the labels' spread are zero
ON_MARGIN = 1e-13


class Margin:
    """Evaluates states and puts their free points back onto the margin.

    ``windows.matrix`` has the shift κ of a free offset added, K + κ·11ᵀ, which counts wherever
    Σβ is not 0.
    """

    def __init__(self, nudged: Nudged, windows: Windows, settings: PathSettings) -> None:
        self.nudged, self.windows, self.settings = nudged, windows, settings
        self.offset = nudged.problem.offset
        self.restart()

    def restart(self) -> None:
        """Another walk begins, with what it loses by rounding still ahead."""
        self._terms = 0.0

    def evaluate(self, state: State) -> None:
        """f and the residuals of a state, from the data."""
        state.fitted = self.windows.products.product(state.beta)
        state.residual = self.nudged.y - state.fitted - state.offset

    def rates(self, state: State, slopes: Array, drive: Array) -> Array:
        """The rates of all residuals; ``drive`` is the pull K s of the moving bounds."""
        free, total = state.free, float(slopes.sum())
        right = -(drive[free] + self.windows.shift * total)
        delta, offset_rate = self._solved(state.factor, right, total)
        way = np.zeros_like(slopes)
        way[free] = delta
        return -(drive + self.windows.products.product(way) + offset_rate)

    def restored(self, state: State, box: MovingBox) -> bool:
        """Whether free points, given exact residuals, are near the margin; they are put back onto
        it then, and get a fresh factor."""
        settings, free = self.settings, state.free
        K = self.windows.matrix(free)
        try:
            state.factor = cholesky(K, lower=True, check_finite=False)
        except LinAlgError:
            return False
        if len(free) == 0:
            return True
        if (np.diagonal(state.factor) ** 2 < settings.dependence * np.diagonal(K)).any():
            return False
        distance = np.abs(state.residual[free]).max()
        root, spread = self.windows.root, self.nudged.spread
        # of this batch or of one before: what was lost stays lost where β shrinks
        self._terms = max(self._terms, float(np.abs(state.beta) @ root))
        rounding = settings.evaluation * self._terms * root[free].max()
        if distance > max(settings.drift * spread, rounding):
            return False
        for _ in range(settings.refinements):
            if distance <= ON_MARGIN * spread:
                break
            closer = self._nearer(state, box, K)
            before, distance = distance, np.abs(closer.residual[free]).max()
            if distance >= before:
                break
            state.beta, state.offset = closer.beta, closer.offset
            state.fitted, state.residual = closer.fitted, closer.residual
        state.residual[free] = 0.0
        return True

    def _nearer(self, state: State, box: MovingBox, K: Array) -> State:
        """The state with β of the free points and b changed until residuals vanish. Points that
        would leave their boxes are held at the bound: they have just come from there."""
        free, total = state.free, float(state.beta.sum())
        beta, residual = state.beta[free], state.residual[free]
        lower, upper = box.lower(state.t)[free], box.upper(state.t)[free]
        change, b = self._solved(state.factor, residual, total)
        held = np.zeros(len(free), dtype=bool)
        outside = (beta + change < lower) | (beta + change > upper)
        while outside.any() and not (held | outside).all():
            held |= outside
            change[held] = np.clip(beta + change, lower, upper)[held] - beta[held]
            inner = ~held
            factor = cholesky(K[np.ix_(inner, inner)], lower=True, check_finite=False)
            right = (residual - K[:, held] @ change[held])[inner]
            change[inner], b = self._solved(factor, right, total + float(change[held].sum()))
            outside = ~held & ((beta + change < lower) | (beta + change > upper))
        moved = state.beta.copy()
        moved[free] = np.clip(beta + change, lower, upper)
        shift = self.windows.shift * total
        nearer = replace(state, beta=moved, offset=state.offset + b - shift)
        self.evaluate(nearer)
        return nearer

    def _solved(self, factor: Array, right: Array, total: float) -> tuple[Array, float]:
        """δ and b of K_MM δ + b·1 = right, with Σδ = −total where the offset is free."""
        if len(right) == 0:
            return right, 0.0
        delta = cho_solve((factor, True), right, check_finite=False)
        if not self.offset:
            return delta, 0.0
        ones = cho_solve((factor, True), np.ones(len(right)), check_finite=False)
        b = float((delta.sum() + total) / ones.sum())
        return delta - b * ones, b
