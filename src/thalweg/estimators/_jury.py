"""Weights over a few candidates by what they gained: the Tracker's records (`thalweg._machines.records`) on their own.

In every round candidate i has gained q_i over what was played, for instance l'(z)(z - z_i) where z was played and z_i
was its advice. Then, with nothing to set,

    for every interval I:   sum_{t in I} q_i <= O(sqrt(sum_{t in I} max_k q_k^2 log^2 T))                           (1)

as long as sum_i w_i q_i <= 0: it is 0 where gains are linear in the advice, and what is played is the mean by w.
Weights do not change when all gains are multiplied by a positive number.
"""

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from thalweg._kernels.jit import inner
from thalweg._kernels.parts import Floats, Ints
from thalweg._machines.records import (
    BEHIND,
    MARKERS,
    RATES,
    Records,
    account,
    begin_records,
    credit,
    mark,
    mix,
    new_records,
)
from thalweg._sound import born, shares

__all__ = ["Jury", "JuryRoom", "begin_jury", "judge", "look_jury", "new_jury"]


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
    N, records = priors.size, new_records(priors.size, 1 if intervals else 0)
    jury = Jury(records, np.zeros(N), np.zeros(1, dtype=np.int64))
    room = JuryRoom(np.log(priors / priors.sum()), np.zeros((records.V.size, max(N, RATES))))
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


def look_jury(read: Mapping[str, NDArray[Any]], jury: str = "jury") -> Iterator[tuple[str, bool]]:
    """Whether a run can have left the arrays of the jury of this name: `Stateful._look`."""
    records = {key.split(".")[-1]: array for key, array in read.items() if key.startswith(f"{jury}.records.")}
    heard, m, births = int(read[f"{jury}.heard"][0]), int(records["counts"][MARKERS]), records["born"]
    possible = 0 <= 16 * m <= heard and bool((records["counts"] >= 0).all())
    yield jury, possible and births.tolist() == [0, *born(m, births.size - 1)]
    alive = np.append(True, births > 0)
    everyone = np.ones(records["p"].shape, dtype=np.bool_) & alive[:, None]
    yield jury, shares(records["p"], everyone) and shares(read[f"{jury}.weights"][None], everyone[:1])
    yield jury, shares(records["weights"][None], alive[None]) and bool(np.isin(records["flat"], (0, 1)).all())
    priors = np.append(0.0, np.log(3.0 / np.maximum(births, 1)))
    yield jury, bool((np.abs(records["prior"] - priors)[alive] < 1e-9).all())
    A, V, B = records["A"][alive], records["V"][alive], records["B"][alive]
    root = np.maximum(np.sqrt(B * B + V), 1e-150)
    yield jury, bool((np.minimum(V, B) >= 0).all() and (A.max(axis=1) <= 40 * root + heard * 1e-149).all())
    yield jury, bool((A.min(axis=1) >= -1e290 * root).all() and (root <= 1e150).all())
    since, largest, first, seen, _ = records["totals"]
    yield jury, bool(0 <= since <= 16 * largest and 0 <= first <= seen and (first > 1e-150 or seen == 0))
    gained, squares, least = records["R"][alive], records["W"][alive], int(records["counts"][1])
    yield jury, bool((np.abs(gained) <= heard * seen * (1 + 1e-6)).all() and (squares >= 0).all())
    yield jury, bool((squares <= heard * seen * seen * (1 + 1e-6)).all())
    yield jury, bool(-0.001 <= least - (0.5 * np.log2(seen / first) if first > 0 else 0.0) < 1.001)
    behind = least - records["anchors"][alive]
    yield jury, bool(((behind >= 0) & (behind <= BEHIND) & (behind <= least)).all())
