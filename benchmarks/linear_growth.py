"""Seconds of a linear fit against the non-zeros of X, from 1e6 to 2e8, on one plot.

    python -m benchmarks.linear_growth --out growth.png
    python -m benchmarks.linear_growth --most 1e7 --out growth.png    # half a minute

Rows have 100 non-zeros of n features for n rows (unit rows, float32, C = 1, ε = 0.1, a relative
gap of 1e-2): data grow in rows and features alike. Every size runs in its own turn; the slope is
that of a line through the logarithms.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
import scipy.sparse as sp

from tausvm import LinearSVR

from .linear import CLOCKS

SIZES = (1e6, 2e6, 5e6, 1e7, 2e7, 5e7, 1e8, 2e8)
NONZEROS = 100
LOSSES = ("epsilon_insensitive", "squared_epsilon_insensitive")


def rows(n: int, seed: int = 0) -> tuple[sp.csr_matrix, np.ndarray]:
    """Rows of features by a power law, drawn quickly: column = ⌊n·u³⌋, duplicates shifted."""
    rng = np.random.default_rng(seed)
    indices = np.empty((n, NONZEROS), dtype=np.int32)
    step = 100_000
    for start in range(0, n, step):
        part = indices[start : start + step]
        drawn = np.sort((n * rng.random(part.shape, dtype=np.float32) ** 3).astype(np.int64))
        ahead = np.arange(NONZEROS)
        part[:] = (np.maximum.accumulate(drawn - ahead, axis=1) + ahead) % n
    data = np.full(indices.size, NONZEROS**-0.5, dtype=np.float32)
    indptr = np.arange(0, indices.size + 1, NONZEROS, dtype=np.int32)
    X = sp.csr_matrix((data, indices.ravel(), indptr), shape=(n, n))
    weights = rng.normal(size=n)
    return X, np.asarray(X @ weights) + 0.5 * rng.normal(size=n)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--most", type=float, default=2e8)
    parser.add_argument("--out", type=Path, default=Path("growth.png"))
    parser.add_argument(
        "--clock", choices=list(CLOCKS), default="wall", help="cpu: for a machine that is not idle"
    )
    options = parser.parse_args()
    clock = CLOCKS[options.clock]
    sizes = [size for size in SIZES if size <= options.most]
    measured: dict[str, list[float]] = {
        "epsilon_insensitive": [],
        "squared_epsilon_insensitive": [],
    }
    for size in sizes:
        X, y = rows(int(size / NONZEROS))
        for loss, seconds in measured.items():
            started = clock()
            model = LinearSVR(loss=loss, epsilon=0.1, fit_intercept=False, tol=1e-2).fit(X, y)
            seconds.append(clock() - started)
            print(f"{size:.0e} {loss}: {seconds[-1]:.2f} s, {model.n_iter_} passes", flush=True)
    draw(sizes, measured, options.out)


def draw(sizes: list[float], measured: dict[str, list[float]], path: Path) -> None:
    from matplotlib.figure import Figure

    axes = Figure(figsize=(6, 4.5), layout="constrained").subplots()
    for loss, seconds in measured.items():
        slope = np.polyfit(np.log(sizes), np.log(seconds), 1)[0]
        print(f"{loss}: slope {slope:.2f}")
        axes.loglog(sizes, seconds, "o-", label=f"{loss}, slope {slope:.2f}")
    guide = np.array(sizes) * measured["epsilon_insensitive"][0] / sizes[0]
    axes.loglog(sizes, guide, "--", color="grey", label="slope 1")
    axes.set_xlabel("non-zeros of X")
    axes.set_ylabel("seconds to a relative gap of 1e-2")
    axes.legend()
    axes.figure.savefig(path, dpi=120)


if __name__ == "__main__":
    main()
