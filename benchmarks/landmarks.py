"""Landmarks against the full problem: gap reported, true gap and test loss by their number.

    python -m benchmarks.landmarks --out docs/images/landmarks.png
    python -m benchmarks.landmarks --rows 2000 --most 500            # half a minute

Quantiles at τ = 0.9 on 10,000 training rows of Friedman's function, with noise that depends on x,
and of ``cal_housing``. The true gap is that of the landmark function's primal to the optimum of the
full problem, solved to a gap of 1e-5; the test loss is the pinball loss on other rows.
"""

from __future__ import annotations

import argparse
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import mean_pinball_loss

from tausvm import QuantileSVR

from . import data

Array = NDArray[np.float64]

COUNTS = (100, 200, 500, 1000, 2000, 4000)
TAU = 0.9


@dataclass(frozen=True)
class Case:
    """A data set with the C and γ that suit it."""

    name: str
    C: float
    gamma: float


CASES = (Case("friedman", 3.0, 0.3), Case("cal_housing", 3.0, 0.5))


def friedman(n: int, seed: int = 0) -> tuple[Array, Array]:
    """Friedman's first function of five of ten features; a sixth makes the noise."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(size=(n, 10))
    smooth = 10 * np.sin(np.pi * X[:, 0] * X[:, 1]) + 20 * (X[:, 2] - 0.5) ** 2
    y = smooth + 10 * X[:, 3] + 5 * X[:, 4] + (0.5 + 2.0 * X[:, 5]) * rng.normal(size=n)
    return X, y


def rows(case: Case, n: int) -> tuple[Array, Array]:
    if case.name == "friedman":
        return friedman(n + 10_000)
    X, y = data.load(case.name)
    order = np.random.default_rng(0).permutation(len(y))
    return X[order], y[order]


def measure(case: Case, n: int, counts: list[int]) -> list[dict[str, float]]:
    """One row a number of landmarks, the full problem first with 0 of them."""
    X, y = rows(case, n)
    train, test = slice(0, n), slice(n, None)
    common = {"tau": TAU, "C": case.C, "gamma": case.gamma}
    found: list[dict[str, float]] = []
    best = np.nan
    for count in (0, *counts):
        extra = {"approximation": "landmarks", "landmarks": count} if count else {"tol": 1e-5}
        started = time.perf_counter(), time.process_time()
        model = QuantileSVR(**common, **extra).fit(X[train], y[train])
        seconds = time.perf_counter() - started[0]
        primal = model.result_.primal_objective
        best = primal if count == 0 else best
        found.append(
            {
                "landmarks": count,
                "reported": float(model.dual_gap_),
                "true": (primal - best) / primal,
                "loss": mean_pinball_loss(y[test], model.predict(X[test]), alpha=TAU),
                "seconds": seconds,
                "cpu": time.process_time() - started[1],
            }
        )
        line = found[-1]
        print(
            f"{case.name:12} {count or 'full':>5}  gap {line['reported']:.2e}  "
            f"true {line['true']:.2e}  test loss {line['loss']:.5f}  "
            f"{line['seconds']:6.1f} s, {line['cpu']:6.1f} s of processors",
            flush=True,
        )
    return found


def draw(measured: dict[str, list[dict[str, float]]], path: Path) -> None:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(4.6 * len(measured), 6.4), layout="constrained")
    axes = figure.subplots(2, len(measured), sharex=True, squeeze=False)
    for (name, found), gaps, losses in zip(measured.items(), axes[0], axes[1], strict=True):
        full, some = found[0], found[1:]
        counts = [line["landmarks"] for line in some]
        gaps.loglog(counts, [line["reported"] for line in some], "o-", label="gap reported")
        gaps.loglog(counts, [line["true"] for line in some], "s--", label="true gap")
        gaps.set_title(name)
        gaps.legend()
        losses.semilogx(counts, [line["loss"] for line in some], "o-", label="landmarks")
        losses.axhline(full["loss"], color="grey", linestyle="--", label="full problem")
        losses.set_xlabel("landmarks")
        losses.legend()
    axes[0, 0].set_ylabel("relative gap to the full problem")
    axes[1, 0].set_ylabel(f"pinball loss on test rows, τ = {TAU}")
    figure.savefig(path, dpi=110)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=10_000, help="training rows")
    parser.add_argument("--most", type=int, default=COUNTS[-1], help="landmarks at most")
    parser.add_argument("--sets", nargs="*", default=[case.name for case in CASES])
    parser.add_argument("--out", type=Path, default=Path("landmarks.png"))
    options = parser.parse_args()
    counts = [count for count in COUNTS if count <= options.most]
    cases = [case for case in CASES if case.name in options.sets]
    draw({case.name: measure(case, options.rows, counts) for case in cases}, options.out)


if __name__ == "__main__":
    main()
