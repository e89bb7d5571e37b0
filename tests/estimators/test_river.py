"""TrackingRegression and TrackingLogistic: river's rules, names that come and go, and the same models as elsewhere."""

import collections
import copy
import datetime
import decimal
import enum
import math
import pickle

import numpy as np
import pandas as pd
import pytest

import thalweg as tw
from tests.estimators.common import refused
from thalweg.errors import InputError, StateError
from thalweg.estimators import TrackingClassifier, TrackingRegressor

river = pytest.importorskip("river")

from river import checks, compose, datasets, linear_model, optim, preprocessing, stream  # noqa: E402

from tests.samples import same  # noqa: E402
from thalweg.estimators import TrackingLogistic, TrackingRegression  # noqa: E402

MODELS = (TrackingRegression(), TrackingRegression("quantile", quantile=0.8), TrackingLogistic())
BOTH = pytest.mark.parametrize("make", [TrackingRegression, TrackingLogistic])


def rows(T=200, d=4, seed=0, names="abcdefgh"):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((T, d)) * [1.0, 100.0, 0.01, 1.0][:d] + 3.0
    y = X @ [1.0, -0.02, 50.0, 0.5][:d] + 0.3 * rng.standard_normal(T)
    return [(dict(zip(names, map(float, x), strict=False)), float(t)) for x, t in zip(X, y, strict=True)]


def label(make, y):
    return y > 5.0 if make is TrackingLogistic else y


def said(model, x):
    return model.predict_proba_one(x)[True] if isinstance(model, TrackingLogistic) else model.predict_one(x)


def play(model, data):
    """What is predicted one row ahead."""
    found = []
    for x, y in data:
        found.append(said(model, x))
        model.learn_one(x, label(type(model), y))
    return np.array(found)


@pytest.mark.parametrize(
    ("model", "check"),
    [(model, check) for model in MODELS for check in checks.yield_checks(model)],
    ids=lambda one: getattr(one, "__name__", type(one).__name__),
)
def test_river(model, check):
    assert not model._unit_test_skips()
    check(copy.deepcopy(model))


# ------------------------------------------------------------------------------------------- the same as elsewhere


@BOTH
def test_the_same_as_the_scikit_learn_class(make):
    """A quantile, since else the last label is one more candidate of the regression for river."""
    data = rows()
    X, y = np.array([[*x.values()] for x, _ in data]), np.array([label(make, y) for _, y in data])
    found = play(make("quantile") if make is TrackingRegression else make(), data)
    if make is TrackingRegression:
        other = TrackingRegressor("quantile").fit(X[:1], y[:1])
        assert np.array_equal(found[1:], other.predict_then_fit(X[1:], y[1:]))
    else:
        other = TrackingClassifier().partial_fit(X[:1], y[:1], classes=[False, True])
        for t in range(1, len(X)):
            assert found[t] == other.predict_proba(X[t : t + 1])[0, 1]
            other.partial_fit(X[t : t + 1], y[t : t + 1])


def test_coefficients_are_in_the_units_of_the_data():
    model = TrackingRegression()
    play(model, rows(T=2000))
    assert list(model.weights) == list("abcd")
    assert np.allclose([*model.weights.values()], [1.0, -0.02, 50.0, 0.5], rtol=0.1)
    assert TrackingRegression().weights == {}
    assert TrackingRegression().intercept == 0.0
    x = rows(T=1, seed=9)[0][0]
    assert model.predict_one(x) == pytest.approx(
        model.intercept + sum(model.weights[name] * value for name, value in x.items()), rel=1e-9
    )


def water():
    flow = [float(y if not isinstance(y, dict) else next(iter(y.values()))) for _, y in datasets.WaterFlow()]
    last = collections.deque(maxlen=24)
    for y in flow:
        if len(last) == 24:
            yield dict(enumerate(last)), y
        last.append(y)


def chicks():
    for x, y in datasets.ChickWeights():
        yield {"time": float(x["time"]), f"diet {x['diet']}": 1.0}, y


@pytest.mark.parametrize("draw", [datasets.TrumpApproval, water, chicks])
def test_as_good_as_the_best_of_rivers(draw):
    data = list(draw())

    def error(model):
        return math.sqrt(np.mean((play(model, data)[20:] - [y for _, y in data[20:]]) ** 2))

    peers = [
        linear_model.LinearRegression(),
        linear_model.LinearRegression(optim.Adam()),
        linear_model.LinearRegression(optim.AdaGrad()),
        linear_model.PARegressor(),
        linear_model.BayesianLinearRegression(),
    ]
    scaled = [preprocessing.TargetStandardScaler(preprocessing.StandardScaler() | peer) for peer in peers]
    assert error(TrackingRegression()) <= 1.05 * min(error(model) for model in scaled)


