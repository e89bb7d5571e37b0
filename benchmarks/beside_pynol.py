"""Thalweg and PyNOL side by side on the data of PyNOL's two examples, dynamic and adaptive: loss and time a round.

    python benchmarks/beside_pynol.py [--rounds N] [--turns N] [--json FILE]

Both examples draw the same data: d = 3, unit ball, T = 10 000, another model every 100 rounds. Losses are r^2/2. PyNOL
(https://github.com/li-lf/PyNOL) is not on PyPI; where `import pynol` works, its methods are played in the same run,
with the arguments of its examples, and its data are compared with ours. Otherwise only ours are.

Times are processor time. "play" is a whole run in one call; "by hand" a round from Python, which is the only way PyNOL
has: `decision`, the gradient, `update`, or `step` for learners that query the loss themselves.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import math
import pathlib
import time
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
from thalweg.lab.studies.tracker.runs import pynol as example

import thalweg as tw
from thalweg.cards import recipes
from thalweg.lab.streams import Stream

T, STAGE = 10_000, 100
BY_HAND = 2000
COLUMNS = ("loss", "play", "by hand", "projections", "gradients")
OURS = (
    "OGD", "SOGD", "Ader-own", "Ader", "Sword", "Sword-shared", "SwordPP", "AFLH", "AFLH-shared", "SAOL",
    "SAOL-shared", "CBCE", "SACS-compact", "SACS-eager", "EfficientDynamic", "EfficientOptimistic",
    "EfficientAdaptive-eager", "EfficientIntervalDynamic-eager", "EfficientCBCE", "EfficientAOA", "Tracker",
)  # fmt: skip
Row = dict[str, Any]


def seconds(make: Callable[[], Any], run: Callable[[Any], Any]) -> tuple[float, Any]:
    """Processor time of a run with a fresh learner, and its result."""
    learner = make()
    began = time.process_time()
    found = run(learner)
    return time.process_time() - began, found


# ------------------------------------------------------------------------------------------------------------ Thalweg


def ours(stream: Stream) -> dict[str, Callable[[], Any]]:
    """Learners of the catalog as their cards build them, and SACS with the threshold of the example."""
    found = {name: partial(recipes()[name].build, stream.setting) for name in OURS}
    told = {"loss_bound": stream.setting.loss_bound, "smoothness": stream.setting.smoothness}
    found["SACS, threshold 1"] = lambda: tw.SACS(stream.domain, threshold=1.0, gradients="own", **told)
    return found


def by_hand(learner: Any, problem: Any) -> None:
    """Rounds from Python."""
    for a, b, f in zip(problem.features, problem.labels, problem, strict=False):
        if learner.rounds == BY_HAND:
            break
        if learner.one_gradient:
            r = a @ learner.decision - b
            learner.update(r * a, r * r / 2)
        else:
            learner.step(f)


def play_ours(stream: Stream, turns: int) -> Iterator[Row]:
    """One row a learner."""
    problem = stream.problem
    for name, make in ours(stream).items():
        run = tw.play(make(), problem)
        by_hand(make(), problem)  # compiles everything first
        compiled = min(seconds(make, lambda learner: tw.play(learner, problem))[0] for _ in range(turns))
        python = min(seconds(make, lambda learner: by_hand(learner, problem))[0] for _ in range(turns))
        yield {
            "whose": "thalweg",
            "method": name,
            "loss": run.total_loss,
            "play": compiled / run.rounds * 1e6,
            "by hand": python / min(BY_HAND, run.rounds) * 1e6,
            "projections": run.queries.projections / run.rounds,
            "gradients": run.queries.gradients / run.rounds,
        }


# -------------------------------------------------------------------------------------------------------------- PyNOL


def theirs(rounds: int) -> dict[str, Callable[[], Any]]:
    """The learners of PyNOL's examples as they are built there, with G of losses r^2/2."""
    from pynol.environment.domain import Ball
    from pynol.learner.base import OGD, SOGD
    from pynol.learner.models.adaptive.aflh import AFLH
    from pynol.learner.models.adaptive.sacs import PSACS, SACS
    from pynol.learner.models.adaptive.saol import SAOL
    from pynol.learner.models.dynamic.ader import Ader
    from pynol.learner.models.dynamic.sword import SwordBest
    from pynol.learner.models.dynamic.swordpp import SwordPP

    domain, G = Ball(dimension=3, radius=1), 2.0
    least, most, shortest = 2 / (G * math.sqrt(rounds)), 2 / G, math.log2(rounds) ** 2
    on = {"domain": domain, "T": rounds, "seed": 0}
    steps = {"min_step_size": least, "max_step_size": most}
    return {
        "OGD": lambda: OGD(domain=domain, step_size=least, seed=0),
        "Ader": lambda: Ader(G=G, surrogate=False, **steps, **on),
        "Ader++": lambda: Ader(G=G, surrogate=True, **steps, **on),
        "Sword": lambda: SwordBest(G=G, L_smooth=1, **steps, **on),
        "Sword++": lambda: SwordPP(G=G, L_smooth=1, **steps, **on),
        "SOGD": lambda: SOGD(domain=domain, seed=0),
        "AFLH": lambda: AFLH(surrogate=False, **on),
        "AFLH++": lambda: AFLH(surrogate=True, **on),
        "SAOL": lambda: SAOL(alive_time_threshold=shortest, **on),
        "SACS": lambda: SACS(alive_time_threshold=shortest, **on),
        "PSACS": lambda: PSACS(loss_threshold=1, **on),
    }


