"""TrackingRegressor and TrackingClassifier beside river and scikit-learn: `python benchmarks/regressors.py [--quick]`.

Every row is predicted before it is learned. Prints the tables of docs/regressors.md: RMSE, log loss, pinball loss, and
the time of a row. The data are those of the extra `data`, and made-up streams.
"""

from __future__ import annotations

import argparse
import math
import time
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from river import datasets, linear_model, multiclass, optim, preprocessing
from sklearn import datasets as sklearn_datasets
from sklearn.linear_model import PassiveAggressiveRegressor, SGDRegressor

from thalweg.estimators import TrackingClassifier, TrackingRegressor

Array = np.ndarray
Data = tuple[Array, Array]

CUT = 6000  # rows of a stream, at most


# --------------------------------------------------------------------------------------------------------- the streams


def lags(z: Any, count: int) -> Data:
    """The next value of a series, from the last `count`."""
    z = np.asarray(z, dtype=float)
    return np.stack([z[count - k : z.size - k] for k in range(1, count + 1)], axis=1), z[count:]


def table(rows: Any, *names: str) -> Data:
    """A dataset of river, all its numbers or those named."""
    rows = list(rows)
    return np.array([[float(x[k]) for k in (names or x)] for x, _ in rows]), np.array([y for _, y in rows])


def real_streams() -> Iterator[tuple[str, Data, bool]]:
    """Name, data, and whether it is a forecast: then the last target is shown as one, too."""
    import pandas as pd
    from bokeh_sampledata import glucose, sea_surface_temperature, stocks

    yield "polls", table(datasets.TrumpApproval()), True
    yield "water flow, 24 lags", lags([y for _, y in datasets.WaterFlow()], 24), True
    yield "chicken weights", table(datasets.ChickWeights(), "time", "diet"), False
    yield "airline passengers, 12 lags", lags([y for _, y in datasets.AirlinePassengers()], 12), True
    sensor = glucose.data[["isig", "glucose"]].apply(pd.to_numeric, errors="coerce").dropna().to_numpy(float)
    yield "glucose, 8 lags, all", lags(sensor[:, 1], 8), True
    yield "glucose from the sensor's current", (sensor[:, :1], sensor[:, 1]), True
    sea = sea_surface_temperature.sea_surface_temperature["temperature"].to_numpy(float)
    yield "sea temperature, 8 lags", lags(sea, 8), True
    yield "IBM's price, 5 lags", lags(stocks.IBM["adj_close"], 5), True
    returns = np.abs(np.diff(np.log(stocks.AAPL["adj_close"])))
    yield "size of Apple's return, 10 lags", lags(returns, 10), True
    yield "diabetes", sklearn_datasets.load_diabetes(return_X_y=True), False
    cancer = sklearn_datasets.load_breast_cancer().data
    yield "cancer: first column from the others", (cancer[:, 1:], cancer[:, 0]), False
    digits = sklearn_datasets.load_digits()
    yield "digits as numbers", (digits.data, digits.target.astype(float)), False


