"""What every estimator keeps: no look-ahead, saved and copied bit for bit, bad states and files refused."""

import copy
import inspect
import pickle

import numpy as np
import pytest

import thalweg as tw
from thalweg import estimators, files
from thalweg.errors import InputError, StateError
from thalweg.scaling import Standardiser

T, D = 90, 3
rng = np.random.default_rng(7)
X = rng.standard_normal((T, D)) * [1.0, 10.0, 0.1] + [0.0, 3.0, 0.0]
Y = X @ [1.0, -0.2, 4.0] + 0.1 * rng.standard_normal(T)
C = (np.median(Y) < Y).astype(int)
NAMES = ("a", "b", "c")


def sk_regression(model, rows):
    out = []
    for t in rows:
        out.append(model.predict(X[[t]])[0] if model.rounds else 0.0)
        model.partial_fit(X[[t]], Y[[t]])
    return out


def sk_classes(model, rows):
    out = []
    for t in rows:
        out.append(model.predict_proba(X[[t]])[0, 1] if model.rounds else 0.5)
        model.partial_fit(X[[t]], C[[t]], classes=[0, 1])
    return out


def river_numbers(labels):
    def play(model, rows):
        out = []
        for t in rows:
            x = dict(zip(NAMES, X[t].tolist(), strict=True))
            if hasattr(model, "predict_proba_one"):
                out.append(model.predict_proba_one(x).get(True, 0.5))
            else:
                out.append(model.predict_one(x))
            model.learn_one(x, labels[t])
        return out

    return play


def subspace(model, rows):
    out = []
    for t in rows:
        out.append(np.abs(model.transform(X[[t]])).sum() if model.rounds else 0.0)
        model.partial_fit(X[[t]])
    return out


def combine(model, rows):
    out = []
    for t in rows:
        out.append(model.predict(Y[t] + X[t] / 10))
        model.update(Y[t])
    return out


def intervals(model, rows):
    out = []
    for t in rows:
        out.append(model.threshold())
        model.update(abs(Y[t]))
    return out


def series(model, rows):
    out = []
    for t in rows:
        out.append(model.predict(X[t]))
        model.update(Y[t])
    return out


def ahead(model, rows):
    out = []
    for t in rows:
        x = dict(zip(NAMES, X[t].tolist(), strict=True))
        out.append(model.forecast(1, [x])[0])
        model.learn_one(Y[t], x)
    return out


def scale(model, rows):
    return [float(model.run(X[[t]]).sum()) for t in rows]


EVERY = {
    "Aggregator": (lambda: estimators.Aggregator(), combine),
    "ConformalTracker": (lambda: estimators.ConformalTracker(), intervals),
    "Forecaster": (lambda: estimators.Forecaster(NAMES, lags=2), series),
    "Standardiser": (lambda: Standardiser(D), scale),
    "StreamingPCA": (lambda: estimators.StreamingPCA(2), subspace),
    "TrackingClassifier": (lambda: estimators.TrackingClassifier(), sk_classes),
    "TrackingForecaster": (lambda: estimators.TrackingForecaster(4, season=None), ahead),
    "TrackingLogistic": (lambda: estimators.TrackingLogistic(), river_numbers((C == 1).tolist())),
    "TrackingRegression": (lambda: estimators.TrackingRegression(), river_numbers(Y.tolist())),
    "TrackingRegressor": (lambda: estimators.TrackingRegressor(), sk_regression),
}
every = pytest.mark.parametrize("name", EVERY)


def test_no_class_is_forgotten():
    public = [getattr(estimators, name) for name in estimators.__all__]
    savable = {kind.__name__ for kind in public if inspect.isclass(kind) and hasattr(kind, "restore")}
    assert savable - set(EVERY) <= {"Mixture"}  # an Aggregator by another name


@every
def test_saved_and_copied_it_goes_on_bit_for_bit(name, tmp_path):
    make, play = EVERY[name]
    whole = play(make(), range(T))
    for at in (0, 1, 37):
        model = make()
        play(model, range(at))
        model.save(tmp_path / "it.npz")
        restored = make()
        restored.restore(model.state())
        others = [tw.load(tmp_path / "it.npz"), restored, copy.deepcopy(model), pickle.loads(pickle.dumps(model))]
        for other in others:
            assert np.array_equal(play(other, range(at, T)), whole[at:], equal_nan=True)
        assert name in files.summary(tmp_path / "it.npz")
    assert len(np.unique(whole)) > T // 2  # it does something


@every
def test_what_comes_later_changes_nothing(name):
    make, play = EVERY[name]
    whole, k = play(make(), range(T)), 40
    kept = X[k:].copy(), Y[k:].copy()
    try:
        X[k + 1 :] = 1e3
        Y[k:] *= -5.0
        assert np.array_equal(play(make(), range(k)), whole[:k], equal_nan=True)
    finally:
        X[k:], Y[k:] = kept


@every
def test_a_damaged_state_is_refused_or_played(name):
    make, play = EVERY[name]
    model = make()
    play(model, range(30))
    saved = model.state()
    damage = np.random.default_rng(0)
    arrays = [key for key, value in saved.items() if isinstance(value, np.ndarray) and value.size]
    for key in [arrays[i] for i in damage.choice(len(arrays), min(25, len(arrays)), replace=False)]:
        for bad in (np.nan, -1e9, 10**9):
            array = saved[key].copy()
            if array.dtype.kind == "i" and not np.isfinite(bad):
                continue
            array.flat[damage.integers(array.size)] = bad
            other = make()
            try:
                other.restore(saved | {key: array})
            except StateError:
                continue
            with np.errstate(all="ignore"):
                try:
                    play(other, range(30, 34))
                except InputError:
                    continue


@every
def test_states_of_others_are_refused(name):
    make, play = EVERY[name]
    model = make()
    play(model, range(5))
    before = model.state()
    for other in EVERY:
        if other != name:
            with pytest.raises(StateError, match="another"):
                model.restore(EVERY[other][0]().state())
    after = model.state()
    assert all(np.array_equal(before[key], after[key]) for key in before if isinstance(before[key], np.ndarray))
