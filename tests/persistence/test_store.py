"""Saving and loading: the same bits, the versions, and files that are not to be trusted."""

from __future__ import annotations

import doctest
import io
import json
import pickle
import subprocess
import sys
import zipfile
from pathlib import Path

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.compose import ColumnTransformer
from sklearn.model_selection import KFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, OneHotEncoder, StandardScaler

import tausvm
from tausvm import SVR, ExpectileSVRCV, FeatureMetric, QuantileSVR, TauSVC

pytest.importorskip("skops", reason="saving models needs skops")

import tausvm.persistence.store
from tausvm.persistence import ModelFileError, load, load_with_info, read_info, save
from tausvm.persistence.archive import MANIFEST, SCHEMA, pack, unpack
from tausvm.persistence.renamed import NewName, renewed

from ..blocks import ROOT
from ..estimators.models import ESTIMATORS, LEARNED, fitted
from ..estimators.models import data as learned_data


@pytest.fixture(scope="module")
def data() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 2))
    return X, X[:, 0] + 0.3 * rng.normal(size=60)


@pytest.fixture
def file(tmp_path: Path, data) -> Path:
    model = make_pipeline(StandardScaler(), QuantileSVR(tau=[0.1, 0.9])).fit(*data)
    save(model, tmp_path / "model.skops", card={"target": "y"})
    return tmp_path / "model.skops"


def members(file: Path) -> dict[str, bytes]:
    return unpack(file.read_bytes(), 2**26)[1]


def test_docstrings() -> None:
    assert doctest.testmod(tausvm.persistence.store).failed == 0


@pytest.mark.parametrize("name", ESTIMATORS)
def test_every_estimator_predicts_the_same_bits(name: str, tmp_path: Path) -> None:
    model, X = fitted(name)
    save(model, tmp_path / "model.skops")
    same = load(tmp_path / "model.skops")
    assert type(same) is type(model)
    assert same.get_params().keys() == model.get_params().keys()
    for method in ("predict", "decision_function", "predict_proba"):
        if hasattr(model, method):
            before, after = getattr(model, method)(X), getattr(same, method)(X)
            np.testing.assert_array_equal(before, after)


def test_every_public_estimator_is_covered() -> None:
    public = {name for name in tausvm.__all__ if name[0].isupper()}
    assert public == {name.split(":")[0] for name in ESTIMATORS}


def test_certificates_come_along(tmp_path: Path, data) -> None:
    model = SVR().fit(*data)
    save(model, tmp_path / "model.skops")
    same = load(tmp_path / "model.skops")
    assert same.result_.status is model.result_.status
    assert same.result_.trace == model.result_.trace
    assert same.dual_gap_ == model.dual_gap_


def test_sparse_and_mixed_data(tmp_path: Path, data) -> None:
    X, y = data
    model = SVR().fit(sparse.csr_matrix(X), y)
    save(model, tmp_path / "sparse.skops")
    np.testing.assert_array_equal(load(tmp_path / "sparse.skops").predict(X), model.predict(X))
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"a": X[:, 0], "kind": np.where(X[:, 1] > 0, "up", "down")})
    prepare = ColumnTransformer(
        [("numbers", StandardScaler(), ["a"]), ("categories", OneHotEncoder(), ["kind"])]
    )
    mixed = make_pipeline(prepare, ExpectileSVRCV(Cs=2, gammas=2, cv=KFold(3))).fit(frame, y)
    save(mixed, tmp_path / "mixed.skops")
    np.testing.assert_array_equal(
        load(tmp_path / "mixed.skops").predict(frame), mixed.predict(frame)
    )


def test_versions_and_card_are_recorded(file: Path) -> None:
    info = read_info(file)
    assert info.card == {"target": "y"}
    assert info.versions["tausvm"] == tausvm.__version__
    assert info.versions["numpy"] == np.__version__
    assert info.created.endswith("UTC")
    assert load_with_info(file)[1] == info


def test_a_failed_save_leaves_the_old_file(file: Path, data) -> None:
    before = file.read_bytes()
    model = SVR(kernel=lambda a, b: a @ b.T).fit(*data)
    with pytest.raises(ValueError, match="cannot be saved"):
        save(model, file)
    assert file.read_bytes() == before
    assert list(file.parent.iterdir()) == [file]


def doubled(X):
    return 2 * X


