"""Bad input ends in a ValueError that names the parameter and what it got, before any work."""

import numpy as np
import pytest
import scipy.sparse as sp

import tausvm
import tausvm.estimators.machine as machine
from tausvm import SVR, ExpectileSVR, QuantileSVR, TauSVC

from .data import ESTIMATORS, REGRESSORS, output, targets, wave

X, Y = wave(20)

EVERYWHERE = [
    ("C", 0),
    ("C", -1.0),
    ("C", np.nan),
    ("C", np.inf),
    ("C", "1"),
    ("C", True),
    ("kernel", "rfb"),
    ("kernel", 3),
    ("gamma", 0.0),
    ("gamma", -0.5),
    ("gamma", "scales"),
    ("gamma", None),
    ("degree", -1),
    ("degree", 2.5),
    ("coef0", np.nan),
    ("tol", 0.0),
    ("tol", -1e-3),
    ("tol", "small"),
    ("cache_size", 0),
    ("max_iter", -2),
    ("max_iter", 1.5),
    ("time_limit", 0),
    ("time_limit", -3.0),
    ("solver", "libsvm"),
    ("solver", None),
    ("fit_intercept", "yes"),
    ("shrinking", None),
    ("verbose", "loud"),
]
OF_REGRESSORS = [
    ("epsilon", -0.1),
    ("epsilon", np.nan),
    ("epsilon", "0.1"),
    ("epsilon", None),
    ("clip", 0.0),
    ("clip", -1.0),
    ("clip", "max"),
    ("clip", np.inf),
]
OF_LEVELS = [
    ("tau", 0.0),
    ("tau", 1.0),
    ("tau", -0.5),
    ("tau", 1.5),
    ("tau", np.nan),
    ("tau", "half"),
    ("tau", None),
]
TABLE = [
    *((estimator, *row) for estimator in ESTIMATORS for row in EVERYWHERE),
    *((estimator, *row) for estimator in REGRESSORS for row in OF_REGRESSORS),
    *((estimator, *row) for estimator in (QuantileSVR, ExpectileSVR, TauSVC) for row in OF_LEVELS),
    (SVR, "loss", "hinge"),
    (SVR, "loss", None),
]


@pytest.fixture
def no_work(monkeypatch):
    """Fail where a solve or a kernel value is asked for."""

    def refuse(*args, **kwargs):
        raise AssertionError("work before the checks were done")

    monkeypatch.setattr(machine, "solve", refuse)
    monkeypatch.setattr(machine, "CachedKernel", refuse)


@pytest.mark.parametrize(("estimator", "name", "value"), TABLE)
def test_parameters(estimator, name, value, no_work):
    with pytest.raises(ValueError) as caught:
        estimator(**{name: value}).fit(X, targets(estimator, Y))
    message = str(caught.value)
    assert message.startswith(name)
    assert repr(value) in message


@pytest.mark.parametrize("tau", [[], [[0.1, 0.2]], [0.1, 1.0], [0.1, "0.5"]])
def test_lists_of_levels(tau, no_work):
    for estimator in (QuantileSVR, ExpectileSVR):
        with pytest.raises(ValueError, match=r"^tau must"):
            estimator(tau=tau).fit(X, Y)


def test_one_level_only_for_classes(no_work):
    with pytest.raises(ValueError, match=r"^tau must"):
        TauSVC(tau=[0.2, 0.8]).fit(X, Y > 0)


BAD_WEIGHTS = [
    (np.ones(19), r"sample_weight must be of shape \(20,\).*got \(19,\)"),
    (np.ones((20, 1)), r"sample_weight must be of shape \(20,\).*got \(20, 1\)"),
    (2.0, r"sample_weight must be of shape \(20,\).*got \(\)"),
    (np.r_[-1.5, np.ones(19)], r"sample_weight must be non-negative, got -1.5"),
    (np.zeros(20), "sample_weight must have a weight above zero, got 20 zeros"),
    (np.r_[np.nan, np.ones(19)], "sample_weight contains NaN"),
    (np.r_[np.inf, np.ones(19)], "sample_weight contains infinity"),
    (np.r_[1.0, np.zeros(19)], "sample_weight must be positive for 2 samples.*got 1 sample of 20"),
    (np.full(20, 1e300), "sample_weight must be 0 or between 1e-100 and 1e.100, got 1e.300"),
    (np.full(20, 5e-324), "sample_weight must be 0 or between 1e-100 and 1e.100, got 5e-324"),
    (np.r_[1e-300, np.ones(19)], "sample_weight must be 0 or between .*, got 1e-300"),
    (np.r_[1e-16, np.ones(19)], "sample_weight must be 0 or at least 1e-15 of the largest"),
    (np.geomspace(1e-50, 1e50, 20), "at least 1e-15 .* got 1e-50 beside 1e.50; set .* to 0"),
]


