"""What the joint machines share: one matrix-valued kernel, one solve for all outputs."""

from __future__ import annotations

import time
from abc import abstractmethod
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import RegressorMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from ..kernels import (
    KernelGram,
    MatrixGram,
    Points,
    SeparableGram,
    TransformableGram,
    TransformableKernel,
    check_output_matrix,
    make_kernel,
)
from ..losses import GroupTerms, Loss
from ..solvers.joint import JOINT_SOLVERS, JointOptions, JointProblem, JointResult, solve_joint
from .data import TrainingSet, costs
from .machine import KernelMachine
from .parameters import refuse
from .progress import progress_log, warn_unless_solved
from .threads import one_blas_thread

Array = NDArray[np.float64]
OutputKernel = str | Array | TransformableKernel


class JointMachine(RegressorMixin, KernelMachine):
    """Base of the joint regressors: one group of outputs a sample, one matrix-valued kernel.

    A subclass gives one loss an output and the matrix B of its named output kernels.
    """

    _solver_names = JOINT_SOLVERS

    epsilon: float
    output_kernel: Any

    #: B, None for a transformable kernel
    output_matrix_: Array | None

    result_: JointResult  # type: ignore[assignment]
    dual_gap_: float
    n_iter_: int

    @abstractmethod
    def _output_matrix(self, p: int) -> Array:
        """B where ``output_kernel`` is a name; a ValueError for a name that is none."""

    def _fit_joint(self, data: TrainingSet, y: Array, losses: Sequence[Loss], mixing: Any) -> None:
        """Solve for targets (n, p) and keep what prediction needs."""
        started = time.perf_counter()
        seed = int(check_random_state(self.random_state).randint(2**31 - 1))
        options = JointOptions(
            tol=self.tol, max_iter=self.max_iter, shrinking=bool(self.shrinking), seed=seed
        )
        with one_blas_thread():
            gram = self._matrix_gram(data, mixing)
            terms = GroupTerms.build(losses, y, costs(self.C, data.weight), self.epsilon)
            problem = JointProblem(gram, y, terms, bool(self.fit_intercept))
            with progress_log(self.verbose) as callback:
                options = options.with_(callback=callback)  # type: ignore[assignment]
                if self.time_limit is not None:
                    left = self.time_limit - (time.perf_counter() - started)
                    options = options.with_(time_limit=max(left, 0.0))  # type: ignore[assignment]
                result = solve_joint(problem, self.solver, options)
        self._check_bounded(result.dual_gap)
        support = np.flatnonzero(result.alpha.any(axis=1))
        self.support_ = data.rows[support]
        self.support_vectors_ = np.empty((0, 0)) if self._precomputed else data.X[support]
        self.dual_coef_ = np.ascontiguousarray(result.alpha[support].T)
        self.n_support_ = np.full(y.shape[1], len(support))
        self.intercept_ = result.intercept
        self.result_, self.dual_gap_ = result, result.dual_gap
        # a fit that is optimal at its start counts as one iteration
        self.n_iter_ = max(result.n_iter, 1)
        warn_unless_solved(type(self).__name__, [result], options, self.time_limit)

    def _mixing(self, p: int) -> Array | TransformableKernel:
        """B, or the kernel that has none; a ValueError for an output kernel of no use."""
        given = self.output_kernel
        if isinstance(given, TransformableKernel):
            if len(given) != p:
                raise refuse("output_kernel", f"of {p} transformations, one an output", len(given))
            if self._precomputed:
                raise ValueError(
                    "output_kernel must be a matrix or a name for kernel='precomputed', got "
                    f"{given!r}"
                )
            return given
        if isinstance(given, str):
            return self._output_matrix(p)
        return check_output_matrix(given, p)

    def _matrix_gram(self, data: TrainingSet, mixing: Array | TransformableKernel) -> MatrixGram:
        """The Gram matrix; fixes the kernel, its γ and B."""
        n = len(data)
        if isinstance(mixing, TransformableKernel):
            self.output_matrix_ = None
            self._centre = None
            self._kernel = make_kernel(
                self.kernel, self._gamma_value(data), self.degree, self.coef0
            )
            return TransformableGram(self._kernel, [Points(X) for X in mixing.images(data.X)])
        self.output_matrix_ = mixing
        if self._precomputed:
            self._centre = None
            return SeparableGram(data.X, mixing)
        if 8 * n * n > self.cache_size * 2**20:
            raise refuse(
                "cache_size",
                f"at least {8 * n * n / 2**20:.0f}, the megabytes of the Gram matrix of {n} rows",
                self.cache_size,
            )
        points = self._kernel_points(data)
        gram = self._checked(KernelGram(self._kernel, points, self.cache_size, np.float64))
        gram.require(np.arange(n))
        return SeparableGram(gram.rows.astype(np.float64, copy=False), mixing)

    @property
    def _weights(self) -> Array:
        assert self.output_matrix_ is not None
        return np.asarray(self.output_matrix_ @ self.dual_coef_)

    def _decision_values(self, X: Any) -> Array:
        check_is_fitted(self)
        if self.output_matrix_ is not None:
            return super()._decision_values(X)
        X = self._checked_rows(X)
        values = np.tile(self.intercept_, (X.shape[0], 1))
        if len(self.support_) == 0:
            return values
        kernel: TransformableKernel = self.output_kernel
        support = [Points(image) for image in kernel.images(self.support_vectors_)]
        for i, image in enumerate(kernel.images(X)):
            for j, points in enumerate(support):
                values[:, i] += self._kernel.between(Points(image), points) @ self.dual_coef_[j]
        return values

    @property
    def coef_(self) -> Array:
        """The weights of the features, shape (n_outputs, n_features); linear kernel only."""
        if self.kernel != "linear" or isinstance(self.output_kernel, TransformableKernel):
            raise AttributeError("coef_ exists for kernel='linear' with a matrix B only")
        return super().coef_
