"""Two versions of thalweg side by side, in one run: compiled rounds, rounds by hand, building, and the cold start.

    git worktree add /tmp/before COMMIT
    python benchmarks/versus.py /tmp/before/src [--quick] [--cold] [--cache DIR] [--only NAME ...]

Each version runs in processes of its own, which take turns; times are processor time, the best of all turns, since
noise only ever adds. Losses are printed too: they say whether both played the same game. A process that imports
another version than it was asked for ends the comparison.
"""

from __future__ import annotations

import argparse
import inspect
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time
import warnings
from functools import partial
from typing import Any

HERE = pathlib.Path(__file__).resolve()
ROUNDS, GRADIENT_BOUND, SMOOTHNESS, LOSS_BOUND, THRESHOLD = 20_000, 3 * 18.1, 9.0, 18.1**2 / 2, 10.0
BUILT = 200  # learners
NAMES = (
    "EfficientDynamic",
    "Tracker",
    "EfficientAdaptive",
    "EfficientIntervalDynamic",
    "EfficientCBCE",
    "EfficientAOA",
    "SACS",
    "Ader",
    "Sword",
    "SOGD",
    "EfficientOptimistic",
    "EfficientCutkosky",
)


def build(tw: Any, name: str, domain: Any) -> Any:
    """A learner by name; options that a version does not know are left out."""
    options = {
        "horizon": ROUNDS,
        "gradient_bound": GRADIENT_BOUND,
        "smoothness": SMOOTHNESS,
        "loss_bound": LOSS_BOUND,
        "threshold": partial(tw.algorithms.thresholds.fixed, C=THRESHOLD) if name != "SACS" else THRESHOLD,
        "gradients": "own",
    }
    known = inspect.signature(getattr(tw, name).__init__).parameters
    return getattr(tw, name)(domain, **{key: value for key, value in options.items() if key in known})


def by_hand(tw: Any) -> dict[str, Any]:
    """Functions that play 1000 rounds of something, one at a time."""
    import numpy as np

    rng = np.random.default_rng(0)
    g, x, ball = np.full(8, 0.1), np.zeros(8), tw.problems.paper_ellipsoid(8)
    a, y = rng.standard_normal((1000, 5)), np.cumsum(rng.standard_normal(1000)).tolist()
    named = [dict(zip("abcde", row, strict=True)) for row in a.tolist()]
    tracker = tw.Tracker(ball)
    late = tw.Delayed(ball, tw.Tracker, delay=10)
    forecaster, intervals = tw.estimators.Forecaster(lags=8), tw.estimators.ConformalTracker()
    aggregator, model = tw.estimators.Aggregator(), tw.estimators.TrackingRegression()
    loss = tw.losses.Squared(g, 1.0)
    system = tw.control.double_integrator()
    controller, state = tw.EfficientControl(system, 10**6), np.zeros(system.state_dim)
    quadratic = getattr(tw.control, "QuadraticCost", None) or tw.control.Quadratic  # its name before
    cost = quadratic(np.eye(system.state_dim), np.eye(system.input_dim))
    for _ in range(late.delay):
        late.advance()

    def rounds(play: Any) -> Any:
        def run() -> None:
            for t in range(1000):
                play(t)

        return run

    return {
        "Tracker, decision + update without a loss": rounds(lambda t: (tracker.decision, tracker.update(g))),
        "Delayed(Tracker), the same + advance": rounds(lambda t: (late.decision, late.update(g), late.advance())),
        "Forecaster(lags=8), predict + update": rounds(lambda t: (forecaster.predict(), forecaster.update(y[t]))),
        "ConformalTracker, predict_interval + update": rounds(
            lambda t: (intervals.predict_interval(y[t - 1]), intervals.update(y[t]))
        ),
        "Aggregator of 5, predict + update": rounds(lambda t: (aggregator.predict(a[t]), aggregator.update(y[t]))),
        "TrackingRegression of 5, predict + learn": rounds(
            lambda t: (model.predict_one(named[t]), model.learn_one(named[t], y[t]))
        ),
        "losses.Squared, value + gradient": rounds(lambda t: (loss.value(x), loss.gradient(x))),
        "EfficientControl, act + observe": rounds(lambda t: (controller.act(state), controller.observe(cost, state))),
    }


def best(repeats: int, run: Any) -> float:
    """The least processor time of several runs."""
    times = []
    for _ in range(repeats):
        began = time.process_time()
        run()
        times.append(time.process_time() - began)
    return min(times)


def work(names: list[str], turns: int) -> None:
    """In a process of its own: time these learners of the thalweg that is on the path, and print JSON."""
    import numpy as np

    import thalweg as tw

    warnings.simplefilter("ignore")
    domain = tw.problems.paper_ellipsoid(8)
    problem = tw.problems.piecewise_stationary(domain, ROUNDS, 25, rng=0)
    found = {}
    for name in names:
        learner = build(tw, name, domain)
        run = tw.play(learner, problem)

        def whole(learner: Any = learner) -> None:
            learner.reset()
            tw.play(learner, problem)

        def built(name: str = name) -> None:
            for _ in range(BUILT):
                build(tw, name, domain)

        found[name] = {
            "play": best(turns, whole) / ROUNDS * 1e6,
            "build": best(turns, built) / BUILT * 1e6,
            "loss": run.total_loss,
            "round": None,
        }
        if learner.one_gradient:
            gradient = np.full(8, 0.1)

            def rounds(learner: Any = learner, gradient: Any = gradient) -> None:
                learner.reset()
                for _ in range(2000):
                    _ = learner.decision
                    learner.update(gradient, 0.01)

            found[name]["round"] = best(turns, rounds) / 2000 * 1e6
    tell(found)


