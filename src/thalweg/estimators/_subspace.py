"""A subspace that follows a stream of rows: a bank of exponentially weighted covariances, judged by what they lose.

Member m of M forgets by the factor f_m in every row. With the row x, and z = x - mu_m (z = x without centring):

    lost_m = |z|^2 - |F_m z|^2                              F_m (k, d): its orthonormal directions                  (1)
    N' = f N + 1;  S' = f S + (f N/N') z z';  mu' = mu + z/N'        without centring S' = f S + x x'               (2)
    F_m follows S_m (`_follow`)                                                                                     (3)

Three sets of weights over the members, each from the priors, which give half to the longest memory:

    w: the jury's weights of the members (8), scaled to sum 1                                                       (4)
    b ~ prior_m exp(-4 L_m/B): L_m the sum of lost_m, B the largest max_m lost_m - min_m lost_m of a row so far     (5)
    e: as b, of -2 z'(I - F'F) mu_m in the place of lost_m, z = x - mean_e, mean_e = sum_m e_m mu_m                 (6)

Four more candidates combine the members:

    C = sum_m w_m S_m/n_m, F_w follows C, around mean_w = sum_m w_m mu_m or around mean_e; the same two with b      (7)
    all M + 4 are judged by what they lost, |z|^2 - |F z|^2 with z = x - mean (`_jury`)                             (8)
    F and mean <- the heaviest of the four; F turned such that F C F', the variances, is diagonal                   (9)

with n = N - N_2/N (N without centring) and N_2 the sum of squared weights, so that n is the number of rows less one
where nothing is forgotten. Before k + 2 rows members cannot differ, and nobody is judged.

w takes nothing for granted, and is slow. b is fast, for its rate does not fall with the rows; it falls with the
largest row, so that none decides alone: a lead of one such row makes odds of e^4. e follows the mean, whose best memory
need not be that of the subspace; (6) is the slope of what is lost outside of F, in the weights. Where few rows decide,
there is no time to learn that the longest memory is needed: hence its prior.

Rows of F keep their sign and place. What is played anew is turned to where F was, and then by Jacobi's method, whose
turns are at most 45 degrees. Where variances cross, rows do not change places. Only in the first 10 (k + 1) rows they
are put in the order of their variances.
"""

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from thalweg._kernels.handle import parts
from thalweg._kernels.jit import inner, kernel
from thalweg._kernels.parts import Floats, Ints
from thalweg._kernels.vectors import decay, dot
from thalweg._sound import CLOSE, SLACK, shares
from thalweg._types import Array
from thalweg._validate import check_count, check_entries, check_flag, check_items, real_number, wrong
from thalweg.errors import InputError
from thalweg.estimators._engine import Engine, clock
from thalweg.estimators._follow import align, diagonal, multiply, outside, turn, widen
from thalweg.estimators._jury import Jury, JuryRoom, begin_jury, judge, look_jury, new_jury

__all__ = ["LARGEST", "Subspace", "learn_rows"]

LARGEST = 1e70  # of an entry: fourth powers can still be added up
SETTLED = 10  # times k + 1 rows
COMBINED = 0.5  # the prior of the candidates that combine members
SURE, FAST, CENTRAL = 0, 1, 2  # the sets of weights w, b, e
EXTRA = 4  # candidates behind the members: 2 SURE or 2 FAST, and 1 more around mean_e
RATE = 4.0  # odds of a lead of the largest row, as a logarithm


class SubspaceState(NamedTuple):
    """All that changes."""

    N: Floats  # (M,)
    N2: Floats  # (M,)
    mu: Floats  # (M, d)
    S: Floats  # (M, d, d)
    frames: Floats  # (M + 2, k, d) F_m, F_w, F_b
    jury: Jury  # of M + 4
    w: Floats  # (3, M) w, b, e
    means: Floats  # (3, d) by each
    sums: Floats  # (2, M) of (5) and (6), less the least of them,
    largest: Floats  # (2,) and B
    mean: Floats  # (d,) of what is played, as are
    F: Floats  # (k, d), the
    variances: Floats  # (k,) along F,
    total: Floats  # (1,) and in all directions
    clock: Ints


class SubspaceSettings(NamedTuple):
    """What does not change, and scratch space."""

    forget: Floats  # (M,)
    center: bool
    room: JuryRoom
    logs: Floats  # (M,) log-priors
    lost: Floats  # (M + 4,)
    slope: Floats  # (M,)
    z: Floats  # (d,)
    Z: Floats  # (k + 1, d)
    Y: Floats  # (k + 1, d)
    H: Floats  # (k + 1, k + 1)
    u: Floats  # (k + 1,)
    v: Floats  # (k + 1,)
    C: Floats  # (d, d)
    Q: Floats  # (k, k)


