"""
Ho and Lin (2012): many rows, sparse features
=============================================

"Large-scale Linear Support Vector Regression". Without a Gram matrix the work is in the non-zero
numbers of X. Coordinate descent in the dual and Newton's method in the primal reach the same
objective, each with its certificate.
"""

from __future__ import annotations

import time

import matplotlib.pyplot as plt
import numpy as np
from scipy import sparse

from tausvm import LinearQuantileSVR, LinearSVR
from tausvm.plotting import ConvergenceDisplay

rng = np.random.default_rng(0)
n, d = 4000, 1000
X = sparse.random(n, d, density=0.01, format="csr", random_state=0)
y = X @ rng.normal(size=d) + 0.3 * rng.standard_t(df=3, size=n)

# %%
# Two losses, three solvers.
print("loss                          solver      gap      objective   seconds")
figure, axes = plt.subplots(1, 3, figsize=(11, 3.4), layout="constrained")
squared = "squared_epsilon_insensitive"
ways = (("epsilon_insensitive", "auto"), (squared, "dual_cd"), (squared, "newton"))
for ax, (loss, solver) in zip(axes, ways, strict=True):
    machine = LinearSVR(loss=loss, solver=solver, epsilon=0.1, C=0.3, tol=1e-3)
    started = time.perf_counter()
    result = machine.fit(X, y).result_
    seconds = time.perf_counter() - started
    objective = f"{result.dual_gap:>6.0e} {result.primal_objective:>12.4f}"
    print(f"{loss:<29} {solver:<9} {objective} {seconds:>8.2f}")
    ConvergenceDisplay.from_estimator(machine, ax=ax)
    ax.set_title(f"{'squared' if loss == squared else 'linear'} loss, {solver}")
plt.show()

# %%
# Quantiles by the same solvers.
levels = LinearQuantileSVR(tau=[0.1, 0.5, 0.9], C=1.0, tol=1e-3).fit(X, y)
shares = (y[:, None] <= levels.predict(X)).mean(axis=0)
print("share of targets below three quantiles:", shares.round(2))
