"""
Pipelines, scikit-learn's search and our own
============================================

Two ways to choose C and γ of a quantile. :class:`~sklearn.model_selection.GridSearchCV` refits a
pipeline for every point and fold. :class:`~tausvm.QuantileSVRCV` shares the kernel matrices
between folds, C and levels, and starts every fit from its neighbour. By default it also learns
which features count, and needs no scaler.
"""

from __future__ import annotations

import time

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_diabetes
from sklearn.metrics import make_scorer, mean_pinball_loss
from sklearn.model_selection import GridSearchCV, KFold, train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from tausvm import QuantileSVR, QuantileSVRCV
from tausvm.plotting import CVSurfaceDisplay

TAU = 0.9
Cs, gammas = np.geomspace(10, 1000, 4), np.geomspace(0.003, 0.1, 4)
X, y = load_diabetes(return_X_y=True, scaled=False)
X_train, X_test, y_train, y_test = train_test_split(X, y, random_state=0)
folds = KFold(5, shuffle=True, random_state=0)

# %%
# Three searches over the same grid.
searches = {
    "GridSearchCV": GridSearchCV(
        make_pipeline(StandardScaler(), QuantileSVR(tau=TAU)),
        {"quantilesvr__C": Cs, "quantilesvr__gamma": gammas},
        scoring=make_scorer(mean_pinball_loss, alpha=TAU, greater_is_better=False),
        cv=folds,
    ),
    "QuantileSVRCV": make_pipeline(
        StandardScaler(),
        QuantileSVRCV(tau=TAU, Cs=Cs, gammas=gammas, cv=folds, kernel="rbf", feature_metric=None),
    ),
    "learned features": QuantileSVRCV(tau=TAU, Cs=Cs, gammas=gammas, cv=folds),
}
print("                      C    gamma   seconds   pinball loss on new patients")
for name, search in searches.items():
    started = time.perf_counter()
    search.fit(X_train, y_train)
    seconds = time.perf_counter() - started
    found = (search[-1] if hasattr(search, "steps") else search).best_params_
    C, gamma = (found[key] for key in sorted(found) if not key.endswith("kernel"))
    loss = mean_pinball_loss(y_test, search.predict(X_test), alpha=TAU)
    print(f"{name:<16} {C:>6.3g} {gamma:>8.2g} {seconds:>9.2f} {loss:>12.2f}")

# %%
# The score over the grid, with the chosen point.
CVSurfaceDisplay.from_estimator(searches["QuantileSVRCV"])
plt.show()
