"""One of everything that has a `Memory`, and its rounds: learners, PCA learners, controllers and estimators.

`python -m tests.samples FOLDER` is a process that only loads: it goes on from the files of a folder.

Tests that follow from declarations run on all of them. A class with a card is here by itself; anything else is a line.
"""

import contextlib
import copy
import functools
import importlib
import inspect
import pathlib
import re
import sys
import warnings
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pytest

import thalweg as tw
from tests.machines.cases import COMBINATIONS
from tests.worlds import LEARNERS, G, T, clip, ellipsoid, slow_box
from thalweg._core.memory import Memory
from thalweg.errors import InputError
from thalweg.extend import Floats, InPython, Ints, counter_field, field, inside
from thalweg.testing._learner import _same, _stream

ROUNDS = 40  # of a run that a sample has behind it
STREAM = 240  # rounds of the one stream that belongs to a sample; it repeats


class Sample(NamedTuple):
    """A class with its arguments, and the rounds that it plays."""

    make: Callable[[], Any]
    rounds: Callable[[Any, int], Any]  # play round t; returns everything that was decided
    check: Callable[[Any], None]  # whether it can play the present round: finite and feasible
    show: Callable[[Any], Any]  # the decision of the present round
    again: dict[str, Any] = {}  # noqa: RUF012  # arguments that a file cannot hold


# ------------------------------------------------------------------------------------------------------------- learners


@functools.cache
def losses(make):
    return _stream(make, STREAM)


def _step(make, learner, t):
    x = np.array(learner.decision)
    if learner.rounds not in getattr(learner, "outstanding", [learner.rounds]):
        learner.advance()  # the present round has had its feedback
    return np.append(x.ravel(), learner.step(losses(make)[t % STREAM]))


def _feasible(learner):
    x = learner.decision
    assert np.isfinite(x).all(), "a decision that is not finite"
    assert learner.domain.contains(x, tol=1e-6), "a decision outside of the domain"


def _decision(learner):
    return np.array(learner.decision)


def learner(make):
    again = {"domain.project": clip} if isinstance(make().domain, tw.domains.Custom) else {}
    again |= {"cls": InPlainPython} if isinstance(make(), InPlainPython) else {}
    made_by = getattr(make(), "make_inner", None)
    again |= {"make_inner": made_by} if made_by is InPlainPython or inspect.isfunction(made_by) else {}
    return Sample(make, functools.partial(_step, make), _feasible, _decision, again)


class PlainState(NamedTuple):
    x: Floats = field("d", inside("domain"))
    clock: Ints = counter_field()


class InPlainPython(tw.Learner):
    """Descent in plain Python."""

    def __init__(self, domain):
        self.domain = domain
        super().__init__(InPython(domain, PlainState, self.learn, begin=self.begin))

    def begin(self, s):
        s.x[:] = self.domain.project(self.domain.center).ravel()

    def learn(self, s, gradient, loss):
        s.x[:] -= 0.1 * gradient
        s.x[:] = self.domain._project_flat(s.x.copy())


MORE = {
    "Ensemble": lambda: tw.Ensemble(ellipsoid(), [0.1, 0.7], prior=[0.3, 0.9]),
    "Cover with thresholds": lambda: tw.Cover(
        (X := ellipsoid()),
        tw.experts.Descent(X, 0.2, step_rule="scale_free"),
        meta=tw.metas.AdaptMLProd("observed"),
        threshold=functools.partial(tw.algorithms.thresholds.fixed, C=0.5),
    ),
    "OneProjection guest": lambda: tw.OneProjection(
        ellipsoid(), functools.partial(tw.OGD, step_size=0.1, gradient_bound=G, on_violation="clip"),
        gradient_bound=2 * G,
    ),
    "OneProjection guest, custom": lambda: tw.OneProjection(
        slow_box(), functools.partial(tw.CBCE, gradient_bound=G, on_violation="clip"), gradient_bound=2 * G
    ),
    "Tracker bare": lambda: tw.Tracker(tw.domains.Ball(4), intervals=False, curvature=False, loss_floor=None),
    "Delayed CBCE": lambda: tw.Delayed(ellipsoid(), functools.partial(tw.CBCE, gradient_bound=G), max_delay=2),
    "Delayed guest": lambda: tw.Delayed(
        ellipsoid(),
        functools.partial(
            tw.OneProjection, gradient_bound=2 * G,
            make_inner=functools.partial(tw.OGD, step_size=0.1, gradient_bound=G, on_violation="clip"),
        ),
        delay=1,
    ),
    "OneProjection of a reduction": lambda: tw.OneProjection(
        ellipsoid(), functools.partial(tw.EfficientCBCE, gradient_bound=G)
    ),
    "EfficientCBCE custom": lambda: tw.EfficientCBCE(slow_box(), gradient_bound=G),
    "in Python": lambda: InPlainPython(slow_box()),
    "in Python, reduced": lambda: tw.OneProjection(ellipsoid(), InPlainPython),
    "Tracker simplex, start": lambda: tw.Tracker(tw.domains.Simplex(3), start=[0.0, 0.5, 0.5]),
    "Tracker matrix, no values": lambda: tw.Tracker(tw.domains.Ball((2, 2)), loss_floor=None),
    "EfficientDelayed, any order": lambda: tw.EfficientDelayed(ellipsoid(), T, G, max_delay=3),
}  # fmt: skip


