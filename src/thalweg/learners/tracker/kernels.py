"""The Tracker's machine on a ball: members, their records, and the round that joins them.

A round with the gradient h, n = ||h||^2, and f >= 0 the loss at the decision (inf where it is unknown):

    the first one: members and record 0 begin                                                                  (1)
    S += n, and the sum of lengths += ||h||                                                                    (2)
    gains r_i = <h, y - y_i>; members move                            `cut_descent`, `curvature`               (3)
    records see q_i = min(r_i, 2f)                                    `records`                                (4)
    a marker, where it is time for one; longer steps join; without values, after 4 gradients, members
    with curvature join                                                                                        (5)
    p <- weights of the records; y <- sum_i p_i y_i                                                          (6)

A round without a gradient changes nothing.
"""

from typing import NamedTuple

import numpy as np

from thalweg._core.rules import counter_field, within
from thalweg._core.state import field, part, scratch
from thalweg._core.types import Floats, Ints
from thalweg._kernels.clock import GRADIENTS, PROJECTIONS, ROUNDS, VALUES
from thalweg._kernels.jit import implement, inner
from thalweg._kernels.vectors import square_norm
from thalweg.learners.contract import decision, has_capacity, learn, propose
from thalweg.parts.curvature import (
    BLIND_ROW,
    BLIND_SHARE,
    MEMBERS,
    RESTARTING,
    SHARE,
    CurvatureState,
    begin_curvature,
    fresh,
    move_curved,
)
from thalweg.parts.cut_descent import (
    COUNT,
    CURVED,
    FIRST_ROWS,
    LENGTHS,
    SQUARES,
    Around,
    CutDescentState,
    begin_members,
    combine,
    join,
    move_descents,
    rows_needed,
    see_gains,
)
from thalweg.parts.estimate import AGE, HELPERS, EstimateState, begin_estimate, estimate
from thalweg.parts.records import MARKERS, OTHERS, RecordsState, account, begin_change, begin_records, credit, mark, mix

SMALLEST_SQUARE = 1e-300  # of a squared gradient, and of a loss
LARGEST_LOSS = 1e150  # of a loss
ENOUGH = 4.0  # gradients, to know something of curvature without values
SPARE = 2  # rows beyond those in use, at most


class TrackerState(NamedTuple):
    """N rows of members and J records of them; sizes grow between rounds."""

    members: CutDescentState = part()
    curvature: CurvatureState = part()
    estimate: EstimateState = part()
    records: RecordsState = part()
    p: Floats = field("N", within(0.0, 1.0), called="beliefs")  # weights of the members
    y: Floats = field("d")  # the decision
    curved: Ints = field("1", within(0, 1), called="members with curvature")  # 1 while there are some
    clock: Ints = counter_field()  # `thalweg._kernels.clock`


class TrackerSettings(NamedTuple):
    """Constants and scratch space."""

    around: Around
    curvature: bool  # members with curvature are wanted
    intervals: bool
    floor: float  # of the losses; -inf where they are not to be used
    embedded: bool  # a part of another state, which may have more capacity than needed
    gains: Floats = scratch("N")
    scores: Floats = scratch("J N")
    u: Floats = scratch("d")
    trust: Floats = scratch("H")  # weights of the helpers


@inner
def helpers_in_use(s: TrackerState) -> int:
    """Helpers after the first round: none if its loss was given."""
    return HELPERS if s.estimate.seen[AGE] > 0.0 else 0


@inner
def curved_in_use(s: TrackerState) -> int:
    """Members with a matrix after the first round: only C if its loss was not given."""
    return 1 if s.estimate.seen[AGE] > 0.0 else MEMBERS * s.curved[0]


@inner
def first_row(s: TrackerState) -> int:
    """The first row of members that is in use: of all, of those without values, or of the descents."""
    if s.curved[0] == 0:
        return CURVED
    return BLIND_ROW if s.estimate.seen[AGE] > 0.0 else 0