def play_theirs(stream: Stream) -> Iterator[Row]:
    """One row a method."""
    from pynol.environment.environment import Environment
    from pynol.environment.loss_function import SquareLoss
    from pynol.online_learning import online_learning
    from pynol.utils.data_generator import LinearRegressionGenerator

    X, y, n = stream.problem.features, stream.problem.labels, len(stream.problem)
    drawn = LinearRegressionGenerator().generate_data(n, 3, n // STAGE, 1, 1, seed=0)
    np.testing.assert_allclose(X, drawn[0], rtol=0, atol=1e-15)
    np.testing.assert_allclose(y, drawn[1], rtol=0, atol=1e-14)
    for name, make in theirs(n).items():
        world = Environment(func_sequence=SquareLoss(feature=X, label=y))  # r^2/2; its examples have scale=1/2
        took, (_, losses, *_) = seconds(make, partial(online_learning, n, world))
        yield {"whose": "PyNOL", "method": name, "loss": float(losses.sum()), "by hand": took / n * 1e6}


def show(row: Row) -> Row:
    """Print a row."""
    cells = [f"{row[name]:14.4g}" if name in row else " " * 14 for name in COLUMNS]
    print(f"{row['whose']:8s} {row['method']:29s}" + "".join(cells), flush=True)
    return row


def main() -> None:
    """Play, print rows as they come, and write them down."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--rounds", type=int, default=T)
    parser.add_argument("--turns", type=int, default=5, help="of which the least time counts")
    parser.add_argument("--json", type=pathlib.Path, help="where to write the numbers")
    options = parser.parse_args()
    stream = example(options.rounds, options.rounds // STAGE)
    print(f"{'sum of r^2/2; microseconds a round':38s}" + "".join(f"{name:>14s}" for name in COLUMNS), flush=True)
    rows = []
    for row in play_ours(stream, options.turns):
        rows.append(show(row))
    if importlib.util.find_spec("pynol") is None:
        print("PyNOL is not here (import pynol fails), so only ours were played.")
    else:
        for row in play_theirs(stream):
            rows.append(show(row))
    if options.json:
        options.json.write_text(json.dumps(rows, indent=1), encoding="utf-8")


if __name__ == "__main__":
    main()
