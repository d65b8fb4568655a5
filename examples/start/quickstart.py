"""
Quickstart: typical values, a fan of quantiles, the certificate
===============================================================

How a disease progresses within a year, from ten measurements of 442 patients.
"""

from __future__ import annotations

import matplotlib.pyplot as plt
from sklearn.datasets import load_diabetes
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from tausvm import SVR, QuantileSVR
from tausvm.metrics import coverage
from tausvm.plotting import FanDisplay

X, y = load_diabetes(return_X_y=True, scaled=False, as_frame=True)
X_train, X_test, y_train, y_test = train_test_split(X, y, random_state=0)

# %%
# :class:`~tausvm.SVR` takes scikit-learn's parameters: only the import differs.
typical = make_pipeline(StandardScaler(), SVR(C=100, gamma=0.01, epsilon=10))
typical.fit(X_train, y_train)
print(f"SVR: R² = {typical.score(X_test, y_test):.2f} on held-out patients")

# %%
# Three levels at once, on one kernel matrix; one column of predictions each.
taus = [0.1, 0.5, 0.9]
levels = make_pipeline(StandardScaler(), QuantileSVR(tau=taus, C=4, gamma=0.01))
levels.fit(X_train, y_train)
for tau, share in zip(taus, coverage(y_test, levels.predict(X_test)), strict=True):
    print(f"quantile {tau}: {share:.0%} of held-out patients at or below")

# %%
# The relative duality gap bounds how far the objective is from the best possible.
for tau, result in zip(taus, levels[-1].result_, strict=True):
    print(f"quantile {tau}: {result.status.value}, gap {result.dual_gap:.0e}")

# %%
# The levels against one measurement, the others at their medians.
FanDisplay.from_estimator(levels, X_test, y_test, feature="bmi", target_name="progression")
plt.show()