@pytest.mark.parametrize(
    "model",
    [
        make_pipeline(FunctionTransformer(doubled), SVR()),
        SVR(random_state=np.random.RandomState(0)),
    ],
    ids=["function", "random state"],
)
def test_what_cannot_be_loaded_cannot_be_saved(model, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="cannot be saved"):
        save(model, tmp_path / "model.skops")


class Doubled(TransformerMixin, BaseEstimator):
    """A transformer of somebody's own."""

    def fit(self, X, y=None):
        return self

    def transform(self, X):
        return 2 * X


def test_classes_of_others_are_named_at_loading(file: Path, tmp_path: Path, data) -> None:
    import skops.io

    model = make_pipeline(Doubled(), SVR()).fit(*data)
    with zipfile.ZipFile(io.BytesIO(skops.io.dumps(model))) as archive:
        parts = {name: archive.read(name) for name in archive.namelist()}
    file.write_bytes(pack(parts, {}))
    with pytest.raises(ModelFileError, match="Doubled"):
        load(file)
    same = load(file, trusted=[Doubled])
    np.testing.assert_array_equal(same.predict(data[0]), model.predict(data[0]))


class Payload:
    """What a hostile pickle looks like."""

    def __reduce__(self):
        return print, ("this should not run",)


def repacked(file: Path, change) -> bytes:
    """The file with its members changed and its checksums made to fit."""
    parts = dict(members(file))
    change(parts)
    return pack(parts, {})


def set_schema(**changes):
    def change(parts):
        schema = json.loads(parts[SCHEMA])
        schema.update(changes)
        parts[SCHEMA] = json.dumps(schema).encode()

    return change


def first_array(parts, data: bytes) -> None:
    parts[next(name for name in parts if name.endswith(".npy"))] = data


def bomb() -> bytes:
    """A small ZIP that unpacks to 64 megabytes."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(MANIFEST, bytes(2**26))
    return buffer.getvalue()


def claim() -> bytes:
    """An array's header that claims 800 terabytes."""
    stream = io.BytesIO()
    header = {"descr": "<f8", "fortran_order": False, "shape": (10**11, 10**3)}
    np.lib.format.write_array_header_1_0(stream, header)
    return stream.getvalue()


def foreign_zip() -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr("hello.txt", "hello")
    return buffer.getvalue()


def flipped(file: Path) -> bytes:
    """One bit of one array changed, and the ZIP's own checksum with it."""
    parts = dict(members(file))
    name = next(name for name in parts if name.endswith(".npy"))
    good = unpack(file.read_bytes(), 2**26)[0]
    parts[name] = parts[name][:-1] + bytes([parts[name][-1] ^ 1])
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr(MANIFEST, json.dumps(good))
        for part, content in parts.items():
            archive.writestr(part, content)
    return buffer.getvalue()


BAD = {
    "empty": (lambda f: b"", "not a tausvm model"),
    "text": (lambda f: b"hello", "not a tausvm model"),
    "pickle": (lambda f: pickle.dumps(Payload()), "not a tausvm model"),
    "truncated": (lambda f: f.read_bytes()[:-100], "not a tausvm model"),
    "another zip": (lambda f: foreign_zip(), "no tausvm.json"),
    "changed": (flipped, "does not match its checksum"),
    "zip bomb": (lambda f: bomb(), "max_bytes"),
    "no schema": (lambda f: repacked(f, lambda parts: parts.pop(SCHEMA)), "no schema.json"),
    "not JSON": (lambda f: repacked(f, lambda p: p.update({SCHEMA: b"{"})), "not JSON"),
    "deep JSON": (lambda f: repacked(f, lambda p: p.update({SCHEMA: b"[" * 10**5})), "JSON"),
    "old protocol": (lambda f: repacked(f, set_schema(protocol=0)), "schema"),
    "function": (
        lambda f: repacked(
            f, set_schema(__loader__="FunctionNode", __module__="os", __class__="system")
        ),
        "os.system",
    ),
    "method": (lambda f: repacked(f, set_schema(__loader__="MethodNode")), "MethodNode"),
    "operator": (lambda f: repacked(f, set_schema(__loader__="OperatorFuncNode")), "Operator"),
    "type": (
        lambda f: repacked(f, set_schema(__module__="subprocess", __class__="Popen")),
        "Popen",
    ),
    "huge claim": (lambda f: repacked(f, lambda p: first_array(p, claim())), "header"),
    "object array": (
        lambda f: repacked(f, lambda p: first_array(p, pickled_array())),
        "Python objects",
    ),
    "not a model": (
        lambda f: repacked(
            f,
            set_schema(
                __loader__="JsonNode", __module__="builtins", __class__="str", content='"hello"'
            ),
        ),
        "not an estimator",
    ),
}


