"""
Lu (2017): pairs of variables against the certificate
=====================================================

"A Supplement of Kernel-based SMO-SVR Algorithm". The optimality conditions say when to stop, the
duality gap says how much is left. Duplicated rows give pairs with η = 0, which the steps must
survive.
"""

from __future__ import annotations

import matplotlib.pyplot as plt
import numpy as np

from tausvm import SVR
from tausvm.plotting import ConvergenceDisplay

rng = np.random.default_rng(0)
X = rng.uniform(-3, 3, size=(300, 1))
X[150:] = X[:150]  # every row twice: K is singular
y = np.sinc(X.ravel()) + 0.1 * rng.normal(size=300)

model = SVR(C=10, gamma=1.0, epsilon=0.1, solver="smo", tol=1e-6).fit(X, y)
trace = model.result_.trace
print("  pairs   relative gap")
for check in trace[:: max(1, len(trace) // 8)]:
    print(f"{check.n_iter:>7d}   {check.gap:.1e}")
print(f"{model.n_iter_:>7d}   {model.dual_gap_:.1e}   (recomputed from the data)")
print(f"support vectors: {model.n_support_[0]} of 300, KKT violation "
      f"{model.result_.kkt_violation:.1e}")  # fmt: skip

# %%
# Another solver arrives at the same objective.
other = SVR(C=10, gamma=1.0, epsilon=0.1, solver="interior_point", tol=1e-9).fit(X, y)
difference = abs(model.result_.dual_objective - other.result_.dual_objective)
print(f"objective by another solver differs by {difference / other.result_.dual_objective:.0e}")

# %%
# The gap at every check.
ConvergenceDisplay.from_estimator(model)
plt.show()
