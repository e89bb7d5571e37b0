"""Weights over a few candidates by their gains: the Tracker's records (`thalweg.parts.records`) as a separate part.

In every round candidate i gains q_i over the decision, for instance l'(z)(z - z_i) if z was played and z_i was the
candidate's advice. Then, without tuning,

    for every interval I:   sum_{t in I} q_i <= O(sqrt(sum_{t in I} max_k q_k^2) log T + max |q| log^2 T)           (1)

where max |q| is over all rounds up to the end of I, as long as sum_i w_i q_i <= 0. This sum is 0 if gains are linear in
the advice and the decision is the mean weighted by w. The second term is needed: after one large gain, small ones
count little. docs/why-the-tracker-works.md has the proof.
Weights do not change when all gains are multiplied by a positive number.
"""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from thalweg._core.rules import born, counters, shares, simplex
from thalweg._core.state import Past, Plan, field, part, scratch
from thalweg._core.types import Floats, Ints
from thalweg._kernels.jit import inner
from thalweg.parts.records import (
    BEHIND,
    MARKERS,
    OTHERS,
    RATES,
    RecordsState,
    account,
    begin_records,
    credit,
    mark,
    mix,
    records_plan,
)


class JuryState(NamedTuple):
    """Weights over N candidates."""

    records: RecordsState = part()
    weights: Floats = field("N", simplex, called="jury")
    heard: Ints = field("1", counters, called="jury")  # rounds


class JurySettings(NamedTuple):
    """Constants and scratch space."""

    logs: Floats  # (N,) log-priors
    intervals: bool
    scores: Floats = scratch("J W")  # W = max(N, RATES)


def jury_plan(priors: Floats, slots: int) -> Plan:
    """Return the plan for candidates with these priors; intervals need slots. See `slots_for` for their number."""
    N = priors.size
    return Plan(
        JuryState,
        JurySettings(np.log(priors / priors.sum()), slots > 0),
        {"N": N, "J": OTHERS + slots, "W": max(N, RATES)},
        {"records": records_plan(N, slots)},
        holds=_holds,
        begin=begin_jury,
    )


@inner
def begin_jury(s: JuryState, c: JurySettings) -> None:
    """Set the weights to the priors before the first round; all arrays are 0."""
    begin_records(s.records, c.logs, 0, s.weights.shape[0], c.scores)
    for i in range(s.weights.shape[0]):
        s.weights[i] = s.records.p[0, i]


@inner
def judge(s: JuryState, c: JurySettings, q: Floats) -> None:
    """Play one round: update the weights from the candidates' gains."""
    N = s.weights.shape[0]
    s.heard[0] += 1
    largest = 0.0
    for i in range(N):
        largest = max(largest, abs(q[i]))
    if largest == 0.0:
        return
    credit(s.records, account(s.records, q, 0, N, c.scores), c.scores)
    if c.intervals:
        mark(s.records, largest, True, s.heard[0])  # new records begin with the priors
    mix(s.records, c.logs, 0, N, s.weights, c.scores)


def _holds(s: JuryState, c: JurySettings, past: Past) -> Iterator[tuple[str, bool]]:
    """Relations that the next round relies on."""
    r, heard = s.records, int(s.heard[0])
    m, births = int(r.counts[MARKERS]), r.born
    yield "jury", 0 <= 16 * m <= heard and births.tolist() == [0, *born(m, births.size - 1)]
    yield "jury", m.bit_length() <= births.size - 1  # a slot for every marker
    alive = np.append(True, births > 0)
    everyone = np.ones(r.p.shape, dtype=np.bool_) & alive[:, None]
    yield "jury", shares(r.p, everyone) and shares(r.weights[None], alive[None]) and bool((r.flat <= 1).all())
    priors = np.append(0.0, np.log(3.0 / np.maximum(births, 1)))
    yield "jury", bool((np.abs(r.prior - priors)[alive] < 1e-9).all())
    A, V, B = r.A[alive], r.V[alive], r.B[alive]
    root = np.maximum(np.sqrt(B * B + V), 1e-150)
    yield "jury", bool((A.max(axis=1) <= 40 * root + heard * 1e-149).all())
    yield "jury", bool((A.min(axis=1) >= -1e290 * root).all() and (root <= 1e150).all())
    since, largest, first, seen, _ = r.totals
    yield "jury", bool(0 <= since <= 16 * largest and 0 <= first <= seen and (first > 1e-150 or seen == 0))
    gained, squares, least = r.R[alive], r.W[alive], int(r.counts[1])
    yield "jury", bool((np.abs(gained) <= heard * seen * (1 + 1e-6)).all())
    yield "jury", bool((squares <= heard * seen * seen * (1 + 1e-6)).all())
    yield "jury", bool(-0.001 <= least - (0.5 * np.log2(seen / first) if first > 0 else 0.0) < 1.001)
    behind = least - r.anchors[alive]
    yield "jury", bool(((behind >= 0) & (behind <= BEHIND) & (behind <= least)).all())
