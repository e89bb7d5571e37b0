"""Living experts and their weights: a run over a cover, recorded and drawn."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from thalweg._core.interrupts import interrupts
from thalweg._core.progress import progress_bar
from thalweg._core.types import Floats, Ints
from thalweg._core.validate import check_count, short_repr
from thalweg.errors import InputError
from thalweg.learners.base import Learner
from thalweg.learners.cover import Cover
from thalweg.play import Run, play
from thalweg.problems._base import Problem
from thalweg.regret._axes import axes, describe
from thalweg.regret._rounds import check_problem

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["CoverExpert", "CoverRecord", "cover", "record_cover"]


MOMENTS = 400  # about as many are recorded of a cover
LOOKS = 16  # times as often the recorder looks for newborn experts
KEPT_MARKERS = 512  # at least twice as many markers does a learner remember
FRAMED = 180  # bars in a row, at most, that are outlined
CROWDED = 400  # more bars than that in a row cannot be told apart: the row is drawn as a band
BANDS = 200  # pieces of a band
LINES, TICKS = 40, 1500  # up to this many markers get a line across the picture, up to this many a tick
ROOM = 0.035, 0.009  # of the width, for the name of a marker: for the s, and for each digit


class CoverExpert(NamedTuple):
    """An expert of a cover: its level k, the marker i that started it, and its rounds [start, stop), from 0.

    It lives for 2^k unit intervals, from marker i to marker i + 2^k, or to the end of the run.
    """

    level: int
    marker: int
    start: int
    stop: int


@dataclass(frozen=True)
class CoverRecord:
    """A run of a learner over a cover: the living experts and their weights.

    Attributes
    ----------
    run : Run
        The result of `play`, with its `losses`.
    name : str
        Of the learner.
    kind : str
        "compact" or "geometric".
    markers : array (m,)
        The rounds, counted from 0, at which unit intervals start; s_1 is the first entry.
    moments : array (n,)
        The rounds, counted from 0, that were looked at.
    born : array (n, K)
        The marker that started the expert of each level, in these rounds; 0 where there is none.
    weights : array (n, K)
        How much that expert counted in the decision. Each row sums to 1.
    """

    run: Run
    name: str
    kind: str
    markers: Ints
    moments: Ints
    born: Ints
    weights: Floats

    @property
    def losses(self) -> Floats:
        """f_t(x_t)."""
        return self.run.losses

    @property
    def levels(self) -> int:
        """K, how many levels the cover has."""
        return self.markers.size.bit_length()

    def lives(self, level: int) -> tuple[Ints, Ints, Ints]:
        """The experts of a level: markers, first rounds, and rounds that are no longer theirs."""
        m, length = self.markers.size, 2**level
        born = np.arange(length, m + 1, 2 * length if self.kind == "compact" else length)
        ends = np.append(self.markers, np.full(length, self.run.rounds))
        return born, self.markers[born - 1], ends[born + length - 1]

    @property
    def experts(self) -> tuple[CoverExpert, ...]:
        """All that lived, by level and birth."""
        return tuple(
            CoverExpert(k, int(i), int(a), int(b))
            for k in range(self.levels)
            for i, a, b in zip(*self.lives(k), strict=True)
        )

    def __repr__(self) -> str:
        return (
            f"CoverRecord({self.name}, {self.kind} cover, {self.markers.size} markers in {self.run.rounds} rounds, "
            f"{self.moments.size} moments)"
        )


def record_cover(
    learner: Learner, problem: Problem, *, every: int | None = None, progress: bool = False
) -> CoverRecord:
    """Play a learner over a cover, and record the living experts and their weights.

    The run is that of one `play`; it is only stopped now and then for a look.

    Parameters
    ----------
    learner : Learner
        `EfficientAdaptive`, `EfficientIntervalDynamic`, `EfficientCBCE`, `EfficientAOA`, `CBCE`, `SACS`, `AOA`, or any
        other `Cover`, bare or inside `OneProjection`. It must not have played yet.
    problem : Problem
        The rounds: finitely many.
    every : int, optional
        Rounds between two records; a sixteenth of it after a new marker. About 1/400 of the rounds
        when left out; 1 records every round.
    progress : bool
        Show a progress bar (extra `lab`).

    Notes
    -----
    Ctrl-C ends the run at the next look; the record is that of the rounds played. A second one interrupts at once.

    Examples
    --------
    >>> import thalweg as tw
    >>> from thalweg.regret import plots
    >>> ball = tw.domains.Ball(3)
    >>> problem = tw.problems.piecewise_stationary(ball, horizon=100, stages=4, rng=0)
    >>> learner = tw.SACS(ball, loss_bound=20.0, smoothness=9.0, threshold=3.0)
    >>> record = plots.record_cover(learner, problem)
    >>> len(record.markers) == learner.marker_count, record.run.rounds
    (True, 100)
    >>> ax = plots.cover(record)
    """
    ensemble = _ensemble(learner)
    problem = check_problem("record_cover", problem, learner.domain)
    if learner.rounds:
        raise InputError(
            f"record_cover records a run from its first round, and {learner!r} has begun. Call learner.reset() first."
        )
    T = len(problem)
    # Odd numbers: covers repeat with powers of 2, and a look at every second round would only see half of them.
    gap = max(1, T // MOMENTS) | 1 if every is None else check_count("record_cover", "every", every)
    look = min(max(1, gap // LOOKS) | 1, gap, KEPT_MARKERS)
    stops = np.union1d(np.arange(0, T, look), np.arange(0, T, gap))
    before, clipped = learner.queries, learner.clipped
    losses, moments, rows, seconds = np.empty(T), [], [], 0.0
    markers: list[int] = []
    seen = due = t = 0
    with interrupts() as ctrl_c, progress_bar("record_cover", T, progress, "round") as tick:
        for t, stop in zip(stops.tolist(), [*stops[1:].tolist(), T], strict=True):
            m = ensemble.marker_count
            if t >= due or m != seen:
                moments.append(t)
                rows.append((ensemble.born.copy(), ensemble.weights.copy()))
                due = t + gap if t >= due else due
            _read_markers(ensemble, markers, m)
            seen = m
            try:
                part = play(learner, problem[t:stop])
            except Exception as error:
                error.add_note(f"Round 0 of that stretch is round {t} of the problem: record_cover plays in stretches.")
                raise
            losses[t : t + part.rounds] = part.losses
            seconds += part.seconds
            t += part.rounds
            tick(part.rounds)
            if ctrl_c.asked:
                break
    _read_markers(ensemble, markers, ensemble.marker_count)
    run = Run(losses[:t].copy(), learner.queries - before, seconds, None, learner.clipped - clipped, t < T)
    starts = np.array(markers, dtype=np.int64) - 1
    starts = starts[starts < t]  # the last round may set a marker for one that is not played
    K = starts.size.bit_length()
    born, weights = np.zeros((len(rows), K), dtype=np.int64), np.zeros((len(rows), K))
    for j, (alive, believed) in enumerate(rows):
        levels = _levels(alive, ensemble.cover)
        born[j, levels], weights[j, levels] = alive, believed
    return CoverRecord(run, type(learner).__name__, ensemble.cover, starts, np.array(moments), born, weights)


def cover(record: CoverRecord, *, ax: Axes | None = None) -> Axes:
    """Draw the living experts as bars, coloured by weight: the covers of the paper's Figures 1 and 2, filled.

    Time goes to the right. A bar is an expert, from the marker that starts it to the one that ends it; those of one
    level are in one row, the long-lived on top. Its colour is its weight in the decision, along its life. Names and
    ticks above the picture are the markers s_1, s_2, ..., thin lines where there are few of them; where there is no
    room for all names, those of long-lived experts come first.

    A row of more than 400 experts is drawn as one band, without gaps: its colour is the mean weight of those alive. An
    expert that was never looked at, because its life was too short, has no colour.

    Parameters
    ----------
    record : CoverRecord
        From `record_cover`.
    ax : Axes, optional
        Where to draw; a new figure when left out. The colour bar takes its room from it.
    """
    if not isinstance(record, CoverRecord):
        raise InputError(f"cover draws the result of record_cover. Got {short_repr(record)}.")
    K, T = record.levels, record.run.rounds
    ax, _ = axes("cover", ax, height=min(7.0, 2.4 + 0.42 * K))
    from matplotlib.cm import ScalarMappable
    from matplotlib.collections import LineCollection, PolyCollection
    from matplotlib.colors import LinearSegmentedColormap, PowerNorm

    # Light to dark, never white: an expert that counts for nothing is still alive. Many experts have small weights, so
    # these get more of the colours.
    colors = LinearSegmentedColormap.from_list("weight", ["#e3ebf1", "#a6cbe3", "#4a90c0", "#1c5a96", "#08204a"])
    norm = PowerNorm(0.6, 0.0, 1.0)
    for k in range(K):
        edges, weights = _row(record, k)
        ax.pcolormesh(edges, [k - 0.38, k + 0.38], weights[None, :], cmap=colors, norm=norm, zorder=2)
        _, starts, stops = record.lives(k)
        if starts.size <= FRAMED:
            frames = [
                [(a, k - 0.38), (b, k - 0.38), (b, k + 0.38), (a, k + 0.38)]
                for a, b in zip(starts.tolist(), stops.tolist(), strict=True)
            ]
            width = 0.6 if starts.size <= FRAMED // 3 else 0.3
            ax.add_collection(
                PolyCollection(frames, facecolors="none", edgecolors="#44525c", linewidths=width, zorder=3),
                autolim=False,
            )
    if record.markers.size <= LINES:
        lines = [[(s, -0.5), (s, K - 0.5)] for s in record.markers.tolist()]
        ax.add_collection(LineCollection(lines, colors="0.75", linewidths=0.6, zorder=1), autolim=False)
    ax.set(xlim=(0, T), ylim=(-0.5, K - 0.5))
    ax.set_yticks(range(K), [f"{2**k:,}" for k in range(K)])
    _name_markers(ax, record.markers, T)
    bar = ax.figure.colorbar(ScalarMappable(norm, colors), ax=ax, pad=0.02, fraction=0.05, aspect=25)
    bar.set_label("weight in the decision")
    many = "1 marker" if record.markers.size == 1 else f"{record.markers.size:,} markers"
    title = f"{record.name}: alive (bars) and believed (colour)\n{record.kind} cover, {many} in {T:,} rounds"
    if record.lives(0)[0].size > CROWDED:
        title += "; a row in one piece: the mean of many experts"
    describe(ax, "round t", "lifetime of an expert\n[unit intervals]", title)
    return ax


def _ensemble(learner: object) -> Cover:
    """The cover ensemble that a learner is, or has inside."""
    found = learner
    while not isinstance(found, Cover):
        if not hasattr(found, "inner"):
            raise InputError(
                f"record_cover needs a learner over a cover, such as EfficientAdaptive, CBCE or SACS. "
                f"Got {short_repr(learner)}."
            )
        found = found.inner
    return found


def _read_markers(ensemble: Cover, markers: list[int], m: int) -> None:
    """Add the markers up to the m-th; a learner forgets old ones, so this is called before that can happen."""
    if ensemble.threshold is None:
        markers += range(len(markers) + 1, m + 1)
    elif m > len(markers):
        markers += ensemble.markers[len(markers) - m :]


def _levels(born: Ints, kind: str) -> Ints:
    """The levels of the living experts, which come by level."""
    if kind == "geometric":
        return np.arange(born.size)  # one of every level
    return np.array([(int(i) & -int(i)).bit_length() - 1 for i in born], dtype=np.int64)


def _row(record: CoverRecord, k: int) -> tuple[Floats, Floats]:
    """Level k as cells along time: edges, and weights that are masked where no expert lives (nan: never looked at)."""
    moments, T = record.moments, record.run.rounds
    born, starts, stops = record.lives(k)
    weights = np.where(record.born[:, k] > 0, record.weights[:, k], np.nan)
    if born.size > CROWDED:
        pieces = [piece for piece in np.array_split(np.arange(moments.size), BANDS) if piece.size]
        seen = [weights[piece][~np.isnan(weights[piece])] for piece in pieces]
        first = int(starts[0])
        edges = np.array([*(max(first, int(moments[piece[0]])) for piece in pieces), T], dtype=np.float64)
        return edges, np.array([some.mean() if some.size else np.nan for some in seen])
    edges_: list[int] = [int(starts[0])]
    values: list[float] = []
    masked: list[bool] = []
    for a, b in zip(starts.tolist(), stops.tolist(), strict=True):
        if a > edges_[-1]:  # no expert
            edges_.append(a)
            values.append(0.0)
            masked.append(True)
        first, last = np.searchsorted(moments, [a, b])
        edges_ += [*moments[first + 1 : last].tolist(), b]
        here = weights[first:last].tolist() or [np.nan]
        values += here
        masked += [False] * len(here)
    return np.array(edges_, dtype=np.float64), np.ma.MaskedArray(values, masked)


def _name_markers(ax: Axes, markers: Ints, T: int) -> None:
    """Names above the picture: experts that live long first, and only where there is room."""
    from matplotlib.collections import LineCollection

    order = sorted(range(1, markers.size + 1), key=lambda i: (-(i & -i), i))
    named: list[int] = []
    room = T * (ROOM[0] + ROOM[1] * len(str(markers.size)))
    for i in itertools.chain([1], order[:TICKS]):
        if all(abs(markers[i - 1] - markers[j - 1]) >= room for j in named):
            named.append(i)
    top = ax.secondary_xaxis("top")
    top.set_xticks([int(markers[i - 1]) for i in named], [f"$s_{{{i}}}$" for i in named])
    if markers.size <= TICKS:  # as one collection: matplotlib is slow with a thousand ticks
        place = ax.get_xaxis_transform()
        rug = LineCollection(
            [[(s, 1.0), (s, 1.013)] for s in markers.tolist()], colors="0.4", linewidths=0.5, transform=place
        )
        rug.set(clip_on=False, in_layout=False)
        ax.add_collection(rug, autolim=False)
    top.tick_params(length=4, width=0.8, labelsize="small", pad=1.5)
    top.spines["top"].set_visible(False)
