"""One run: an algorithm plays a stream, and its report."""

from __future__ import annotations

import functools
import io
import json
import time
from collections.abc import Callable
from dataclasses import asdict
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

import numpy as np

from thalweg._core.extras import need
from thalweg._core.interrupts import interrupts
from thalweg._core.types import Floats, Ints
from thalweg._core.validate import visible
from thalweg.algorithms import thresholds
from thalweg.algorithms.efficient_adaptive import EfficientAdaptive
from thalweg.algorithms.sacs import SACS
from thalweg.lab.catalog import ALGORITHMS, build, find
from thalweg.lab.report import Row, number
from thalweg.lab.streams import Stream
from thalweg.learners.alone import Alone
from thalweg.learners.base import Learner, Queries
from thalweg.learners.cover import Cover
from thalweg.play import Run, play
from thalweg.problems.linear_model import LinearModel
from thalweg.theorems._base import step_sizes

if TYPE_CHECKING:
    from thalweg.lab.tables import Table

P = ParamSpec("P")
T = TypeVar("T")

POINTS = 200  # of a stored curve
WINDOW = 200  # rounds; the worst stretch of this length is reported
FIRST_LINE = 16  # rounds before the first line of a printout that doubles
STRETCH = 8192  # rounds between two looks at Ctrl-C
FORECASTS = {
    "persistence": "repeating the last target",
    "running-mean": "its mean so far",
    "best-feature": "the best single feature, in hindsight",
    "best-fixed": "the best fixed weights, in hindsight",
}  # to hold a loss against; the last two, for the squared loss alone, are any weights and not those of a set
Progress = Callable[[int, float, float, Queries, float], None]


def play_stream(
    algorithm: str, stream: Stream, *, progress: Progress | None = None, decisions: bool = False
) -> tuple[Row, Floats, Floats | None]:
    """Play an algorithm on a stream, from first round to last.

    Parameters
    ----------
    progress : callable, optional
        Called after 16, 32, 64, ... rounds and at the end with: rounds so far, mean loss so far, mean loss since the
        last call, queries so far, seconds so far.
    decisions : bool
        Keep the decision of every round.

    Returns
    -------
    dict, array of losses, array of decisions or None
        The report: losses, queries (a round, on average) and wall-clock time of the rounds; kernels were loaded
        before. "markers" counts the experts that a loss threshold started, None where there is no such threshold.
        The keys of `FORECASTS` have their losses on the same rounds, None where they have none.

    Notes
    -----
    Ctrl-C ends the run soon, after at most 8192 rounds more; the report says so. A second one ends it at once.
    """
    algorithm = find("algorithm", algorithm, ALGORITHMS)
    T = len(stream.problem)
    load_kernels(algorithm, stream)
    learner = build(algorithm, stream)
    before = learner.queries
    losses, points = np.empty(T), np.empty((T if decisions else 0, *stream.domain.shape))
    played, reported, mark, seconds = 0, 0, FIRST_LINE, 0.0
    with interrupts() as stop:
        while played < T and not stop.asked:
            last = min(T, played + STRETCH, mark if progress else T)
            part = play(learner, stream.problem[played:last], decisions=decisions)
            losses[played:last] = part.losses
            if decisions:
                points[played:last] = part.decisions
            played, seconds = last, seconds + part.seconds
            if progress and played in (mark, T):
                mean, recent = float(losses[:played].mean()), float(losses[reported:played].mean())
                progress(played, mean, recent, learner.queries - before, seconds)
                reported, mark = played, 2 * mark
    losses, queries, rounds = losses[:played], learner.queries - before, max(1, played)
    report: Row = {"algorithm": algorithm, "stream": stream.name, "loss": stream.problem.loss}
    report |= {"domain": repr(stream.domain), "dim": stream.domain.dim, "rounds": played}
    report |= {"total_loss": float(losses.sum()), "mean_loss": float(losses.sum()) / rounds}
    forecasts = forecast_losses(stream.problem)
    report |= {name: float(forecasts[name][:played].sum()) if name in forecasts else None for name in FORECASTS}
    report |= {key: count / rounds for key, count in asdict(queries).items()}
    inner = getattr(learner, "inner", learner)
    report["markers"] = None
    if isinstance(inner, Cover) and inner.threshold is not None:
        report["markers"] = inner.marker_count - (inner.markers[-1] > rounds)  # the last one may not have begun
    report |= {"seconds": seconds, "us_a_round": 1e6 * seconds / rounds, "interrupted": stop.asked}
    return report, losses, points[:played] if decisions else None


