"""
Intervals with a guarantee: conformalised quantiles
===================================================

Quantiles that are flexible enough to follow the training data cover too little of new data.
MAPIE widens them by what a calibration set shows to be missing, and then the share inside is
the nominal one on average, whatever the distribution. Needs ``pip install mapie``.
"""

from __future__ import annotations

import logging

import matplotlib.pyplot as plt
import numpy as np
from mapie.regression import ConformalizedQuantileRegressor
from sklearn.datasets import load_diabetes
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from tausvm import QuantileSVR
from tausvm.metrics import mean_interval_score

logging.disable(logging.INFO)  # MAPIE tells of every crossing of the quantiles

SHARE, REPEATS = 0.9, 100
LEVELS = ((1 - SHARE) / 2, (1 + SHARE) / 2, 0.5)  # MAPIE's order: lower, upper, middle

X, y = load_diabetes(return_X_y=True, scaled=False)
rng = np.random.default_rng(0)
results: dict[str, list[tuple[float, float, float]]] = {"quantiles alone": [], "conformalised": []}
for _ in range(REPEATS):
    rows = rng.permutation(len(y))
    train, calibrate, test = rows[:180], rows[180:320], rows[320:]
    models = [
        make_pipeline(StandardScaler(), QuantileSVR(tau=tau, C=4, gamma=0.05, tol=1e-3)).fit(
            X[train], y[train]
        )
        for tau in LEVELS
    ]
    plain = np.column_stack([model.predict(X[test]) for model in models[:2]])
    conformal = ConformalizedQuantileRegressor(models, confidence_level=SHARE, prefit=True)
    conformal.conformalize(X[calibrate], y[calibrate])
    _, bounds = conformal.predict_interval(X[test], symmetric_correction=True)
    for name, (low, high) in zip(results, (plain.T, bounds[:, :, 0].T), strict=True):
        inside = np.mean((low <= y[test]) & (y[test] <= high))
        score = mean_interval_score(y[test], low, high, share=SHARE)
        results[name].append((float(inside), float(np.mean(high - low)), score))

print(f"{REPEATS} splits of {len(y)} patients, intervals that should hold {SHARE:.0%}")
print("                      inside   width   interval score")
for name, rows_of in results.items():
    inside, width, score = np.mean(rows_of, axis=0)
    print(f"{name:<20} {inside:>7.1%} {width:>7.0f} {score:>16.0f}")

# %%
# The share inside, over the splits.
figure, ax = plt.subplots(figsize=(7, 3.6), layout="constrained")
for name, rows_of in results.items():
    ax.hist([inside for inside, _, _ in rows_of], bins=20, alpha=0.6, label=name)
ax.axvline(SHARE, color="0.3", linestyle=":")
ax.set(xlabel="share of new patients inside the interval", ylabel="splits")
ax.legend()
plt.show()
