"""The tables and the picture of docs/feedback-proofs.md, "Measurements: delay".

    python docs/late_pictures.py

Prints the table and writes img/late.png, in two minutes. Forecasts of a day ahead are judged a day later: 24 hours of
the sample's demand, 48 half-hours of the sea's temperature. Features are what is known a day before; learners begin at
the value of a day ago. "ignores the delay" feeds each gradient when it comes, as if it were that of the present round.
Needs: pip install 'thalweg[lab,data]'
"""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import matplotlib.pyplot as plt
import numpy as np
from thalweg.lab.studies.combination.runs import forecasts

import thalweg as tw
from thalweg._core.types import Floats
from thalweg.lab.sample import demand
from thalweg.lab.streams import _need, draw

IMG = Path(__file__).parent / "img"
T = 10_000  # rounds of the streams that drift


class Case(NamedTuple):
    """A set, a problem, how late feedback is, and which feature is the value of a day ago."""

    domain: tw.domains.Domain
    problem: Any
    delay: int
    yesterday: int | None = None

    @property
    def start(self) -> Floats | None:
        """Where learners begin: as a forecast one would trust, the value of a day ago."""
        return None if self.yesterday is None else np.eye(self.domain.dim)[self.yesterday]


def cases() -> dict[str, Case]:
    """Real and made-up series with a day's delay, then streams that drift."""
    rows = list(csv.DictReader(io.StringIO(demand().decode())))
    z, degrees, workday = (np.array([float(row[key]) for row in rows]) for key in ("demand", "degrees", "workday"))
    z = z / 1000
    data = _need("bokeh_sampledata.sea_surface_temperature").sea_surface_temperature
    sea = data["temperature"].to_numpy(dtype=float) / 25
    found = {}
    t = np.arange(192, z.size)
    features = np.c_[z[t - 24], z[t - 48], z[t - 168], degrees[t] / 30, workday[t], np.ones(t.size)]
    problem = tw.problems.LinearRegression(features, z[t])
    found["demand, weights in a ball"] = Case(tw.domains.Ball(6, radius=2.0), problem, 24, 0)
    t = np.arange(96, sea.size)
    features = np.c_[sea[t - 48], sea[t - 49], sea[t - 50], sea[t - 96]]
    problem = tw.problems.LinearRegression(features, sea[t])
    found["sea, weights in a ball"] = Case(tw.domains.Ball(4, radius=1.5), problem, 48, 0)
    for name, series, day in (("demand", z, 24), ("sea", sea, 48)):
        experts, y = forecasts(series, day, day)
        problem = tw.problems.LinearRegression(experts, y)
        found[f"{name}, six forecasts combined"] = Case(tw.domains.Simplex(6), problem, day, 1)
    for name in ("piecewise", "gradual", "fast-walk", "ball-piecewise"):
        stream = draw(name, seed=1, horizon=T)
        found[f"{name}, 24 late"] = Case(stream.domain, stream.problem, 24)
    return found


def ignores_delay(learner: tw.Learner, case: Case) -> Floats:
    """The losses of one that knows nothing of the delay."""
    waiting, paid = [], []
    for f in case.problem:
        x = learner.decision
        waiting.append((f.gradient(x), f.value(x)))
        paid.append(waiting[-1][1])
        if len(waiting) > case.delay:
            learner.update(*waiting.pop(0))
    return np.array(paid)


def contenders(case: Case) -> dict[str, Callable[[], Floats]]:
    """Who plays, as functions that give the losses."""
    X, problem, d, _ = case
    G, L, n = problem.gradient_bound(X), problem.smoothness, len(problem)
    turns, start = math.ceil(n / (d + 1)), case.start

    def play(learner: tw.Learner) -> Floats:
        return tw.play(learner, problem).losses

    return {
        "Tracker, ignores the delay": lambda: ignores_delay(tw.Tracker(X, start=start), case),
        "Delayed(Tracker)": lambda: play(tw.Delayed(X, partial(tw.Tracker, start=start), delay=d)),
        "EfficientDynamic, ignores the delay": lambda: ignores_delay(
            tw.EfficientDynamic(X, n, G, L, start=start), case
        ),
        "Delayed(EfficientDynamic)": lambda: play(
            tw.Delayed(X, lambda X: tw.EfficientDynamic(X, turns, G, L, start=start), delay=d)
        ),
        "EfficientDelayed": lambda: play(tw.EfficientDelayed(X, n, G, delay=d, start=start)),
        "Tracker, no delay": lambda: play(tw.Tracker(X, start=start)),
    }


def main() -> None:
    """Print the table and draw the picture."""
    columns: list[str] = []
    for name, case in cases().items():
        losses = {who: run() for who, run in contenders(case).items()}
        if not columns:
            columns = list(losses)
            print("| | persistence | best fixed |", " | ".join(columns), "|")
            draw_picture(case, losses)
        stay = "-" if case.start is None else f"{case.problem.losses_of(case.start).sum():.4g}"
        fixed = tw.regret.best_fixed(case.problem, case.domain).loss
        print(f"| {name} | {stay} | {fixed:.4g} |", " | ".join(f"{losses[who].sum():.4g}" for who in columns), "|")


def draw_picture(case: Case, losses: dict[str, Floats]) -> None:
    """What was paid so far, on the first series."""
    figure, axes = plt.subplots(figsize=(7.0, 3.6), layout="constrained")
    stay = case.problem.losses_of(case.start)
    shown = {"persistence: yesterday's value": stay} | losses
    styles = {"persistence: yesterday's value": ("0.6", "--"), "Tracker, no delay": ("0.3", ":")}
    days = np.arange(1, len(stay) + 1) / case.delay
    for who, paid in shown.items():
        color, line = styles.get(who, (None, "-"))
        axes.plot(days, np.cumsum(paid), line, color=color, label=who, linewidth=1.4)
    axes.set(xscale="log", yscale="log", xlabel="day", ylabel="loss so far", xlim=(0.5, days[-1]))
    axes.set_title("Demand of the next day; every answer is a day late", fontsize=10)
    axes.legend(fontsize=7, frameon=False)
    figure.savefig(IMG / "late.png", dpi=130)
    plt.close(figure)


if __name__ == "__main__":
    main()
