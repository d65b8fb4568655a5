"""
Farooq and Steinwart (2015): expectiles by pairs of variables
=============================================================

"An SVM-like Approach for Expectile Regression". Their machine has no offset and a λ; ours is
:math:`C = 1/(2n\\lambda)`. WSS 1 and WSS 2 are the working sets of their algorithm: both end at
the same objective, the second after fewer steps.
"""

from __future__ import annotations

import matplotlib.pyplot as plt
import numpy as np

from tausvm import ExpectileSVR
from tausvm.kernels import Points, make_kernel
from tausvm.losses import SquaredPinball
from tausvm.operators import CachedKernel
from tausvm.solvers import SMO, Problem, SolverOptions, solve

rng = np.random.default_rng(0)
n, lam, gamma = 400, 1e-4, 4.0
X = rng.uniform(-1, 1, size=(n, 2))
y = np.sin(3 * X[:, 0]) + (0.3 + 0.3 * X[:, 1] ** 2) * rng.normal(size=n)
C = 1 / (2 * n * lam)

# %%
# Three working sets, one objective.
print("tau   pairs (WSS 2)   halves (WSS 1)   single   objective")
for tau in (0.25, 0.5, 0.75):
    gram = CachedKernel(make_kernel("rbf", gamma), Points(X), dtype=np.float64)
    problem = Problem(gram, y, SquaredPinball(tau).dual_terms(y, np.full(n, C)), offset=False)
    results = [
        solve(problem, SMO(working_set=name), SolverOptions(tol=1e-5))
        for name in ("nearest", "halves", "single")
    ]
    steps = "".join(f"{result.n_iter:>14d}" for result in results)
    print(f"{tau:.2f} {steps}   {results[0].dual_objective:.4f}")
    assert np.allclose([r.dual_objective for r in results], results[0].dual_objective, rtol=1e-4)

# %%
# Expectiles weigh distances, so the shares below them are not their levels.
taus = [0.01, 0.25, 0.5, 0.75, 0.99]
model = ExpectileSVR(tau=taus, C=C, gamma=gamma, fit_intercept=False).fit(X, y)
shares = (y[:, None] <= model.predict(X)).mean(axis=0)
print(
    "share of targets below the expectiles:", dict(zip(taus, shares.round(2).tolist(), strict=True))
)

# %%
# Five expectiles along the first feature, the second at 0.
grid = np.column_stack([np.linspace(-1, 1, 200), np.zeros(200)])
figure, ax = plt.subplots(figsize=(7, 3.6), layout="constrained")
ax.scatter(X[:, 0], y, s=6, color="0.6")
ax.plot(grid[:, 0], model.predict(grid), label=[f"τ = {tau}" for tau in taus])
ax.set(xlabel="first feature", ylabel="target")
ax.legend(ncols=5, fontsize="small")
plt.show()
