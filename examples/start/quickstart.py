"""Fit a line of typical values, a fan of quantiles, and read the certificate."""

from __future__ import annotations

from sklearn.datasets import load_diabetes
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from tausvm import SVR, QuantileSVR
from tausvm.metrics import coverage

X, y = load_diabetes(return_X_y=True, scaled=False)
X_train, X_test, y_train, y_test = train_test_split(X, y, random_state=0)

# SVR takes scikit-learn's parameters: only the import differs.
typical = make_pipeline(StandardScaler(), SVR(C=100, gamma=0.01, epsilon=10))
typical.fit(X_train, y_train)
print(f"SVR: R² = {typical.score(X_test, y_test):.2f} on held-out patients")

# Three levels at once, on one kernel matrix; one column of predictions each.
taus = [0.1, 0.5, 0.9]
levels = make_pipeline(StandardScaler(), QuantileSVR(tau=taus, C=4, gamma=0.01))
levels.fit(X_train, y_train)
for tau, share in zip(taus, coverage(y_test, levels.predict(X_test)), strict=True):
    print(f"quantile {tau}: {share:.0%} of held-out patients at or below")

# The relative duality gap bounds how far the objective is from the best possible.
for tau, result in zip(taus, levels[-1].result_, strict=True):
    print(f"quantile {tau}: {result.status.value}, gap {result.dual_gap:.0e}")
