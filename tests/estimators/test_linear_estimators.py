"""TrackingRegressor and TrackingClassifier: constraints, scikit-learn's ways of use, files, and what is refused."""

import contextlib
import copy
import itertools
import tracemalloc
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.base import clone
from sklearn.datasets import load_digits
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LinearRegression
from sklearn.model_selection import GridSearchCV, TimeSeriesSplit, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import PolynomialFeatures, StandardScaler

import thalweg as tw
from tests.estimators.common import refused as unchanged
from tests.hostile import Rude
from tests.samples import same
from thalweg.domains import Ball, Custom, L1Ball
from thalweg.errors import InputError, StateError
from thalweg.estimators import TrackingClassifier, TrackingRegressor

RNG = np.random.default_rng(0)
X = RNG.normal(size=(400, 3)) * [1.0, 1e-3, 50.0] + [0.0, 2.0, -7.0]
Y = X @ [1.5, -2e3, 0.04] + 12 + 0.1 * RNG.normal(size=400)
WORDS = np.where(X[:, 0] > 0, "up", "down")
THREE = np.digitize(X[:, 0], [-0.5, 0.5])

MODELS = {
    "regressor": (TrackingRegressor(), Y),
    "huber": (TrackingRegressor("huber"), Y),
    "quantile": (TrackingRegressor("quantile", quantile=0.9), Y),
    "plain": (TrackingRegressor(guests=False, fit_intercept=False), Y),
    "simplex": (TrackingRegressor(constraint="simplex"), Y),
    "classifier": (TrackingClassifier(), WORDS),
    "hinge": (TrackingClassifier("hinge"), WORDS),
    "three": (TrackingClassifier(), THREE),
    "constrained classifier": (TrackingClassifier(constraint="ball", radius=3.0), THREE),
}


def names(model, y):
    """What the first call of a classifier is told."""
    return {"classes": np.unique(y)} if isinstance(model, TrackingClassifier) else {}


def refused(model, call, match, kind=InputError):
    """The call is refused, and nothing has changed."""
    with unchanged(model, match, kind):
        call(model)


def learn(model, rows, y):
    return model.partial_fit(rows, y, **names(model, y))


@pytest.fixture(params=MODELS)
def case(request):
    model, y = MODELS[request.param]
    return clone(model), y


# ------------------------------------------------------------------------------------------------------------- numbers


def test_it_finds_the_model_in_the_units_of_the_data():
    model = TrackingRegressor().fit(X, Y)
    best = LinearRegression().fit(X, Y)
    assert np.allclose(model.coef_, best.coef_, rtol=0.05)
    assert np.allclose(X @ model.coef_ + model.intercept_, best.predict(X), atol=0.15)
    assert np.allclose(model.predict(X), X @ model.coef_ + model.intercept_, atol=0.2)
    assert model.score(X, Y) > 0.99
    assert model.n_samples_seen_ == 400


def test_a_quantile_is_exceeded_as_often_as_asked():
    rng = np.random.default_rng(3)
    rows = rng.normal(size=(4000, 2))
    y = rows @ [1.0, 2.0] + rng.exponential(size=4000)
    for q in (0.1, 0.9):
        said = TrackingRegressor("quantile", quantile=q).predict_then_fit(rows, y)
        assert abs(np.mean(y[500:] <= said[500:]) - q) < 0.02


def test_classes():
    model = TrackingClassifier().fit(X, WORDS)
    assert model.classes_.tolist() == ["down", "up"]
    assert model.score(X, WORDS) > 0.95
    chances = model.predict_proba(X)
    assert np.allclose(chances.sum(axis=1), 1)
    assert np.array_equal(model.predict(X), model.classes_[(chances[:, 1] > 0.5).astype(int)])
    assert model.coef_.shape == (1, 3)
    digits, labels = (part[:900] for part in load_digits(return_X_y=True))
    many = TrackingClassifier().fit(digits, labels)
    assert many.score(digits, labels) > 0.95
    assert many.predict_proba(digits).shape == (900, 10)
    assert many.coef_.shape == (10, 64)
    assert many.intercept_.shape == (10,)
    hinge = TrackingClassifier("hinge").fit(digits, labels)
    assert hinge.score(digits, labels) > 0.85
    assert not hasattr(hinge, "predict_proba")


