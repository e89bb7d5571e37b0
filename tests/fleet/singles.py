"""Fleets beside dicts of ordinary learners: templates of every family, batches, and the comparison of all bits."""

import numpy as np

import thalweg as tw
from thalweg.cards import Setting, recipes
from thalweg.domains import Ball
from thalweg.estimators import Aggregator, ConformalTracker, Forecaster, TrackingClassifier, TrackingRegressor

DIMENSION = 3


def learners():
    """Every learner with a card, by name."""
    setting = Setting(Ball(DIMENSION), 400, 10.0, 10.0, smoothness=1.0, nonnegative=True)
    return {name: (lambda recipe=recipe: recipe.build(setting)) for name, recipe in recipes().items()}


ESTIMATORS = {
    "Forecaster": lambda: Forecaster(lags=4),
    "Forecaster, season": lambda: Forecaster(season=4, horizon=3, levels=(0.8, 0.95)),
    "Forecaster, columns": lambda: Forecaster(["a", "b"], season=None, horizon=2, levels=(0.9,), loss="absolute"),
    "ConformalTracker": lambda: ConformalTracker(0.9, windows=(5, 20)),
    "ConformalTracker, two sides": lambda: ConformalTracker(0.8, asymmetric=True),
    "ConformalTracker, late": lambda: ConformalTracker(0.9, horizon=3),
    "Aggregator": lambda: Aggregator(),
    "Aggregator, Tracker": lambda: Aggregator("absolute", rule="Tracker"),
    "TrackingRegressor": lambda: TrackingRegressor(),
    "TrackingRegressor, huber": lambda: TrackingRegressor("huber"),
    "TrackingClassifier": lambda: TrackingClassifier(),
    "TrackingClassifier, hinge": lambda: TrackingClassifier("hinge", class_weight={0: 0.0, 1: 2.0}),
}
LINEAR = TrackingRegressor, TrackingClassifier


def width(template):
    """Columns of a template."""
    if isinstance(template, Forecaster):
        return len(template.columns)
    return 2 if isinstance(template, LINEAR) else 3 if isinstance(template, Aggregator) else 1


def fleet_of(make, **options):
    """A fleet without times; features and experts have names."""
    template = make()
    if isinstance(template, (Aggregator, *LINEAR)):
        options["columns"] = [f"c{j}" for j in range(width(template))]
    return tw.Fleet(template, **{"time_col": None, **options})


class Singles(dict):
    """An ordinary learner for every key."""

    def __init__(self, make):
        super().__init__()
        self.make = make

    def __missing__(self, key):
        self[key] = self.make()
        return self[key]

    def run(self, keys, y, X):
        """As `Fleet.run`, key by key."""
        out = [None] * len(keys)
        for key in dict.fromkeys(keys):
            rows = [i for i, one in enumerate(keys) if one == key]
            for i, said in zip(rows, self._rows(self[key], y[rows], X[rows]), strict=True):
                out[i] = said
        return np.array(out, dtype=np.float64).reshape(len(keys), -1)

    def _rows(self, one, y, X):
        if isinstance(one, Forecaster):
            run = one.run(y, X if one.columns else None)
            bounds = [side[level] for level in one.levels for side in (run.lower, run.upper)]
            return np.stack([run.mean, *bounds], axis=2)
        if isinstance(one, ConformalTracker):
            return one.run(X[:, 0].copy(), y)
        if isinstance(one, TrackingRegressor):
            return one.predict_then_fit(X, y)
        if isinstance(one, TrackingClassifier):
            return one.predict_then_fit(X, y, classes=[0, 1]).reshape(len(y), -1)[:, -1]  # of class 1
        said = []
        for row, value in zip(X, y.tolist(), strict=True):
            said.append(one.predict(row.copy()))
            one.update(value)
        return said


def batch(seed, template, rows=300, keys=12):
    """Keys, targets and columns; values that are missing where a forecaster allows it."""
    rng = np.random.default_rng(seed)
    names = [f"shop {k}" for k in rng.integers(0, keys, rows)]
    y = 5 + np.sin(np.arange(rows)) + rng.standard_normal(rows)
    X = y[:, None] + rng.standard_normal((rows, width(template)))
    if isinstance(template, Forecaster):
        y[rng.random(rows) < 0.02] = np.nan
        X[rng.random(X.shape) < 0.02] = np.nan
    if isinstance(template, TrackingClassifier):
        y = (y > 5.0).astype(np.float64)
    return names, y, X


def assert_same(one, other):
    """Every number of two learners is the same, bit for bit; names of experts may differ."""
    mine, theirs = one.state(), other.state()
    for name in theirs:
        if not name.startswith("facts."):
            a, b = np.asarray(mine[name]), np.asarray(theirs[name])
            assert (a.shape, a.tobytes()) == (b.shape, b.tobytes()), name


def assert_equal(fleet, singles):
    """A fleet and a dict of learners are the same."""
    assert sorted(fleet.keys()) == sorted(singles)
    for key, one in singles.items():
        assert_same(fleet[key], one)


def assert_same_fleets(one, other):
    """Two fleets are the same."""
    assert sorted(one.keys()) == sorted(other.keys())
    for key in other.keys():  # noqa: SIM118
        assert_same(one[key], other[key])
