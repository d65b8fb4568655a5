"""
Prediction intervals that widen with the noise
==============================================

Two quantiles, 0.05 and 0.95, bound a 90 % interval. A least-squares fit with one standard
deviation for all is as good on average and wrong almost everywhere.
"""

from __future__ import annotations

import matplotlib.pyplot as plt
import numpy as np

from tausvm import SVR, QuantileSVR
from tausvm.metrics import crossing_rate

rng = np.random.default_rng(0)


def sample(n: int) -> tuple[np.ndarray, np.ndarray]:
    """A sine whose noise grows from left to right."""
    x = rng.uniform(0, 1, size=n)
    return x[:, None], np.sin(6 * x) + (0.1 + 0.9 * x) * rng.normal(size=n)


X, y = sample(1000)
X_new, y_new = sample(4000)

# %%
# The interval between two quantiles, and the mean with a constant to both sides.
taus = [0.05, 0.95]
levels = QuantileSVR(tau=taus, C=10, gamma=5).fit(X, y)
mean = SVR(loss="squared_epsilon_insensitive", epsilon=0, C=1, gamma=5).fit(X, y)
spread = 1.645 * np.std(y - mean.predict(X))


def around_the_mean(X: np.ndarray) -> np.ndarray:
    """The mean, less and more the same everywhere."""
    return mean.predict(X)[:, None] + np.array([-spread, spread])


def inside(interval: np.ndarray, where: np.ndarray) -> float:
    """The share of new targets within the interval."""
    low, high = interval[where].T
    return float(np.mean((low <= y_new[where]) & (y_new[where] <= high)))


print("share inside a 90 % interval     calm third   noisy third   everywhere")
x_new = X_new.ravel()
quantiles, constant = levels.predict(X_new), around_the_mean(X_new)
for name, interval in (("two quantiles", quantiles), ("mean ± constant", constant)):
    shares = [inside(interval, where) for where in (x_new < 1 / 3, x_new > 2 / 3, x_new >= 0)]
    print(f"{name:<30} {shares[0]:>12.1%} {shares[1]:>13.1%} {shares[2]:>12.1%}")
print(f"crossing quantiles: {crossing_rate(quantiles, tau=taus):.1%}")

# %%
# In a picture: the constant is too wide on the left and too narrow on the right.
grid = np.linspace(0, 1, 300)[:, None]
figure, axes = plt.subplots(1, 2, figsize=(9, 3.6), sharey=True, layout="constrained")
for ax, name, band in zip(
    axes,
    ("two quantiles", "mean ± constant"),
    (levels.predict(grid), around_the_mean(grid)),
    strict=True,
):
    ax.scatter(X_new[:1500], y_new[:1500], s=3, color="0.6")
    ax.fill_between(grid[:, 0], *band.T, alpha=0.3)
    ax.plot(grid[:, 0], band, color="C0")
    ax.set(title=name, xlabel="x")
plt.show()
