"""A process of its own: import thalweg, play one round, say how long each part took. Run by `bench.py` and the tests.

    python start.py SECONDS_AT_START CLASS

Prints one line of JSON. Times count from SECONDS_AT_START, when the parent started this process; `processor`, `numpy`
and `numba` are processor time of all, processor time of `import numpy`, and whether Numba was loaded.
"""

import sys
import time

READY = time.time()

import json  # noqa: E402

began = time.process_time()
import numpy as np  # noqa: E402

NUMPY = time.process_time() - began


def ellipsoid(tw):
    """The set of the paper's experiments."""
    return tw.domains.Ellipsoid(np.linspace(1.0, 10.0, 8), bound=9.0)


def learner(make):
    """One round of a learner."""

    def play(tw):
        one = make(tw)
        _ = one.decision
        one.update(np.full(8, 0.1))
        return one.decision

    return play


def rows(name):
    """A few rows for an estimator of scikit-learn's kind."""

    def play(tw):
        X = np.random.default_rng(0).standard_normal((5, 3))
        model = getattr(tw.estimators, name)()
        return model.fit(X) if name == "StreamingPCA" else model.fit(X, X[:, 0]).predict(X)

    return play


def aggregator(tw):
    """A forecast and its answer."""
    one = tw.estimators.Aggregator()
    said = one.predict([1.0, 2.0])
    one.update(1.5)
    return said


def forecaster(tw):
    """A few steps."""
    one = tw.estimators.Forecaster(lags=2)
    one.run(np.arange(5.0))
    return one.predict()


def intervals(tw):
    """An interval and its answer."""
    one = tw.estimators.ConformalTracker()
    said = one.predict_interval(1.0)
    one.update(1.0)
    return said


def control(tw):
    """One action."""
    system = tw.control.double_integrator()
    controller = tw.EfficientControl(system, 100)
    return controller.act(np.zeros(system.state_dim))


def subspace(tw):
    """One instance."""
    one = tw.EfficientPCA(4, 2)
    one.update(np.array([1.0, 0.0, 0.0, 0.0]))
    return one.decision


ROUNDS = {
    "EfficientDynamic": learner(lambda tw: tw.EfficientDynamic(ellipsoid(tw), 20_000, 54.3, 9.0, loss_bound=164.0)),
    "Tracker": learner(lambda tw: tw.Tracker(ellipsoid(tw))),
    "Forecaster": forecaster,
    "Aggregator": aggregator,
    "ConformalTracker": intervals,
    "TrackingRegressor": rows("TrackingRegressor"),
    "StreamingPCA": rows("StreamingPCA"),
    "EfficientControl": control,
    "EfficientPCA": subspace,
}


def main() -> None:
    """Play one round and report."""
    began = float(sys.argv[1])
    import thalweg as tw

    imported = time.time()
    ROUNDS[sys.argv[2]](tw)
    played, processor = time.time(), time.process_time()
    report = {
        "interpreter": READY - began,
        "import": imported - READY,
        "first_round": played - imported,
        "total": played - began,
        "processor": processor,
        "numpy": NUMPY,
        "numba": "numba" in sys.modules,
    }
    print(json.dumps(report))


if __name__ == "__main__":
    main()