@pytest.mark.parametrize("estimator", ESTIMATORS)
@pytest.mark.parametrize(("weight", "message"), BAD_WEIGHTS)
def test_weights(estimator, weight, message, no_work):
    with pytest.raises(ValueError, match=message):
        estimator().fit(X, targets(estimator, Y), weight)


def with_entry(value):
    changed = X.copy()
    changed[3, 1] = value
    return changed


BAD_DATA = [
    (with_entry(np.nan), Y, "Input X contains NaN"),
    (with_entry(np.inf), Y, "Input X contains infinity"),
    (sp.csr_matrix(with_entry(np.nan)), Y, "Input X contains NaN"),
    (X[:0], Y[:0], "0 sample"),
    (X[:, :0], Y, "0 feature"),
    (X[:1], Y[:1], "1 sample"),
    (X, Y[:-1], r"inconsistent numbers of samples: \[20, 19\]"),
    (X[:, 0], Y, "Expected 2D array, got 1D array"),
    (X, np.c_[Y, Y], r"y should be a 1d array, got an array of shape \(20, 2\)"),
]


@pytest.mark.parametrize("estimator", ESTIMATORS)
@pytest.mark.parametrize(("X_", "y_", "message"), BAD_DATA)
def test_data(estimator, X_, y_, message, no_work):
    y_ = y_ > 0 if estimator is TauSVC else y_
    with pytest.raises(ValueError, match=message):
        estimator().fit(X_, y_)


@pytest.mark.parametrize("estimator", REGRESSORS)
def test_bad_targets(estimator, no_work):
    for value, message in ((np.nan, "Input y contains NaN"), (np.inf, "Input y contains infinity")):
        y = Y.copy()
        y[2] = value
        with pytest.raises(ValueError, match=message):
            estimator().fit(X, y)
    with pytest.raises(ValueError, match="clip must be at least the largest"):
        estimator(clip=0.01).fit(X, Y)


def test_one_class(no_work):
    with pytest.raises(ValueError, match=r"y must hold at least two classes, got one class.*'a'"):
        TauSVC().fit(X, np.full(20, "a"))
    labels = np.array(["a"] * 10 + ["b"] * 10)
    with pytest.raises(ValueError, match="one class"):
        TauSVC().fit(X, labels, np.r_[np.ones(10), np.zeros(10)])
    with pytest.raises(ValueError, match="Unknown label type: continuous"):
        TauSVC().fit(X, Y)


INDEFINITE = np.eye(20)
INDEFINITE[0, 1] = INDEFINITE[1, 0] = 2.0
NEGATIVE = np.diag(np.r_[-3.0, np.ones(19)])
SKEW = np.eye(20)
SKEW[0, 1] = 0.5


@pytest.mark.parametrize("estimator", ESTIMATORS)
@pytest.mark.parametrize(
    ("K", "message"),
    [
        (np.ones((20, 7)), r"kernel='precomputed' needs a square X in fit, got shape \(20, 7\)"),
        (SKEW, "kernel='precomputed' needs a symmetric X, got entries that differ by 0.5"),
        (INDEFINITE, "kernel='precomputed' .* semidefinite X, got .* smallest eigenvalue is -1"),
        (NEGATIVE, r"kernel='precomputed' .* semidefinite X, got -3 on its diagonal \(row 0\)"),
    ],
)
def test_gram_matrices(estimator, K, message, no_work):
    with pytest.raises(ValueError, match=message):
        estimator(kernel="precomputed").fit(K, targets(estimator, Y))


def test_kernels_that_are_none():
    with pytest.raises(ValueError, match=r"kernel must be positive semidefinite, got 'sigmoid'"):
        SVR(kernel="sigmoid", coef0=-1.0).fit(X, Y)
    with pytest.raises(ValueError, match=r"kernel: the callable returned shape \(\d+,\)"):
        SVR(kernel=lambda a, b: np.ones(len(a))).fit(X, Y)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_unbounded_dual():
    with pytest.raises(ValueError, match=r"kernel .*positive semidefinite"):
        ExpectileSVR(kernel="sigmoid", gamma=5.0, C=100.0).fit(*wave(60, 3))


def test_solver_that_does_not_serve_the_loss():
    with pytest.raises(ValueError, match="solver='newton' serves"):
        SVR(solver="newton").fit(X, Y)


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_prediction(estimator):
    model = estimator().fit(X, targets(estimator, Y))
    with pytest.raises(ValueError, match=r"X has 3 features, but .* is expecting 2"):
        model.predict(np.ones((4, 3)))
    with pytest.raises(ValueError, match="Input X contains NaN"):
        model.predict(with_entry(np.nan))


