"""A model for other people: saved without pickle, exported to ONNX, explained in a page.

Needs ``pip install 'tausvm[models,onnx]' onnxruntime``.
"""

from __future__ import annotations

from pathlib import Path

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

# a file without pickle: nothing in it is run when it is read
save(model, "model.skops", card={"target": "progression after a year"})
same = load("model.skops")
print("the same bits:", bool((same.predict(X_test) == model.predict(X_test)).all()))
print("written by tausvm", read_info("model.skops").versions["tausvm"])

damaged = bytearray(Path("model.skops").read_bytes())
damaged[len(damaged) // 2] ^= 1
Path("damaged.skops").write_bytes(damaged)
try:
    load("damaged.skops")
except ModelFileError as error:
    print("refused:", error)

# a graph that runs without Python
to_onnx(model, "model.onnx")
session = onnxruntime.InferenceSession("model.onnx", providers=["CPUExecutionProvider"])
(exported,) = session.run(["prediction"], {"X": X_test})
print(f"onnxruntime differs by at most {np.abs(exported - model.predict(X_test)).max():.1e}")

# a page for a browser, about patients that the model has not seen
write_report(
    model,
    X_test,
    y_test,
    "report.html",
    target_name="progression after a year",
    feature_names=list(study.feature_names),
)
print("open report.html in a browser:", Path("report.html").stat().st_size // 1024, "kB")
