"""One run of the study of online PCA: the streams, the learners, the game and its records."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from thalweg._core.extras import need
from thalweg._core.types import Floats
from thalweg.domains import Ball
from thalweg.lab.report import Row
from thalweg.lab.runs import best_time, one_thread
from thalweg.pca import (  # fmt: skip
    AdaptivePCA,
    DescentPCA,
    EfficientPCA,
    OjaPCA,
    PCALearner,
    YuanLamperskiPCA,
    best_subspace,
    dyadic_regret,
)

DIM, RANK, NOISE = 30, 3, 0.1  # of the synthetic streams
PATCH = 8  # pixels along a side of a patch of a photograph
POINTS = 320  # of a stored curve
SHORTEST = 64  # rounds of the shortest interval whose regret is kept
REPEATS = 7  # of timings
BATCH = 50  # rows that scikit-learn's method takes at a time


# ------------------------------------------------------------------------------------------------------------ streams


def _unit(rows: Floats) -> Floats:
    """Rows of length 1: each is scaled by itself, so nothing is known beforehand, and a loss is a share of energy."""
    scaled: Floats = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    return scaled


def _sample(basis: Floats, rng: np.random.Generator) -> Floats:
    """A Gaussian vector in the span of a basis, with noise in all directions."""
    found: Floats = basis @ rng.standard_normal(RANK) + NOISE * rng.standard_normal(DIM)
    return found


def _switching(seed: int, horizon: int, period: int = 0) -> Floats:
    """A subspace that is redrawn after every `period` rounds (0: never)."""
    rng, rows = np.random.default_rng(seed), np.empty((horizon, DIM))
    for t in range(horizon):
        if t % (period or horizon) == 0:
            basis = np.linalg.qr(rng.standard_normal((DIM, RANK)))[0]
        rows[t] = _sample(basis, rng)
    return _unit(rows)


def _turning(seed: int, horizon: int, quarter: int) -> Floats:
    """A subspace all of whose directions turn, by a right angle in `quarter` rounds."""
    rng, rows = np.random.default_rng(seed), np.empty((horizon, DIM))
    both = np.linalg.qr(np.random.default_rng(seed + 1).standard_normal((DIM, 2 * RANK)))[0]
    for t in range(horizon):
        angle = math.pi / 2 * t / quarter
        rows[t] = _sample(math.cos(angle) * both[:, :RANK] + math.sin(angle) * both[:, RANK:], rng)
    return _unit(rows)


def need_sklearn(part: str) -> Any:
    """A module of scikit-learn, or an error that says how to install it."""
    return need(f"sklearn.{part}", "data", "This part of the study")


def _digits(seed: int, horizon: int) -> Floats:
    del seed
    images, digit = need_sklearn("datasets").load_digits(return_X_y=True)
    return _unit(images[np.argsort(digit, kind="stable")])[:horizon]


def _photographs(seed: int, horizon: int) -> Floats:
    del seed
    patches = []
    for image in need_sklearn("datasets").load_sample_images().images:
        grey = np.asarray(image, dtype=np.float64).mean(axis=2)
        rows, columns = (side // PATCH for side in grey.shape)
        tiles = grey[: rows * PATCH, : columns * PATCH].reshape(rows, PATCH, columns, PATCH).swapaxes(1, 2)
        patches.append(tiles.reshape(-1, PATCH * PATCH))
    return _unit(np.concatenate(patches))[:horizon]


@dataclass(frozen=True)
class Source:
    """A stream: how it is drawn, from a seed and a number of rounds; its rank k; where it changes."""

    draw: Callable[..., Floats]
    about: str
    rank: int = RANK
    real: bool = False
    period: int = 0


STREAMS = {
    "still": Source(_switching, "one subspace for all rounds"),
    "rare switches": Source(partial(_switching, period=4000), "a new subspace every 4000 rounds", period=4000),
    "frequent switches": Source(partial(_switching, period=500), "a new subspace every 500 rounds", period=500),
    "slow rotation": Source(partial(_turning, quarter=8000), "a subspace that turns by a right angle in 8000 rounds"),
    "fast rotation": Source(partial(_turning, quarter=400), "a subspace that turns by a right angle in 400 rounds"),
    "digits": Source(_digits, "1797 handwritten digits of 64 pixels (scikit-learn), all 0s, then all 1s, ..", 6, True),
    "photographs": Source(
        _photographs,
        "8480 patches of 64 pixels: row by row through one photograph, then another (scikit-learn)",
        4,
        True,
    ),
}


# ----------------------------------------------------------------------------------------------------------- learners


class Incremental:
    """scikit-learn's IncrementalPCA, a batch of rows at a time: until a batch is full, the last fit is used.

    It subtracts the mean it has seen, so its loss is the distance to an affine subspace of k dimensions.
    """

    eigendecompositions = 0

    def __init__(self, rank: int) -> None:
        self.rank, self._batch = rank, list[Floats]()
        self._model = need_sklearn("decomposition").IncrementalPCA(n_components=rank)

    def update(self, x: Floats) -> float:
        """The squared distance of x to the last fit, then x joins the batch."""
        rest = x
        if hasattr(self._model, "components_"):
            centred = x - self._model.mean_
            rest = centred - self._model.components_.T @ (self._model.components_ @ centred)
        self._batch.append(x)
        if len(self._batch) == max(BATCH, self.rank):
            self._model.partial_fit(np.array(self._batch))
            self._batch.clear()
        return float(rest @ rest)


class Streaming:
    """StreamingPCA, a row at a time. It subtracts the mean it follows, as IncrementalPCA does."""

    eigendecompositions = 0

    def __init__(self, rank: int) -> None:
        need_sklearn("base")
        from thalweg.estimators import StreamingPCA

        self._model = StreamingPCA(rank)

    def update(self, x: Floats) -> float:
        """Return the squared distance of x to the subspace, then learn x."""
        return float(self._model.update(x[None])[0])


OJA_STEPS = (0.03, 0.1, 0.3, 1.0)
LEARNERS: dict[str, Callable[..., Any]] = {  # from d, k and T
    "EfficientPCA": lambda d, k, T: EfficientPCA(d, k, rng=0),
    "EfficientPCA, paper's ball": lambda d, k, T: EfficientPCA(d, k, surrogate=Ball((d, d), radius=k**0.5), rng=0),
    "AdaptivePCA": lambda d, k, T: AdaptivePCA(d, k, rng=0),
    "DescentPCA": lambda d, k, T: DescentPCA(d, k, T, rng=0),
    "YuanLamperskiPCA": lambda d, k, T: YuanLamperskiPCA(d, k, T, rng=0),
    **{f"OjaPCA, step {eta:g}": lambda d, k, T, eta=eta: OjaPCA(d, k, step_size=eta, rng=0) for eta in OJA_STEPS},
    "IncrementalPCA": lambda d, k, T: Incremental(k),
    "StreamingPCA": lambda d, k, T: Streaming(k),
}
GUARDED = ("EfficientPCA", "DescentPCA", "YuanLamperskiPCA")  # played for the guarantee, with TUNED rounds in mind
TUNED = 2**18
TIMED = ("EfficientPCA", "AdaptivePCA", "DescentPCA", "YuanLamperskiPCA")


# ------------------------------------------------------------------------------------------------------------ one run


def curve_of(losses: Floats) -> list[float]:
    """Means over POINTS stretches of rounds."""
    return [float(part.mean()) for part in np.array_split(losses, min(POINTS, losses.size))]


@one_thread
def play_one(stream: str, learner: str, seed: int, horizon: int) -> Row:
    """A learner plays a stream: its loss (on average over its draws, and with its leading directions) and time."""
    source = STREAMS[stream]
    rows = source.draw(seed, horizon)
    (T, d), k = rows.shape, source.rank
    player = LEARNERS[learner](d, k, T)
    mean_matrix = isinstance(player, PCALearner) and not isinstance(player, OjaPCA)
    losses, leading, seconds = np.empty(T), np.empty(T), 0.0
    for t, x in enumerate(rows):
        V = None
        if isinstance(player, AdaptivePCA):  # it has no eigenbasis at hand, and one for this question does not count
            V = np.linalg.eigh(player.decision)[1].T[-k:]
        began = time.process_time()
        if mean_matrix and V is None:
            V = player.leading
        losses[t] = player.update(x)
        seconds += time.process_time() - began
        if V is not None:
            kept = V @ x
            leading[t] = max(0.0, x @ x - kept @ kept)
    if not mean_matrix:
        leading = losses
    by_length: dict[int, float] = {}
    for one in dyadic_regret(losses, rows, k, shortest=SHORTEST):
        n = one.stop - one.start
        by_length[n] = max(one.regret, by_length.get(n, -math.inf))
    row: Row = {"stream": stream, "learner": learner, "seed": seed, "rounds": T, "dim": d, "rank": k}
    row |= {"loss": float(losses.mean()), "leading_loss": float(leading.mean())}
    row |= {"curve": curve_of(losses), "leading_curve": curve_of(leading)}
    row |= {"us": 1e6 * seconds / T, "eigendecompositions": player.eigendecompositions / T}
    return row | {"worst_regret": {str(n): regret for n, regret in by_length.items()}}


@one_thread
def play_reference(stream: str, seed: int, horizon: int) -> Row:
    """The losses of the best subspaces in hindsight: one for all rounds, and one for each stretch between changes."""
    source = STREAMS[stream]
    rows = source.draw(seed, horizon)
    step = source.period or len(rows)
    pieces = [best_subspace(rows[a : a + step], source.rank).loss for a in range(0, len(rows), step)]
    fixed = best_subspace(rows, source.rank).loss
    return {"stream": stream, "seed": seed, "fixed": fixed / len(rows), "pieces": sum(pieces) / len(rows)}


@one_thread
def play_guarantee(learner: str, horizon: int) -> Row:
    """The worst regret by length of interval where a direction of the plane jumps twice, and the bound of the theorem.

    The learners that need a horizon are tuned for TUNED rounds; a guarantee on every interval holds from the start.
    """
    changes = [3 * horizon // 8 - 1, 2 * horizon // 3]
    rows = np.zeros((horizon - 1, 2))
    rows[np.arange(horizon - 1), np.searchsorted(changes, np.arange(horizon - 1), side="right") % 2] = 1.0
    player = LEARNERS[learner](2, 1, TUNED)
    losses = np.array([player.update(x) for x in rows])
    bound = EfficientPCA(2, 1).regret_bound
    worst: dict[int, tuple[float, float]] = {}
    broken = 0
    for one in dyadic_regret(losses, rows, 1, shortest=16):
        n, found = one.stop - one.start, (one.regret, bound(one.start, one.stop))
        broken += one.regret > found[1]
        worst[n] = max(found, worst.get(n, found), key=lambda pair: pair[0])
    regret, allowed = zip(*worst.values(), strict=True)
    row: Row = {"learner": learner, "rounds": horizon - 1, "changes": changes, "broken": broken}
    return row | {"curve": curve_of(losses), "lengths": list(worst), "regret": regret, "bound": allowed}


@one_thread
def time_one(dim: int, before: int, rounds: int) -> Row:
    """Processor time of a round of each learner after `before` rounds, and of one eigendecomposition of its matrix.

    The best of REPEATS times the same rounds: noise only ever adds.
    """
    rng = np.random.default_rng(0)
    base = np.linalg.qr(rng.standard_normal((dim, RANK)))[0]
    noise = NOISE * rng.standard_normal((before + rounds, dim))
    rows = _unit(rng.standard_normal((before + rounds, RANK)) @ base.T + noise)
    found: Row = {"dim": dim}
    for name in TIMED:
        player = LEARNERS[name](dim, RANK, before + rounds)
        state, counted = player.partial_fit(rows[:before]).state(), player.eigendecompositions
        best = best_time(partial(player.partial_fit, rows[before:]), REPEATS, partial(player.restore, state))
        found[name] = {"us": 1e6 * best / rounds, "eigh": (player.eigendecompositions - counted) / rounds}
        if name == "EfficientPCA":
            matrices = _diagonalised(state, rows[before:])
    found["eigh"] = 1e6 * best_time(lambda: [np.linalg.eigh(A) for A in matrices], REPEATS) / len(matrices)
    return found


def _diagonalised(state: Row, rows: Floats) -> list[Floats]:
    """The matrices whose eigenvectors EfficientPCA computes in these rounds (lower triangles)."""
    kept: list[Floats] = []

    class Watched(EfficientPCA):
        def _diagonalise(self, A: Floats) -> tuple[Floats, Floats]:
            kept.append(A.copy())
            return super()._diagonalise(A)

    player = Watched(rows.shape[1], RANK, rng=0)
    player.restore(state | {"class": "Watched"})
    player.partial_fit(rows)
    return kept
