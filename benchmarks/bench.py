"""How fast is thalweg? Prints everything side by side, in one run.

1. One compiled run (`play`) against `limit.c`, a hand-written C loop for the same learner, problem and domain.
2. One interactive round (`decision` and `update`, or `step`) against the same limit.
3. The first round of a second process: kernels come from the disk, nothing is compiled again.
4. One projection a round against N: `EfficientDynamic` and `Sword`, with a compiled projection and with a solver.
5. Experts on a cover: `EfficientAdaptive`, `SACS` and `EfficientIntervalDynamic` against the limit with as many members
   as are alive on average, and how that grows with T (`covers.py`).
6. The `Tracker` against a C loop with its members (`tracker.py`).

    python benchmarks/bench.py [--quick] [--json FILE]

Times are the best of several runs, since noise only ever adds; the runs that are compared take turns, so that both see
the same machine. The spread, slowest over fastest, says how noisy it was. Loops are timed in processor time of the
whole process: on an idle machine the time that passes, on a busy one without the time given to others. Only the start
of a process is timed by the clock on the wall. The exit code is 0 whatever the times are.
"""

from __future__ import annotations

import argparse
import json
import os
import pathlib
import platform
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import scipy
from scipy.optimize import NonlinearConstraint, minimize

import covers
import start
import thalweg as tw
import tracker
from limit import FLAGS, Limit
from thalweg._kernels import library

HORIZON = 20_000
STAGES = 25
# True for the paper's problem at every d: features and models are at most 3 long, the noise is at most 0.1.
GRADIENT_BOUND, SMOOTHNESS, LOSS_BOUND = 3 * 18.1, 9.0, 18.1**2 / 2

COMPILED_TARGETS = {8: 1.5}  # times the limit, by dimension
COMPILED_TARGET = 2.0  # at all others
INTERACTIVE_TARGET = 10.0  # times the limit
START_TARGET = 4.0  # times the processor time of `import numpy`
AGREEMENT_TARGET = 1e-9  # largest difference of an entry of a decision


# ---------------------------------------------------------------------------------------------- measuring and printing


def best_of(repeats: int, *runs: Callable[[], float]) -> list[tuple[float, float]]:
    """The least seconds of each run and its spread. The runs take turns, after a turn that does not count.

    At least `repeats` turns; short runs are repeated for up to two seconds, so that some meet a quiet moment.
    """
    for run in runs:
        run()
    turns: list[list[float]] = []
    end = time.perf_counter() + (2.0 if repeats > 3 else 0.2)
    while len(turns) < repeats or (time.perf_counter() < end and len(turns) < 100):
        turns.append([run() for run in runs])
    times = np.array(turns)
    return [(float(column.min()), float(column.max() / column.min())) for column in times.T]


def table(title: str, heads: Sequence[str], rows: Sequence[Sequence[Any]]) -> None:
    """Print aligned columns: the first to the left, the others to the right."""
    cells = [[str(cell) for cell in row] for row in (heads, *rows)]
    widths = [max(len(row[k]) for row in cells) for k in range(len(heads))]
    lines = ["  ".join([row[0].ljust(widths[0])] + [c.rjust(w) for c, w in zip(row[1:], widths[1:], strict=True)])
             for row in cells]  # fmt: skip
    print(f"\n{title}\n")
    print("\n".join([lines[0], "-" * len(lines[0]), *lines[1:]]), flush=True)


def mark(value: float, target: float) -> str:
    """Whether a measured value keeps within its target."""
    return "PASS" if value <= target else "OVER"


def machine(limit: Limit) -> dict[str, str]:
    """The machine and the versions, on which the numbers depend."""
    try:
        lines = pathlib.Path("/proc/cpuinfo").read_text().splitlines()
        cpu = next(line.split(":", 1)[1].strip() for line in lines if line.startswith("model name"))
    except (OSError, StopIteration):
        cpu = platform.processor() or platform.machine()
    return {
        "date": time.strftime("%Y-%m-%d"),
        "CPU": f"{cpu}, {os.cpu_count()} cores",
        "Python": platform.python_version(),
        "NumPy": np.__version__,
        "SciPy": scipy.__version__,
        "kernels": f"library for {library.level()}",
        "compiler": limit.missing or f"{limit.compiler}, {' '.join(FLAGS)}",
        "load": f"{os.getloadavg()[0]:.1f} processes wanted a core during the last minute",
    }


# ---------------------------------------------------------------------------------------- the first four measurements