def pickled_array() -> bytes:
    stream = io.BytesIO()
    np.save(stream, np.array([Payload()], dtype=object), allow_pickle=True)
    return stream.getvalue()


@pytest.mark.parametrize("name", BAD)
def test_bad_files_give_one_clear_error(name: str, file: Path, capsys) -> None:
    make, message = BAD[name]
    file.write_bytes(make(file))
    with pytest.raises(ModelFileError, match=message) as caught:
        load(file, max_bytes=2**25)
    assert str(file) in str(caught.value)
    assert "\n" not in str(caught.value)
    assert capsys.readouterr().out == ""


def test_arrays_that_do_not_belong_together_are_refused(file: Path, data) -> None:
    model = QuantileSVR(tau=[0.1, 0.9]).fit(*data)
    for name, value in {
        "support_vectors_": model.support_vectors_[:, :1],
        "dual_coef_": model.dual_coef_[:, 1:],
        "intercept_": model.intercept_[:1],
        "_centre": np.zeros(3),
        "_metric": np.ones((2, 3)),
    }.items():
        broken = QuantileSVR(tau=[0.1, 0.9]).fit(*data)
        setattr(broken, name, np.ascontiguousarray(value))
        save(broken, file)
        with pytest.raises(ModelFileError, match="fit"):
            load(file)


def test_a_file_too_large_is_not_read(file: Path) -> None:
    with pytest.raises(ModelFileError, match="max_bytes"):
        load(file, max_bytes=100)


def test_a_thousand_mutations_never_crash_and_never_run_code(tmp_path: Path, data) -> None:
    X, y = data
    model = make_pipeline(StandardScaler(), TauSVC()).fit(X[:12], y[:12] > 0)
    save(model, tmp_path / "model.skops")
    done = subprocess.run(
        [sys.executable, "-m", "tests.persistence.fuzz", str(tmp_path / "model.skops"), "1000"],
        capture_output=True,
        text=True,
        cwd=ROOT,
    )
    assert done.returncode == 0, f"it crashed: {done.returncode}\n{done.stderr[-2000:]}"
    tally = json.loads(done.stdout.splitlines()[-1])
    assert tally["raised"] == []
    assert tally["seen"] == []
    assert tally["refused"] + tally["loaded"] == 1000
    assert tally["refused"] > 800


def test_renamed_classes_and_fields_are_found_by_their_old_names():
    state = {"__module__": "builtins", "__class__": "dict", "content": {"alpha": 1, "b": 2}}
    node = {"__module__": "tausvm.before", "__class__": "Old", "content": state}
    schema = {"protocol": 2, "content": [node]}
    names = {("tausvm.before", "Old"): NewName("tausvm.now", "New", {"alpha": "beta"})}
    assert renewed(schema, {}, {}) is None
    members = renewed(schema, {"1.npy": b""}, names)
    assert members is not None
    assert members["1.npy"] == b""
    assert json.loads(members["schema.json"]) == schema
    assert (node["__module__"], node["__class__"]) == ("tausvm.now", "New")
    assert state["content"] == {"beta": 1, "b": 2}


@pytest.mark.parametrize("name", LEARNED)
def test_learned_features_come_along(name: str, tmp_path: Path) -> None:
    model, _ = fitted(name)
    save(model, tmp_path / "model.skops")
    same = load(tmp_path / "model.skops")
    learner, again = (m[0] if hasattr(m, "steps") else m for m in (model, same))
    assert again.feature_metric_.ndim == LEARNED[name]
    np.testing.assert_array_equal(again.feature_metric_, learner.feature_metric_)
    np.testing.assert_array_equal(again.feature_importances_, learner.feature_importances_)


@pytest.mark.parametrize("value", [np.ones(4), np.ones((3, 2)), np.ones(3, dtype=int), None])
def test_a_map_that_does_not_fit_the_features_is_refused(value, tmp_path: Path) -> None:
    model = FeatureMetric("diagonal", cv=2).fit(*learned_data("FeatureMetric"))
    model.feature_metric_ = value
    save(model, tmp_path / "model.skops")
    with pytest.raises(ModelFileError, match="feature_metric_ does not fit"):
        load(tmp_path / "model.skops")