#: every public estimator that is fitted to rows, with what makes it quick
PUBLIC = {
    "SVR": {},
    "QuantileSVR": {},
    "ExpectileSVR": {},
    "TauSVC": {},
    "TauPathSVC": {},
    "TauPathSVR": {},
    "JointQuantileSVR": {},
    "JointExpectileSVR": {},
    "JointSVR": {},
    "LinearSVR": {},
    "LinearQuantileSVR": {},
    "LinearExpectileSVR": {},
    "SVRCV": {"Cs": [1.0], "gammas": [1.0]},
    "QuantileSVRCV": {"Cs": [1.0], "gammas": [1.0]},
    "ExpectileSVRCV": {"Cs": [1.0], "gammas": [1.0]},
    "LinearSVRCV": {"Cs": [1.0]},
    "JointQuantileSVRCV": {"Cs": [1.0], "gammas": [1.0]},
    "JointExpectileSVRCV": {"Cs": [1.0], "gammas": [1.0]},
    "JointSVRCV": {"Cs": [1.0], "gammas": [1.0]},
    "TauPathSVCCV": {"Cs": [1.0], "gammas": [1.0]},
    "LinearQuantileSVRCV": {"Cs": [1.0]},
    "LinearExpectileSVRCV": {"Cs": [1.0]},
}
every_estimator = pytest.mark.parametrize("name", PUBLIC)


def public(name, **parameters):
    return getattr(tausvm, name)(**{**PUBLIC[name], **parameters})


def labels_or_targets(name):
    return Y > 0 if "SVC" in name else Y


def malformed(change, form="csr"):
    """The data in a sparse format, broken behind SciPy's back."""
    matrix = getattr(sp, f"{form}_matrix")(X)
    change(matrix)
    return matrix


def put(array, place, value):
    """A change of one number in one of the matrix's arrays."""

    def change(matrix):
        getattr(matrix, array)[place] = value

    return change


def one_dimensional():
    """A sparse array of one axis; SciPy before 1.15 has it in COO alone."""
    flat = sp.coo_array(X[:, 0])
    try:
        return flat.tocsr()
    except ValueError:
        return flat


MALFORMED = [
    (malformed(put("indices", 7, 50_000_000)), "CSR .* indices must lie in 0 … 1.*, got 50000000"),
    (malformed(put("indices", 7, 2)), r"CSR matrix: its indices must lie in 0 … 1.*, got 2"),
    (malformed(put("indices", 0, -3)), r"CSR matrix: its indices must lie in 0 … 1.*, got -3"),
    (
        malformed(put("indptr", -1, 1_000_000)),
        "indptr must end with 40 entries at most, got 1000000",
    ),
    (malformed(put("indptr", 4, 30)), "indptr must not fall, got 30 before 10"),
    (malformed(put("indptr", 3, -70_000)), "indptr must not fall, got 4 before -70000"),
    (malformed(put("indptr", 0, 1)), "indptr must begin with 0, got 1"),
    (malformed(lambda m: setattr(m, "indptr", m.indptr[:9])), r"must hold 21 integers, got \(9,\)"),
    (
        malformed(lambda m: setattr(m, "data", m.data[:9])),
        "must end with 9 entries at most, got 40",
    ),
    (malformed(lambda m: setattr(m, "indices", m.indices * 1.0)), "indices must hold integers"),
    (malformed(put("indices", 7, 50_000_000), "csc"), "CSC .* in 0 … 19, as it has 20 rows"),
    (malformed(put("indices", 1, 9), "bsr"), "malformed BSR matrix: its indices must lie in"),
    (malformed(put("row", 7, 50_000_000), "coo"), "COO matrix: its row must lie in 0 … 19"),
    (malformed(put("col", 7, -1), "coo"), "COO matrix: its col must lie in 0 … 1"),
    (malformed(lambda m: m.rows[3].append(9) or m.data[3].append(1.0), "lil"), "in 0 … 1.* got 9"),
    (one_dimensional(), r"Expected 2D array, got a 1-D sparse array of shape \(20,\) instead"),
]


@every_estimator
@pytest.mark.parametrize(("X_", "message"), MALFORMED)
def test_malformed_sparse_matrices(name, X_, message):
    """Told before anything follows the indices, which would end the process."""
    with pytest.raises(ValueError, match=message):
        public(name).fit(X_, labels_or_targets(name))


