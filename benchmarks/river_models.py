"""TrackingRegression and TrackingLogistic beside river's own, side by side: `python benchmarks/river_models.py`.

First the time of `predict_one` and `learn_one` together (the best of several passes over the same rows, processor
time), then errors on the series that come with river, each row predicted before it is learned. river's pipelines begin
with its scaler, and for regression also scale the target, without which several diverge. Last, errors where labels
come late.
"""

import collections
import time

import numpy as np
from bokeh_sampledata import stocks
from river import datasets, linear_model, metrics, optim, preprocessing

from thalweg.estimators import TrackingLogistic, TrackingRegression, TrackingRegressor

PASSES = 7
DELAYS = 0, 5, 20, 50


def time_of(model, rows):
    """Microseconds of a row, predicted and learned."""
    best = np.inf
    for _ in range(PASSES):
        began = time.process_time()
        for x, y in rows:
            model.predict_one(x)
            model.learn_one(x, y)
        best = min(best, time.process_time() - began)
    return 1e6 * best / len(rows)


def dense(rng, d, count=1000):
    """Rows of d numbers with a linear target."""
    rows = rng.standard_normal((count, d))
    return [({f"x{i}": float(v) for i, v in enumerate(row)}, float(row[:3].sum() + rng.normal())) for row in rows]


def texts(rng, words=2000, count=1000):
    """Rows of some 25 of many words, some far more frequent than others, and whether the text is of a kind."""
    chances = 1 / np.arange(1, words + 1)
    found = []
    for _ in range(count):
        drawn = np.unique(rng.choice(words, 40, p=chances / chances.sum()))
        found.append(({f"w{j}": 1.0 for j in drawn}, bool(np.sum(drawn % 7 == 0) + rng.normal() > 3)))
    return found


def times():
    """The table of times."""
    rng = np.random.default_rng(0)
    scaler = preprocessing.StandardScaler
    print("| rows | river: scaler and linear model | Tracking | ratio |\n|---|---|---|---|")
    cases = [
        ("regression, 10 features", dense(rng, 10), linear_model.LinearRegression(), TrackingRegression()),
        ("regression, 10 features, no guests", dense(rng, 10), linear_model.LinearRegression(),
         TrackingRegression(guests=False)),
        ("regression, 30 features", dense(rng, 30), linear_model.LinearRegression(), TrackingRegression()),
        ("classes, 10 features", [(x, y > 0) for x, y in dense(rng, 10)], linear_model.LogisticRegression(),
         TrackingLogistic()),
        ("classes, 25 of 2000 words", texts(rng), linear_model.LogisticRegression(), TrackingLogistic()),
    ]  # fmt: skip
    for name, rows, theirs, ours in cases:
        a, b = time_of(scaler() | theirs, rows), time_of(ours, rows)
        print(f"| {name} | {a:.1f} µs | {b:.1f} µs | {b / a:.2f} |", flush=True)
    print()


def water():
    """Every flow from the 24 before it."""
    flow = [float(y if not isinstance(y, dict) else next(iter(y.values()))) for _, y in datasets.WaterFlow()]
    last = collections.deque(maxlen=24)
    for y in flow:
        if len(last) == 24:
            yield {f"lag {i + 1}": v for i, v in enumerate(reversed(last))}, y
        last.append(y)


def chicks():
    """The weight of a chicken by its age, its diet and who it is, in numbers."""
    for x, y in datasets.ChickWeights():
        yield {"time": float(x["time"]), f"diet {x['diet']}": 1.0, f"chick {x['chick']}": 1.0}, y


def regressions():
    """The table of regression errors."""
    peers = {
        "SGD": lambda: linear_model.LinearRegression(),
        "Adam": lambda: linear_model.LinearRegression(optim.Adam()),
        "AdaGrad": lambda: linear_model.LinearRegression(optim.AdaGrad()),
        "passive-aggressive": lambda: linear_model.PARegressor(),
        "Bayesian": lambda: linear_model.BayesianLinearRegression(),
    }
    streams = {"polls": lambda: datasets.TrumpApproval(), "water flow, 24 lags": water, "chick weights": chicks}
    heads = ["RMSE", *peers, "TrackingRegression", "over the best"]
    print(f"| {' | '.join(heads)} |\n|{'---|' * len(heads)}")
    for name, draw in streams.items():
        rows = list(draw())
        errors = []
        for make in peers.values():
            scaled = preprocessing.TargetStandardScaler(preprocessing.StandardScaler() | make())
            errors.append(error_of(scaled, rows))
        ours = error_of(TrackingRegression(), rows)
        cells = [f"{e:.4g}" if e < 1e4 else "diverges" for e in errors]
        print(f"| {name} | {' | '.join(cells)} | **{ours:.4g}** | {ours / min(errors):.3f} |", flush=True)
    print()


