"""A subspace that follows a stream of rows: a bank of exponentially weighted covariances, judged by their losses.

Member m of M forgets by the factor f_m in every row. With the row x, and z = x - mu_m (z = x without centring):

    lost_m = |z|^2 - |F_m z|^2                              F_m (k, d): its orthonormal directions                  (1)
    N' = f N + 1;  S' = f S + (f N/N') z z';  mu' = mu + z/N'        without centring S' = f S + x x'               (2)
    F_m follows S_m (`thalweg.parts.follow`)                                                                        (3)

Three sets of weights over the members, each from the priors, which give half to the longest memory:

    w: the jury's weights of the members (8), scaled to sum 1                                                       (4)
    b ~ prior_m exp(-4 L_m/B): L_m the sum of lost_m, B the largest max_m lost_m - min_m lost_m of a row so far     (5)
    e: as b, of -2 z'(I - F'F) mu_m in the place of lost_m, z = x - mean_e, mean_e = sum_m e_m mu_m                 (6)

Four more candidates combine the members:

    C = sum_m w_m S_m/n_m, F_w follows C, around mean_w = sum_m w_m mu_m or around mean_e; the same two with b      (7)
    all M + 4 are judged by their losses, |z|^2 - |F z|^2 with z = x - mean (`thalweg.parts.jury`)                (8)
    F and mean <- the heaviest of the four; F turned such that F C F', the variances, is diagonal                   (9)

with n = N - N_2/N (N without centring) and N_2 the sum of squared weights, so that n is the number of rows less one
where nothing is forgotten. Before k + 2 rows members cannot differ, and none is judged.

w assumes nothing, and is slow. b is fast, for its rate does not fall with the rows; it falls with the
largest row, so that none decides alone: a lead of one such row makes odds of e^4. e follows the mean, whose best memory
need not be that of the subspace; (6) is the slope of the loss outside of F, in the weights. Where few rows decide,
there is no time to learn that the longest memory is needed: hence its prior.

Rows of F keep their sign and place. The next F is turned to where F was, and then by Jacobi's method, whose
turns are at most 45 degrees. Where variances cross, rows do not change places. Only in the first 10 (k + 1) rows they
are put in the order of their variances.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from thalweg._core.memory import Saved
from thalweg._core.rules import CLOSE, SLACK, counter_field, simplex, within
from thalweg._core.state import Past, Plan, field, part, scratch
from thalweg._core.types import Floats, Ints
from thalweg._kernels.handle import AnyHandle, parts
from thalweg._kernels.jit import inner, kernel
from thalweg._kernels.vectors import copy, decay, dot
from thalweg.parts.follow import align, diagonal, multiply, outside, turn, widen
from thalweg.parts.jury import JurySettings, JuryState, begin_jury, judge, jury_plan
from thalweg.parts.records import rounds_for, slots_for, slots_of

LARGEST_FEATURE = 1e70  # of an entry: fourth powers can still be added up
SETTLED = 10  # times k + 1 rows
COMBINED = 0.5  # the prior of the candidates that combine members
SURE, FAST, CENTRAL = 0, 1, 2  # the sets of weights w, b, e
EXTRA = 4  # candidates behind the members: 2 SURE or 2 FAST, and 1 more around mean_e
RATE = 4.0  # odds of a lead of the largest row, as a logarithm


class SubspaceState(NamedTuple):
    """M members, d features, k directions; E = M + 2 frames."""

    N: Floats = field("M")
    N2: Floats = field("M", called="N")
    mu: Floats = field("M d")
    S: Floats = field("M d d")
    frames: Floats = field("E k d")  # F_m, F_w, F_b
    jury: JuryState = part()  # of M + 4
    w: Floats = field("3 M", simplex, called="weights")  # w, b, e
    means: Floats = field("3 d")  # by each
    sums: Floats = field("2 M")  # of (5) and (6), less the least of them,
    largest: Floats = field("2", within(0.0, np.inf))  # and B
    mean: Floats = field("d")  # of the combination that is played, as are
    F: Floats = field("k d", called="frames")  # the directions, the
    variances: Floats = field("k", within(0.0, np.inf))  # along F,
    total: Floats = field("1", called="variances")  # and in all directions
    clock: Ints = counter_field(1)


class SubspaceSettings(NamedTuple):
    """Constants and scratch space; K = k + 1."""

    forget: Floats  # (M,)
    center: bool
    logs: Floats  # (M,) log-priors
    jury: JurySettings = part()
    lost: Floats = scratch("L")  # M + 4
    slope: Floats = scratch("M")
    z: Floats = scratch("d")
    Z: Floats = scratch("K d")
    Y: Floats = scratch("K d")
    H: Floats = scratch("K K")
    u: Floats = scratch("K")
    v: Floats = scratch("K")
    C: Floats = scratch("d d")
    Q: Floats = scratch("k k")


# ---------------------------------------------------------------------------------------------------------------- a row


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
    copy(s.means[CENTRAL if best % 2 == 1 else played], s.mean)
    align(F, s.frames[M + played], c.Q)
    for i in range(k):
        copy(F[i], Z[i])
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
def _judge_combined(s: SubspaceState, c: SubspaceSettings, x: Floats) -> None:
    """Compute the losses of the combined candidates on a row, and the slopes of (6)."""
    M, (k, d), z = s.w.shape[1], s.F.shape, c.z
    for around in range(3):
        for j in range(d):
            z[j] = x[j] - s.means[around, j]
        for which in range(2):
            if around in (which, CENTRAL):
                c.lost[M + 2 * which + (1 if around == CENTRAL else 0)] = outside(s.frames[M + which], z)
    for i in range(k):  # z around mean_e: the part outside of F, whose rows are orthonormal
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
    judge(s.jury, c.jury, c.lost)
    for m in range(M):
        total += s.jury.weights[m]
    for m in range(M if total > 0.0 else 0):
        s.w[SURE, m] = s.jury.weights[m] / total


@kernel
def put_in_order(F: Floats, variances: Floats) -> None:
    """Sort directions by their variances, the largest first."""
    for last in range(1, F.shape[0]):
        i = last
        while i > 0 and variances[i] > variances[i - 1]:
            variances[i], variances[i - 1] = variances[i - 1], variances[i]
            for j in range(F.shape[1]):
                F[i, j], F[i - 1, j] = F[i - 1, j], F[i, j]
            i -= 1


@kernel
def learn_rows(handle: AnyHandle, X: Floats, lost: Floats) -> None:
    """Learn one row after the other; `lost` <- the energy of each outside of F before it is learned.

    X has d columns and `lost` an entry for each row, and there must be slots for all rows.
    """
    s, c = parts(handle)
    M, (k, d) = s.w.shape[1], s.F.shape
    for t in range(X.shape[0]):
        x, seen = X[t], s.clock[0]
        for j in range(d):
            c.z[j] = x[j] - s.mean[j]
        lost[t] = outside(s.F, c.z) if seen > 0 or not c.center else 0.0
        _judge_combined(s, c, x)
        for m in range(M):
            _move_member(s, c, m, x)
        if seen > k + 1:
            _weigh(s, c)
        _combine(s, c, x)
        s.clock[0] += 1
        if s.clock[0] <= SETTLED * (k + 1):
            put_in_order(s.F, s.variances)


# ------------------------------------------------------------------------------------------------------------ the state


@dataclass(frozen=True)
class SubspaceLayout:
    """A subspace in all its sizes: the `slots` of the jury grow with the rows. See `thalweg._core.memory.Layout`.

    Attributes
    ----------
    dim, rank : int
        d and k <= d.
    halflives : tuple of float
        Rows after which the members of the bank have forgotten half; inf: nothing is forgotten.
    center : bool
        Whether the mean is followed and subtracted.
    """

    dim: int
    rank: int
    halflives: tuple[float, ...]
    center: bool

    def sizes(self) -> dict[str, int]:
        """Return the sizes of a fresh state."""
        return {"slots": self.slots(0)}

    def sizes_of(self, saved: Saved) -> dict[str, int]:
        """Return the slots of a saved state, which must be enough for its rows."""
        slots, rows = slots_of(saved["jury.records.born"]), int(saved["clock"].flat[0])
        if rows > rounds_for(slots):
            raise ValueError(f"it has {slots} slots after {rows} rows")
        return {"slots": slots}

    def slots(self, rounds: int) -> int:
        """Return the slots that a number of rows needs."""
        return slots_for(rounds)

    def rounds(self, sizes: Mapping[str, int]) -> int:
        """Return how many rows there are slots for."""
        return rounds_for(sizes["slots"])

    def plan(self, sizes: Mapping[str, int]) -> Plan:
        """Return the plan for these sizes."""
        M, k, priors = len(self.halflives), self.rank, self._priors()
        jury = np.r_[(1.0 - COMBINED) * priors, np.full(EXTRA, COMBINED / EXTRA)]
        return Plan(
            SubspaceState,
            SubspaceSettings(0.5 ** (1.0 / np.array(self.halflives)), self.center, np.log(priors)),
            {"M": M, "d": self.dim, "k": k, "K": k + 1, "E": M + 2, "L": M + EXTRA},
            {"jury": jury_plan(jury, sizes["slots"])},
            holds=_holds,
            begin=self._begin,
        )

    def _priors(self) -> Floats:
        """Return the priors of the members: half for the longest memory."""
        priors = np.ones(len(self.halflives))
        priors[int(np.argmax(self.halflives))] = max(priors.size - 1, 1)
        return np.asarray(priors / priors.sum())

    def _begin(self, s: SubspaceState, c: SubspaceSettings) -> None:
        begin_jury(s.jury, c.jury)
        s.w[:] = self._priors()
        k = self.rank
        s.F[:, :k] = s.frames[:, :, :k] = np.eye(k)


def weights(s: SubspaceState) -> Floats:
    """Return the weights of the members in the combination that is played, (M,)."""
    played: Floats = s.w[int(np.argmax(s.jury.weights[-EXTRA:])) // 2]
    return played.copy()


def _holds(s: SubspaceState, c: SubspaceSettings, past: Past) -> Iterator[tuple[str, bool]]:
    """Relations that the next row relies on."""
    (k, d), rounds, f, S = s.F.shape, past.rounds, c.forget, s.S
    frames = np.concatenate([s.frames, s.F[None]])
    yield "frames", bool((np.abs(frames @ frames.transpose(0, 2, 1) - np.eye(k)) <= CLOSE).all())
    N = np.array([rounds if one == 1.0 else (1.0 - one**rounds) / (1.0 - one) for one in f])
    N2 = np.array([rounds if one == 1.0 else (1.0 - one ** (2 * rounds)) / (1.0 - one * one) for one in f])
    yield "N", bool((np.abs(s.N - N) <= CLOSE * N).all() and (np.abs(s.N2 - N2) <= CLOSE * N2).all())
    traces, most = np.trace(S, axis1=1, axis2=2), 4 * d * LARGEST_FEATURE**2 * SLACK * np.maximum(N, 1.0)
    yield "S", bool((np.abs(S - S.transpose(0, 2, 1)).max(axis=(1, 2)) <= CLOSE * traces).all())
    yield "S", bool(((traces <= most) & (np.linalg.eigvalsh(S)[:, 0] >= -CLOSE * traces)).all())
    for name, means in (("mu", s.mu), ("mean", s.mean), ("means", s.means)):
        yield name, bool((np.abs(means) <= SLACK * LARGEST_FEATURE * c.center).all())
    yield "variances", bool(s.variances.sum() <= SLACK * s.total[0])
    sums, B = s.sums, s.largest
    yield "sums", bool((sums.min(axis=1) == 0).all() and (sums.max(axis=1) <= SLACK * rounds * B).all())
    yield "largest", bool((16 * d * SLACK * LARGEST_FEATURE**2 >= B).all())
    yield "jury", int(s.jury.heard[0]) == max(rounds - k - 2, 0)  # each row after the first k + 2 is judged
