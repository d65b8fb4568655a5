"""Problems that are hard on arithmetic, each from one integer."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

Array = NDArray[np.float64]

#: which estimator a seed is about: the seed modulo the length of this table
TURNS = (
    ["SVR", "QuantileSVR", "ExpectileSVR"] * 5
    + ["TauSVC"] * 4
    + ["LinearSVR", "LinearQuantileSVR", "LinearExpectileSVR"] * 4
    + ["JointQuantileSVR", "JointExpectileSVR", "JointSVR"] * 2
    + ["TauPathSVC", "TauPathSVR"] * 4
    + ["SVRCV", "QuantileSVRCV", "ExpectileSVRCV", "LinearSVRCV"]
    + ["LinearSVRCV"]
)
KERNEL = ("SVR", "QuantileSVR", "ExpectileSVR", "TauSVC")
CLASSIFIERS = ("TauSVC", "TauPathSVC")
LINEAR = ("LinearSVR", "LinearQuantileSVR", "LinearExpectileSVR", "LinearSVRCV")
JOINT = ("JointQuantileSVR", "JointExpectileSVR", "JointSVR")
PATHS = ("TauPathSVC", "TauPathSVR")
TUNED = ("SVRCV", "QuantileSVRCV", "ExpectileSVRCV", "LinearSVRCV")
#: those that a selection of their own is drawn for at times
ALSO_TUNED = ("LinearQuantileSVR", "LinearExpectileSVR", *JOINT, "TauPathSVC")
#: losses that grow with the square, whose C has no unit
SQUARED = ("ExpectileSVR", "LinearExpectileSVR", "JointExpectileSVR", "ExpectileSVRCV")

#: rows are fewer than this
LARGEST = 360
#: seconds a fit may take by its own parameter, where the class has it
TIME_LIMIT = 3.0


@dataclass
class Case:
    """One fit.

    Attributes
    ----------
    seed : int
        ``make_case(seed)`` is this case again.
    name : str
        The estimator.
    params : dict
        Its parameters, wanted or optional: a class that lacks an optional one goes without.
    rows : array (n, d)
        The features in float64, whatever form they are handed over in.
    given : array or CSR matrix
        What is handed over; a Gram matrix for ``kernel="precomputed"``.
    y : array (n,) or (n, p)
    weight : array (n,) or None
    optional : dict
        Parameters for those classes that have them.
    notes : list of str
        What is peculiar about it.
    """

    seed: int
    name: str
    params: dict[str, Any]
    rows: Array
    given: Any
    y: NDArray[Any]
    weight: Array | None
    optional: dict[str, Any] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        shape = "×".join(map(str, self.rows.shape))
        notes = ", ".join(self.notes)
        params = ", ".join(f"{k}={short(v)}" for k, v in (self.params | self.optional).items())
        return f"make_case({self.seed}): {self.name}({params}) on {shape} rows: {notes}"


def short(value: Any) -> str:
    """A parameter in a line: long lists by their ends."""
    if isinstance(value, list) and len(value) > 4:
        return f"[{value[0]!r}, …, {value[-1]!r}]({len(value)})"
    return getattr(value, "__name__", repr(value))


def make_case(seed: int) -> Case:
    """The case of a seed."""
    rng = np.random.default_rng([seed, 20_240_229])
    draw = Draw(rng)
    name = TURNS[seed % len(TURNS)]
    n, d = draw.size(name)
    # a few cases go beyond: rows enough for kernel values in float32, labels that are words
    beyond = np.random.default_rng([seed, 1])
    if name in KERNEL and beyond.uniform() < 0.02:
        n = int(beyond.integers(310, LARGEST))
    base, rows = draw.features(n, d)
    y = draw.targets(name, base)
    draw.copies(rows, y)
    weight = draw.weights(name, y)
    params, optional = draw.parameters(name, rows, y, weight)
    given = draw.form(name, params, rows)
    if sp.issparse(given):
        if beyond.uniform() < 0.3:
            given = given.astype(np.float32)
            rows = given.toarray().astype(np.float64)
    elif params.get("kernel") != "precomputed":
        rows = np.asarray(given, dtype=np.float64)  # as float32 rounded them
    if name in CLASSIFIERS and beyond.uniform() < 0.2:
        y = np.array(["maybe", "no", "yes"])[y]
    if name in ALSO_TUNED and np.random.default_rng([seed, 2]).uniform() < 0.15:
        name, params = tuned(name, params, y, weight)
    return Case(seed, name, params, rows, given, y, weight, optional, draw.notes)


def tuned(
    name: str, params: dict[str, Any], y: NDArray[Any], weight: Array | None
) -> tuple[str, dict[str, Any]]:
    """The same machine by a selection with two C and its own γ, where rows suffice for folds."""
    counted = y if weight is None else y[weight > 0]
    classes = np.unique(counted, return_counts=True)[1] if name in CLASSIFIERS else len(counted)
    if np.min(classes) < (4 if name in CLASSIFIERS else 12):
        return name, params
    params = dict(params)
    C = params.pop("C")
    params |= {"Cs": [C, 10.0 * C], "cv": 2}
    gamma = params.pop("gamma", None)
    if gamma is not None:
        params["gammas"] = [0.5 if isinstance(gamma, str) else gamma]
    return f"{name}CV", params


class Draw:
    """The choices of one case."""

    def __init__(self, rng: np.random.Generator) -> None:
        self.rng = rng
        self.notes: list[str] = []

    def chance(self, share: float) -> bool:
        return bool(self.rng.uniform() < share)

    def pick(self, *choices: Any) -> Any:
        return choices[self.rng.integers(len(choices))]

    def power(self, low: float, high: float) -> float:
        """A number whose logarithm is even between the exponents."""
        return float(10 ** self.rng.uniform(low, high))

    def note(self, text: str) -> None:
        self.notes.append(text)

    # ---- data ----

    def size(self, name: str) -> tuple[int, int]:
        """Rows, mostly few, and columns."""
        largest = 120
        if name in TUNED:
            largest = 60
        elif name in JOINT:
            largest = 50
        low = 12 if name in TUNED else 3 if name in CLASSIFIERS else 2
        n = int(np.clip(round(self.power(np.log10(low), np.log10(largest))), low, largest))
        return n, int(np.clip(round(self.power(0, 1.3)), 1, 20))

    def features(self, n: int, d: int) -> tuple[Array, Array]:
        """Rows of about unit size, which the targets depend on, and the same in raw units."""
        rng = self.rng
        kind = self.pick(
            "normal", "normal", "normal", "uniform", "integers", "ties", "sparse", "rank 1"
        )
        if self.chance(0.04):
            kind = "rank 0"
        base = rng.normal(size=(n, d))
        if kind == "uniform":
            base = rng.uniform(size=(n, d))
        elif kind == "integers":
            base = rng.integers(-3, 4, size=(n, d)).astype(float)
        elif kind == "ties":
            base = np.round(base, 1)
        elif kind == "sparse":
            base *= rng.uniform(size=(n, d)) < 0.2
        elif kind == "rank 1":
            base = np.outer(base[:, 0], rng.normal(size=d))
        elif kind == "rank 0":
            base = np.tile(self.pick(np.zeros(d), base[0]), (n, 1))
        self.note(kind)
        for column in range(d):
            if self.chance(0.05):
                base[:, column] = self.pick(0.0, 1.0, 1e6, -0.1)
                self.note(f"column {column} constant")
        rows = base.copy()
        if self.chance(0.15):
            rows += rng.normal(size=d) * self.power(0, 6)
            self.note("columns moved")
        units = self.pick("as they are", "as they are", "raw", "raw", "common")
        if units == "raw":
            rows *= 10 ** rng.uniform(-9, 11, size=d)
            self.note("columns in raw units")
        elif units == "common":
            rows *= self.power(-9, 11)
            self.note("columns in one unit")
        return base, rows

    def targets(self, name: str, base: Array) -> NDArray[Any]:
        """Labels, or targets in raw units with a mean of their own."""
        rng, n = self.rng, len(base)
        slope = rng.normal(size=base.shape[1])
        clean = np.sin(base @ slope) + 0.5 * base[:, 0] if self.chance(0.5) else base @ slope
        noise = self.pick(0.0, 0.1, 1.0, 1.0, 10.0)
        self.note(f"noise {noise:g}")
        if name in CLASSIFIERS:
            return self.labels(clean + noise * rng.normal(size=n))
        y = clean + noise * rng.normal(size=n)
        if self.chance(0.1):
            y = clean + noise * rng.standard_cauchy(size=n)
            self.note("heavy tails")
        if self.chance(0.15):
            y = np.round(y)
            self.note("integer targets")
        elif self.chance(0.1):
            y = np.round(y, 1)
            self.note("ties of targets")
        if self.chance(0.03):
            y[:] = self.pick(0.0, 1.0, -3.7)
            self.note("constant targets")
        if name == "JointSVR":
            p = self.pick(1, 2, 3)
            y = np.column_stack([y] + [y * rng.normal() + rng.normal(size=n) for _ in range(p - 1)])
            if p == 1 and self.chance(0.5):
                y = y[:, 0]
        spread = float(np.std(y)) or 1.0
        if self.chance(0.4):
            moved = self.power(0, 9) * self.pick(-1, 1)
            y = y + moved * spread
            self.note(f"mean {moved:.1e} spreads")
        if self.chance(0.4):
            unit = self.power(-12, 12)
            y = y * unit
            self.note(f"unit {unit:.1e}")
        return y

    def labels(self, score: Array) -> NDArray[Any]:
        rng, n = self.rng, len(score)
        kind = self.pick("halves", "halves", "skewed", "one of a class", "three")
        if kind == "three" and n >= 6:
            y = np.digitize(score + 1e-9 * rng.normal(size=n), np.quantile(score, [1 / 3, 2 / 3]))
        elif kind == "one of a class":
            y = (np.arange(n) == rng.integers(n)).astype(int)
        else:
            cut = np.quantile(score, 0.5 if kind == "halves" else 0.9)
            y = (score > cut).astype(int)
        if len(np.unique(y)) < 2:
            y = (np.arange(n) == 0).astype(int)
        self.note(kind)
        return y

    def copies(self, rows: Array, y: NDArray[Any]) -> None:
        """Turn some rows into copies or near-copies of others, in place."""
        n = len(rows)
        if not self.chance(0.3) or n < 4:
            return
        count = self.rng.integers(1, n // 2 + 1)
        to, of = self.rng.permutation(n)[:count], self.rng.integers(n, size=count)
        near = self.pick(0.0, 0.0, 1e-15, 1e-12, 1e-8)
        rows[to] = rows[of] * (1 + near * self.rng.normal(size=rows[of].shape))
        if self.chance(0.5):
            kept = y.copy()
            y[to] = y[of]
            if len(np.unique(y)) < 2 and len(np.unique(kept)) >= 2:
                y[:] = kept
        self.note(f"{count} copies" + (f" to {near:g}" if near else ""))

    def weights(self, name: str, y: NDArray[Any]) -> Array | None:
        rng, n = self.rng, len(y)
        kind = self.pick(None, None, "counts", "decades")
        if kind is None:
            return None
        weight = rng.integers(1, 4, size=n).astype(float)
        if kind == "decades":
            weight = 10 ** rng.uniform(-5, 5, size=n)
        if self.chance(0.4):
            left = weight * (rng.uniform(size=n) > 0.3)
            enough = np.count_nonzero(left) >= (10 if name in TUNED else 2)
            if enough and (name not in CLASSIFIERS or len(np.unique(y[left > 0])) > 1):
                weight = left
                kind += " and zeros"
        self.note(f"weights: {kind}")
        return weight

    # ---- parameters ----

    def parameters(
        self, name: str, rows: Array, y: NDArray[Any], weight: Array | None
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        params: dict[str, Any] = {"tol": self.power(-8, -3)}
        optional: dict[str, Any] = {"time_limit": TIME_LIMIT}
        labels = name in CLASSIFIERS
        spread = 1.0 if labels else float(np.std(y)) or 1.0
        params["fit_intercept"] = self.chance(0.75)
        if name not in (*PATHS, "TauSVC"):
            some = self.pick(0.0, 0.0, 0.1, 1.0) * spread * self.power(-1, 0.5)
            params["epsilon"] = some
        if name in ("SVR", "LinearSVR", "SVRCV", "LinearSVRCV", "JointSVR"):
            params["loss"] = self.pick("epsilon_insensitive", "squared_epsilon_insensitive")
        squared = name in SQUARED or params.get("loss", "").startswith("squared")
        self._cost(name, params, optional, 1.0 if labels or squared else spread)
        if name == "TauSVC":
            params["tau"] = self.level()
        elif name not in PATHS and ("Quantile" in name or "Expectile" in name):
            params["tau"] = self.levels(name)
        if name not in LINEAR:
            self._kernel(params, rows)
        if name in TUNED:
            self._search(name, params)
        elif name in PATHS:
            params["penalise_intercept"] = self.chance(0.2)
            if name == "TauPathSVR":
                optional["monotone"] = self.chance(0.1)
        elif name in JOINT:
            if name != "JointSVR":
                params["gamma_tau"] = self.pick(0.0, 1.0, self.power(-2, 3))
                params["output_kernel"] = self.pick("levels", "levels", "identity")
                optional["ordered"] = self.chance(0.8)
            if self.chance(0.2):
                params["solver"] = "interior_point"
        elif name in LINEAR:
            if self.chance(0.2):
                params["intercept_scaling"] = self.pick(1.0, self.power(-3, 3))
            params["solver"] = self.pick(*["auto"] * 6, "dual_cd", "newton", "interior_point")
        else:
            others = ["block", "smo", "interior_point"] + ["newton"] * squared
            params["solver"] = self.pick(*["auto"] * 12, *others)
            numbers = isinstance(params["kernel"], str) and params["kernel"] != "precomputed"
            if params["solver"] == "auto" and numbers and self.chance(0.15):
                params["approximation"] = "landmarks"
                params["landmarks"] = round(self.power(0, 2))
            if name != "TauSVC":
                optional["clip"] = self.pick(None, None, None, "range")
        return params, optional

    def _cost(
        self, name: str, params: dict[str, Any], optional: dict[str, Any], unit: float
    ) -> None:
        """C, and whether it counts in units of y."""
        scaled = self.chance(0.5)
        optional["scale_C"] = scaled
        if name in TUNED:
            return
        C = self.power(-6, 8) if self.chance(0.6) else self.power(-1, 3)
        if not scaled and self.chance(0.7):
            C *= unit
        params["C"] = C

    def level(self) -> float:
        return float(
            self.pick(0.5, self.rng.uniform(0.02, 0.98), self.pick(1e-3, 0.01, 0.99, 0.9999))
        )

    def levels(self, name: str) -> float | list[float]:
        """One level or a list of up to 99."""
        if self.chance(0.55):
            return self.level()
        most = 3 if name in TUNED else 9 if name in JOINT else 99
        count = round(self.power(0, np.log10(most)))
        if self.chance(0.3):
            levels = np.linspace(0, 1, count + 2)[1:-1]
        else:
            levels = np.unique(self.rng.uniform(0.005, 0.995, size=count))
        if name not in JOINT and self.chance(0.3):
            levels = self.rng.permutation(levels)
        return [float(tau) for tau in levels]

    def _kernel(self, params: dict[str, Any], rows: Array) -> None:
        kernel = self.pick(
            *["rbf"] * 6,
            *["linear"] * 5,
            *["laplacian"] * 2,
            *["poly"] * 3,
            "precomputed",
            "callable",
        )
        if self.chance(0.01):
            kernel = "sigmoid"
        size = float(np.mean(np.square(rows - rows.mean(axis=0)).sum(axis=1)))
        if kernel == "laplacian":
            size = float(np.mean(np.abs(rows - rows.mean(axis=0)).sum(axis=1)))
        elif kernel in ("poly", "sigmoid"):
            size = float(np.mean(np.square(rows).sum(axis=1)))
        size = size if size > 0 else 1.0
        gamma: Any = self.power(-8, 8)
        if self.chance(0.6):
            gamma = self.power(-3, 3) / size
        elif self.chance(0.4):
            gamma = self.pick("scale", "auto")
        params["kernel"] = kernel
        if kernel == "callable":
            params["kernel"] = self.pick(cauchy_kernel, minimum_kernel)
        if kernel in ("rbf", "laplacian", "poly", "sigmoid"):
            params["gamma"] = gamma
        if kernel == "poly":
            params["degree"] = self.pick(1, 2, 3, 3, 4)
        if kernel in ("poly", "sigmoid"):
            params["coef0"] = self.pick(0.0, 1.0)

    def _search(self, name: str, params: dict[str, Any]) -> None:
        """A small grid."""
        params["cv"] = self.pick(2, 3)
        params["Cs"] = [self.power(-3, 3), self.power(-3, 3)] if self.chance(0.7) else 3
        if name == "LinearSVRCV":
            params["refit"] = True
            return
        gamma = params.pop("gamma", 1.0)
        if isinstance(gamma, str) or self.chance(0.3):
            params["gammas"] = 2
        else:
            params["gammas"] = [gamma, 10 * gamma]
        params["refit"] = self.pick(True, "committee", "average")
        params["feature_metric"] = self.pick("auto", "auto", None)
        if params["kernel"] in ("rbf", "laplacian", "poly") and self.chance(0.3):
            params["feature_metric"] = "diagonal"
        if params["kernel"] == "rbf":
            params["kernel"] = self.pick("rbf", "auto")
        elif params["kernel"] == "laplacian":
            params["kernel"] = self.pick("laplacian", "exponential")

    def form(self, name: str, params: dict[str, Any], rows: Array) -> Any:
        """The rows as they are handed over."""
        if params.get("kernel") == "precomputed":
            return self._gram(rows)
        form = self.pick("dense", "dense", "csr", "float32", "fortran")
        callable_kernel = callable(params.get("kernel"))
        if form == "csr" and not callable_kernel:
            self.note("CSR")
            return sp.csr_matrix(rows)
        if form == "float32" and np.abs(rows).max(initial=0) < 1e30:
            self.note("float32")
            return rows.astype(np.float32)
        return np.asfortranarray(rows) if form == "fortran" else rows

    def _gram(self, rows: Array) -> Array:
        """A matrix that is one of a kernel, up to rounding, and symmetric to the last bit."""
        if self.chance(0.5):
            K = rows @ rows.T
        else:
            K = np.exp(-cross(rows, rows, np.square) / max(float(np.var(rows)), 1e-300))
        return 0.5 * (K + K.T)


def cross(A: Array, B: Array, part: Callable[[Array], Array]) -> Array:
    """Σₖ part(aₖ − bₖ) for all pairs of rows."""
    return np.sum(part(A[:, None, :] - B[None, :, :]), axis=2)


def cauchy_kernel(A: Array, B: Array) -> Array:
    """1 / (1 + ‖a − b‖²)."""
    return 1.0 / (1.0 + cross(np.asarray(A), np.asarray(B), np.square))


def minimum_kernel(A: Array, B: Array) -> Array:
    """Σₖ min(aₖ, bₖ) of the squared features: the histogram intersection."""
    A, B = np.square(A), np.square(B)
    return np.sum(np.minimum(A[:, None, :], B[None, :, :]), axis=2)