def work_by_hand(turns: int) -> None:
    """In a process of its own: time rounds by hand; us a round by name."""
    import thalweg as tw

    warnings.simplefilter("ignore")
    found = {}
    for name, run in by_hand(tw).items():
        run()
        found[name] = best(turns, run) / 1000 * 1e6
    tell(found)


def start(name: str, mode: str) -> None:
    """In a process of its own, with an empty cache: processor seconds from the start to the end of the first round."""
    import numpy as np

    import thalweg as tw

    learner = build(tw, name, tw.domains.Ellipsoid(np.linspace(1.0, 10.0, 8), bound=9.0))
    if mode == "play":
        tw.play(learner, tw.problems.LinearRegression(np.full((1, 8), 0.1), [0.1]))
    else:
        learner.update(np.full(8, 0.1), 0.1)
    _ = learner.decision
    tell(time.process_time())


def tell(found: Any) -> None:
    """In a process of one version: print a result, and the folder that thalweg was imported from."""
    import thalweg as tw

    print(json.dumps([str(pathlib.Path(tw.__file__).resolve().parents[1]), found]))


def ask(source: pathlib.Path, cache: str, *arguments: str) -> Any:
    """Return the result of a process of one version; end the comparison if it imported another one."""
    given = os.environ | {"PYTHONPATH": str(source), "NUMBA_CACHE_DIR": cache}
    done = subprocess.run([sys.executable, HERE, *arguments], env=given, stdout=subprocess.PIPE, text=True, check=True)
    imported, found = json.loads(done.stdout.splitlines()[-1])
    if pathlib.Path(imported) != source:
        sys.exit(f"versus: a process that was to import thalweg from {source} has imported that of {imported}.")
    return found


def folder_of(text: str) -> pathlib.Path:
    """Return the folder that holds a version of the package."""
    folder = pathlib.Path(text).resolve()
    if not (folder / "thalweg" / "__init__.py").is_file():
        raise argparse.ArgumentTypeError(f"{text} holds no package thalweg; give the folder `src` of a checkout")
    return folder


def main() -> None:
    """Compare."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("before", type=folder_of, help="the folder `src` of the version to compare with")
    parser.add_argument("--quick", action="store_true", help="fewer turns")
    parser.add_argument("--cold", action="store_true", help="the cold start as well (minutes)")
    parser.add_argument("--cache", help="keep compiled kernels in this folder, for the next comparison")
    parser.add_argument("--only", nargs="+", choices=NAMES, default=NAMES, help="compare these learners")
    options = parser.parse_args()
    versions = {"before": options.before, "now": HERE.parents[1] / "src"}
    with tempfile.TemporaryDirectory() as folder:
        warm = options.cache or folder
        times: dict[tuple[str, str], list[dict[str, Any]]] = {}
        for _ in range(2 if options.quick else 5):
            for version, source in versions.items():
                for name, row in ask(source, f"{warm}/{version}", "--work", *options.only).items():
                    times.setdefault((name, version), []).append(row)
        print(
            f"{'us a round, best of all':28s}{'play':>8s}{'before':>8s}{'ratio':>7s}{'update':>9s}{'before':>8s}"
            f"{'build':>8s}{'before':>8s}{'ratio':>7s}   loss"
        )
        for name in options.only:
            now, before = times[name, "now"], times[name, "before"]
            a, b = min(row["play"] for row in now), min(row["play"] for row in before)
            line = f"{name:28s}{a:8.3f}{b:8.3f}{a / b:7.2f}"
            if now[0]["round"] is not None:
                line += f"{min(row['round'] for row in now):9.2f}{min(row['round'] for row in before):8.2f}"
            else:
                line += " " * 17
            a, b = min(row["build"] for row in now), min(row["build"] for row in before)
            line += f"{a:8.1f}{b:8.1f}{a / b:7.2f}"
            print(f"{line}   {now[0]['loss']:.9g} {before[0]['loss']:.9g}")
        hands: dict[str, list[dict[str, float]]] = {version: [] for version in versions}
        for _ in range(0 if options.only != NAMES else 2 if options.quick else 5):
            for version, source in versions.items():
                hands[version].append(ask(source, f"{warm}/{version}", "--hand"))
        if hands["now"]:
            print(f"\n{'by hand, us a round':46s}{'now':>8s}{'before':>8s}{'ratio':>7s}")
        for name in hands["now"][0] if hands["now"] else ():
            a, b = (min(found[name] for found in hands[version]) for version in ("now", "before"))
            print(f"{name:46s}{a:8.2f}{b:8.2f}{a / b:7.2f}")
        if options.cold:
            print("\nprocessor seconds from a cold start to the end of the first round (now, before)")
            for name, mode in [
                ("EfficientDynamic", "update"),
                ("EfficientDynamic", "play"),
                ("EfficientAdaptive", "play"),
            ]:
                seconds = []
                for version in ("now", "before"):
                    turns = [
                        ask(versions[version], f"{folder}/cold-{name}-{mode}-{version}-{i}", "--start", name, mode)
                        for i in range(2)
                    ]
                    seconds.append(min(turns))
                print(f"{name:28s}{mode:8s}{seconds[0]:8.1f}{seconds[1]:8.1f}")


if __name__ == "__main__":
    if sys.argv[1:2] == ["--work"]:
        work(sys.argv[2:], 8)
    elif sys.argv[1:2] == ["--hand"]:
        work_by_hand(8)
    elif sys.argv[1:2] == ["--start"]:
        start(*sys.argv[2:4])
    else:
        main()