@implement(has_capacity, TrackerState)
def _has_capacity(s: TrackerState, c: TrackerSettings) -> bool:
    """Whether the sizes fit the next round: enough for all it may add and, unless embedded, not much more.

    Which members and helpers there are is known after the first round: until then there is capacity for all of them.
    """
    count, rows = s.members.sizes[COUNT], s.p.shape[0]
    helpers, curved = s.estimate.errors.shape[0], s.curvature.P.shape[0]
    if count == 0:
        return rows >= FIRST_ROWS and (not c.curvature or (helpers == HELPERS and curved == MEMBERS))
    markers, slots = s.records.counts[MARKERS], s.records.V.shape[0] - OTHERS
    fits = rows_needed(s.members) <= rows and (not c.intervals or (markers + 1) >> slots == 0)
    if c.embedded:
        return fits and helpers >= helpers_in_use(s) and curved >= curved_in_use(s)
    return fits and rows <= count + SPARE and helpers == helpers_in_use(s) and curved == curved_in_use(s)


@implement(decision, TrackerState)
def _decision(s: TrackerState, c: TrackerSettings) -> Floats:
    return s.y


@implement(learn, TrackerState)
def _learn(s: TrackerState, c: TrackerSettings, h: Floats, loss: float) -> bool:
    f = loss - c.floor
    if f < 0.0 or LARGEST_LOSS < f < np.inf:
        return False
    s.clock[ROUNDS] += 1
    s.clock[GRADIENTS] += 1
    s.clock[VALUES] += 1 if f < np.inf else 0
    f = f if f > SMALLEST_SQUARE else 0.0
    n = square_norm(h)
    if n <= SMALLEST_SQUARE:
        return True
    members, records = s.members, s.records
    blind, evident = s.estimate.seen[AGE] > 0.0, False
    if members.sizes[COUNT] == 0:  # (1)
        total = begin_members(members, c.around, f, n)
        if c.curvature and 0.0 < f < np.inf:
            s.curved[0] = 1
            begin_curvature(s.curvature, members, c.around, SHARE * total, 0)
            for k in range(MEMBERS):
                fresh(s.curvature.P[k], f, n)
        elif c.curvature and f == np.inf:
            blind = True
            begin_curvature(s.curvature, members, c.around, BLIND_SHARE * total, BLIND_ROW)
            begin_estimate(s.estimate, c.around)
        begin_records(records, members.logs, first_row(s), members.sizes[COUNT], c.scores)
    first, count = first_row(s), members.sizes[COUNT]
    s.clock[PROJECTIONS] += count - first
    members.sums[SQUARES] += n  # (2)
    members.sums[LENGTHS] += np.sqrt(n)
    see_gains(members, h, s.y, BLIND_ROW if blind else first, c.gains)  # (3)
    move_descents(members, c.around, h, n, f, c.gains)
    if blind:
        mixed = members.points[RESTARTING]
        value = max(estimate(s.estimate, c.around, h, n, s.y, mixed, c.trust), SMALLEST_SQUARE)  # it may underflow
        value = f if f < np.inf else value
        if s.estimate.seen[AGE] == ENOUGH:
            fresh(s.curvature.P[0], value, n)
        if s.estimate.seen[AGE] >= ENOUGH:
            move_curved(s.curvature, members, c.around, h, n, value, s.y, c.gains, c.u, 1)
    elif s.curved[0] == 1:
        evident = move_curved(s.curvature, members, c.around, h, n, f, s.y, c.gains, c.u, MEMBERS)
    cut = c.gains[first:count]
    for i in range(cut.shape[0]):
        cut[i] = min(cut[i], 2.0 * f)
    credit(records, account(records, c.gains, first, count, c.scores), c.scores)  # (4)
    if c.intervals:
        phi = min(2.0 * f, 2.0 * c.around.radius * np.sqrt(n))
        mark(records, phi, f == np.inf, s.clock[ROUNDS])  # (5)
        if evident:
            begin_change(records)
    join(members, s.y)
    if s.estimate.seen[AGE] == ENOUGH:
        s.curved[0] = 1
    return True


@implement(propose, TrackerState)
def _propose(s: TrackerState, c: TrackerSettings, loss: float) -> None:
    members = s.members
    first, count = first_row(s), members.sizes[COUNT]
    if count == 0:
        return
    mix(s.records, members.logs, first, count, s.p, c.scores)  # (6)
    combine(members, s.p, first, s.y)