# ----------------------------------------------------------------------------------------------- names come and go


@BOTH
def test_the_order_of_names_does_not_matter(make):
    data = rows()
    turned = [(dict(reversed(x.items())), y) for x, y in data]
    assert np.allclose(play(make(), data), play(make(), turned), rtol=1e-6, atol=1e-9)


@BOTH
def test_a_name_that_is_new_has_the_coefficient_zero(make):
    data = rows()
    model = make()
    play(model, data)
    x = data[0][0]
    before, saved = said(model, x), model.state()
    assert said(model, x | {"new": 7.0}) == before
    assert same(model.state(), saved)  # and it is not kept
    model.learn_one(x | {"new": 7.0}, label(make, 1.0))
    assert list(model.weights) == [*"abcd", "new"]


def test_words_count_where_they_are():
    """A feature that is 1 where it is there at all says something, also if it was there in the first row."""
    rng = np.random.default_rng(3)
    words = [f"w{i}" for i in range(30)]
    worth = dict(zip(words, rng.standard_normal(30), strict=True))
    model, errors = TrackingRegression(), []
    for _ in range(1500):
        x = {str(word): 1.0 for word in rng.choice(words, 4, replace=False)}
        y = 10.0 + sum(worth[word] for word in x)
        errors.append(abs(model.predict_one(x) - y))
        model.learn_one(x, y)
    assert np.mean(errors[-200:]) < 0.05 * np.mean(errors[5:50])


def test_a_missing_number_counts_as_its_mean():
    data = rows(T=500)
    model = TrackingRegression()
    play(model, data)
    mean = {name: np.mean([x[name] for x, _ in data]) for name in "abcd"}
    less = {name: mean[name] for name in "abd"}
    assert model.predict_one(less) == pytest.approx(model.predict_one(mean), rel=1e-6)


def test_guests_leave_above_100_features_and_room_grows():
    model, rng = TrackingRegression(), np.random.default_rng(0)
    for t in range(300):
        x = {f"x{i}": float(v) for i, v in enumerate(rng.standard_normal(min(t + 1, 150)))}
        assert math.isfinite(model.predict_one(x))
        model.learn_one(x, x["x0"])
        (inside,) = model._models
        assert (len(inside.memory.state.guests.B) > 0) == (len(x) <= 100)
        assert inside.weights.sum() == pytest.approx(1)
    assert len(model.weights) == 150
    assert abs(model.predict_one(x) - x["x0"]) < 0.5
    plain = TrackingRegression(guests=False)
    plain.learn_one(x, 1.0)
    assert len(plain._models[0].memory.state.guests.B) == 0


def test_guests_leave_above_512_features_even_where_they_are_wanted():
    """They take 40 D^2 bytes: 16 GB for 20,000 names."""
    model = TrackingRegression(guests=True)
    for count in (512, 513, 20_000):
        x = {i: float(i % 7) for i in range(count)}
        model.learn_one(x, 1.0)
        inside = model._models[0].memory
        assert (len(inside.state.guests.B) > 0) == (count <= 512)
    assert inside.block.memory.nbytes < 300 * 20_000
    assert math.isfinite(model.predict_one(x))


def test_only_what_is_present_costs_time():
    """Work is counted, not time: positions that are absent keep their coefficients, bit for bit."""
    model = TrackingRegression(guests=False)
    play(model, rows())
    before = model._models[0].memory.state.members.W.copy()
    model.learn_one({"b": 1000.0}, -20.0)
    after = model._models[0].memory.state.members.W
    assert np.array_equal(before[[1, 3, 4]], after[[1, 3, 4]])
    assert not np.array_equal(before[2], after[2])


def test_pipelines_and_batches():
    data = rows()
    pipe = compose.Select("a", "b") | TrackingRegression()
    for x, y in data:
        pipe.predict_one(x)
        pipe.learn_one(x, y)
    frame = pd.DataFrame([x for x, _ in data], index=range(5, 205))
    y = pd.Series([y for _, y in data], index=frame.index)
    for make in (TrackingRegression, TrackingLogistic):
        one, many = make(), make()
        play(one, data)
        many.learn_many(frame[:50], y[:50] if make is TrackingRegression else y[:50] > 5)
        many.learn_many(frame[50:], y[50:] if make is TrackingRegression else y[50:] > 5)
        assert one.weights == many.weights
        found = many.predict_many(frame) if make is TrackingRegression else many.predict_proba_many(frame)[True]
        assert found.index.tolist() == frame.index.tolist()
        assert found.tolist() == [said(one, x) for x, _ in data]
    assert set(many.predict_many(frame)) <= {True, False}
    with pytest.raises(InputError, match="200 rows and y has 3"):
        many.learn_many(frame, [True, False, True])