def test_progressive_predictions_are_those_before_each_row(case):
    model, y = case
    known, other = names(model, y), clone(model)
    said = model.predict_then_fit(X, y, **known)
    for k in range(0, 400, 50):
        part = other.predict_then_fit(X[k : k + 50], y[k : k + 50], **known)
        assert np.array_equal(part, said[k : k + 50])
    assert np.array_equal(other.coef_, model.coef_)
    assert np.array_equal(other.predict(X), model.predict(X))


def test_a_prediction_is_the_one_just_before_the_row_is_learned(case):
    """Bit for bit, whatever the means of the features are."""
    model, y = case
    far = X + 1e5 * np.arange(1, X.shape[1] + 1)
    model.fit(far[:100], y[:100])
    for t in range(100, 130):
        row = far[t : t + 1]
        said = (getattr(model, "predict_proba", None) or getattr(model, "decision_function", model.predict))(row)
        assert np.array_equal(model.predict_then_fit(row, y[t : t + 1]), said)


# --------------------------------------------------------------------------------------------------------- constraints


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("loss", ["squared_error", "huber", "absolute_error", "quantile"])
@pytest.mark.parametrize(
    ("constraint", "inside"),
    [
        ("nonnegative", lambda w: (w >= -1e-12).all() and (w <= 2 + 1e-12).all()),
        ("simplex", lambda w: (w >= -1e-12).all() and abs(w.sum() - 2) < 1e-9),
        ("ball", lambda w: np.linalg.norm(w) <= 2 + 1e-9),
        ("box", lambda w: (np.abs(w) <= 2 + 1e-12).all()),
        (L1Ball(3, 2.0), lambda w: np.abs(w).sum() <= 2 + 1e-9),
        (Custom(lambda v: np.clip(v, -2, 2), shape=3, center=0.0, radius=4.0), lambda w: np.abs(w).max() <= 2 + 1e-9),
    ],
    ids=["nonnegative", "simplex", "ball", "box", "Domain", "Custom"],
)
def test_coefficients_obey_constraints(constraint, inside, loss, fit_intercept):
    rows = RNG.normal(size=(60, 3))
    y = rows @ [1.5, -1.0, 0.5] + 4
    model = TrackingRegressor(loss, constraint=constraint, radius=2.0, fit_intercept=fit_intercept)
    for k in range(0, 60, 20):
        model.partial_fit(rows[k : k + 20], y[k : k + 20])
        assert inside(model.coef_)
        assert np.allclose(model.predict(rows), rows @ model.coef_ + model.intercept_)
    assert fit_intercept or model.intercept_ == 0


def test_under_a_constraint_it_is_the_tracker_on_raw_rows():
    rows = RNG.normal(size=(200, 3))
    y = rows @ [0.5, 0.3, 0.2]
    model = TrackingRegressor(constraint="simplex", fit_intercept=False).fit(rows, y)
    tracker = tw.Tracker(tw.domains.Simplex(3))
    tw.play(tracker, tw.problems.LinearRegression(rows, y))
    assert np.array_equal(model.coef_, tracker.decision)
    assert np.allclose(model.coef_, [0.5, 0.3, 0.2], atol=1e-3)
    moved = TrackingRegressor(constraint="simplex").fit(rows + 5, y + 70)
    assert np.allclose(moved.coef_, [0.5, 0.3, 0.2], atol=0.1)
    assert np.isclose(moved.intercept_, 65, atol=0.5)


@pytest.mark.parametrize("constraint", [None, "ball", "simplex", "nonnegative", "box"])
@pytest.mark.parametrize("loss", ["squared_error", "huber", "absolute_error", "quantile"])
def test_rows_of_any_size_are_learned_or_refused(constraint, loss):
    """Weights, targets and features up to 1e100, alone and together: no nan, no warning, nothing left half done."""
    rng = np.random.default_rng(0)
    usual = rng.standard_normal((20, 3)), rng.standard_normal(20)
    for size in itertools.product((1.0, 1e100), repeat=3):
        model = TrackingRegressor(loss, constraint=constraint, radius=1e40).fit(*usual)
        before = model.state()
        rows = np.full((2, 3), size[0]) * [[1.0], [-1.0]], np.array([size[1], -size[1]])
        said = ""
        try:
            model.partial_fit(*rows, sample_weight=[size[2], 1.0])
        except InputError as error:
            said = str(error)
        if said:
            assert constraint is not None
            assert "A model with a constraint scales nothing" in said
            assert same(before, model.state())
        assert np.isfinite(model.predict(np.vstack([usual[0], rows[0]]))).all()
        again = TrackingRegressor(loss, constraint=constraint, radius=1e40)
        again.restore(model.state())
        assert np.array_equal(again.predict(usual[0]), model.predict(usual[0]))


