"""Several levels: in order by default, intervals between two, models of earlier versions."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from sklearn.base import clone
from sklearn.preprocessing import StandardScaler

import tausvm
from tausvm.estimators.levels import in_order
from tausvm.losses import Pinball, SquaredPinball
from tausvm.metrics import crossing_rate
from tausvm.persistence.fitted import complete

from ..shared_data import data_file

TAUS = [0.55, 0.45, 0.5]  # near each other and in no order: they cross
GRID = {"Cs": [100.0], "gammas": [5.0], "cv": 3}
WILD = {"C": 100.0, "gamma": 5.0}
MACHINES = {
    "QuantileSVR": WILD,
    "ExpectileSVR": WILD,
    "LinearQuantileSVR": {"C": 100.0},
    "LinearExpectileSVR": {"C": 100.0},
    "JointQuantileSVR": {**WILD, "output_kernel": "identity"},
    "JointExpectileSVR": {**WILD, "output_kernel": "identity"},
    "QuantileSVRCV": {**GRID, "gammas": [0.2], "calibrate": None},
    "ExpectileSVRCV": {**GRID, "feature_metric": None, "kernel": "rbf"},
}
rng = np.random.default_rng(3)
X = rng.normal(size=(50, 2))
Y = rng.normal(size=50) * (1.0 + np.abs(X[:, 0]))
NEW = 3.0 * rng.normal(size=(60, 2))


def made(name, taus=TAUS, **parameters):
    taus = sorted(taus) if name.startswith("Joint") else taus
    return getattr(tausvm, name)(tau=taus, **MACHINES[name], **parameters)


numbers = st.floats(-5, 5, width=32)


@settings(deadline=None)
@given(
    values=st.integers(1, 6).flatmap(lambda k: arrays(np.float64, (4, k), elements=numbers)),
    y=arrays(np.float64, 4, elements=numbers),
    epsilon=st.sampled_from([0.0, 0.5]),
    data=st.data(),
)
@pytest.mark.parametrize("loss", [Pinball, SquaredPinball])
def test_ordering_never_raises_the_sum_of_the_losses(loss, values, y, epsilon, data):
    taus = data.draw(
        st.lists(st.floats(0.01, 0.99), min_size=values.shape[1], max_size=values.shape[1])
    )

    def total(levels):
        columns = zip(taus, levels.T, strict=True)
        return sum(loss(tau, epsilon).value(y - f) for tau, f in columns)

    ordered = in_order(values, taus)
    assert (total(ordered) <= total(values) * (1 + 1e-12) + 1e-12).all()
    assert crossing_rate(ordered, tau=taus) == 0.0
    np.testing.assert_array_equal(np.sort(ordered, axis=1), np.sort(values, axis=1))
    np.testing.assert_array_equal(in_order(ordered, taus), ordered)


@pytest.mark.parametrize("name", MACHINES)
def test_levels_are_in_order(name):
    model = made(name).fit(X, Y)
    raw, ordered = model.predict(NEW, raw=True), model.predict(NEW)
    assert crossing_rate(ordered, tau=model.tau) == 0.0
    np.testing.assert_array_equal(ordered, in_order(raw, model.tau))
    if "Joint" not in name and name != "LinearExpectileSVR":
        assert crossing_rate(raw, tau=model.tau) > 0.0, "this case is to have crossings"
    apart = made(name, ordered=False).fit(X, Y)
    np.testing.assert_array_equal(apart.predict(NEW), raw)
    assert clone(model).get_params() == model.get_params()
    one = made(name, taus=[0.5]).fit(X, Y)
    np.testing.assert_array_equal(one.predict(NEW), one.predict(NEW, raw=True))


@pytest.mark.parametrize("name", MACHINES)
def test_ordered_is_a_flag(name):
    with pytest.raises(ValueError, match="ordered must be True or False, got 'yes'"):
        made(name, ordered="yes").fit(X, Y)


def test_clipped_levels_are_in_order():
    model = made("QuantileSVR", clip="range").fit(X, Y)
    clipped = np.clip(model.predict(NEW, raw=True), Y.min(), Y.max())
    np.testing.assert_array_equal(model.predict(NEW), in_order(clipped, TAUS))


def test_the_earlier_name_counts_where_it_is_given():
    for rearrange in (True, False):
        model = made("JointQuantileSVR", rearrange=rearrange, ordered=not rearrange).fit(X, Y)
        raw = model.predict(NEW, raw=True)
        want = np.sort(raw, axis=1) if rearrange else raw
        np.testing.assert_array_equal(model.predict(NEW), want)
        assert clone(model).get_params()["rearrange"] is rearrange


@pytest.mark.parametrize("name", MACHINES)
def test_models_that_do_not_know_of_it_predict_as_before(name):
    model = made(name).fit(X, Y)
    raw = model.predict(NEW, raw=True)
    del model.__dict__["ordered"]
    if name.startswith("Joint"):
        model.rearrange = False  # what those files have
    np.testing.assert_array_equal(model.predict(NEW), raw)  # as a pickle comes back
    complete(model)  # as a model file does
    assert model.ordered is False
    np.testing.assert_array_equal(model.predict(NEW), raw)


@pytest.mark.parametrize("name", MACHINES)
def test_intervals(name):
    taus = [0.95, 0.05, 0.25, 0.75]
    model = made(name, taus=taus).fit(X, Y)
    for coverage, ends in ((0.9, (0.05, 0.95)), (0.5, (0.25, 0.75))):
        places = [list(model.tau).index(tau) for tau in ends]
        interval = model.predict_interval(NEW, coverage=coverage)
        assert interval.shape == (60, 2)
        np.testing.assert_array_equal(interval, model.predict(NEW)[:, places])
    np.testing.assert_array_equal(model.predict_interval(NEW), model.predict_interval(NEW, 0.9))
    with pytest.raises(ValueError, match=r"needs the levels 0\.1 and 0\.9, and fitted are 0\.\d"):
        model.predict_interval(NEW, coverage=0.8)
    for wrong in (0, 1, 90, "most", None):
        with pytest.raises(ValueError, match=r"coverage must be a number in \(0, 1\), got"):
            model.predict_interval(NEW, coverage=wrong)


def test_one_level_has_no_interval():
    model = tausvm.QuantileSVR(tau=0.5).fit(X, Y)
    with pytest.raises(ValueError, match=r"needs the levels 0\.05 and 0\.95, and fitted are 0\.5"):
        model.predict_interval(NEW)


def test_a_path_has_every_interval():
    model = tausvm.TauPathSVR(C=10.0).fit(X, Y)
    np.testing.assert_array_equal(
        model.predict_interval(NEW, 0.62), model.predict(NEW, tau=[0.19, 0.81])
    )
    with pytest.raises(ValueError, match=r"coverage must be a number in \(0, 1\), got 2"):
        model.predict_interval(NEW, 2)


def test_nine_levels_of_house_prices_do_not_cross():
    """As fitted they cross on a third of the rows, which docs/theory-joint.md tells."""
    table = np.genfromtxt(data_file("BostonHousing.csv"), delimiter=",", skip_header=1)
    rows = np.random.default_rng(0).permutation(len(table))
    train, test = table[rows[:354]], table[rows[354:]]
    scaler = StandardScaler().fit(train[:, :-1])
    taus = [k / 10 for k in range(1, 10)]
    new, rates = scaler.transform(test[:, :-1]), []
    for kind in (tausvm.QuantileSVR, tausvm.JointQuantileSVR):
        model = kind(tau=taus, C=10.0).fit(scaler.transform(train[:, :-1]), train[:, -1])
        assert crossing_rate(model.predict(new), tau=taus) == 0.0
        rates.append(crossing_rate(model.predict(new, raw=True), tau=taus))
    np.testing.assert_allclose(rates, [0.80, 0.36], atol=0.05)