# ------------------------------------------------------------------------------------------------------- bad input


@BOTH
@pytest.mark.parametrize(
    ("bad", "word"),
    [
        (math.nan, "feature 'b' is NaN"),
        (-math.inf, "feature 'b' is -inf"),
        (1e200, "feature 'b' is 1e\\+200"),
        ("3", "feature 'b' must be a number. Got '3'"),
        (None, "feature 'b' must be a number. Got None"),
        ([1.0], "feature 'b' must be a number"),
        (np.ones(1), "feature 'b' must be a number"),
        (1j, "feature 'b' must be a number"),
        (10**400, "feature 'b' is 1000"),
        pytest.param(-(10**5000), "feature 'b' is an object of type int", id="long"),  # Python does not write it out
        (decimal.Decimal("1e999999"), "feature 'b' is Decimal"),
    ],
)
def test_bad_features_are_named_and_change_nothing(make, bad, word):
    data = rows(T=30)
    model = make()
    play(model, data)
    for call in (lambda x: model.learn_one(x, label(make, 1.0)), lambda x: said(model, x)):
        with refused(model, word):
            call(data[0][0] | {"b": bad, "new": 1.0})


@BOTH
@pytest.mark.parametrize("bad", [[1.0, 2.0], None, 3.0, "a", np.ones(2), pd.Series({"a": 1.0}), {"a"}])
def test_a_row_must_be_a_dict(make, bad):
    model = make()
    play(model, rows(T=5))
    for call in (lambda x: model.learn_one(x, label(make, 1.0)), lambda x: said(model, x), lambda x: said(make(), x)):
        with refused(model, "x must be a dict of features by name"):
            call(bad)


def test_features_that_are_all_arrays():
    for call in (TrackingRegression().predict_one, lambda x: TrackingRegression().learn_one(x, 1.0)):
        with pytest.raises(InputError, match="feature 'a' must be a number"):
            call({"a": np.ones(3)})


def test_rows_that_are_no_frame():
    model = TrackingLogistic()
    model.learn_many(np.eye(2), [True, False])
    assert len(model.predict_many([[1.0, 0.0]])) == len(model.predict_proba_many([[1.0, 0.0]])) == 1
    for bad in (-0.0, np.array(1.0), None, "yes"):
        with pytest.raises(InputError, match="'y' parameter of TrackingLogistic must be a list of truth values"):
            model.learn_many(np.eye(2), bad)


def test_bad_targets_weights_and_arguments():
    model = TrackingRegression()
    for y in (math.nan, math.inf, "1", None):
        with pytest.raises(InputError, match="y must be a number"):
            model.learn_one({"a": 1.0}, y)
    for y in ("yes", 2, 0.5, None):
        with pytest.raises(InputError, match="True or False"):
            TrackingLogistic().learn_one({"a": 1.0}, y)
    for w in (-1.0, math.nan):
        with pytest.raises(InputError, match="w must be"):
            model.learn_one({"a": 1.0}, 1.0, w)
    for bad, word in (({"loss": "log"}, "loss"), ({"guests": "some"}, "guests"), ({"fit_intercept": 3}, "intercept")):
        with pytest.raises(InputError, match=word):
            TrackingRegression(**bad).learn_one({"a": 1.0}, 1.0)
    with pytest.raises(InputError, match="quantile"):
        TrackingRegression("quantile", quantile=1.0).learn_one({"a": 1.0}, 1.0)


@BOTH
def test_numbers_of_every_kind(make):
    model = make()
    for t in range(30):
        x = {"int": t, "bool": t % 2 == 0, "float32": np.float32(t), "float": 1.0 * t}
        model.learn_one(x, label(make, t % 10))
        model.learn_one({"int": t, "count": 2}, label(make, t % 10))
        model.learn_one({}, label(make, t % 10))
        assert math.isfinite(said(model, x))
        assert math.isfinite(said(model, {}))


# ------------------------------------------------------------------------------------------------ weights and nan


@BOTH
def test_a_row_of_weight_zero_is_left_out(make):
    data = rows(T=40)
    model, other = make(), make()
    model.learn_one(data[0][0], label(make, 1.0), 0.0)
    assert model.rounds == 0
    assert model.weights == {}
    for x, y in data:
        model.learn_one(x, label(make, y))
        other.learn_one(x, label(make, y))
        model.learn_one(x | {"never": 1.0}, label(make, y), 0.0)
    assert same(model.state(), other.state())
    with pytest.raises(InputError, match="feature 'a' is NaN"):
        model.learn_one({"a": math.nan}, label(make, 1.0), 0.0)


