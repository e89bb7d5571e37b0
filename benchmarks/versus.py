"""Two versions of thalweg side by side, in one run: compiled rounds, interactive rounds, and the cold start.

    git worktree add /tmp/before COMMIT
    python benchmarks/versus.py /tmp/before/src [--quick] [--cold]

Each version runs in processes of its own, which take turns; times are processor time, the best of all turns, since
noise only ever adds. Losses are printed too: they say whether both played the same game.
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

        found[name] = {"play": best(turns, whole) / ROUNDS * 1e6, "loss": run.total_loss, "round": None}
        if learner.one_gradient:
            gradient = np.full(8, 0.1)

            def rounds(learner: Any = learner, gradient: Any = gradient) -> None:
                learner.reset()
                for _ in range(2000):
                    _ = learner.decision
                    learner.update(gradient, 0.01)

            found[name]["round"] = best(turns, rounds) / 2000 * 1e6
    print(json.dumps(found))


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
    print(json.dumps(time.process_time()))


def ask(source: str, cache: str, *arguments: str) -> Any:
    """What a process of one version prints."""
    given = os.environ | {"PYTHONPATH": source, "NUMBA_CACHE_DIR": cache}
    done = subprocess.run([sys.executable, HERE, *arguments], env=given, capture_output=True, text=True, check=True)
    return json.loads(done.stdout.splitlines()[-1])


def main() -> None:
    """Compare."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("before", help="the folder `src` of the version to compare with")
    parser.add_argument("--quick", action="store_true", help="fewer turns")
    parser.add_argument("--cold", action="store_true", help="the cold start as well (minutes)")
    options = parser.parse_args()
    versions = {"before": options.before, "now": str(HERE.parents[1] / "src")}
    with tempfile.TemporaryDirectory() as folder:
        times: dict[tuple[str, str], list[dict[str, Any]]] = {}
        for _ in range(2 if options.quick else 5):
            for version, source in versions.items():
                for name, row in ask(source, f"{folder}/{version}", "--work", *NAMES).items():
                    times.setdefault((name, version), []).append(row)
        print(
            f"{'us a round, best of all':28s}{'play':>8s}{'before':>8s}{'ratio':>7s}{'update':>9s}{'before':>8s}   loss"
        )
        for name in NAMES:
            now, before = times[name, "now"], times[name, "before"]
            a, b = min(row["play"] for row in now), min(row["play"] for row in before)
            line = f"{name:28s}{a:8.3f}{b:8.3f}{a / b:7.2f}"
            if now[0]["round"] is not None:
                line += f"{min(row['round'] for row in now):9.2f}{min(row['round'] for row in before):8.2f}"
            else:
                line += " " * 17
            print(f"{line}   {now[0]['loss']:.9g} {before[0]['loss']:.9g}")
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
    elif sys.argv[1:2] == ["--start"]:
        start(*sys.argv[2:4])
    else:
        main()
