"""Pictures of the guides: forecasts, sets and projections, a fleet of forecasters, a service that is killed.

    python docs/guide_pictures.py [--out DIR]

Writes forecast.png, domains.png, many-streams.png, many-streams-sizes.png and service.png to DIR (docs/img when left
out) in seconds.
Needs: pip install 'thalweg[lab]'
"""

import argparse
import pathlib
import runpy
import tempfile

import matplotlib.pyplot as plt
import numpy as np

import thalweg as tw
from thalweg.estimators import Forecaster
from thalweg.estimators._panel import read_panel
from thalweg.estimators.long_frames import maker
from thalweg.lab import forecast as lab
from thalweg.lab.columns import read_long
from thalweg.lab.sample import demand

HERE = pathlib.Path(__file__).parent
BLUE, RED = "#0072B2", "#D55E00"


def domains():
    """Six sets of the plane; a segment leads from each point to the nearest one of the set."""
    d, rng = tw.domains, np.random.default_rng(0)
    sets = {
        "Ball": d.Ball(2),
        "Box": d.Box([-1.0, -0.5], [1.0, 0.5]),
        "Simplex": d.Simplex(2),
        "L1Ball": d.L1Ball(2),
        "Ellipsoid": d.Ellipsoid(np.array([[1.0, 0.5], [0.5, 2.0]]), bound=1.0),
        "Intersection of Ball and HalfSpace": d.Intersection(d.Ball(2), d.HalfSpace([1.0, 1.0], 0.3)),
    }
    figure, axes = plt.subplots(2, 3, figsize=(9, 6), layout="constrained", sharex=True, sharey=True)
    for ax, (name, domain) in zip(axes.flat, sets.items(), strict=True):
        cloud = np.array([domain.project(y) for y in rng.uniform(-2, 2, size=(1500, 2))])
        ax.plot(*cloud.T, ".", color=BLUE, markersize=3, alpha=0.4)
        for angle in np.linspace(0, 2 * np.pi, 13)[:-1]:
            y = 1.7 * np.array([np.cos(angle), np.sin(angle)])
            x = domain.project(y)
            ax.plot(*np.c_[y, x], color="0.6", linewidth=0.8)
            ax.plot(*y, "o", color="0.4", markersize=3)
            ax.plot(*x, "o", color=RED, markersize=4)
        ax.set_title(name, fontsize=10)
        ax.set_aspect("equal")
    return figure


def forecast():
    """The picture of `thalweg forecast load.csv --target demand --time hour --horizon 24 --plot`."""
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "load.csv"
        path.write_bytes(demand())
        frame = read_long(path, "demand", time="hour").frame
    panel = read_panel("load.csv", frame, None, "hour", "demand", (), "infer")
    return lab.picture(lab.play(panel, maker(panel, "auto", horizon=24, levels=(0.8, 0.95)), "demand of load.csv"))


def many_streams():
    """The houses of docs/many-streams.md, saved and loaded after 270 rounds."""
    rng, rounds, restart = np.random.default_rng(0), 300, 270
    figure, axes = plt.subplots(2, 2, figsize=(9, 4.6), layout="constrained", sharex=True)
    with tempfile.TemporaryDirectory() as folder:
        for house, ax in enumerate(axes.flat):
            path = pathlib.Path(folder) / f"{house}.npz"
            values = 10 + house + np.sin(np.arange(rounds) / 4) + 0.1 * rng.normal(size=rounds)
            forecaster = Forecaster(lags=8)
            before = forecaster.run(values[:restart]).mean[:, 0]
            forecaster.save(path)
            after = tw.load(path).run(values[restart:]).mean[:, 0]
            ax.plot(values, color="0.3", linewidth=1.2, label="value")
            ax.plot(np.r_[before, after], color=RED, linewidth=1.2, label="forecast")
            ax.set_xlim(240, rounds)
            ax.axvline(restart - 0.5, color="0.5", linestyle=":")
            ax.set_title(f"house-{house}", fontsize=10, loc="left")
    axes[0, 0].legend(frameon=False, fontsize=9)
    return figure