@BOTH
def test_a_prediction_that_is_no_number_is_shown(make, monkeypatch):
    model, data = make(), rows(T=20)
    play(model, data)
    inside = type(model._models[0])
    monkeypatch.setattr(inside, "play", lambda *_: math.nan)
    monkeypatch.setattr(inside, "predict", lambda self, X, at: np.full(len(X), math.nan))
    assert math.isnan(said(model, data[0][0]))
    frame = pd.DataFrame([data[0][0]])
    many = model.predict_many(frame) if make is TrackingRegression else model.predict_proba_many(frame)[True]
    assert many.isna().all()


def test_coefficients_are_computed_once_for_all_features(monkeypatch):
    model, calls = TrackingRegression(), []
    play(model, rows(T=20))
    inside = type(model._models[0])
    compute = inside.coefficients
    monkeypatch.setattr(inside, "coefficients", lambda self: calls.append(1) or compute(self))
    assert len(model.weights) == 4
    assert len(calls) == 1


# ------------------------------------------------------------------------------------------- all of a row or nothing


@BOTH
@pytest.mark.parametrize("count", [1, 6, 97])
def test_a_row_that_fails_admits_no_name(make, count, monkeypatch):
    """Names that are new, more room, guests that leave: all are undone when the row is not learned."""
    data, model = rows(T=30), make()
    play(model, data)
    other, inside = copy.copy(model), type(model._models[0])
    row = data[0][0] | {f"new {i}": 1.0 for i in range(count)}
    learn = inside.play

    def fail(*arguments):
        raise KeyboardInterrupt

    monkeypatch.setattr(inside, "play", fail)
    for one in (model, make()):
        before = one.state()
        with pytest.raises(KeyboardInterrupt):
            one.learn_one(row, label(make, 1.0))
        assert same(one.state(), before)
    monkeypatch.setattr(inside, "play", learn)
    assert list(model.weights) == [*"abcd"]
    for one in (model, other):
        one.learn_one(row, label(make, 1.0))
    assert np.array_equal(play(model, data), play(other, data))
    assert same(model.state(), other.state())


# ---------------------------------------------------------------------------------------------------------- saving


class Colour(enum.Enum):
    RED = "red"


class Shade(enum.StrEnum):
    RED = "red"


STRANGE = [
    b"a",
    Colour.RED,
    datetime.date(2020, 1, 1),
    frozenset("a"),
    decimal.Decimal(1),
    1j,
    math.nan,
    (1, math.nan),
    np.datetime64(5, "ns"),
]


@pytest.mark.parametrize("name", STRANGE, ids=repr)
def test_names_that_no_file_can_hold_are_refused_when_it_is_saved(name, tmp_path):
    model = TrackingRegression()
    for t in range(5):
        model.learn_one({"a": 1.0 * t, name: 1.0}, 1.0 * t)
    with pytest.raises(StateError, match="cannot be saved to a file"):
        model.save(tmp_path / "model.npz")
    assert not (tmp_path / "model.npz").exists()
    for other in (copy.copy(model), pickle.loads(pickle.dumps(model))):
        assert other.predict_one({"a": 2.0}) == model.predict_one({"a": 2.0})


def test_names_that_a_file_holds_come_back(tmp_path):
    names = [
        "a",
        "",
        "\0",
        "\ud800",
        7,
        -(2**70),
        True,
        2.5,
        math.inf,
        None,
        ("a", 3, (None, 1.5)),
        np.int64(9),
        np.str_("s"),
        Shade.RED,
    ]
    model = TrackingRegression()
    for t in range(5):
        model.learn_one({name: float(t + i) for i, name in enumerate(names)}, 1.0 * t)
    model.save(tmp_path / "model.npz")
    again = tw.load(tmp_path / "model.npz")
    assert again.weights == model.weights
    assert list(again.weights) == names


def test_names_that_do_not_fit_the_features_are_refused():
    model = TrackingRegression()
    play(model, rows(T=50))
    for names in (["a", "b", "c"], ["a", "b", "c", "c"]):
        with refused(model, kind=StateError):
            model.restore(model.state() | {"facts._names": names})


@pytest.mark.parametrize("delay", [0, 1, 5, 20, 50])
def test_late_labels_are_no_worse_than_the_last_known_one(delay):
    """Compared on rows for which a label is known; before the first one nobody knows anything."""
    model, last, waiting, found = TrackingRegression(), None, {}, []
    for i, x, y in stream.simulate_qa(datasets.TrumpApproval(), moment=None, delay=delay, copy=True):
        if y is None:
            waiting[i] = model.predict_one(x), last
            continue
        said, label = waiting.pop(i)
        if label is not None:
            found.append([abs(said - y), abs(label - y)])
        model.learn_one(x, y)
        last = y
    ours, repeated = np.mean(found, axis=0)
    assert len(found) == 1001 - max(delay, 1)
    assert ours < 1.02 * repeated