# -------------------------------------------------------------------------------- PCA learners, controllers, estimators


def _orthonormal(found):
    _feasible(found)
    V = found.components
    assert np.abs(V @ V.T - np.eye(len(V))).max() < 1e-6, "components that are not orthonormal"


def _pca(found, t):
    V = np.array(found.components)
    rng = np.random.default_rng([t % STREAM, found.dim])
    row = rng.standard_normal(found.dim)
    return np.append(V.ravel(), found.update(0.99 * row / np.linalg.norm(row)))


def _system():
    return tw.control.LinearSystem([[0.9, 0.3], [0.0, 0.8]], [[0.0], [1.0]])


def _stable(found):
    if hasattr(found, "domain"):
        assert found.domain.contains(found.matrices, tol=1e-6), "matrices outside of the domain"


def _control(found, t):
    at, push = np.random.default_rng(t % STREAM).normal(size=(2, 2))
    u = np.array(found.act(at))
    found.observe(tw.control.QuadraticCost([1.0, 1.0], [1.0]), found.system.step(at, u, 0.1 * push))
    return u


def _act(found):
    return np.array(found.act(np.ones(2)))


def _built(place, kind):
    """One of a PCA learner or controller, from arguments by name."""
    kind = getattr(importlib.import_module(f"thalweg.{place}"), kind)
    known = {
        "dim": 4,
        "rank": 1,
        "rng": 3,
        "horizon": 60,
        "memory": 2,
        "policies": 0.1 * np.arange(4.0).reshape(2, 1, 2),
    }
    known |= {"system": _system()} if place == "control" else {}
    taken = inspect.signature(kind).parameters
    more = {"step_size": 0.2} if "step_size" in taken and taken["step_size"].default is inspect.Parameter.empty else {}
    options = any(p.kind is p.VAR_KEYWORD for p in taken.values())
    return kind(**{k: v for k, v in known.items() if k in taken or (options and k == "memory")}, **more)


PCA = ("AdaptivePCA", "DescentPCA", "EfficientPCA", "OjaPCA", "YuanLamperskiPCA")
CONTROL = (
    "EfficientControl", "GPC", "IntegralLQR", "LQR", "LinearFeedback", "Planted", "Preview", "ScreamControl",
    "TrackingControl",
)  # fmt: skip

ROWS = np.random.default_rng(7).standard_normal((STREAM, 3)) * [1.0, 10.0, 0.1] + [0.0, 3.0, 0.0]
VALUES = ROWS @ [1.0, -0.2, 4.0] + 0.1 * np.random.default_rng(8).standard_normal(STREAM)
CLASSES = (np.median(VALUES) < VALUES).astype(int)
THREE = np.digitize(VALUES, np.quantile(VALUES, [0.3, 0.7]))
NAMES = ("a", "b", "c")


def _regress(model, t):
    said = model.predict(ROWS[[t]])[0] if model.rounds else 0.0
    model.partial_fit(ROWS[[t]], VALUES[[t]])
    return said


def _classify(model, t, labels=CLASSES):
    said = model.decision_function(ROWS[[t]]) if model.rounds else np.zeros(1 if labels is CLASSES else 3)
    model.partial_fit(ROWS[[t]], labels[[t]], classes=np.unique(labels))
    return said


def _river(model, t, names=NAMES):
    x = dict(zip(names, ROWS[t].tolist(), strict=False))
    if hasattr(model, "predict_proba_one"):
        said = model.predict_proba_one(x).get(True, 0.5)
        model.learn_one(x, bool(CLASSES[t]))
    else:
        said = model.predict_one(x)
        model.learn_one(x, float(VALUES[t]))
    return said


