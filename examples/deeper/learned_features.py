"""
Which features matter, and what it is worth to know
===================================================

A problem of ten features, of which six count: five move the target, and one moves its spread
alone, so that what is uncertain here is predictable too. A tuned machine finds them by itself.
"""

from __future__ import annotations

import matplotlib.pyplot as plt
import numpy as np
from sklearn.metrics import mean_pinball_loss

from tausvm import QuantileSVRCV
from tausvm.plotting import FeatureImportanceDisplay

NAMES = ["product a", "product b", "parabola", "line", "half a line", "spread", *"wxyz"]
TAUS = [0.1, 0.9]


def draw(n: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Friedman's problem, with noise that grows along the sixth feature."""
    X = rng.uniform(size=(n, 10))
    y = 10 * np.sin(np.pi * X[:, 0] * X[:, 1]) + 20 * (X[:, 2] - 0.5) ** 2
    return X, y + 10 * X[:, 3] + 5 * X[:, 4] + 4 * X[:, 5] * rng.normal(size=n)


rng = np.random.default_rng(0)
X, y = draw(400, rng)
X_test, y_test = draw(4000, rng)

# %%
# The loss on new rows, beside that of the same machine that takes the features as they are.
learned = QuantileSVRCV(tau=TAUS, Cs=5, gammas=5).fit(X, y)
plain = QuantileSVRCV(tau=TAUS, Cs=5, gammas=5, feature_metric=None, kernel="rbf").fit(X, y)
print("mean pinball loss on new rows")
for name, model in (("learned features", learned), ("as they are", plain)):
    predicted = model.predict(X_test).T
    losses = [mean_pinball_loss(y_test, p, alpha=t) for p, t in zip(predicted, TAUS, strict=True)]
    told = ", ".join(f"τ = {tau:g}: {loss:.3f}" for tau, loss in zip(TAUS, losses, strict=True))
    print(f"  {name:<17} {told}")
print(f"kernel: {learned.kernel_}")

# %%
# What the features count for.
FeatureImportanceDisplay.from_estimator(learned, feature_names=NAMES)
plt.show()