def made_up_streams(T: int = 3000) -> Iterator[tuple[str, Data, bool]]:
    """Streams that are hard for different reasons."""

    def normal(seed: int, d: int) -> tuple[Any, Array, Array]:
        rng = np.random.default_rng(seed)
        return rng, rng.normal(size=(T, d)), rng.normal(size=d)

    rng, X, w = normal(1, 10)
    yield "stationary", (X, X @ w + rng.normal(size=T)), False
    rng, X, _ = normal(2, 10)
    yield (
        "weights walk",
        (X, (X * np.cumsum(0.03 * rng.normal(size=X.shape), axis=0)).sum(1) + rng.normal(size=T)),
        False,
    )
    rng, X, _ = normal(3, 8)
    jumps = np.repeat(rng.normal(size=(6, 8)), T // 6, axis=0)
    yield "weights jump 5 times", (X, (X * jumps).sum(axis=1) + 0.1 * rng.normal(size=T)), False
    rng, X, _ = normal(4, 4)
    level = np.cumsum((rng.random(T) < 0.005) * rng.normal(size=T) * 10)
    yield "level jumps", (X, X.sum(axis=1) + level + 0.3 * rng.normal(size=T)), False
    rng, X, w = normal(5, 10)
    yield "noise with heavy tails", (X, X @ w + rng.standard_t(2, size=T)), False
    rng, _, w = normal(6, 8)
    X = rng.standard_t(2.5, size=(T, 8))
    yield (
        "features with heavy tails, units 1e-4 to 1e4",
        (X * 10.0 ** np.linspace(-4, 4, 8), X @ w + rng.normal(size=T)),
        False,
    )
    rng, X, w = normal(7, 60)
    X *= rng.random(X.shape) < 0.03
    yield "sparse, d = 60", (X, X @ w + 0.1 * rng.normal(size=T)), False
    rng, X, w = normal(8, 20)
    mix = np.linalg.qr(rng.normal(size=(20, 20)))[0] * np.logspace(0, -4, 20)[:, None]
    yield "condition 1e4", (X @ mix, X @ mix @ w + 0.01 * rng.normal(size=T)), False
    rng, X, w = normal(9, 200)
    w[10:] = 0
    yield "d = 200, 10 matter", (X, X @ w + rng.normal(size=T)), False
    rng, X, w = normal(10, 80)
    yield "120 rows, d = 80", (X[:120], X[:120] @ w + rng.normal(size=120)), False
    rng, _, _ = normal(11, 1)
    t = np.arange(T)
    z = 0.01 * t + 3 * np.sin(2 * np.pi * t / 24) + np.sin(2 * np.pi * t / 7) + 0.3 * rng.normal(size=T)
    yield "trend and seasons, 24 lags", lags(z, 24), True
    yield "random walk, 5 lags", lags(np.cumsum(rng.normal(size=T)), 5), True
    rng, X, w = normal(12, 6)
    y = X @ w + 0.5 * rng.normal(size=T)
    y[rng.integers(0, T, 20)] += 1000 * rng.normal(size=20)
    yield "20 targets are wild", (X, y), False


def class_streams() -> Iterator[tuple[str, Data]]:
    """Classes are counted from 0."""
    yield "phishing", table(datasets.Phishing())
    yield "bananas", table(datasets.Bananas())
    yield "image segments (7)", table(datasets.ImageSegments())
    for name in ("breast_cancer", "digits", "wine", "iris"):
        X, y = getattr(sklearn_datasets, f"load_{name}")(return_X_y=True)
        order = np.random.default_rng(0).permutation(len(y))
        count = f" ({len(set(y))})" if len(set(y)) > 2 else ""
        yield f"{name}{count}".replace("_", " "), (X[order], y[order])
    T = 4000
    for name, walk, scale in (("weights stand", 0.0, 1.0), ("weights walk", 0.05, 0.0)):
        rng = np.random.default_rng(13)
        X = rng.normal(size=(T, 10))
        W = scale * rng.normal(size=10) + np.cumsum(walk * rng.normal(size=X.shape), axis=0)
        yield name, (X, (rng.random(T) < 1 / (1 + np.exp(-(X * W).sum(axis=1)))).astype(int))
    rng = np.random.default_rng(14)
    X = rng.normal(size=(T, 10))
    W = np.repeat(2 * rng.normal(size=(8, 10)), T // 8, axis=0)
    yield "weights jump 7 times", (X, (rng.random(T) < 1 / (1 + np.exp(-(X * W).sum(axis=1)))).astype(int))


# ----------------------------------------------------------------------------------------------------------- contenders


def scaled(model: Any) -> Any:
    """river's pipeline: features and target standardised as they come."""
    return preprocessing.StandardScaler() | preprocessing.TargetStandardScaler(model)


RIVER: dict[str, Callable[[], Any]] = {
    "SGD": lambda: scaled(linear_model.LinearRegression()),
    "AdaGrad": lambda: scaled(linear_model.LinearRegression(optimizer=optim.AdaGrad())),
    "Adam": lambda: scaled(linear_model.LinearRegression(optimizer=optim.Adam())),
    "Bayesian": lambda: scaled(linear_model.BayesianLinearRegression()),
    "PA": lambda: scaled(linear_model.PARegressor()),
}
LOGISTIC: dict[str, Callable[[], Any]] = {
    "SGD": lambda: linear_model.LogisticRegression(),
    "AdaGrad": lambda: linear_model.LogisticRegression(optimizer=optim.AdaGrad()),
    "Adam": lambda: linear_model.LogisticRegression(optimizer=optim.Adam()),
}
SKLEARN: dict[str, Callable[[], Any]] = {
    "SGDRegressor": SGDRegressor,
    "passive-aggressive": PassiveAggressiveRegressor,
}


def by_row(model: Any, X: Array, y: Array) -> Array:
    """river, row by row."""
    said = np.zeros(len(y))
    for t, (row, target) in enumerate(zip(X.tolist(), y.tolist(), strict=True)):
        x = dict(enumerate(row))
        with np.errstate(all="ignore"):
            said[t] = model.predict_one(x) or 0.0
            model.learn_one(x, target)
    return said


def by_partial_fit(model: Any, X: Array, y: Array) -> Array:
    """scikit-learn, row by row, on features standardised by the rows before; the target as it is."""
    from thalweg.scaling import Standardiser

    Z, said = Standardiser(X.shape[1]).run(X), np.zeros(len(y))
    for t in range(len(y)):
        said[t] = model.predict(Z[t : t + 1])[0] if t else 0.0
        try:
            model.partial_fit(Z[t : t + 1], y[t : t + 1])
        except ValueError:  # its weights are no longer finite
            said[t:] = np.inf
            break
    return said


def rmse(said: Array, y: Array) -> float:
    """Without the first row, which cannot be predicted."""
    with np.errstate(all="ignore"):
        return float(np.sqrt(np.mean((said[1:] - y[1:]) ** 2)))


def log_loss(chances: Array, y: Array) -> float:
    """Of probabilities (n, classes)."""
    return float(-np.log(np.clip(chances[np.arange(len(y)), y], 1e-15, 1.0)).mean())


def pinball(said: Array, y: Array, tau: float) -> float:
    """Without the first row."""
    e = (y - said)[1:]
    return float(np.maximum(tau * e, (tau - 1) * e).mean())


def shown(value: float, best: float) -> str:
    """A number, in bold where it is the best."""
    text = "diverges" if not math.isfinite(value) or value > 1e3 * best else f"{value:.4g}"
    return f"**{text}**" if value <= best else text


# --------------------------------------------------------------------------------------------------------------- tables


def show_regression(quick: bool) -> None:
    """RMSE."""
    names = [*RIVER, *SKLEARN]
    print("\n| RMSE | rows, d | " + " | ".join(names) + " | persistence | ours | over the best |")
    print("|---" * (len(names) + 5) + "|")
    ratios = []
    for name, (X, y), forecast in [*real_streams(), *made_up_streams()]:
        rows = 300 if quick else (len(y) if "all" in name else CUT)
        X, y = np.ascontiguousarray(X[:rows], dtype=float), np.asarray(y[:rows], dtype=float)
        results = {who: math.inf if who == "Bayesian" and X.shape[1] > 100 else rmse(by_row(make(), X, y), y)
                   for who, make in RIVER.items()}  # fmt: skip
        peer = min(results.values())
        results |= {who: rmse(by_partial_fit(make(), X, y), y) for who, make in SKLEARN.items()}
        ours = rmse(TrackingRegressor().predict_then_fit(X, y), y)
        ratios.append(ours / peer)
        best = min(ours, *results.values())
        cells = ["-" if who == "Bayesian" and X.shape[1] > 100 else shown(v, best) for who, v in results.items()]
        last = f"{rmse(np.r_[0.0, y[:-1]], y):.4g}" if forecast else ""
        print(f"| {name} | {len(y)}, {X.shape[1]} | " + " | ".join(cells), end="")
        print(f" | {last} | {shown(ours, best)} | {ours / peer:.3f} |", flush=True)
    mean = math.exp(np.log(ratios).mean())
    print(f"\nRMSE over the best of river's five: {mean:.3f} on average (geometric), {max(ratios):.3f} at worst.")


def show_classes(quick: bool) -> None:
    """Log loss."""
    print("\n| log loss | rows, d | " + " | ".join(LOGISTIC) + " | ours | over the best |")
    print("|---" * (len(LOGISTIC) + 4) + "|")
    ratios = []
    for name, (X, y) in class_streams():
        X, classes = X[: 300 if quick else CUT], np.unique(y)
        y = np.searchsorted(classes, y)[: len(X)]
        results = {}
        for who, make in LOGISTIC.items():
            one = make() if len(classes) == 2 else multiclass.OneVsRestClassifier(make())
            model, chances = preprocessing.StandardScaler() | one, np.full((len(y), len(classes)), 1 / len(classes))
            for t, row in enumerate(X.tolist()):
                x = dict(enumerate(row))
                told = model.predict_proba_one(x)
                if told:
                    chances[t] = [told.get(c if len(classes) > 2 else bool(c), 0.0) for c in range(len(classes))]
                model.learn_one(x, int(y[t]) if len(classes) > 2 else bool(y[t]))
            results[who] = log_loss(chances, y)
        ahead = TrackingClassifier().predict_then_fit(X, y, classes=np.arange(len(classes)))
        ours, peer = log_loss(ahead, y), min(results.values())
        ratios.append(ours / peer)
        cells = " | ".join(shown(value, min(ours, peer)) for value in results.values())
        print(
            f"| {name} | {len(y)}, {X.shape[1]} | {cells} | {shown(ours, min(ours, peer))} | {ours / peer:.3f} |",
            flush=True,
        )
    mean = math.exp(np.log(ratios).mean())
    print(f"\nLog loss over the best of river's: {mean:.3f} on average, {max(ratios):.3f} at worst.")


def show_quantiles(quick: bool) -> None:
    """Pinball loss."""
    taus = (0.1, 0.5, 0.95)
    print("\n| pinball loss over river's | " + " | ".join(f"tau = {tau}" for tau in taus) + " |")
    print("|---" * (len(taus) + 1) + "|")
    ratios = []
    for name, (X, y), _ in [*real_streams(), *made_up_streams()]:
        X, y = (
            np.ascontiguousarray(X[: 300 if quick else 3000], dtype=float),
            np.asarray(y, dtype=float)[: 300 if quick else 3000],
        )
        cells = []
        for tau in taus:
            loss = optim.losses.Quantile(tau)
            peers = (
                scaled(linear_model.LinearRegression(loss=loss)),
                (preprocessing.StandardScaler() | linear_model.LinearRegression(loss=loss, intercept_lr=0.1)),
            )
            peer = min(pinball(by_row(model, X, y), y, tau) for model in peers)
            ours = pinball(TrackingRegressor("quantile", quantile=tau).predict_then_fit(X, y), y, tau)
            ratios.append(ours / peer)
            cells.append(f"{ours / peer:.3f}")
        print(f"| {name} | " + " | ".join(cells) + " |", flush=True)
    print(f"\nPinball loss over river's: {math.exp(np.log(ratios).mean()):.3f} on average, {max(ratios):.3f} at worst.")


def best_time(run: Callable[[], Any], repeats: int) -> float:
    """Seconds of processor time."""
    times = []
    for _ in range(repeats):
        start = time.process_time()
        run()
        times.append(time.process_time() - start)
    return min(times)


def show_speed(quick: bool) -> None:
    """Microseconds a row."""
    T = 2000 if quick else 20_000
    print("\n| us a row of a batch | " + " | ".join(f"d = {d}" for d in (1, 10, 50, 100)) + " |")
    print("|---|---|---|---|---|")
    makers: dict[str, Callable[[], Any]] = {
        "SGDRegressor": SGDRegressor,
        "TrackingRegressor(guests=False)": lambda: TrackingRegressor(guests=False),
        "TrackingRegressor()": TrackingRegressor,
    }
    for who, make in makers.items():
        cells = []
        for d in (1, 10, 50, 100):
            rng = np.random.default_rng(0)
            X = rng.normal(size=(max(T // d, 200), d))
            y = X.sum(axis=1) + rng.normal(size=len(X))
            model = make().partial_fit(X[:10], y[:10])
            seconds = best_time(lambda model=model, X=X, y=y: model.partial_fit(X, y), 7)
            cells.append(f"{1e6 * seconds / len(X):.2f}")
        print(f"| {who} | " + " | ".join(cells) + " |", flush=True)


def main() -> None:
    """Print all tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="the first 300 rows of every stream")
    parser.add_argument("--only", choices=("regression", "classes", "quantiles", "speed"))
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    tables = {"regression": show_regression, "classes": show_classes, "quantiles": show_quantiles, "speed": show_speed}
    for name, show in tables.items():
        if options.only in (None, name):
            show(options.quick)


if __name__ == "__main__":
    main()