# ------------------------------------------------------------------------------------------------------------ a row


@inner
def _move_member(s: SubspaceState, c: SubspaceSettings, m: int, x: Floats) -> None:
    """(1) to (3)."""
    d, z, S = x.shape[0], c.z, s.S[m]
    for j in range(d):
        z[j] = x[j] - s.mu[m, j]
    c.lost[m] = outside(s.frames[m], z)
    f, before = c.forget[m], s.N[m]
    s.N[m] = f * before + 1.0
    s.N2[m] = f * f * s.N2[m] + 1.0
    share, trace = f * before / s.N[m] if c.center else 1.0, 0.0
    for i in range(d):
        a = share * z[i]
        for j in range(d):
            S[i, j] = f * S[i, j] + a * z[j]
        trace += S[i, i]
    if c.center:
        for j in range(d):
            s.mu[m, j] += z[j] / s.N[m]
    if trace > 0.0:
        wide = widen(s.frames[m], z, c.Z)
        multiply(c.Z, S, c.Y)
        turn(s.frames[m], wide, trace, c.Z, c.Y, c.H, c.u, c.v)


@inner
def _heaviest(weights: Floats) -> int:
    """Of the candidates that combine members the one with the largest weight."""
    M, best = weights.shape[0] - EXTRA, 0
    for i in range(1, EXTRA):
        if weights[M + i] > weights[M + best]:
            best = i
    return best


@inner
def _mix(s: SubspaceState, c: SubspaceSettings, which: int) -> float:
    """C of (7) into scratch space; returns its trace."""
    d, total = s.mean.shape[0], 0.0
    for i in range(d):
        for j in range(d):
            c.C[i, j] = 0.0
        for m in range(s.w.shape[1]):
            n = s.N[m] - s.N2[m] / s.N[m] if c.center else s.N[m]
            share = s.w[which, m] / n if n > 0.0 else 0.0
            if share > 0.0:
                for j in range(d):
                    c.C[i, j] += share * s.S[m, i, j]
        total += c.C[i, i]
    return total


@inner
def _combine(s: SubspaceState, c: SubspaceSettings, x: Floats) -> None:
    """(7) and (9)."""
    M, (k, d) = s.w.shape[1], s.F.shape
    F, Z, Y, best = s.F, c.Z, c.Y, _heaviest(s.jury.weights)
    played = best // 2
    for which in range(3):
        for j in range(d):
            s.means[which, j] = 0.0
            for m in range(M):
                s.means[which, j] += s.w[which, m] * s.mu[m, j]
    for which in (1 - played, played):  # its C is used once more
        for j in range(d):
            c.z[j] = x[j] - s.means[which, j]
        s.total[0] = _mix(s, c, which)
        if s.total[0] > 0.0:
            wide = widen(s.frames[M + which], c.z, Z)
            multiply(Z, c.C, Y)
            turn(s.frames[M + which], wide, s.total[0], Z, Y, c.H, c.u, c.v)
    for j in range(d):
        s.mean[j] = s.means[CENTRAL if best % 2 == 1 else played, j]
    align(F, s.frames[M + played], c.Q)
    for i in range(k):
        for j in range(d):
            Z[i, j] = F[i, j]
    multiply(Z, c.C, Y)
    for i in range(k):
        for j in range(i + 1):
            c.H[i, j] = c.H[j, i] = dot(Y[i], Z[j])
    diagonal(c.H, c.Q)
    for i in range(k):
        s.variances[i] = max(c.H[i, i], 0.0)
        for j in range(d):
            F[i, j] = 0.0
        for r in range(k):
            for j in range(d):
                F[i, j] += c.Q[i, r] * Z[r, j]


@inner
def _hear(s: SubspaceState, c: SubspaceSettings, x: Floats) -> None:
    """What the combined candidates lose of a row, and the slopes of (6)."""
    M, (k, d), z = s.w.shape[1], s.F.shape, c.z
    for around in range(3):
        for j in range(d):
            z[j] = x[j] - s.means[around, j]
        for which in range(2):
            if around in (which, CENTRAL):
                c.lost[M + 2 * which + (1 if around == CENTRAL else 0)] = outside(s.frames[M + which], z)
    for i in range(k):  # z around mean_e: what is outside of F, whose rows are orthonormal
        along = dot(s.F[i], z)
        for j in range(d):
            z[j] -= along * s.F[i, j]
    for m in range(M):
        c.slope[m] = 0.0
        for j in range(d):
            c.slope[m] += 2.0 * z[j] * (s.means[CENTRAL, j] - s.mu[m, j])