@every_estimator
def test_prediction_at_malformed_sparse_matrices(name):
    model = public(name).fit(X, labels_or_targets(name))
    for X_, message in MALFORMED:
        with pytest.raises(ValueError, match=message):
            model.predict(X_)


@every_estimator
def test_weights_and_costs_of_every_estimator(name):
    y = labels_or_targets(name)
    for weight, message in BAD_WEIGHTS[-5:]:
        with pytest.raises(ValueError, match=message):
            public(name).fit(X, y, weight)
    cost = "Cs" if name.endswith("CV") else "C"
    for C in (5e-324, 1e300):
        with pytest.raises(ValueError, match=r"^Cs? must be between 1e-100 and 1e\+100, got "):
            public(name, **{cost: C if cost == "C" else [C]}).fit(X, y)
    with pytest.raises(ValueError, match=r"^Cs? times sample_weight must be between .* times 1e"):
        public(name, **{cost: 1e60 if cost == "C" else [1e60]}).fit(X, y, np.full(20, 1e60))


KERNEL_ESTIMATORS = [name for name in PUBLIC if not name.startswith("Linear")]
kernel_estimators = pytest.mark.parametrize("name", KERNEL_ESTIMATORS)


@kernel_estimators
@pytest.mark.parametrize(
    ("factor", "parameters"),
    [
        (1e160, {"kernel": "linear"}),
        (1e200, {"kernel": "linear"}),
        (1e60, {"kernel": "poly", "gamma": 1.0}),
        (1.0, {"kernel": "poly", "gamma": 1e300}),
    ],
)
def test_kernels_that_overflow(name, factor, parameters):
    """Named as what it is, with what helps."""
    parameters = dict(parameters)
    if name.endswith("CV"):
        parameters["gammas"] = [parameters.pop("gamma", 1.0)]
        if "feature_metric" in public(name).get_params():
            parameters["feature_metric"] = None  # which would scale X itself
    with pytest.raises(ValueError, match=r"kernel values must be finite, .* scale X"):
        public(name, **parameters).fit(factor * X, labels_or_targets(name))


@kernel_estimators
@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_kernels_with_values_that_are_not_finite(name, value):
    def broken(a, b):
        values = a @ b.T
        return np.where(values < 0, value, values)  # never so on the diagonal

    with pytest.raises(ValueError, match=f"kernel values must be finite, got {value}"):
        public(name, kernel=broken).fit(X, labels_or_targets(name))


@kernel_estimators
def test_predictions_that_overflow(name):
    parameters = {"gammas": [1.0]} if name.endswith("CV") else {"gamma": 1.0}
    model = public(name, kernel="poly", **parameters).fit(X, labels_or_targets(name))
    with pytest.raises(ValueError, match=r"kernel values must be finite, got an overflow"):
        model.predict(1e150 * X)


@pytest.mark.parametrize("estimator", ESTIMATORS)
@pytest.mark.parametrize("factor", [1e-200, 1e200])
def test_features_whose_variance_is_out_of_range(estimator, factor):
    with pytest.raises(
        ValueError, match=r"gamma='scale' is out of float64's range for X.* scale X"
    ):
        estimator().fit(factor * X, targets(estimator, Y))


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_one_row_far_away(estimator):
    """With γ given it has no neighbours; its own distance is 0 all the same."""
    far = X.copy()
    far[3] = 1e200
    y = targets(estimator, Y)
    others = np.arange(20) != 3
    parameters = {"gamma": 1.0, "fit_intercept": False, "tol": 1e-8}
    if estimator is QuantileSVR:
        parameters["scale_C"] = False
    model = estimator(**parameters).fit(far, y)
    alone = estimator(**parameters).fit(X[others], y[others])
    assert model.dual_gap_ <= 1e-8
    np.testing.assert_allclose(output(model, X[others]), output(alone, X[others]), atol=1e-6)
    with pytest.raises(ValueError, match="scale X"):
        estimator().fit(far, y)


@pytest.mark.parametrize(
    ("estimator", "parameters"),
    [
        (ExpectileSVR, {"tau": 1e-300}),
        (ExpectileSVR, {"tau": 1e-300, "solver": "smo", "max_iter": 100}),
        (ExpectileSVR, {"C": 5e-324}),
        (ExpectileSVR, {"C": 1e300}),
        (QuantileSVR, {"C": 5e-324}),
        (QuantileSVR, {"C": 1e300}),
        (SVR, {"C": 5e-324}),
        (TauSVC, {"C": 1e300}),
    ],
)
def test_costs_that_cannot_be_computed_with(estimator, parameters):
    with pytest.raises(ValueError, match=r"^C (times sample_weight .* )?must (be|lie) between"):
        estimator(**parameters).fit(X, targets(estimator, Y))
