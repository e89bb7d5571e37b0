"""The memory of a fleet: streams in classes by their sizes, played by seats, moved to a larger class when full."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np

from thalweg._core.progress import progress_bar
from thalweg._core.types import Ints
from thalweg._kernels.jit import PLAIN, Kernel
from thalweg.fleet.chains import Chains, chains_of
from thalweg.fleet.families.base import Family, SizeClass, Sizes
from thalweg.fleet.kernels import FULL, REASONS
from thalweg.fleet.keys import Keys, KeyTable, Mark, grown
from thalweg.fleet.seats import BoundBatch, ClassTurn, play
from thalweg.fleet.shelves import Shelf, shift

NEVER = -(2**63)  # a time before all others
FEW = 256  # chains for which a second thread is not worth its start
KEPT = 16  # ways to move words between classes, and learners of classes, that are kept for later
PORTIONS = 100  # of a batch, between which a progress bar moves


class Streams:
    """The streams of a fleet, by number.

    Attributes
    ----------
    table : KeyTable
        Their numbers by key.
    classes : list of (SizeClass, Shelf)
        Classes of streams of the same sizes, each with its memory.
    kind, place : arrays
        The class of each stream, -1 where it is not alive, and its place there.
    latest, seen : arrays
        The last time of each stream, and the last batch that it was in.
    dirty : array
        Whether it changed since the last checkpoint.
    batches, rows : int
        Batches that were learned, and their rows.
    """

    def __init__(self, family: Family, threads: int) -> None:
        self.family, self.threads, self.batches, self.rows = family, threads, 0, 0
        self.table = KeyTable()
        self.classes: list[tuple[SizeClass, Shelf]] = []
        self._number: dict[Sizes, int] = {}  # of classes
        self._models: dict[int, Any] = {}  # ordinary learners of the classes that were last asked for
        self._shifts: dict[tuple[int, int], tuple[Ints, Ints, Ints]] = {}
        self.kind = np.zeros(0, dtype=np.int32)
        self.place = np.zeros(0, dtype=np.int64)
        self.latest = np.zeros(0, dtype=np.int64)
        self.seen = np.zeros(0, dtype=np.int64)
        self.dirty = np.zeros(0, dtype=np.bool_)
        self._pool: ThreadPoolExecutor | None = None
        self._fresh = self.class_of(family.first)
        self._begin = family.words(family.template)  # of a fresh stream

    @property
    def alive(self) -> Ints:
        """The numbers of all streams."""
        return np.flatnonzero(self.table.alive)

    @property
    def nbytes(self) -> int:
        """Bytes of all streams, their keys, and the arrays with an entry for each."""
        beside = self.kind, self.place, self.latest, self.seen, self.dirty
        return sum(shelf.nbytes for _, shelf in self.classes) + self.table.nbytes + sum(one.nbytes for one in beside)

    # ------------------------------------------------------------------ keys

    def enroll(self) -> None:
        """Make space in the arrays that have an entry for every stream."""
        top = self.table.top
        if top > self.kind.size:
            self.kind, self.place = grown(self.kind, top, -1), grown(self.place, top)
            self.latest, self.seen = grown(self.latest, top, NEVER), grown(self.seen, top)
            self.dirty = grown(self.dirty, top)

    def birth(self, streams: Ints) -> None:
        """Give fresh streams their memory."""
        if not streams.size:
            return
        shelf = self.classes[self._fresh][1]
        places = shelf.take(streams.size)
        self.kind[streams], self.place[streams] = self._fresh, places
        shelf.write(places, self._begin)
        self.latest[streams], self.seen[streams], self.dirty[streams] = NEVER, self.batches, True

    def unborn(self, streams: Ints, mark: Mark) -> None:
        """Undo births since a mark of the table."""
        born = streams[self.kind[streams] >= 0] if self.kind.size > streams.max(initial=-1) else streams[:0]
        self.classes[self._fresh][1].give(self.place[born])
        self.kind[born] = -1
        self.table.undo(streams, mark)

    def put(self, keys: Keys, sizes: Sizes, words: Ints) -> None:
        """Put a stream in the place of a key."""
        number = self.class_of(sizes)
        shelf = self.classes[number][1]
        found = self.table.find(keys)
        new = self.table.add(keys, found)
        self.enroll()
        stream, place = int(found[0]), shelf.take(1)
        shelf.write(place, words[None])
        if new.size:
            self.latest[stream] = NEVER
        else:
            self.classes[self.kind[stream]][1].give(self.place[stream : stream + 1])
        self.kind[stream], self.place[stream] = number, place[0]
        self.seen[stream], self.dirty[stream] = self.batches, True

    def drop(self, streams: Ints) -> None:
        """Forget streams. Their places and numbers are used again."""
        for number in np.unique(self.kind[streams]).tolist():
            self.classes[number][1].give(self.place[streams[self.kind[streams] == number]])
        self.kind[streams], self.latest[streams] = -1, NEVER
        self.table.remove(streams)
        self._pack()

    def learner(self, stream: int) -> Any:
        """Return an ordinary learner with the state of a stream, one of its own."""
        kind, shelf = self.classes[self.kind[stream]]
        return self.family.learner(kind.sizes, shelf.read(self.place[stream : stream + 1])[0])

    def rounds(self, streams: Ints) -> Ints:
        """Return how many rounds streams have played; 0 for the number -1."""
        found = np.zeros(streams.size, dtype=np.int64)
        known = np.flatnonzero(streams >= 0)
        kinds = self.kind[streams[known]]
        for number in np.unique(kinds).tolist():
            kind, shelf = self.classes[number]
            mine = known[kinds == number]
            found[mine] = shelf.column(self.place[streams[mine]], kind.rounds_at)
        return found

    # ------------------------------------------------------------------ rounds

    def chains(self, streams: Ints, times: Ints | None) -> tuple[Chains, list[int]]:
        """Return the rows of each stream in their order, and rows whose time does not come later."""
        top = self.table.top
        if times is None:
            return chains_of(streams, top), []
        ascend = times.size < 2 or bool((times[1:] >= times[:-1]).all())
        chains = chains_of(streams, top, None if ascend else np.argsort(times, kind="stable"))
        late = np.zeros(streams.size, dtype=np.bool_)
        before = np.flatnonzero(chains.following >= 0)
        following = chains.following[before]
        late[following[times[following] <= times[before]]] = True
        if (times[chains.heads] <= self.latest[chains.owners]).any():
            late |= (streams >= 0) & (times <= self.latest[streams])
        return chains, np.flatnonzero(late).tolist()

    def play(
        self, kernel: Kernel[..., Any], batch: Any, chains: Chains, owner: str, progress: bool
    ) -> list[tuple[int, str]]:
        """Play chains; returns the rows that were refused, with the reasons."""
        refused: list[tuple[int, str]] = []
        total, bound = chains.heads.size, BoundBatch(kernel, batch, chains)
        size = max(FEW, -(-total // PORTIONS)) if progress else max(total, 1)
        with progress_bar(owner, total, progress, "stream") as tick:
            for begin in range(0, total, size):
                some = chains.some(slice(begin, begin + size))
                refused += self._play_some(bound, some)
                tick(some.heads.size)
        self.dirty[chains.owners] = True
        self._pack()
        return refused

    def learned(self, chains: Chains, streams: Ints, times: Ints | None) -> None:
        """Note that chains, the rows of these streams, were learned."""
        self.batches += 1
        self.rows += streams.size
        self.seen[chains.owners] = self.batches
        if times is not None:
            last = np.flatnonzero(streams >= 0)
            if chains.following.size:
                last = last[chains.following[last] < 0]
            self.latest[streams[last]] = times[last]

    def _pack(self) -> None:
        """Give memory back that streams have left behind."""
        for number, (_, shelf) in enumerate(self.classes):
            if shelf.loose():
                mine = np.flatnonzero(self.kind == number)
                self.place[mine] = shelf.pack(self.place[mine])

    def _play_some(self, batch: BoundBatch, chains: Chains) -> list[tuple[int, str]]:
        refused: list[tuple[int, str]] = []
        stuck: set[tuple[int, int]] = set()
        while chains.heads.size:
            left, ends = self._play_once(batch, chains)
            rows, why, owners = ends // REASONS, ends % REASONS, chains.owners[left]
            again = why == FULL
            for k in np.flatnonzero(~again).tolist():
                said = self._mend(batch.batch, int(rows[k]), int(why[k]), int(owners[k]), stuck)
                again[k] = not said
                if said:
                    refused.append((int(rows[k]), said))
            lacking = np.flatnonzero(why == FULL)
            for k, said in self._grow(owners[lacking]):
                refused.append((int(rows[lacking[k]]), said))
                again[lacking[k]] = False
            chains = chains._replace(heads=rows[again], owners=owners[again])
        return sorted(refused)

    def _play_once(self, batch: BoundBatch, chains: Chains) -> Ints:
        """Play chains as far as they go; returns the indices of those that stopped, and the results of their steps."""
        if len(self.classes) == 1:
            return self._play_classes([0], [0, chains.heads.size], batch, chains)
        kinds = self.kind[chains.owners].astype(np.min_scalar_type(len(self.classes)))  # short ones are sorted quickly
        order = np.argsort(kinds, kind="stable")
        kinds = kinds[order]
        begins = np.flatnonzero(np.append(True, kinds[1:] != kinds[:-1]))
        if begins.size > 1:
            chains = chains.some(order)
        stops = self._play_classes(kinds[begins].tolist(), [*begins.tolist(), kinds.size], batch, chains)
        if begins.size > 1:
            stops[0] = order[stops[0]]
        return stops[:, np.argsort(stops[0])]

    def _play_classes(self, numbers: Sequence[int], cuts: Sequence[int], batch: BoundBatch, chains: Chains) -> Ints:
        """Play chains class by class: those from cuts[k] on are of class numbers[k]. As `_play_once`."""
        total, count = cuts[-1], 1 if PLAIN or cuts[-1] < FEW else self.threads
        try:
            parts = self._parts(numbers, cuts, [total * i // count for i in range(count + 1)])
        except MemoryError:  # fewer threads play as well
            parts = self._parts(numbers, cuts, [0, total])
        if len(parts) == 1:
            return play(parts[0], batch, chains, self.place)
        if self._pool is None:
            self._pool = ThreadPoolExecutor(self.threads, thread_name_prefix="thalweg-fleet")
        found = self._pool.map(lambda turns: play(turns, batch, chains, self.place), parts)
        return np.concatenate(list(found), axis=1)

    def _parts(self, numbers: Sequence[int], cuts: Sequence[int], ends: Sequence[int]) -> list[list[ClassTurn]]:
        """Divide chains among threads, at `ends`. A class that several threads play has a seat for each of them."""
        parts: list[list[ClassTurn]] = []
        k = 0
        taken = dict.fromkeys(numbers, 0)  # seats of each class
        for begin, end in itertools.pairwise(ends):
            turns = []
            while begin < end:
                kind, shelf = self.classes[numbers[k]]
                if taken[numbers[k]] == len(kind.seats):
                    kind.seats.append(self.family.seat(kind.sizes))
                stop = min(end, cuts[k + 1])
                turns.append(ClassTurn(kind.seats[taken[numbers[k]]], shelf, begin, stop))
                taken[numbers[k]] += 1
                k, begin = k + (stop == cuts[k + 1]), stop
            parts += [turns] if turns else []
        return parts

    def _mend(self, batch: Any, row: int, why: int, stream: int, stuck: set[tuple[int, int]]) -> str:
        """Mend a row that was refused, once; or return the reason why it cannot be played."""
        learner = self._visit(stream)
        if (row, why) in stuck:
            return "it was refused"
        stuck.add((row, why))
        return self.family.mend(batch, row, why, learner)

    # ------------------------------------------------------------------ growth

    def class_of(self, sizes: Sizes) -> int:
        """Return the number of the class with these sizes, a new one if there is none."""
        number = self._number.get(sizes)
        if number is None:
            kind = self.family.size_class(sizes)
            number = self._number[sizes] = len(self.classes)
            self.classes.append((kind, Shelf(kind.seats[0].width)))
        return number

    def _model(self, number: int) -> Any:
        """Return an ordinary learner of a class, whose state does not matter."""
        if number not in self._models:
            if len(self._models) >= KEPT:
                self._models.pop(next(iter(self._models)))
            self._models[number] = self.family.learner(self.classes[number][0].sizes)
        return self._models[number]

    def _visit(self, stream: int) -> Any:
        """Return an ordinary learner with the state of a stream, to be asked and not to be played."""
        number = int(self.kind[stream])
        (kind, shelf), model = self.classes[number], self._model(number)
        self.family.memory(model).block.memory[:] = shelf.read(self.place[stream : stream + 1])[0, : kind.words]
        return model

    def _grow(self, streams: Ints) -> list[tuple[int, str]]:
        """Move streams to larger classes; returns the indices of those that cannot grow, with the reasons."""
        refused: list[tuple[int, str]] = []
        wanted: dict[tuple[int, int], list[tuple[int, Mapping[str, Sequence[int]]]]] = {}
        full = "there is no memory for its stream to grow"
        for k, stream in enumerate(streams.tolist()):
            here = int(self.kind[stream])
            try:
                growth = self.family.grow(self._visit(stream))
                there = self.class_of(growth.sizes)
            except MemoryError:
                refused.append((k, full))
                continue
            if here == there and not growth.fields:
                refused.append((k, "it has no capacity for another round"))
                continue
            wanted.setdefault((here, there), []).append((k, growth.fields))
        for (here, there), found in wanted.items():
            some = [k for k, _ in found]
            try:
                self._move(here, there, streams[some], [fields for _, fields in found])
            except MemoryError:
                refused += [(k, full) for k in some]
        return refused

    def _move(self, here: int, there: int, streams: Ints, fields: list[Mapping[str, Sequence[int]]]) -> None:
        """Move streams from one class to another, and set fields there."""
        (_, shelf), (_, other) = self.classes[here], self.classes[there]
        words = shelf.read(self.place[streams])
        if here != there:
            words = self._shifted(here, there, words)
        plan = self.family.memory(self._model(there)).block.plan
        for name in fields[0]:
            _, shape, first = plan.places.fields[name]
            words[:, first : first + int(np.prod(shape))] = [one[name] for one in fields]
        if here == there:
            shelf.write(self.place[streams], words)
            return
        places = other.take(streams.size)
        other.write(places, words)
        shelf.give(self.place[streams])
        self.kind[streams], self.place[streams] = there, places

    def _shifted(self, here: int, there: int, words: Ints) -> Ints:
        """Return words of streams as they are in another class."""
        found = self._shifts.get((here, there))
        if found is None:
            if len(self._shifts) >= KEPT:
                self._shifts.clear()
            mine, theirs = self._model(here), self._model(there)
            plans = self.family.memory(mine).block.plan, self.family.memory(theirs).block.plan
            found = self._shifts[here, there] = shift(*plans, self.family.spare(mine), self.family.spare(theirs))
        source, target, begin = found
        moved = np.empty((len(words), begin.size), dtype=np.int64)
        moved[:] = begin
        moved[:, target] = words[:, source]
        return moved