@inner
def _hedge(s: SubspaceState, c: SubspaceSettings, which: int, lost: Floats) -> None:
    """(5) or (6)."""
    M, sums, b = s.w.shape[1], s.sums[which - FAST], s.w[which]
    low, high, least = lost[0], lost[0], np.inf
    for m in range(1, M):
        low, high = min(low, lost[m]), max(high, lost[m])
    for m in range(M):
        sums[m] += lost[m] - low
        least = min(least, sums[m])
    s.largest[which - FAST] = B = max(s.largest[which - FAST], high - low)
    if B == 0.0:
        return
    top, total = -np.inf, 0.0
    for m in range(M):
        sums[m] -= least
        b[m] = c.logs[m] - RATE * (sums[m] / B)
        top = max(top, b[m])
    for m in range(M):
        b[m] = decay(b[m] - top)
        total += b[m]
    for m in range(M):
        b[m] /= total


@inner
def _weigh(s: SubspaceState, c: SubspaceSettings) -> None:
    """(4) to (6) and (8)."""
    M, total = s.w.shape[1], 0.0
    _hedge(s, c, FAST, c.lost)
    _hedge(s, c, CENTRAL, c.slope)
    average = dot(s.jury.weights, c.lost)
    for i in range(M + EXTRA):
        c.lost[i] = average - c.lost[i]
    judge(s.jury, c.room, c.lost)
    for m in range(M):
        total += s.jury.weights[m]
    for m in range(M if total > 0.0 else 0):
        s.w[SURE, m] = s.jury.weights[m] / total


@kernel
def put_in_order(F: Floats, variances: Floats) -> None:
    """The largest variance first."""
    for last in range(1, F.shape[0]):
        i = last
        while i > 0 and variances[i] > variances[i - 1]:
            variances[i], variances[i - 1] = variances[i - 1], variances[i]
            for j in range(F.shape[1]):
                F[i, j], F[i - 1, j] = F[i - 1, j], F[i, j]
            i -= 1


@kernel
def learn_rows(handle: Any, X: Floats, lost: Floats) -> None:
    """One row after the other; `lost` <- what each has outside of F before it is learned."""
    s, c = parts(handle)
    M, (k, d) = s.w.shape[1], s.F.shape
    for t in range(X.shape[0]):
        x, seen = X[t], s.clock[0]
        for j in range(d):
            c.z[j] = x[j] - s.mean[j]
        lost[t] = outside(s.F, c.z) if seen > 0 or not c.center else 0.0
        _hear(s, c, x)
        for m in range(M):
            _move_member(s, c, m, x)
        if seen > k + 1:
            _weigh(s, c)
        _combine(s, c, x)
        s.clock[0] += 1
        if s.clock[0] <= SETTLED * (k + 1):
            put_in_order(s.F, s.variances)


# ------------------------------------------------------------------------------------------------------- the engine


class _Row(NamedTuple):
    """The call of one row, and its arrays."""

    call: Any
    x: Array  # (1, d)
    lost: Array  # (1,)


