"""Forecasts of experts combined: `Aggregator`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from thalweg._core.memory import Memory
from thalweg._core.state import Block
from thalweg._core.types import Floats, Ints
from thalweg._kernels.handle import Closed, parts
from thalweg._kernels.jit import Kernel, kernel
from thalweg._kernels.pointers import Pointer, call
from thalweg.errors import InputError
from thalweg.estimators.aggregator.aggregator import Aggregator
from thalweg.estimators.aggregator.kernels import ANSWERED, PREDICTED, answer, ask, recall
from thalweg.estimators.aggregator.reading import read_answers, read_rows
from thalweg.fleet.chains import Chains, after
from thalweg.fleet.families.base import Family, Growth, ordered
from thalweg.fleet.kernels import FULL, REFUSED, stopped
from thalweg.fleet.reading import BatchRows

ASK = "i8", "f8[1]", "f8[1]", "f8[1]", "i8[1]"
RECALL = "i8", "f8[1]"
ANSWER = "i8", "f8", "f8", "i8[1]"


class CombinerSeat(NamedTuple):
    """An aggregator as steps see it."""

    ask: Pointer
    recall: Pointer
    answer: Pointer
    handle: Closed  # of its one copy
    clock: Ints
    w: Floats  # (K,) scratch space


class OpinionRows(NamedTuple):
    """The rows of a batch."""

    following: Ints  # (n,), or empty: see `Chains`
    experts: Floats  # (n, K); 0 where one sleeps
    awake: Floats  # (n, K)
    values: Floats  # (n,)
    ask: bool
    learn: bool
    begun: Ints  # (n,) 1 where a row was asked before it stopped
    said: Floats  # (n, 1)


@kernel
def combine_rows(seat: Any, batch: Any, first: int) -> int:
    """Combine the rows of a chain, see their answers, or both in turn."""
    one, rows = parts(seat), parts(batch)
    t = first
    while t >= 0:
        waits = one.clock[PREDICTED] > one.clock[ANSWERED]
        if rows.ask and rows.begun[t] == 0:
            if waits:
                return stopped(t, REFUSED)
            rows.said[t, 0] = call(one.ask, one.handle, 0, rows.experts[t], rows.awake[t], one.w, one.clock)
            rows.begun[t] = 1
        elif not waits:
            return stopped(t, REFUSED)
        elif rows.learn:
            said = call(one.recall, one.handle, 0, one.w)
            rows.said[t, 0] = said
        if rows.learn and not call(one.answer, one.handle, 0, rows.values[t], rows.said[t, 0], one.clock):
            return stopped(t, FULL)
        t = after(rows.following, t)
    return t  # DONE


class Combiners(Family):
    """`Aggregator` whose experts are columns."""

    calls = ("run", "predict", "update")
    takes_columns = True

    def __init__(self, template: Aggregator, columns: tuple[str, ...] = ()) -> None:
        if not columns:
            raise InputError("Fleet of Aggregator needs columns=[...]: the names of its experts.")
        if template.horizon > 1:
            raise InputError("Fleet cannot play Aggregator with a horizon: its copies take turns. Use horizon=1.")
        if template._hosted[0]:
            raise InputError("Fleet cannot play Aggregator: only Python can ask guests of your own.")
        self.columns = columns
        self._given = template
        super().__init__(self.blank())

    def blank(self) -> Aggregator:
        """See `Family`."""
        made = self._given.clone()
        sizes = made._layout.sizes_for(len(self.columns))
        made._memory.adopt(Block.fresh(made._layout.plan(sizes)), sizes)
        made._names.names = self.columns
        return made

    def memory(self, learner: Aggregator) -> Memory:
        """See `Family`."""
        return learner._memory

    def tree(self, learner: Aggregator) -> CombinerSeat:
        """See `Family`."""
        handle = learner._turns[0]
        return CombinerSeat(
            Pointer(ask, f"f8(any,{','.join(ASK)})", (handle.kind, *ASK)),
            Pointer(recall, f"f8(any,{','.join(RECALL)})", (handle.kind, *RECALL)),
            Pointer(answer, f"b1(any,{','.join(ANSWER)})", (handle.kind, *ANSWER)),
            Closed(handle),
            learner._memory.state.clock,
            np.zeros(len(self.columns)),
        )

    def spare(self, learner: Aggregator) -> list[NDArray[Any]]:
        """How many Trackers have not begun."""
        return [learner._turns.pending]

    def same(self, learner: Aggregator) -> str:
        """See `Family`."""
        why = super().same(learner)
        if not why and learner._memory.sizes["K"] != len(self.columns):
            return f"it has {learner._memory.sizes['K']} experts, the fleet's learners have {len(self.columns)}"
        return why

    def grow(self, learner: Aggregator) -> Growth:
        """See `Family`."""
        memory = learner._memory
        return Growth(ordered(learner._layout.larger(memory.state, [0], memory.sizes)), {})

    # ------------------------------------------------------------------ rows

    def check(self, rows: BatchRows, target: str, learns: bool) -> None:
        """See `Family`: as an aggregator reads rows and answers."""
        loss, X, y = self.template.loss, rows.columns, rows.target

        def read(some: slice) -> None:
            read_rows("", X[some], None, None, loss=loss)
            if learns:
                read_answers("", y[some], loss)

        try:
            read(slice(None))
        except InputError:
            for row in range(len(X)):
                try:
                    read(slice(row, row + 1))
                except InputError as error:
                    rows.bad.setdefault(row, str(error).removeprefix(": ").removesuffix("."))

    def batch(self, call: str, chains: Chains, data: Mapping[str, NDArray[Any]]) -> tuple[Kernel[..., Any], Any]:
        """See `Family`."""
        n, asks, learns = chains.rows, call != "update", call != "predict"
        X = A = np.zeros((0, len(self.columns)))
        if asks:
            _, X, A = read_rows("Fleet", data["columns"], None, None, loss=self.template.loss)
        values = data["values"] if learns else np.zeros(0)
        begun, said = np.zeros(n, dtype=np.int64), np.full((n, 1), np.nan)
        return combine_rows, OpinionRows(chains.following, X, A, values, asks, learns, begun, said)

    def said(self, call: str, batch: OpinionRows) -> Floats:
        """See `Family`."""
        return batch.said

    def names(self, call: str) -> tuple[str, ...]:
        """See `Family`."""
        return ("thalweg",)

    def mend(self, batch: OpinionRows, row: int, why: int, learner: Aggregator) -> str:
        """See `Family`."""
        if learner.waiting:
            return "a prediction of its key waits for an answer: call update first"
        return "no prediction of its key waits for an answer: call predict first"