def forecast_losses(problem: LinearModel) -> dict[str, Floats]:
    """The losses of `FORECASTS` in every round; empty for losses that compare no prediction with a target.

    The first round, which has no past, is free to them.
    """
    if problem.loss not in ("squared", "absolute", "huber", "pinball"):
        return {}
    known = problem.labels[:-1]
    means = np.cumsum(known) / np.arange(1, len(problem))
    said = {"persistence": np.r_[problem.labels[:1], known], "running-mean": np.r_[problem.labels[:1], means]}
    if problem.loss == "squared":
        X, y = problem.features, problem.labels
        alone = [X[:, [j]] * np.linalg.lstsq(X[:, [j]], y, rcond=None)[0] for j in range(problem.dim)]
        said["best-feature"] = min((z.ravel() for z in alone), key=lambda z: float(((y - z) ** 2).sum()))
        said["best-fixed"] = X @ np.linalg.lstsq(X, y, rcond=None)[0]
    return {name: problem._values(z) for name, z in said.items()}


def load_kernels(algorithm: str, stream: Stream) -> None:
    """Play two rounds that do not count, to load kernels and compile those of the user's parts."""
    if play(build(algorithm, stream), stream.problem, rounds=2).interrupted:
        raise KeyboardInterrupt


def curve_rounds(rounds: int) -> Ints:
    """The rounds, counted from 1, at which a curve is stored."""
    return np.unique(np.linspace(1, rounds, POINTS).astype(np.int64))


