"""
Data frames in, names kept: pandas, polars and set_output
=========================================================

Any frame that scikit-learn reads can be fitted to; the names of its columns are remembered, and
a frame with other columns is refused. Needs ``pip install polars``.
"""

from __future__ import annotations

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import polars as pl
from sklearn.compose import ColumnTransformer
from sklearn.datasets import load_diabetes
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from tausvm import QuantileSVR

study = load_diabetes(scaled=False, as_frame=True)
frame = study.data.assign(sex=study.data["sex"].map({1.0: "f", 2.0: "m"}))
numbers = [name for name in frame.columns if name != "sex"]
prepare = ColumnTransformer(
    [
        ("numbers", StandardScaler(), numbers),
        ("categories", OneHotEncoder(sparse_output=False), ["sex"]),
    ],
    verbose_feature_names_out=False,
)
model = make_pipeline(prepare, QuantileSVR(tau=[0.1, 0.5, 0.9], C=4, gamma=0.01))

# %%
# The same levels, whichever frame they come from.
in_pandas = model.fit(frame, study.target).predict(frame)
same_in_polars = pl.DataFrame({name: frame[name].to_list() for name in frame.columns})
in_polars = model.fit(same_in_polars, pl.Series(study.target.to_list())).predict(same_in_polars)
print("pandas and polars give the same levels:", bool(np.allclose(in_pandas, in_polars)))

# %%
# With ``set_output`` the names reach the machine.
model.set_output(transform="pandas").fit(frame, study.target)
print("the machine was fitted to:", *model[-1].feature_names_in_)
levels = pd.DataFrame(model.predict(frame), columns=["low", "middle", "high"], index=frame.index)
print(levels.describe().loc[["mean", "min", "max"]].round())

# %%
# A frame with other columns is refused by name.
try:
    model.predict(frame.rename(columns={"bmi": "body mass"}))
except ValueError as error:
    print("other columns are refused:", str(error).splitlines()[0])

# %%
# Levels as a frame, for a picture by one call.
levels.sort_values("middle", ignore_index=True).plot(
    xlabel="patients", ylabel="progression", figsize=(7, 3.6)
)
plt.show()