def test_weights_under_a_constraint():
    rows = RNG.normal(size=(120, 3))
    y = rows @ [0.5, 0.3, 0.2]
    one = TrackingRegressor(constraint="ball").fit(rows, y, sample_weight=np.ones(120))
    assert np.array_equal(one.coef_, TrackingRegressor(constraint="ball").fit(rows, y).coef_)
    w = np.where(np.arange(120) % 2, 3.0, 0.0)
    some = TrackingRegressor(constraint="ball").fit(rows, y, sample_weight=w)
    odd = TrackingRegressor(constraint="ball").fit(rows[1::2], y[1::2], sample_weight=np.full(60, 3.0))
    assert np.allclose(some.coef_, odd.coef_, rtol=1e-9)
    assert some.n_samples_seen_ == 60


def test_constrained_classes_obey_and_separate():
    model = TrackingClassifier(constraint="box", radius=3.0).fit(X / [1, 1e-3, 50], THREE)
    assert np.abs(model.coef_).max() <= 3 + 1e-9
    assert model.score(X / [1, 1e-3, 50], THREE) > 0.7
    words = TrackingClassifier("hinge", constraint="ball", radius=5.0).fit(X / [1, 1e-3, 50], WORDS)
    assert words.score(X / [1, 1e-3, 50], WORDS) > 0.9


# ------------------------------------------------------------------------------------------------ scikit-learn's ways


def test_pipelines_searches_and_splits_by_time():
    pipe = make_pipeline(StandardScaler(), PolynomialFeatures(2), TrackingRegressor())
    search = GridSearchCV(pipe, {"trackingregressor__loss": ["squared_error", "huber"]}, cv=TimeSeriesSplit(3))
    search.fit(X, Y)
    assert search.best_score_ > 0.9
    assert cross_val_score(TrackingClassifier(), X, WORDS, cv=TimeSeriesSplit(3)).min() > 0.9
    model = TrackingRegressor(constraint=Ball(3, radius=2.0))
    assert clone(model).constraint.radius == 2.0
    assert model.set_params(loss="huber").loss == "huber"


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame])
def test_frames_and_their_names(frame):
    names = ["a", "b", "c"]
    table = frame(dict(zip(names, X.T, strict=True)))
    model = TrackingRegressor().fit(table, Y)
    assert model.feature_names_in_.tolist() == names
    assert np.array_equal(model.predict(table), TrackingRegressor().fit(X, Y).predict(X))
    with pytest.raises(ValueError, match="feature names"):
        model.partial_fit(table[["b", "a", "c"]], Y)
    assert model.n_samples_seen_ == 400


LARGEST = {
    "members.W": 1e150, "members.offset": 1e150, "members.left": 1e250, "members.G": 1e300,
    "guests.B": 1e150, "guests.offset": 1e150, "guests.left": 1e250, "guests.S": 1e140,
}  # fmt: skip


@pytest.mark.parametrize("name", ["regressor", "huber", "quantile", "plain", "classifier", "hinge"])
@pytest.mark.parametrize("field", LARGEST)
def test_a_state_with_the_largest_entry_goes_on_to_one_that_fits(name, field):
    """Coefficients stop at the largest one, and a guest out of range restarts: files can be read later, too."""
    made, y = MODELS[name]
    base = learn(clone(made), X[:17], y[:17])
    saved = base.state()
    key = next(key for key in saved if key.endswith(field))
    for i, sign in itertools.product(range(saved[key].size), (1, -1)):
        changed = saved[key].copy()
        changed.flat[i] = sign * LARGEST[field]
        model = copy.copy(base)
        with contextlib.suppress(StateError):  # other relations may not hold
            model.restore(saved | {key: changed})
        learn(model, X[17:60], y[17:60])
        model.restore(model.state())