def window(rounds: int) -> int:
    """The length of the stretch that `worst` looks for."""
    return max(1, min(WINDOW, rounds // 5))


def worst(losses: Floats) -> float:
    """The largest loss of `WINDOW` rounds in a row; of a fifth of the rounds where there are few."""
    wide = window(losses.size)
    sums = np.cumsum(np.r_[0.0, losses])
    return float((sums[wide:] - sums[:-wide]).max())


def printed_threshold(stream: Stream, R: float | None = None) -> Callable[[int], float]:
    """m -> C_m of Theorem 4 as printed, with delta = 1 and the surrogate ball of radius R."""
    T, G, L = len(stream.problem), stream.gradient_bound, stream.smoothness or 0.0
    return functools.partial(thresholds.adaptive_paper, T=T, G=G, L=L, R=R or stream.domain.surrogate.radius, delta=1.0)


def scaled_sacs(stream: Stream, scale: float) -> SACS:
    """SACS as published, with its printed threshold times `scale`."""
    T, L, B = len(stream.problem), stream.smoothness or 0.0, stream.loss_bound
    C = scale * thresholds.sacs(L=L, D=stream.domain.diameter, delta=1.0)
    return SACS(stream.domain, loss_bound=B, smoothness=L, threshold=C, gradients="own", horizon=T)


def scaled_adaptive(stream: Stream, scale: float, looseness: float = 1.0, **options: Any) -> EfficientAdaptive:
    """EfficientAdaptive with its printed threshold times `scale`, and a gradient bound `looseness` times too large."""
    T, G, L, C = len(stream.problem), stream.gradient_bound, stream.smoothness or 0.0, printed_threshold(stream)
    return EfficientAdaptive(stream.domain, T, looseness * G, L, threshold=lambda m: scale * C(m), **options)


def experts(learner: object, rounds: int) -> tuple[int | None, float | None, int | None]:
    """Markers so far, mean and largest number of experts alive in these rounds; None without a cover.

    In a compact cover the experts alive are the one-bits of the newest marker's number, in the other its digits.
    """
    inner = getattr(learner, "inner", learner)
    if not isinstance(inner, Cover):
        return None, None, None
    played = np.arange(1, rounds + 1)
    newest = played
    if inner.threshold is not None:
        starts = np.array(inner.markers)  # on a very long run only the latest ones
        played = played[played >= starts[0]]
        newest = np.searchsorted(starts, played, side="right") + inner.marker_count - starts.size
    bits = newest[:, None] >> np.arange(40)
    alive = ((bits & 1) if inner.cover == "compact" else (bits > 0)).sum(axis=1)
    return int(newest[-1]), float(alive.mean()), int(alive.max())


def counted(learner: Learner, run: Run) -> Row:
    """The loss of a run, its queries a round, and the experts of its learner."""
    row: Row = {"rounds": run.rounds, "total_loss": run.total_loss}
    row |= {key: count / run.rounds for key, count in asdict(run.queries).items()}
    return row | dict(zip(("markers", "experts", "most_experts"), experts(learner, run.rounds), strict=True))


def steps(learner: object) -> Floats | None:
    """The step sizes of a learner without a cover; None where it has none."""
    inner = getattr(learner, "inner", learner)
    return step_sizes(inner.expert) if isinstance(inner, Alone) else getattr(inner, "step_sizes", None)


def one_thread(run: Callable[P, T]) -> Callable[P, T]:
    """The same run with one thread for linear algebra.

    With more, last digits depend on how many, and at the sizes of our studies threads only wait for each other.
    """

    @functools.wraps(run)
    def limited(*arguments: P.args, **options: P.kwargs) -> T:
        with need("threadpoolctl", "lab", run.__name__).threadpool_limits(1):
            return run(*arguments, **options)

    return limited


def best_time(work: Callable[[], object], repeats: int, prepare: Callable[[], object] = lambda: None) -> float:
    """Measure processor seconds of some work, the best of several times: noise only adds. `prepare` is not counted."""

    def once() -> float:
        prepare()
        began = time.process_time()
        work()
        return time.process_time() - began

    return min(once() for _ in range(repeats))


def describe(summary: Row, table: Table | None, scale: bool) -> str:
    """A run in words."""
    s, rounds = summary, max(1, summary["rounds"])
    lines = [
        f"{s['algorithm']} on {s['stream']}: {s['rounds']} rounds, {s['loss']} loss, d = {s['dim']}, {s['domain']}",
        f"total loss   {s['total_loss']:.6g}",
        f"mean loss    {s['mean_loss']:.6g}",
    ]
    head = "beside it"
    for name, about in FORECASTS.items():
        if (loss := s[name]) is not None:
            over = f" ({s['total_loss'] / loss:.3g} of it)" if loss > 0 else ""
            lines.append(f"{head:<12} {loss / rounds:.6g} {about}{over}")
            head = ""
    simple = {FORECASTS[name]: s[name] for name in ("persistence", "running-mean") if s[name] is not None}
    beaten = [about for about, loss in simple.items() if loss < s["total_loss"]]
    if beaten:
        lines.append(f"BEATEN       by {' and '.join(beaten)}: the simple forecast is better here")
    lines += [
        f"a round      projections {s['projections']:.4g}, gradients {s['gradients']:.4g}, values {s['values']:.4g}",
        f"time         {s['seconds']:.3g} s, {s['us_a_round']:.3g} us a round",
    ]
    if s["markers"] is not None:
        lines.append(f"markers      {s['markers']}")
    if table:
        unit = {"squared": lambda loss: (2 * loss) ** 0.5, "absolute": lambda loss: loss}.get(s["loss"])
        if unit is not None:
            kind = "root mean square" if s["loss"] == "squared" else "mean absolute"
            means = [unit(total / rounds) for total in (s["total_loss"], s["persistence"])]
            ours, last = (mean * table.scales[table.target] for mean in means)
            lines.append(visible(f"its units    {kind} error {ours:.6g}, repeating the last target {last:.6g}"))
        lines.append(visible(f"target       {table.target}, from {', '.join(table.features)}"))
        how = "each column divided by its largest absolute value; losses are in these units" if scale else "no"
        lines += [f"scaled       {how}", "looks ahead  scales and bounds come from the whole file, before round 1"]
    return "\n".join(lines)


def tidy(value: float | None, digits: int) -> str:
    """Return a number with this many digits, or all those before its point; "-" for none."""
    return number(value, digits).replace(",", "").replace("–", "-")


def losses_as(kind: str, summary: Row, losses: Floats, decisions: Floats | None) -> bytes:
    """The losses of all rounds in the form that a file's ending asks for."""
    if kind == ".json":
        return (json.dumps(summary | {"losses": losses.tolist()}) + "\n").encode()
    if kind == ".npz":
        assert decisions is not None
        packed = io.BytesIO()
        np.savez_compressed(packed, losses=losses, decisions=decisions)
        return packed.getvalue()
    rows = (f"{t},{loss!r},{total!r}\n" for t, (loss, total) in enumerate(
        zip(losses.tolist(), np.cumsum(losses).tolist(), strict=True), start=1))  # fmt: skip
    return ("round,loss,loss_so_far\n" + "".join(rows)).encode()


def measure(algorithm: str, stream: Stream, repeats: int = 5) -> dict[str, float]:
    """Microseconds a round: the best of several runs after one that does not count, and slowest over fastest.

    In processor time of the whole process, which leaves out other programs.
    """
    learner = build(algorithm, stream)
    times: list[float] = []
    for _ in range(repeats + 1):
        learner.reset()
        began = time.process_time()
        run = play(learner, stream.problem)
        times.append(time.process_time() - began)
        if run.interrupted:
            raise KeyboardInterrupt
    best, per_round = min(times[1:]), {key: count / run.rounds for key, count in asdict(run.queries).items()}
    return {"us": 1e6 * best / run.rounds, "spread": max(times[1:]) / max(best, 1e-9), **per_round}