def _open(model, t):
    """Names come and go, and there are more and more of them."""
    return _river(model, t, [f"x{t % 5}", t // 7])


def _subspace(model, t):
    said = np.abs(model.transform(ROWS[[t]])).sum() if model.rounds else 0.0
    model.partial_fit(ROWS[[t]])
    return said


def _combine(model, t, answers=VALUES):
    """Answers come as late as they may; after an interrupted round one more waits."""
    forecasts = 1 / (1 + np.exp(-ROWS[t])) if model.loss == "log" else VALUES[t] + ROWS[t] / 10
    while model.waiting >= model.horizon:
        model.update(answers[t])
    said = model.predict(forecasts)
    if model.waiting == model.horizon:
        model.update(answers[t])
    return said


def _interval(model, t):
    while model.waiting >= model.horizon:  # after an interrupted round one more waits
        model.update(abs(VALUES[t]))
    said = model.threshold()
    model.update(abs(VALUES[t]))
    return said


SERIES = 20 + 5 * np.sin(np.arange(STREAM) * np.pi / 3) + 0.3 * ROWS[:, 0]  # a season of 6, and gaps
SERIES[7::23] = SERIES[18::47] = SERIES[19::47] = np.nan


def _band(model, t):
    while model.waiting >= model.horizon:
        model.update(VALUES[t])
    said = model.predict_interval(ROWS[t, 0])
    if model.waiting == model.horizon:
        model.update(VALUES[t])
    return said


def _bands(model, t):
    while model.waiting >= model.horizon:
        model.update(VALUES[t])
    said = model.predict_intervals(ROWS[t, 0])
    if model.waiting == model.horizon:
        model.update(VALUES[t])
    return said


def _series(model, t):
    """Forecasts of all steps, as far as there are any; a value now and then is missing."""
    rows = ROWS[np.arange(t, t + model.horizon) % STREAM] if model.columns else None
    said = model.forecast(rows)
    model.update(SERIES[t])
    ends = [np.nan_to_num(end) for sides in (said.lower, said.upper) for end in sides.values()]  # later than forecasts
    return np.concatenate([said.mean, *ends])


def _ahead(model, t):
    """As `_series`, for river."""
    rows = [dict(zip(NAMES, ROWS[k % STREAM].tolist(), strict=True)) for k in range(t, t + 3)]
    said = model.forecast(3, rows)
    model.learn_one(SERIES[t], rows[0])
    return said


def _scale(model, t):
    return model.run(ROWS[[t]])


def _estimate(play, model, t):
    said = np.asarray(play(model, t % STREAM), dtype=float).ravel()
    return said if model.rounds > 5 else np.nan_to_num(said)  # nothing is known at first


def _estimator(name, **options):
    place, kind = "scaling" if name == "Standardiser" else "estimators", re.split("[ ,]", name)[0]
    return getattr(importlib.import_module(f"thalweg.{place}"), kind)(**options)


_classify_three = functools.partial(_classify, labels=THREE)
ESTIMATORS = {  # those that are named by their class, then variants
    "Aggregator": ({}, _combine),
    "ConformalBands": ({"coverages": (0.5, 0.8), "windows": (8, 30), "halflives": (1, 5)}, _bands),
    "ConformalTracker": ({}, _interval),
    "Forecaster": ({"lags": 2, "horizon": 3, "levels": (0.5, 0.9)}, _series),
    "Forecaster, columns": ({"columns": NAMES, "lags": (1, 5), "season": 3, "loss": "absolute"}, _series),
    "Standardiser": ({"columns": 3}, _scale),
    "StreamingPCA": ({"n_components": 2}, _subspace),
    "TrackingClassifier": ({}, _classify),
    "TrackingForecaster": ({"horizon": 3, "season": 6}, _ahead),
    "TrackingLogistic": ({}, _river),
    "TrackingRegression": ({}, _river),
    "TrackingRegressor": ({}, _regress),
    "Aggregator late": ({"horizon": 3}, _combine),
    "Aggregator fixed share": ({"rule": "FS"}, _combine),
    "Aggregator prod": ({"rule": "MLprod"}, _combine),
    "Aggregator log": ({"loss": "log"}, functools.partial(_combine, answers=CLASSES)),
    "ConformalTracker late": ({"horizon": 3, "windows": (8, 30), "halflives": (1, 5)}, _band),
    "ConformalTracker two sides": ({"asymmetric": True, "horizon": 2}, _band),
    "TrackingClassifier hinge": ({"loss": "hinge"}, _classify),
    "TrackingClassifier three": ({}, _classify_three),
    "TrackingClassifier ball": ({"constraint": "ball", "radius": 3.0}, _classify_three),
    "TrackingLogistic open": ({}, _open),
    "TrackingRegression open": ({"loss": "huber"}, _open),
    "TrackingRegressor huber": ({"loss": "huber"}, _regress),
    "TrackingRegressor quantile": ({"loss": "quantile", "quantile": 0.9}, _regress),
    "TrackingRegressor plain": ({"guests": False, "fit_intercept": False}, _regress),
    "TrackingRegressor simplex": ({"constraint": "simplex"}, _regress),
}

# ------------------------------------------------------------------------------------------------------------ all of it

LEARNING = {name: learner(make) for name, make in (LEARNERS | MORE | COMBINATIONS).items()}
APPLIED = {
    **{name: Sample(functools.partial(_built, "pca", name), _pca, _orthonormal, _decision) for name in PCA},
    **{name: Sample(functools.partial(_built, "control", name), _control, _stable, _act) for name in CONTROL},
    **{
        name: Sample(
            functools.partial(_estimator, name, **options),
            functools.partial(_estimate, play),
            repr,
            lambda made: made.rounds,
        )
        for name, (options, play) in ESTIMATORS.items()
    },
}
SAMPLES = LEARNING | APPLIED
every = pytest.mark.parametrize("name", SAMPLES)
QUIET = pytest.mark.filterwarnings(
    "ignore::thalweg.errors.HorizonWarning", "ignore::thalweg.errors.ClippingWarning", "ignore:overflow:RuntimeWarning"
)


def play(name, made, first, last):
    """Rounds first..last-1 of the stream of a sample, checked; everything that was decided."""
    found, sample = [], SAMPLES[name]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", tw.errors.HorizonWarning)
        warnings.simplefilter("ignore", tw.errors.ClippingWarning)
        for t in range(first, last):
            sample.check(made)
            found.append(sample.rounds(made, t))
            assert np.isfinite(found[-1]).all(), "an answer that is not finite"
    return found


def make(name):
    """A fresh one."""
    return SAMPLES[name].make()


def played(name, rounds=ROUNDS):
    """One that has played; its present decision is made."""
    made = make(name)
    play(name, made, 0, rounds)
    show(name, made)
    return made


def show(name, made):
    """The decision of the present round."""
    return SAMPLES[name].show(made)


def memories(made):
    """The memories of an object by the prefixes of their names: its own, or those of its models once it has a row."""
    _ = getattr(made, "_memory", None)  # that of a learner is made here
    mine = [("", value) for value in vars(made).values() if isinstance(value, Memory)]
    models = getattr(made, "_models", ())
    return mine or [(made._prefix.format(i), model.memory) for i, model in enumerate(models)]


def memory(made):
    """The first memory of an object; None before there is one."""
    return next((found for _, found in memories(made)), None)


def blocks(made):
    """The blocks that there are, to be compared by identity."""
    return [id(found.block) for _, found in memories(made)]


def fields(made, prefix=""):
    """Everything declared: (name in a saved state, declaration, shape), those of guests too."""
    for place, mine in memories(made):
        yield from ((prefix + place + name, said, shape) for name, said, shape in mine.block.plan.fields())
        for name, guest in mine.guests.items():
            if memories(guest):
                yield from fields(guest, prefix + place + name)


def same(a, b):
    """Whether two states are the same, bit for bit."""
    return a.keys() == b.keys() and all(
        a[key].tobytes() == b[key].tobytes() and a[key].shape == b[key].shape
        if isinstance(a[key], np.ndarray) and isinstance(b[key], np.ndarray)
        else _same(a[key], b[key])
        for key in a
    )


@contextlib.contextmanager
def refused(made, match=None, error=InputError):
    """What is called inside raises an error, and the state stays as it is."""
    before = made.state()
    with pytest.raises(error, match=match):
        yield
    assert same(made.state(), before)


def continue_all(folder):
    """Load every file NUMBER.npz of a folder; what it goes on to decide until round 24, by number and way."""
    found = {}
    for number, line in enumerate((folder / "names.txt").read_text().splitlines()):
        name, split = line.rsplit(" ", 1)
        loaded = tw.load(folder / f"{number}.npz", **SAMPLES[name].again)
        kept = loaded.state()
        ways = {"loaded": loaded, "copied": copy.copy(loaded)}
        if getattr(loaded, "horizon", None) is not None and number % 2 == 0:
            ways["horizon"] = tw.load(folder / f"{number}.npz", horizon=loaded.horizon, **SAMPLES[name].again)
        found |= {f"{number} {way}": np.array(play(name, made, int(split), 24)) for way, made in ways.items()}
        loaded.restore(kept)
        found[f"{number} restored"] = np.array(play(name, loaded, int(split), 24))
    return found


if __name__ == "__main__":
    np.savez(pathlib.Path(sys.argv[1]) / "continued.npz", **continue_all(pathlib.Path(sys.argv[1])))