def test_a_damaged_state_of_one_class_is_refused():
    model = TrackingClassifier().fit(X, THREE)
    saved = model.state()
    saved["engine.2.clock"] = saved["engine.2.clock"] + [3, 0]
    with pytest.raises(StateError, match="same number of rows"):
        clone(model).restore(saved)


def test_arguments_that_changed_after_fit_are_refused_when_it_is_saved(tmp_path):
    model = TrackingRegressor("huber").fit(X, Y)
    said = model.predict(X)
    model.set_params(epsilon=2.0)
    with pytest.raises(StateError, match=r"was fitted with epsilon = 1.35, and epsilon was set to 2 since"):
        model.save(tmp_path / "model.npz")
    assert np.array_equal(copy.copy(model).predict(X), said)
    model.set_params(epsilon=1.35).save(tmp_path / "model.npz")
    assert np.array_equal(tw.load(tmp_path / "model.npz").predict(X), said)
    classes = TrackingClassifier("hinge").fit(X, WORDS)
    scores = classes.decision_function(X)
    assert np.array_equal(classes.set_params(loss="log_loss").decision_function(X), scores)


@pytest.mark.parametrize("kind", ["datetime64[s]", "datetime64[ns]", "float128", "object"])
def test_classes_that_no_file_can_hold_are_refused_when_it_is_saved(kind, tmp_path):
    classes = np.array([1, 2]).astype(kind)
    if kind == "object":
        classes = np.array([b"a", b"b"], dtype=object)
    model = TrackingClassifier().partial_fit(X, WORDS, classes=["down", "up"])
    vars(model)["classes_"] = classes
    with pytest.raises(StateError, match="cannot be saved to a file"):
        model.save(tmp_path / "model.npz")
    assert np.array_equal(copy.copy(model).predict_proba(X), model.predict_proba(X))


@pytest.mark.parametrize("kind", [bool, np.int8, np.uint64, np.float32, ">i8", "U3", object])
def test_classes_of_other_types_come_back(kind, tmp_path):
    y = (X[:, 0] > 0).astype(int)
    y = y.astype(str).astype(object) if kind is object else y.astype(kind)
    model = TrackingClassifier().fit(X, y)
    model.save(tmp_path / "model.npz")
    again = tw.load(tmp_path / "model.npz")
    assert np.array_equal(again.classes_, model.classes_)
    assert np.array_equal(again.predict(X), model.predict(X))
    assert again.partial_fit(X, y).n_samples_seen_ == 800


def test_arguments_of_numpys_types_come_back(tmp_path):
    options = {"loss": np.str_("huber"), "fit_intercept": np.bool_(False), "epsilon": np.float32(1.5)}
    model = TrackingRegressor(**options).fit(X, Y)
    model.save(tmp_path / "model.npz")
    assert np.array_equal(tw.load(tmp_path / "model.npz").predict(X), model.predict(X))


@pytest.mark.parametrize("constraint", [None, "ball", "nonnegative"])
def test_sizes_that_a_state_claims_are_compared_before_anything_is_made(constraint):
    model = TrackingRegressor(constraint=constraint).fit(X, Y)
    saved = model.state()
    tracemalloc.start()
    for features in (4000, 10**12):
        with pytest.raises(StateError, match="features"):
            model.restore(saved | {"facts.n_features_in_": features})
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 10**6
    for bad in (0, -1, 2.5, "3", None, np.arange(3)):
        with pytest.raises(StateError):
            model.restore(saved | {"facts.n_features_in_": bad})
    assert same(saved, model.state())


@pytest.mark.parametrize("classes", [["up", "down"], ["up", "up"], ["up"], "ab", None])
def test_damaged_classes_are_refused(classes):
    model = TrackingClassifier().fit(X, WORDS)
    with unchanged(model, kind=StateError):
        model.restore(model.state() | {"facts.classes_": classes})


# ------------------------------------------------------------------------------------------------------------- weights


@pytest.mark.parametrize("weight", [1e-100, 0.5, 60.0, 500.0, 1e10, 1e100])
@pytest.mark.parametrize("name", MODELS)
def test_weights_of_any_size(name, weight):
    """A row of weight 500 used to leave no candidate of the log loss with any weight, and nan for ever."""
    model, y = MODELS[name]
    weights = np.where(np.arange(200) % 3, weight, 1.0)
    model = clone(model).fit(X[:200], y[:200], sample_weight=weights)
    assert np.isfinite(model.coef_).all()
    if hasattr(model, "predict_proba"):
        assert np.allclose(model.predict_proba(X).sum(axis=1), 1)
        assert weight != 500 or model.score(X, y) > 0.8 or "constrained" in name
    elif isinstance(model, TrackingRegressor):
        assert np.isfinite(model.predict(X)).all()
    clone(model).restore(model.state())


