"""
A table as it is: numbers, categories, dates, and holes
=======================================================

Flats with their rents, as a spreadsheet has them: words among numbers, missing values, a column
of dates, one that says nothing.
"""

from __future__ import annotations

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from tausvm import TabularQuantileSVR
from tausvm.metrics import coverage

rng = np.random.default_rng(0)
n = 400
flats = pd.DataFrame(
    {
        "flat": [f"flat {k}" for k in range(n)],
        "size": rng.uniform(20, 120, n),
        "quarter": rng.choice(["north", "south", "west"], n),
        "state": pd.Categorical(
            rng.choice(["poor", "fair", "good"], n), ["poor", "fair", "good"], ordered=True
        ),
        "built": rng.integers(1900, 2020, n).astype(str),
        "let": pd.Timestamp("2021-01-01") + pd.to_timedelta(rng.integers(0, 1200, n), "D"),
        "currency": "EUR",
    }
)
season = np.sin(2 * np.pi * flats["let"].dt.day_of_year / 365)
rent = 9 * flats["size"] + 150 * (flats["quarter"] == "north") + 80 * flats["state"].cat.codes
rent += 60 * season + (0.05 + 0.001 * flats["size"]) * 9 * flats["size"] * rng.normal(size=n)
flats.loc[rng.integers(0, n, 12), "built"] = "?"
flats.loc[rng.integers(0, n, 20), "quarter"] = None
flats.loc[rng.integers(0, n, 20), "size"] = np.nan

# %%
# One call prepares the columns, chooses C and γ for each level, and fits. ``columns_`` says what
# each column was taken for, and why.
train, test = slice(0, 280), slice(280, n)
model = TabularQuantileSVR(tau=[0.1, 0.5, 0.9], Cs=6, gammas=6)
model.fit(flats[train], rent[train])
for column in model.columns_:
    print(f"{column['name']:<9}{column['kind']:<11}{column['why']}")

# %%
# Shares of new flats at or below the levels, and the certificates.
shares = coverage(rent[test], model.predict(flats[test]))
for tau, share, gap in zip(model.tau, shares, model.dual_gap_, strict=True):
    print(f"quantile {tau}: {share:.0%} of new flats at or below, gap {gap:.0e}")

# %%
# New tables may have holes and categories that the fit has not seen.
new = flats[test].head(2).assign(quarter=["harbour", None])
print("rents between:", *np.round(model.predict(new)[:, [0, 2]]).tolist())

# %%
# The new flats from the cheapest to the dearest, with their intervals.
low, middle, high = model.predict(flats[test]).T
order = np.argsort(middle)
figure, ax = plt.subplots(figsize=(7, 3.8), layout="constrained")
ax.fill_between(range(len(order)), low[order], high[order], alpha=0.3, label="8 of 10")
ax.plot(middle[order], label="median")
ax.plot(rent[test].to_numpy()[order], ".", color="0.4", label="new flats")
ax.set(xlabel="new flats, in order of their median", ylabel="rent (EUR)")
ax.legend()
plt.show()
