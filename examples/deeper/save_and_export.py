"""
A model for other people: a safe file, ONNX, a report page
==========================================================

Needs ``pip install 'tausvm[models,onnx]' onnxruntime``.
"""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory

import matplotlib.pyplot as plt
import numpy as np
import onnxruntime
from sklearn.datasets import load_diabetes
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from tausvm import QuantileSVR
from tausvm.export import to_onnx
from tausvm.persistence import ModelFileError, load, read_info, save
from tausvm.report import write_report

study = load_diabetes(scaled=False)
X_train, X_test, y_train, y_test = train_test_split(study.data, study.target, random_state=0)
levels = QuantileSVR(tau=[0.05, 0.5, 0.95], C=4, gamma=0.01)
model = make_pipeline(StandardScaler(), levels).fit(X_train, y_train)
folder = TemporaryDirectory()
here = Path(folder.name)

# %%
# A file without pickle: nothing in it is run when it is read.
save(model, here / "model.skops", card={"target": "progression after a year"})
same = load(here / "model.skops")
print("the same bits:", bool((same.predict(X_test) == model.predict(X_test)).all()))
print("written by tausvm", read_info(here / "model.skops").versions["tausvm"])

# %%
# A file that was damaged is refused.
damaged = bytearray((here / "model.skops").read_bytes())
damaged[len(damaged) // 2] ^= 1
(here / "damaged.skops").write_bytes(damaged)
try:
    load(here / "damaged.skops")
except ModelFileError as error:
    print("refused:", str(error).replace(folder.name, "…"))

# %%
# A graph that runs without Python.
to_onnx(model, here / "model.onnx")
session = onnxruntime.InferenceSession(here / "model.onnx", providers=["CPUExecutionProvider"])
(exported,) = session.run(["prediction"], {"X": X_test})
print(f"onnxruntime differs by at most {np.abs(exported - model.predict(X_test)).max():.1e}")

# %%
# A page for a browser, about patients that the model has not seen.
write_report(
    model,
    X_test,
    y_test,
    here / "report.html",
    target_name="progression after a year",
    feature_names=list(study.feature_names),
)
print("a page of", (here / "report.html").stat().st_size // 1024, "kB, for any browser")

# %%
# What was exported and what was saved predict the same.
figure, ax = plt.subplots(figsize=(4.4, 4.2), layout="constrained")
ax.plot(model.predict(X_test), exported, ".")
ax.set(xlabel="predicted by scikit-learn's pipeline", ylabel="by onnxruntime")
plt.show()
folder.cleanup()