def make_learner(domain: tw.domains.Domain) -> tw.EfficientDynamic:
    """The learner of Theorem 3 with N = 22 members."""
    return tw.EfficientDynamic(domain, HORIZON, GRADIENT_BOUND, SMOOTHNESS, loss_bound=LOSS_BOUND)


def limit_arguments(learner: tw.EfficientDynamic, problem: tw.problems.LinearRegression) -> tuple[Any, ...]:
    """The arguments of the C loop for the same game."""
    weights = np.array(learner.domain.par[: learner.domain.dim])  # the bound divided out
    X = learner.domain
    tol = X.tolerance * X._scale(X.center)  # a shorter way to the set has no direction
    return problem.features, problem.labels, weights, learner.surrogate.radius, tol, learner.inner.step_sizes


def compiled(limit: Limit, sizes: Sequence[int], rounds: int, repeats: int) -> list[dict[str, Any]]:
    """`play` against the C loop."""
    results = []
    for d in sizes:
        domain = tw.problems.paper_ellipsoid(d)
        problem = tw.problems.piecewise_stationary(domain, rounds, STAGES, rng=0)
        learner = make_learner(domain)
        arguments = limit_arguments(learner, problem)

        def library(learner: Any = learner, problem: Any = problem) -> float:
            learner.reset()
            start = time.process_time()
            tw.play(learner, problem)
            return time.process_time() - start

        result: dict[str, Any] = {"d": d, "N": learner.inner.step_sizes.size, "rounds": rounds}
        if limit.missing:
            ((seconds, spread),) = best_of(repeats, library)
        else:
            (bare, bare_spread), (seconds, spread) = best_of(
                repeats, lambda arguments=arguments: limit.play(*arguments).seconds, library
            )
            part = min(rounds, 4_000_000 // d)  # decisions of all rounds would take too much memory
            learner.reset()
            run = tw.play(learner, problem, rounds=part, decisions=True)
            there = limit.play(problem.features[:part], problem.labels[:part], *arguments[2:], decisions=True)
            assert there.decisions is not None
            assert run.decisions is not None
            result |= {
                "limit_us": 1e6 * bare / rounds,
                "limit_spread": bare_spread,
                "ratio": seconds / bare,
                "difference": float(np.abs(run.decisions - there.decisions).max()),
                "compared": part,
                "at_boundary": float(np.mean(run.decisions**2 @ arguments[2] > 1 - 1e-9)),
            }
        result |= {"us": 1e6 * seconds / rounds, "spread": spread}
        results.append(result)
    return results


def print_compiled(results: list[dict[str, Any]]) -> None:
    """The table of `compiled`."""
    rows = []
    for r in results:
        bare = [f"{r['limit_us']:.2f}", f"{r['limit_spread']:.2f}"] if "ratio" in r else ["-", "-"]
        target = COMPILED_TARGETS.get(r["d"], COMPILED_TARGET)
        ratio = [f"{r['ratio']:.2f}", f"{mark(r['ratio'], target)} <= {target:g}"] if "ratio" in r else ["-", "-"]
        rows.append([r["d"], r["N"], *bare, f"{r['us']:.2f}", f"{r['spread']:.2f}", *ratio])
    heads = ["d", "N", "limit us", "spread", "play us", "spread", "ratio", "target"]
    table(f"1. A compiled run, microseconds a round ({results[0]['rounds']} rounds)", heads, rows)
    if "ratio" in results[0]:
        heads = ["d", "rounds compared", "largest difference", f"<= {AGREEMENT_TARGET:g}", "decisions on the boundary"]
        rows = [
            [r["d"], r["compared"], f"{r['difference']:.1e}", mark(r["difference"], AGREEMENT_TARGET),
             f"{r['at_boundary']:.0%}"]
            for r in results
        ]  # fmt: skip
        table("   Decisions of the two, entry by entry", heads, rows)


def interactive(limit: Limit, rounds: int, repeats: int, d: int = 8) -> list[dict[str, Any]]:
    """One call a round from Python, d = 8. The gradients are those of the same run, made beforehand."""
    domain = tw.problems.paper_ellipsoid(d)
    problem = tw.problems.piecewise_stationary(domain, rounds, min(rounds, STAGES), rng=0)
    learner = make_learner(domain)
    arguments = limit_arguments(learner, problem)
    run = tw.play(learner, problem, decisions=True)
    final = learner.decision.copy()
    residuals = np.einsum("td,td->t", problem.features, run.decisions) - problem.labels
    gradients, losses = list(residuals[:, None] * problem.features), list(problem)
    decisions = list(run.decisions)

    def by_update() -> float:
        learner.reset()
        start = time.process_time()
        for gradient in gradients:
            _ = learner.decision
            learner.update(gradient)
        return time.process_time() - start

    def by_step() -> float:
        learner.reset()
        start = time.process_time()
        for f in losses:
            learner.step(f)
        return time.process_time() - start

    def losses_alone() -> float:
        start = time.process_time()
        for f, x in zip(losses, decisions, strict=True):
            f.value(x)
            f.gradient(x)
        return time.process_time() - start

    runs = {"decision + update(gradient)": by_update, "step(f)": by_step, "f.value + f.gradient alone": losses_alone}
    calls: list[Callable[[], float]] = list(runs.values())
    if not limit.missing:
        calls.append(lambda: limit.play(*arguments).seconds)
    times = best_of(repeats, *calls)
    bare = None if limit.missing else times[-1][0]
    by_update()
    difference = float(np.abs(learner.decision - final).max())
    results = []
    for name, (seconds, spread) in zip(runs, times, strict=False):
        result = {"call": name, "us": 1e6 * seconds / rounds, "spread": spread, "rounds": rounds}
        if bare is not None:
            result |= {"limit_us": 1e6 * bare / rounds, "ratio": seconds / bare}
        results.append(result)
    results[0]["difference"] = difference
    return results


def print_interactive(results: list[dict[str, Any]]) -> None:
    """The table of `interactive`."""
    rows = []
    for r in results:
        ratio, verdict = f"{r['ratio']:.1f}" if "ratio" in r else "-", ""
        if r["call"].startswith("decision") and "ratio" in r:
            verdict = mark(r["ratio"], INTERACTIVE_TARGET)
        rows.append([r["call"], f"{r['us']:.2f}", f"{r['spread']:.2f}", ratio, verdict])
    bare = f"limit {results[0]['limit_us']:.2f}" if "limit_us" in results[0] else "no limit"
    heads = ["call", "us", "spread", "ratio", f"<= {INTERACTIVE_TARGET:g}"]
    table(f"2. One round from Python at d = 8, microseconds ({bare})", heads, rows)
    print(f"   last decision against that of play: {results[0]['difference']:.1e} apart")


def first_rounds(repeats: int) -> list[dict[str, Any]]:
    """From the start of a process to its first round, for the classes of `start`; the best of several."""
    results = []
    script = pathlib.Path(__file__).with_name("start.py")
    for name in start.ROUNDS:
        reports = []
        for _ in range(repeats):
            command = [sys.executable, str(script), repr(time.time()), name]
            done = subprocess.run(command, capture_output=True, text=True, check=True)
            reports.append(json.loads(done.stdout))
        best = min(reports, key=lambda report: report["processor"])
        best["spread"] = max(report["processor"] for report in reports) / best["processor"]
        results.append({"class": name} | best)
    return results


def print_first_rounds(results: list[dict[str, Any]]) -> None:
    """The table of `first_rounds`."""
    rows = []
    for r in results:
        parts = [f"{r[key]:.2f}" for key in ("numpy", "import", "first_round", "total", "processor", "spread")]
        ratio = r["processor"] / r["numpy"]
        rows.append([r["class"], *parts, f"{ratio:.1f}", mark(ratio, START_TARGET), "loaded" if r["numba"] else "-"])
    heads = ["first round of", "numpy", "import", "round", "total", "processor", "spread"]
    heads += ["x numpy", f"<= {START_TARGET:g}", "Numba"]
    table("3. From the start of a process to its first round, seconds", heads, rows)


def solver_domain(domain: tw.domains.Ellipsoid) -> tw.domains.Custom:
    """The same ellipsoid, each projection a run of a general solver, as in the paper's experiments."""
    e = np.array(domain.par[: domain.dim])
    inside = NonlinearConstraint(lambda w: w @ (e * w), -np.inf, 1.0, jac=lambda w: (2 * e * w)[None, :])

    def shrunk(w: np.ndarray) -> np.ndarray:
        return w / max(1.0, np.sqrt(w @ (e * w)))

    def project(y: np.ndarray) -> np.ndarray:
        found = minimize(
            lambda w: ((w - y) @ (w - y) / 2, w - y),
            shrunk(y),  # a good start: the point of the set in the direction of y
            jac=True,
            method="SLSQP",
            constraints=inside,
            options={"ftol": 1e-14, "maxiter": 200},
        )
        return shrunk(np.asarray(found.x))  # solvers end a little outside

    return tw.domains.Custom(project, domain.shape, domain.center, domain.radius)


def projections(rounds: int, slow_rounds: int, repeats: int) -> list[dict[str, Any]]:
    """`EfficientDynamic` and `Sword` on the paper's problem, with a compiled projection and with a solver."""
    ellipsoid = tw.problems.paper_ellipsoid()
    problem = tw.problems.piecewise_stationary(ellipsoid, rounds, STAGES, rng=0)
    results = []
    for kind, domain, count in (("compiled", ellipsoid, rounds), ("solver", solver_domain(ellipsoid), slow_rounds)):
        bounds = (domain, HORIZON, GRADIENT_BOUND, SMOOTHNESS)
        learners = {
            "EfficientDynamic": make_learner(domain),
            "Sword, one gradient": tw.Sword(*bounds, gradients="shared", loss_bound=LOSS_BOUND),
            "Sword, own gradients": tw.Sword(*bounds, gradients="own"),
        }
        bills: dict[str, Any] = {}

        def run(name: str, learners: Any = learners, bills: Any = bills, count: int = count) -> float:
            learners[name].reset()
            start = time.process_time()
            bills[name] = tw.play(learners[name], problem, rounds=count)
            return time.process_time() - start

        if kind == "compiled":
            times = best_of(repeats, *[lambda name=name: run(name) for name in learners])
        else:
            both = [[run(name) for name in learners] for _ in range(1 if slow_rounds < 100 else 2)]
            times = [(min(seconds), max(seconds) / min(seconds)) for seconds in zip(*both, strict=True)]
        for (name, bill), (seconds, spread) in zip(bills.items(), times, strict=True):
            inner = getattr(learners[name], "inner", learners[name])
            results.append(
                {
                    "projection": kind,
                    "learner": name,
                    "N": inner.step_sizes.size,
                    "rounds": count,
                    "us": 1e6 * seconds / count,
                    "spread": spread,
                    "projections": bill.queries.projections / count,
                    "gradients": bill.queries.gradients / count,
                    "loss": float(bill.losses.sum()),
                    "speedup": seconds / times[0][0],
                }
            )
    return results


def print_projections(results: list[dict[str, Any]]) -> None:
    """The table of `projections`."""
    for kind in ("compiled", "solver"):
        part = [r for r in results if r["projection"] == kind]
        rows = [
            [r["learner"], r["N"], f"{r['us']:.2f}" if kind == "compiled" else f"{r['us']:.0f}",
             f"{r['projections']:g}", f"{r['gradients']:g}", f"{r['loss']:.1f}", f"{r['speedup']:.2f}"]
            for r in part
        ]  # fmt: skip
        note = "compiled projection" if kind == "compiled" else "projection by scipy.optimize (SLSQP)"
        heads = ["learner", "N", "us a round", "projections", "gradients", "total loss", "times the first"]
        table(f"4. One projection a round against N, d = 8, {part[0]['rounds']} rounds, {note}", heads, rows)
    print("   Counts are per round. A solver stops early for a point in the set, as EfficientDynamic's often are.")


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description="Speed of thalweg against a C loop, side by side.")
    parser.add_argument("--quick", action="store_true", help="a version of a few seconds, noisier")
    parser.add_argument("--json", metavar="FILE", help="write the numbers to FILE as well")
    options = parser.parse_args()
    quick = options.quick

    limit = Limit.build()
    results: dict[str, Any] = {"machine": machine(limit), "quick": quick}
    print("Speed of thalweg\n")
    for key, value in results["machine"].items():
        print(f"{key:<9} {value}")
    if limit.missing:
        print(f"\nNo limit to compare with: {limit.missing}.")
    else:
        print("limit     benchmarks/limit.c, built just now")
    print("times     processor time, best of several runs that take turns; spread = slowest / fastest", flush=True)

    rounds, repeats = (2_000, 3) if quick else (HORIZON, 7)
    results["compiled"] = compiled(limit, (8, 100) if quick else (8, 100, 1000), rounds, repeats)
    print_compiled(results["compiled"])
    results["interactive"] = interactive(limit, 500 if quick else 2_000, repeats)
    print_interactive(results["interactive"])
    results["first_rounds"] = first_rounds(1 if quick else 5)
    print_first_rounds(results["first_rounds"])
    results["projections"] = projections(rounds, 5 if quick else 100, repeats)
    print_projections(results["projections"])
    results["covers"] = covers.measure(limit, best_of, covers.QUICK if quick else covers.FULL, repeats)
    covers.show(results["covers"], table, mark)
    results["tracker"] = tracker.measure(limit, best_of, tracker.QUICK if quick else tracker.FULL, repeats)
    tracker.show(results["tracker"], table, mark)
    if options.json:
        pathlib.Path(options.json).write_text(json.dumps(results, indent=2) + "\n")


if __name__ == "__main__":
    main()