class Subspace(Engine):
    """What `StreamingPCA` runs on.

    Parameters
    ----------
    dim, rank : int
        d and k <= d.
    halflives : list of float
        Rows after which the members of the bank have forgotten half; inf: nothing is forgotten.
    center : bool
        Whether the mean is followed and taken off.
    """

    def __init__(self, dim: int, rank: int, halflives: Any, center: bool) -> None:
        name = "StreamingPCA"
        d = check_count(name, "n_features", dim)
        k = check_count(name, "n_components", rank)
        if k > d:
            raise InputError(
                f"The 'n_components' parameter of {name} must be at most the number of features, n_features = {d}. "
                f"Got {k}."
            )
        what = "a list of numbers > 0, in rows"
        lives = [real_number(life) for life in check_items(name, "halflives", halflives, what)]
        if not lives or not all(life >= 1e-3 for life in lives):
            raise wrong(name, "halflives", what, halflives)
        M, center = len(lives), check_flag(name, "center", center)
        check_entries(name, "n_features", d, M * d * d)
        priors = np.ones(M)
        priors[int(np.argmax(lives))] = max(M - 1, 1)
        self._members = priors / priors.sum()
        jury, room = new_jury(np.r_[(1.0 - COMBINED) * self._members, np.full(EXTRA, COMBINED / EXTRA)])
        state = SubspaceState(
            N=np.zeros(M),
            N2=np.zeros(M),
            mu=np.zeros((M, d)),
            S=np.zeros((M, d, d)),
            frames=np.zeros((M + 2, k, d)),
            jury=jury,
            w=np.zeros((3, M)),
            means=np.zeros((3, d)),
            sums=np.zeros((2, M)),
            largest=np.zeros(2),
            mean=np.zeros(d),
            F=np.zeros((k, d)),
            variances=np.zeros(k),
            total=np.zeros(1),
            clock=clock(),
        )
        settings = SubspaceSettings(
            forget=0.5 ** (1.0 / np.array(lives)),
            center=center,
            room=room,
            logs=np.log(self._members),
            lost=np.zeros(M + EXTRA),
            slope=np.zeros(M),
            z=np.zeros(d),
            Z=np.zeros((k + 1, d)),
            Y=np.zeros((k + 1, d)),
            H=np.zeros((k + 1, k + 1)),
            u=np.zeros(k + 1),
            v=np.zeros(k + 1),
            C=np.zeros((d, d)),
            Q=np.zeros((k, k)),
        )
        self._adopt(state, settings)
        self._restart()

    def _restart(self) -> None:
        state, settings = self._parts
        for array in self._arrays.values():
            array[...] = 0
        begin_jury(state.jury, settings.room)
        state.w[:] = self._members
        k = state.F.shape[0]
        state.F[:, :k] = state.frames[:, :, :k] = np.eye(k)

    def learn(self, X: Array) -> Array:
        """One row after the other. Returns what each lost before it was learned."""
        if len(X) == 1:
            row: _Row = self._calls
            row.x[:] = X
            if status := row.call.run():
                row.call.entry.read(status)
            return row.lost.copy()
        lost = np.empty(len(X))
        learn_rows(self._handle, X, lost)
        return lost

    def _prepare(self) -> _Row:
        x, lost = np.zeros((1, self._parts[0].mean.size)), np.zeros(1)
        return _Row(learn_rows.ready(self._handle, x, lost), x, lost)

    @property
    def weights(self) -> Array:
        """Of the members, in what is played: (M,)."""
        state = self._parts[0]
        played: Array = state.w[int(np.argmax(state.jury.weights[-EXTRA:])) // 2]
        return played.copy()

    def put_in_order(self) -> None:
        """The largest variance first."""
        put_in_order(self._parts[0].F, self._parts[0].variances)

    def _look(self, read: dict[str, NDArray[Any]]) -> Iterator[tuple[str, bool]]:
        k, d = read["F"].shape
        rounds, eye = read["clock"][0], np.eye(k)
        frames = np.concatenate([read["frames"], read["F"][None]])
        yield "frames", bool((np.abs(frames @ frames.transpose(0, 2, 1) - eye) <= CLOSE).all())
        f, S = self._parts[1].forget, read["S"]
        N = np.array([rounds if one == 1.0 else (1.0 - one**rounds) / (1.0 - one) for one in f])
        N2 = np.array([rounds if one == 1.0 else (1.0 - one ** (2 * rounds)) / (1.0 - one * one) for one in f])
        yield "N", bool((np.abs(read["N"] - N) <= CLOSE * N).all() and (np.abs(read["N2"] - N2) <= CLOSE * N2).all())
        traces, most = np.trace(S, axis1=1, axis2=2), 4 * d * LARGEST**2 * SLACK * np.maximum(N, 1.0)
        yield "S", bool((np.abs(S - S.transpose(0, 2, 1)).max(axis=(1, 2)) <= CLOSE * traces).all())
        yield "S", bool(((traces <= most) & (np.linalg.eigvalsh(S)[:, 0] >= -CLOSE * traces)).all())
        yield "mu", bool((np.abs(read["mu"]) <= SLACK * LARGEST * self._parts[1].center).all())
        for name in ("mean", "means"):
            yield name, bool((np.abs(read[name]) <= SLACK * LARGEST * self._parts[1].center).all())
        yield "variances", bool((read["variances"] >= 0).all() and read["variances"].sum() <= SLACK * read["total"][0])
        yield "weights", shares(read["w"], np.ones(read["w"].shape, dtype=bool))
        sums, B = read["sums"], read["largest"]
        yield "sums", bool((sums.min(axis=1) == 0).all() and (sums.max(axis=1) <= SLACK * rounds * B).all())
        yield "largest", bool((16 * d * SLACK * LARGEST**2 >= B).all())
        yield from look_jury(read)