def test_a_weight_near_one_is_nearly_weight_one():
    """Logarithms and products are two ways to the same shares."""
    one = TrackingClassifier().fit(X, WORDS)
    near = TrackingClassifier().fit(X, WORDS, sample_weight=np.full(400, 1 + 1e-12))
    assert np.allclose(one.predict_proba(X), near.predict_proba(X), atol=1e-7)


@pytest.mark.parametrize("make", [TrackingRegressor, TrackingClassifier])
def test_guests_are_for_up_to_512_features(make):
    for guests, features, there in ((True, 512, True), (True, 513, False), ("auto", 100, True), ("auto", 101, False)):
        model = make(guests=guests).fit(np.eye(4, features), [0, 1, 0, 1])
        assert (len(model._models[0].memory.state.guests.B) > 0) is there


@pytest.mark.parametrize("name", MODELS)
def test_rows_of_weight_zero_are_left_out(name):
    model, y = MODELS[name]
    known, out = names(model, y), np.arange(400) % 4 == 1
    if model.constraint is not None:
        weights = np.where(out, 0.0, 2.0)
        some = clone(model).partial_fit(X[~out], y[~out], sample_weight=weights[~out], **known)
    else:
        weights = np.where(out, 0.0, 1.0)
        some = clone(model).partial_fit(X[~out], y[~out], **known)
    whole = clone(model).partial_fit(X, y, sample_weight=weights, **known)
    assert whole.n_samples_seen_ == 300
    assert same(some.state(), whole.state())
    nothing = clone(model).partial_fit(X, y, sample_weight=np.zeros(400), **known)
    assert nothing.n_samples_seen_ == 0
    with pytest.raises(ValueError, match="at least one non-zero"):
        clone(model).fit(X, y, sample_weight=np.zeros(400))


def test_weights_of_classes(tmp_path):
    plain = TrackingClassifier().fit(X, WORDS, sample_weight=np.where(WORDS == "up", 3.0, 1.0))
    weighed = TrackingClassifier(class_weight={"up": 3.0}).fit(X, WORDS)
    assert np.array_equal(weighed.predict_proba(X), plain.predict_proba(X))
    parts = TrackingClassifier(class_weight={"up": 3.0})
    for k in range(0, 400, 100):
        parts.partial_fit(X[k : k + 100], WORDS[k : k + 100], classes=["down", "up"])
    assert same(parts.state(), weighed.state())
    weighed.save(tmp_path / "model.npz")
    again = tw.load(tmp_path / "model.npz")
    assert again.class_weight == {"up": 3.0}
    assert np.array_equal(again.predict_proba(X), plain.predict_proba(X))
    three = TrackingClassifier(class_weight="balanced").fit(X, THREE)
    counts = np.bincount(THREE)
    other = TrackingClassifier().fit(X, THREE, sample_weight=(400 / (3 * counts))[THREE])
    assert np.array_equal(three.coef_, other.coef_)
    refused(TrackingClassifier(class_weight="balanced"), lambda m: m.partial_fit(X, WORDS, ["down", "up"]), "all rows")
    refused(TrackingClassifier(class_weight={"up": -1.0}), lambda m: m.fit(X, WORDS), "class_weight")
    refused(TrackingClassifier(class_weight={"left": 1.0}), lambda m: m.fit(X, WORDS), "class_weight", ValueError)
    refused(TrackingClassifier(class_weight="some"), lambda m: m.fit(X, WORDS), "class_weight", ValueError)


# ------------------------------------------------------------------------------------------------------------ bad input


