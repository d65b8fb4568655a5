"""
Texts as two hundred thousand sparse features
=============================================

A linear machine, its C chosen on a path. Rows stay sparse from the vectoriser to the prediction.
One machine predicts a typical value, another two levels around it.
"""

from __future__ import annotations

import matplotlib.pyplot as plt
import numpy as np
from sklearn.feature_extraction.text import HashingVectorizer
from sklearn.model_selection import train_test_split

from tausvm import LinearQuantileSVR, LinearSVRCV

rng = np.random.default_rng(0)
words = np.array([f"word{k}" for k in range(3000)])
value = rng.normal(size=3000)  # what a word is worth
drawn = np.minimum(rng.zipf(1.3, size=(1500, 40)) - 1, 2999)  # few words are frequent
texts = [" ".join(words[row]) for row in drawn]
y = value[drawn].mean(axis=1) + 0.1 * rng.standard_t(df=3, size=1500)

X = HashingVectorizer(n_features=200_000, alternate_sign=False).transform(texts)
X_train, X_test, y_train, y_test = train_test_split(X, y, random_state=0)
print(f"{X.shape[0]} x {X.shape[1]}, {X.nnz / X.shape[0]:.0f} non-zeros a row")

# %%
# C by cross-validation, every value from the solution of the one before.
search = LinearSVRCV(Cs=[0.01, 0.1, 1.0, 10.0], cv=3, epsilon=0.05).fit(X_train, y_train)
table = search.cv_results_
print("       C   mean squared error   squared correlation")
for k, C in enumerate(search.Cs_):
    mse, agreement = table["mean_test_mse"][k], table["mean_test_squared_correlation"][k]
    print(f"{C:8.3g} {mse:20.4f} {agreement:21.3f}{'  <-' if k == search.best_index_ else ''}")

# %%
# Two levels at that C.
C = search.best_params_["C"]
levels = LinearQuantileSVR(tau=[0.1, 0.9], C=C, tol=1e-3).fit(X_train, y_train)
below = (y_test[:, None] <= levels.predict(X_test)).mean(axis=0)
print(f"held out: R² {search.score(X_test, y_test):.3f}; below the levels 0.1 and 0.9:", below)
print("certified relative gaps:", levels.dual_gap_.round(5))

# %%
# New texts in the order of what is predicted for them.
typical, (low, high) = search.predict(X_test), levels.predict(X_test).T
order = np.argsort(typical)
figure, ax = plt.subplots(figsize=(7, 3.6), layout="constrained")
ax.fill_between(range(len(order)), low[order], high[order], alpha=0.3, label="8 of 10")
ax.plot(typical[order], label="typical value")
ax.plot(y_test[order], ".", ms=3, color="0.4", label="new texts")
ax.set(xlabel="new texts, in order", ylabel="value", ylim=(-1.5, 1.5))
ax.legend(ncols=3)
plt.show()