KILOBYTES = {
    "EfficientDynamic(Box(8))": 1.1,
    "Forecaster(lags=8)": 3.4,
    "ConformalTracker": 52.9,
}  # benchmarks/fleet.py
MICROSECONDS = {
    "dict of learners": 3.9,
    "Fleet": 1.2,
    "Fleet, from a frame": 1.3,
    "Spark, static frame": 3.0,
    "Spark, 20 rows a key\nand micro-batch": 9.0,
    "Spark, one row a key\nand micro-batch": 30,
    "Spark, one value a key": 170,
}


def sizes():
    """Memory of fleets by the number of keys, and the processor time of a row."""
    figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.8), layout="constrained")
    keys = np.array([10.0, 1e8])
    for (name, size), colour in zip(KILOBYTES.items(), (BLUE, RED, "#009E73"), strict=True):
        left.loglog(keys, 1e3 * size * keys / 1e9, color=colour, linewidth=1.6, label=name)
    left.loglog(keys, 21e3 * keys / 1e9, color=RED, linewidth=1.2, linestyle=":", label="dict of Forecaster(lags=8)")
    for memory, name in ((16, "a laptop"), (256, "a large machine")):
        left.axhline(memory, color="0.6", linewidth=0.8)
        left.text(12, 1.15 * memory, f"{name}, {memory} GB", fontsize=8, color="0.35")
    left.set_xlabel("keys")
    left.set_ylabel("memory, GB")
    left.set_ylim(1e-5, 1e5)
    left.legend(frameon=False, fontsize=8, loc="lower right")
    names = list(MICROSECONDS)[::-1]
    values = [MICROSECONDS[name] for name in names]
    colours = [RED if name.startswith("Fleet") else "0.7" if name.startswith("dict") else BLUE for name in names]
    right.barh(names, values, color=colours, height=0.65)
    for place, value in enumerate(values):
        right.text(1.1 * value, place, f"{value:g}", va="center", fontsize=8)
    right.set_xscale("log")
    right.set_xlim(0.8, 500)
    right.set_xlabel("processor time of a row, µs")
    right.tick_params(axis="y", labelsize=8)
    return figure


def service():
    """A decision of examples/service.py, never stopped and killed in round 250 with a checkpoint every 100."""
    event = runpy.run_path(str(HERE.parent / "examples" / "service.py"))["event"]

    def play(learner, until, path=None):
        rows = []
        while learner.rounds < until:
            rows.append((learner.rounds, learner.decision[2]))
            learner.step(event(learner.rounds))
            if path is not None and learner.rounds % 100 == 0:
                learner.save(path)
        return np.array(rows).T

    def new():
        return tw.Tracker(tw.domains.Ball(3, radius=2.0))

    figure, ax = plt.subplots(figsize=(9, 3.4), layout="constrained")
    ax.plot(*play(new(), 500), color="0.75", linewidth=5, label="never stopped")
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "learner.npz"
        ax.plot(*play(new(), 250, path), color=BLUE, linewidth=1.4, label="killed in round 250")
        ax.plot(*play(tw.load(path), 500), color=RED, linewidth=1.4, linestyle="--", label="resumed from round 200")
    ax.set_xlabel("round")
    ax.set_ylabel("third coordinate of the decision")
    ax.legend(frameon=False, fontsize=9)
    return figure


def main():
    """Draw all of them."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--out", type=pathlib.Path, default=HERE / "img")
    out = parser.parse_args().out
    pictures = {"forecast": forecast, "domains": domains, "many-streams": many_streams, "many-streams-sizes": sizes}
    pictures["service"] = service
    for name, draw in pictures.items():
        draw().savefig(out / f"{name}.png", dpi=130)


if __name__ == "__main__":
    main()