def known_lags(values, count, delay):
    """Every value from those that were the latest known when the last `delay` labels were not there yet."""
    for t in range(count + delay, len(values)):
        yield {f"lag {i}": float(values[t - delay - i]) for i in range(1, count + 1)}, float(values[t])


def late():
    """The table of errors with late labels: the last label as a candidate, without it, and by itself."""
    rng = np.random.default_rng(2)
    X, walk = rng.standard_normal((1500, 10)), np.cumsum(rng.standard_normal(1500))
    weights = np.cumsum(0.05 * rng.standard_normal((1500, 10)), axis=0)
    mixed = (X * weights).sum(axis=1) + rng.standard_normal(1500)
    ibm = stocks.IBM["adj_close"][:1500]
    streams = {
        "polls": lambda delay: datasets.TrumpApproval(),
        "IBM's price, 5 lags": lambda delay: known_lags(ibm, 5, delay),
        "random walk, 5 lags": lambda delay: known_lags(walk, 5, delay),
        "weights walk": lambda delay: ((dict(enumerate(x)), y) for x, y in zip(X, mixed, strict=True)),
    }
    print("\n| RMSE, labels late by | rows | last label | without it | TrackingRegression |\n|---|---|---|---|---|")
    for name, draw in streams.items():
        for delay in DELAYS:
            rows = list(draw(delay))
            ours, plain, known, errors = TrackingRegression(), TrackingRegressor(), None, []
            for t, (x, y) in enumerate(rows):
                if t > delay:
                    before, label = rows[t - delay - 1]
                    ours.learn_one(before, label)
                    plain.partial_fit([[*before.values()]], [label])
                    known = label
                if known is not None:
                    errors.append([known - y, plain.predict([[*x.values()]])[0] - y, ours.predict_one(x) - y])
            cells = " | ".join(f"{e:.4g}" for e in np.sqrt(np.mean(np.square(errors), axis=0)))
            print(f"| {name}: {delay} | {len(rows)} | {cells} |", flush=True)
    print()


def error_of(model, rows):
    """The root of the mean squared error, one row ahead."""
    total = 0.0
    for x, y in rows:
        total += (model.predict_one(x) - y) ** 2
        model.learn_one(x, y)
    return float(np.sqrt(total / len(rows)))


def classes():
    """The table of log losses."""
    peers = {
        "SGD": lambda: linear_model.LogisticRegression(),
        "Adam": lambda: linear_model.LogisticRegression(optim.Adam()),
        "AdaGrad": lambda: linear_model.LogisticRegression(optim.AdaGrad()),
    }
    streams = {"phishing": lambda: datasets.Phishing(), "bananas": lambda: datasets.Bananas(),
               "texts (drawn)": lambda: texts(np.random.default_rng(1), count=4000)}  # fmt: skip
    heads = ["log loss", *peers, "TrackingLogistic", "over the best"]
    print(f"| {' | '.join(heads)} |\n|{'---|' * len(heads)}")
    for name, draw in streams.items():
        found = []
        scaled = [preprocessing.StandardScaler() | make() for make in peers.values()] if "texts" not in name else None
        for model in [*(scaled or [make() for make in peers.values()]), TrackingLogistic()]:
            metric = metrics.LogLoss()
            for x, y in draw():
                metric.update(y, model.predict_proba_one(x))
                model.learn_one(x, y)
            found.append(metric.get())
        *errors, ours = found
        cells = " | ".join(f"{e:.4f}" for e in errors)
        print(f"| {name} | {cells} | **{ours:.4f}** | {ours / min(errors):.3f} |", flush=True)


if __name__ == "__main__":
    times()
    regressions()
    classes()
    late()
