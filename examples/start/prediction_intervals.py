"""A 90 % prediction interval that widens with the noise, and what the mean hides.

Two quantiles, 0.05 and 0.95, bound the interval. A least-squares fit with one standard
deviation for all is as good on average and wrong almost everywhere.
"""

from __future__ import annotations

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

taus = [0.05, 0.95]
quantiles = QuantileSVR(tau=taus, C=10, gamma=5).fit(X, y).predict(X_new)
mean = SVR(loss="squared_epsilon_insensitive", epsilon=0, C=1, gamma=5).fit(X, y)
spread = 1.645 * np.std(y - mean.predict(X))
constant = mean.predict(X_new)[:, None] + np.array([-spread, spread])


def inside(interval: np.ndarray, where: np.ndarray) -> float:
    """The share of new targets within the interval."""
    low, high = interval[where].T
    return float(np.mean((low <= y_new[where]) & (y_new[where] <= high)))


print("share inside a 90 % interval     calm third   noisy third   everywhere")
x_new = X_new.ravel()
for name, interval in (("two quantiles", quantiles), ("mean ± constant", constant)):
    shares = [inside(interval, where) for where in (x_new < 1 / 3, x_new > 2 / 3, x_new >= 0)]
    print(f"{name:<30} {shares[0]:>12.1%} {shares[1]:>13.1%} {shares[2]:>12.1%}")
print(f"crossing quantiles: {crossing_rate(quantiles, tau=taus):.1%}")