@pytest.mark.parametrize("make", [TrackingRegressor, TrackingClassifier])
def test_rows_of_several_lengths_and_of_no_numbers(make):
    with pytest.raises(InputError, match=f"{make.__name__}: X and y must be arrays of numbers, all rows of one length"):
        make().fit([[1.0, 2.0], [1.0]], [0, 1])
    model = make().fit([[1.0, 2.0], [2.0, 1.0]], [0, 1])
    with pytest.raises(InputError, match="all rows of one length"):
        model.predict([[1.0, 2.0], [1.0]])
    for bad in (10**400, -(10**5000), Rude(), [Rude(), Rude()]):
        for call in (lambda x: model.predict(x), lambda x: make().fit(x, [0, 1])):
            with pytest.raises((InputError, TypeError), match=make.__name__):
                call(bad)
        with pytest.raises(InputError, match="sample_weight must be an array of numbers"):
            make().fit(np.eye(2), [0, 1], sample_weight=bad)
    with pytest.raises(InputError, match="inf in column 0, row 0"):
        model.predict(np.full((1, 2), np.longdouble("1e400")))


def test_nan_names_the_column_and_the_row(case):
    model, y = case
    rows = X.copy()
    rows[17, 2] = np.nan
    refused(model, lambda m: learn(m, rows, y), "NaN in column 2, row 17")
    learn(model, X, y)
    table = pd.DataFrame(rows, columns=["a", "b", "c"])
    refused(model, lambda m: m.predict(rows), "NaN in column 2, row 17")
    model.fit(table.fillna(0.0), y)
    refused(model, lambda m: m.partial_fit(table, y), "NaN in column 'c', row 17")
    rows[17, 2] = -np.inf
    refused(model, lambda m: m.predict(table.assign(a=rows[:, 2])), "-inf in column 'a', row 17")
    rows[17, 2] = 1e101
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # without names after a frame
        refused(model, lambda m: m.partial_fit(rows, y), "1e[+]101 in column 'c', row 17")
    refused(model, lambda m: m.fit(X[:, :2], y[:5]), "inconsistent numbers of samples", ValueError)


@pytest.mark.parametrize(
    ("options", "match"),
    [
        ({"loss": "squared"}, "loss"),
        ({"loss": "quantile", "quantile": 1.0}, "quantile"),
        ({"loss": "quantile", "quantile": "x"}, "quantile"),
        ({"loss": "huber", "epsilon": 0}, "epsilon"),
        ({"constraint": "circle"}, "constraint"),
        ({"constraint": Ball(2)}, "2 coefficients, X has 3"),
        ({"constraint": "ball", "radius": -1}, "radius"),
        ({"fit_intercept": "no"}, "fit_intercept"),
        ({"guests": "some"}, "guests"),
    ],
)
def test_bad_arguments(options, match):
    refused(TrackingRegressor(**options), lambda m: m.fit(X, Y), match)


def test_bad_targets_and_weights():
    model = TrackingRegressor().fit(X, Y)
    refused(model, lambda m: m.partial_fit(X, np.where(np.arange(400) == 9, np.nan, Y)), "NaN", ValueError)
    refused(model, lambda m: m.partial_fit(X, np.where(np.arange(400) == 9, 1e120, Y)), "row 9")
    refused(model, lambda m: m.partial_fit(X, Y, sample_weight=-np.ones(400)), "Negative", ValueError)
    refused(model, lambda m: m.partial_fit(X, Y, sample_weight=np.full(400, 1e120)), "sample_weight")
    refused(model, lambda m: m.partial_fit(X[:, :2], Y), "features", ValueError)


def test_classes_that_were_not_named():
    model = TrackingClassifier()
    refused(model, lambda m: m.partial_fit(X, WORDS), "all classes at its first call")
    refused(model, lambda m: m.partial_fit(X, THREE, classes=[0, 1]), "class .*2.* in row")
    refused(model, lambda m: m.fit(X, np.zeros(400)), "two classes")
    model.partial_fit(X, THREE, classes=[0, 1, 2, 7])
    refused(model, lambda m: m.partial_fit(X, THREE, classes=[0, 1, 2]), "classes must stay")
    refused(model, lambda m: m.partial_fit(X, np.full(400, 5)), "class .*5.* in row 0")
    model.partial_fit(X, np.full(400, 7))
    assert model.classes_.tolist() == [0, 1, 2, 7]
    assert model.fit(X, WORDS).classes_.tolist() == ["down", "up"]


def test_nothing_before_fit():
    for model in (TrackingRegressor(), TrackingClassifier()):
        for name in ("coef_", "intercept_", "n_samples_seen_", "n_features_in_"):
            assert not hasattr(model, name)
        with pytest.raises(NotFittedError):
            model.predict(X)
