"""Weights over a few candidates by what they gained: the Tracker's records (`thalweg._machines.records`) on their own.

In every round candidate i has gained q_i over what was played, for instance l'(z)(z - z_i) where z was played and z_i
was its advice. Then, with nothing to set,

    for every interval I:   sum_{t in I} q_i <= O(sqrt(sum_{t in I} max_k q_k^2 log^2 T))                           (1)

as long as sum_i w_i q_i <= 0: it is 0 where gains are linear in the advice, and what is played is the mean by w.
Weights do not change when all gains are multiplied by a positive number.
"""

from typing import NamedTuple

import numpy as np

from thalweg._kernels.jit import inner
from thalweg._kernels.parts import Floats, Ints
from thalweg._machines.records import OTHERS, RATES, Records, account, begin_records, credit, mark, mix

__all__ = ["Jury", "JuryRoom", "begin_jury", "judge", "new_jury"]

SLOTS = 58  # markers are 16 rounds apart or more, so these hold for 2^62 rounds


class Jury(NamedTuple):
    """What changes."""

    records: Records
    weights: Floats  # (N,) of the candidates
    heard: Ints  # (1,) rounds


class JuryRoom(NamedTuple):
    """What does not change, and scratch space."""

    logs: Floats  # (N,) log-priors
    scores: Floats  # (J, max(N, RATES))


def new_jury(priors: Floats, intervals: bool = True) -> tuple[Jury, JuryRoom]:
    """Arrays for as many candidates as there are priors, before the first round."""
    N, J = priors.size, OTHERS + (SLOTS if intervals else 0)
    records = Records(
        A=np.zeros((J, N)),
        V=np.zeros(J),
        B=np.zeros(J),
        R=np.zeros(J),
        W=np.zeros(J),
        p=np.zeros((J, N)),
        prior=np.zeros(J),
        anchors=np.zeros(J, dtype=np.int64),
        flat=np.zeros(J, dtype=np.int64),
        born=np.zeros(J - 1, dtype=np.int64),
        weights=np.zeros(J),
        totals=np.zeros(5),
        counts=np.zeros(4, dtype=np.int64),
        marks=np.zeros(1 if intervals else 0, dtype=np.int64),
    )
    jury = Jury(records, np.zeros(N), np.zeros(1, dtype=np.int64))
    room = JuryRoom(np.log(priors / priors.sum()), np.zeros((J, max(N, RATES))))
    begin_jury(jury, room)
    return jury, room


@inner
def begin_jury(s: Jury, c: JuryRoom) -> None:
    """Before the first round; all arrays are 0. The weights are the priors."""
    begin_records(s.records, c.logs, 0, s.weights.shape[0], c.scores)
    for i in range(s.weights.shape[0]):
        s.weights[i] = s.records.p[0, i]


@inner
def judge(s: Jury, c: JuryRoom, q: Floats) -> None:
    """One round: weights from what each candidate gained."""
    N = s.weights.shape[0]
    s.heard[0] += 1
    largest = 0.0
    for i in range(N):
        largest = max(largest, abs(q[i]))
    if largest == 0.0:
        return
    credit(s.records, account(s.records, q, 0, N, c.scores), c.scores)
    if s.records.marks.shape[0] > 0:
        mark(s.records, largest, True, s.heard[0])  # new records begin with the priors
    mix(s.records, c.logs, 0, N, s.weights, c.scores)
