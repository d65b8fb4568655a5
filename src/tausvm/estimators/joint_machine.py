"""What the joint machines share: one matrix-valued kernel, one solve for all outputs."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.base import RegressorMixin
from sklearn.utils.validation import check_is_fitted

from ..kernels import Points, TransformableKernel, check_output_matrix, make_kernel
from ..losses import GroupTerms, Loss
from ..losses.base import check_epsilon
from ..operators import (
    CachedKernel,
    MatrixOperator,
    SeparableKernel,
    TransformedKernel,
    UnknownMatrix,
)
from ..solvers import (
    JOINT_SOLVERS,
    Auto,
    JointInteriorPoint,
    PrimalDualCD,
    Problem,
    Solver,
    SolverOptions,
    SolverResult,
    solve,
)
from ..solvers.joint.posing import posed
from ..solvers.monitor import OutOfTime
from ..solvers.units import Units, spread
from ..threads import one_blas_thread
from .data import TrainingSet, costs
from .machine import KernelMachine, slices
from .parameters import refuse, seed_of
from .progress import progress_log, warn_unless_solved

Array = NDArray[np.float64]
OutputKernel = str | Array | TransformableKernel

#: bytes beyond ``cache_size`` that the factors and vectors of a solver may take
BESIDE_CACHE = 150e6
#: vectors (n, p) that the leanest solver holds
LEAST_VECTORS = 24


@dataclass(frozen=True)
class JointPosing:
    """Targets (n, p) with what they have of problems of any C and ε.

    ``unit`` is what C counts in.
    """

    y: Array
    weight: Array
    losses: Sequence[Loss]
    units: Units
    unit: float
    free: bool

    @classmethod
    def of(
        cls, data: TrainingSet, y: Array, losses: Sequence[Loss], free: bool, scale_C: bool
    ) -> JointPosing:
        units = Units.of(y, data.weight, free)
        unit = spread(y, data.weight) if scale_C else 1.0
        return cls(y, data.weight, losses, units, unit, free)

    @property
    def cost_unit(self) -> float:
        """What a grid of C counts in: where losses grow linearly, twice the spread of y."""
        if not np.isfinite(self.losses[0].dual_terms(np.ones(1), np.ones(1)).upper[0]):
            return 1.0
        return 2.0 * spread(self.y, self.weight) / self.unit

    def problem(self, operator: MatrixOperator, C: float, epsilon: float) -> Problem:
        """The problem at one C and ε."""
        largest = float(self.weight.max())
        cost = float(costs(C, self.weight).max())
        terms = GroupTerms.build(self.losses, self.y, self.weight / largest, epsilon)
        return posed(operator, self.y, terms.widened(self.unit), self.free, self.units, cost)


class JointMachine(RegressorMixin, KernelMachine):
    """Base of the joint regressors: one group of outputs a sample, one matrix-valued kernel.

    A subclass gives one loss an output and the matrix B of its named output kernels.
    """

    _solver_names = JOINT_SOLVERS

    epsilon: float
    output_kernel: Any

    #: B, None for a transformable kernel
    output_matrix_: Array | None

    result_: SolverResult
    dual_gap_: float
    n_iter_: int

    #: what scikit-learn is to check of y
    _target_checks: ClassVar[dict[str, bool]] = {"y_numeric": True}

    @abstractmethod
    def _output_matrix(self, p: int) -> Array:
        """B where ``output_kernel`` is a name; a ValueError for a name that is none."""

    @abstractmethod
    def _output_losses(self, p: int) -> list[Loss]:
        """The loss of each output, without ε."""

    @abstractmethod
    def _targets(self, y: NDArray[Any]) -> Array:
        """Targets (n, p), one column an output."""

    @abstractmethod
    def _one_axis(self, y: NDArray[Any]) -> bool:
        """Whether predictions for such targets have one axis."""

    def _check_joint(self) -> None:
        """A ValueError for the first parameter that cannot be used, whatever the data."""
        check_epsilon(self.epsilon)
        self._check_parameters()

    def _in_order(self, values: Array) -> Array:
        """Values, (n, p), as they are predicted."""
        return values

    def _fit_joint(self, data: TrainingSet) -> None:
        """Solve for the targets and keep what prediction needs."""
        options = SolverOptions(
            tol=self.tol, max_iter=self.max_iter, seed=seed_of(self.random_state)
        )
        y = self._targets(data.y)
        with one_blas_thread():
            result = self._solved(data, y, self._mixing(y.shape[1]), options)
        self._check_bounded(result.dual_gap)
        self._keep_joint(data, result)
        warn_unless_solved(type(self).__name__, [result], options, self.time_limit)

    def _keep_joint(self, data: TrainingSet, result: SolverResult) -> None:
        """Set the fitted attributes."""
        support = np.flatnonzero(result.beta.any(axis=1))
        self.support_ = data.rows[support]
        self.support_vectors_ = np.empty((0, 0)) if self._precomputed else data.X[support]
        self.dual_coef_ = np.ascontiguousarray(result.beta[support].T)
        self.n_support_ = np.full(result.beta.shape[1], len(support))
        self.intercept_ = result.intercept
        self.result_, self.dual_gap_ = result, result.dual_gap
        # a fit that is optimal at its start counts as one iteration
        self.n_iter_ = max(result.n_iter, 1)

    def _posing(self, data: TrainingSet, y: Array) -> JointPosing:
        """How targets (n, p) become problems of any C and ε."""
        losses = self._output_losses(y.shape[1])
        return JointPosing.of(data, y, losses, bool(self.fit_intercept), bool(self.scale_C))

    def _solved(
        self, data: TrainingSet, y: Array, mixing: Any, options: SolverOptions
    ) -> SolverResult:
        """Pose the problem and solve it within the limits, which count from here."""
        deadline = None if self.time_limit is None else options.clock() + self.time_limit
        posing = self._posing(data, y)
        costs(self.C, data.weight)  # which names a C that cannot be used before the work
        operator = self._operator(data, mixing, deadline, options)
        problem = posing.problem(operator, self.C, self.epsilon)
        with progress_log(self.verbose) as callback:
            if deadline is not None:
                options = options.with_(time_limit=max(deadline - options.clock(), 0.0))
            return solve(problem, self._solver, options.with_(callback=callback))

    @property
    def _solver(self) -> str | Solver:
        """The solver by name, or with the settings that parameters ask for."""
        passes = PrimalDualCD(shrinking=bool(self.shrinking))
        match self.solver:
            case Auto.name:
                return Auto(primal_dual_cd=passes)
            case PrimalDualCD.name:
                return passes
        return self.solver

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

    def _operator(
        self,
        data: TrainingSet,
        mixing: Array | TransformableKernel,
        deadline: float | None,
        options: SolverOptions,
    ) -> MatrixOperator:
        """The kernel matrix; fixes the kernel, its γ and B."""
        n, p = len(data), len(mixing)
        self._centre = None
        if isinstance(mixing, TransformableKernel):
            room = self._room(n, p, 0.0)
            self.output_matrix_ = None
            gamma = 1.0 if self.kernel == "linear" else self._gamma_value(data)
            self._kernel = make_kernel(self.kernel, gamma, self.degree, self.coef0)
            images = [Points(X) for X in mixing.images(data.X)]
            operator: MatrixOperator = TransformedKernel(self._kernel, images)
            self._check_diagonal(float(np.einsum("ijj->ij", operator.diagonal).min()))
        else:
            self.output_matrix_ = mixing
            held = 0.0 if self._precomputed else 8.0 * n * n
            room = self._room(n, p, held)
            matrix = data.X if self._precomputed else self._filled(data, deadline, options)
            if matrix is None:
                return UnknownMatrix(n, p)
            features = data.X if self.kernel == "linear" else None
            operator = SeparableKernel(matrix, mixing, features)
        operator.room = room
        return operator

    def _room(self, n: int, p: int, held: float) -> float:
        """Bytes for solvers beside a matrix that holds so many.

        A ValueError that names ``cache_size`` where they, or the matrix, do not fit.
        """
        if held > self.cache_size * 2**20:
            raise refuse(
                "cache_size",
                f"at least {held / 2**20:.0f}, the megabytes of the Gram matrix of {n} rows",
                self.cache_size,
            )
        room = self.cache_size * 2**20 - held + BESIDE_CACHE
        needed = 8.0 * LEAST_VECTORS * n * p
        direct = JointInteriorPoint() if self.solver == JointInteriorPoint.name else self.solver
        if isinstance(direct, JointInteriorPoint):
            needed = direct.bytes_needed(n, p)
        if needed > room:
            raise refuse(
                "cache_size",
                f"at least {(held + needed - BESIDE_CACHE) / 2**20:.0f}, the megabytes of {n} rows "
                f"and {p} outputs for solver={self.solver!r}",
                self.cache_size,
            )
        return room

    def _filled(
        self, data: TrainingSet, deadline: float | None, options: SolverOptions
    ) -> Array | None:
        """All rows of the matrix, checked; None where the time limit came first."""
        points = self._kernel_points(data)
        gram = self._checked(CachedKernel(self._kernel, points, self.cache_size, np.float64))

        def watch() -> None:
            if deadline is not None and options.clock() >= deadline:
                raise OutOfTime

        gram.watch = watch
        try:
            gram.require(np.arange(len(gram)))
        except OutOfTime:
            return None
        finally:
            gram.watch = None
        return gram.rows.astype(np.float64, copy=False)

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
            for part in slices(X.shape[0], 8 * len(self.support_)):
                rows = Points(image[part])
                for j, points in enumerate(support):
                    values[part, i] += self._kernel.between(rows, points) @ self.dual_coef_[j]
        return values

    @property
    def coef_(self) -> Array:
        """The weights of the features, shape (n_outputs, n_features); linear kernel only."""
        if self.kernel != "linear" or isinstance(self.output_kernel, TransformableKernel):
            raise AttributeError("coef_ exists for kernel='linear' with a matrix B only")
        return super().coef_
