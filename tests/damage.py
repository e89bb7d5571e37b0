"""Damaged states of everything that can be saved, from declarations: `python -m tests.damage COUNT [SEED] [WORD...]`.

A state after some rounds has one field damaged, in every way below, and is restored. Then either a StateError says so
and nothing has changed, or the object works: it plays 20 more rounds with answers that are finite and feasible.

`python -m tests.damage --record` writes down which changes of single entries are refused (`tests/data/refused.json`):
rules and relations may become stricter, never weaker.

With NUMBA_DISABLE_JIT=1 every index of a kernel is checked, too: none may lie outside of an array, or wrap around.
"""

import collections
import copy
import json
import pathlib
import sys
import traceback
import warnings

import numpy as np

from tests import samples
from tests.samples import SAMPLES, blocks, fields, memories, memory, play, same, show
from thalweg._core import state as declared
from thalweg._kernels import jit
from thalweg.errors import StateError

AFTER = 20  # rounds that an accepted state is played for
AT = (0, 1, 5, 17, 40)  # rounds after which states are taken; the last one is damaged most
WHOLE = [0, 1, -1, 2, 7, 59, 64, 1000, 2**31, 2**57, 2**62 - 10**6, 2**62 + 1, -(2**62), 2**63 - 1]
REAL = [0.0, -1.0, 1.0, 1e-320, 1e-160, 1e-30, 1e30, 1e150, 1.7e308, -1e200, np.nan, np.inf, -np.inf, 0.5, -1e-3]


class Own(np.ndarray):
    """A subclass."""


def masked(a, rng):
    return np.ma.array(a, mask=np.arange(a.size).reshape(a.shape) == 0)


# Every way to damage an array: (array, rng) -> anything.
KINDS = {
    "object": lambda a, rng: a.astype(object),
    "text": lambda a, rng: a.astype(str),
    "complex": lambda a, rng: a.astype(complex),
    "float32": lambda a, rng: a.astype(np.float32),
    "other numbers": lambda a, rng: a.astype(np.int64 if a.dtype.kind == "f" else np.float64),
    "unsigned": lambda a, rng: a.astype(np.uint64),
    "other byte order": lambda a, rng: a.astype(">f8" if a.dtype.kind == "f" else ">i8"),
    "subclass": lambda a, rng: a.view(Own),
    "masked": masked,
    "list": lambda a, rng: a.tolist(),
    "ragged": lambda a, rng: [a, [a]],
    "one number": lambda a, rng: np.array(a.ravel()[0]),
    "Fortran order": lambda a, rng: np.asfortranarray(a),
    "axis more": lambda a, rng: a[None],
    "flat": lambda a, rng: a.ravel(),
    "transposed": lambda a, rng: a.T,
    "truncated": lambda a, rng: a[:-1],
    "doubled": lambda a, rng: np.concatenate([a, a]),
    "empty": lambda a, rng: np.zeros((0, *a.shape[1:]), a.dtype),
    "large": lambda a, rng: np.broadcast_to(a.ravel()[0], (2**26,)),
    "None": lambda a, rng: None,
    "nonsense": lambda a, rng: "nonsense",
}


def _entry(change):
    def damage(a, rng):
        a = a.copy()
        with np.errstate(all="ignore"):
            i = rng.integers(a.size)
            a.flat[i] = change(a.flat[i], rng)
        return a

    return damage


def ways(a):
    """Every way that makes sense for an array, by name."""
    found = dict(KINDS)
    values = WHOLE if a.dtype.kind == "i" else REAL
    found |= {f"an entry {v}": _entry(lambda x, rng, v=v: v) for v in values}
    found |= {f"all {v}": lambda a, rng, v=v: np.full_like(a, v) for v in (values[2], values[-4])}
    if a.dtype.kind == "i":
        found |= {f"an entry + {v}": _entry(lambda x, rng, v=v: x + v) for v in (-2, -1, 1, 2)}
    else:
        found["an entry scaled"] = _entry(lambda x, rng: x * 10.0 ** rng.uniform(-3, 3))
        found["an entry moved"] = _entry(lambda x, rng: x + rng.normal())
        found["an entry's sign"] = _entry(lambda x, rng: -x)
        found["last digit"] = _entry(lambda x, rng: x * (1 + 1e-7))
        found["all scaled"] = lambda a, rng: a * 10.0 ** rng.uniform(-3, 3)
    found["shuffled"] = lambda a, rng: rng.permutation(a.ravel()).reshape(a.shape)
    return found


class Trial:
    """States that runs of a sample left, and somebody that damaged ones are restored into."""

    def __init__(self, name):
        self.name, self.states, made, last = name, [], samples.make(name), 0
        for count in AT:
            play(name, made, last, count)
            show(name, made)
            self.states.append(made.state())
            last = count
        self.made, self.fields = made, list(fields(made))
        self.bystander = samples.played(name, 6)
        kept = self.bystander.state()
        for state in self.states:  # a state that a run left is never refused
            self.bystander.restore(state)
            assert same(self.bystander.state(), state)
        self.bystander.restore(kept)
        self.remember()

    def remember(self):
        self.before, self.shown = self.bystander.state(), show(self.name, self.bystander)
        self.blocks = blocks(self.bystander)

    def damages(self):
        """Every field in every way, as (description, damage); a damage changes a state and returns nothing."""
        names = [name for name, _, _ in self.fields]
        for name, said, shape in self.fields:
            a = self.states[-1][name]
            assert (a.dtype, a.shape) == (said.dtype, shape)
            if not a.size:
                continue
            for how, way in ways(a).items():
                yield f"{name}: {how}", lambda state, rng, name=name, way=way: put(state, name, way, rng)
            yield f"{name}: missing", lambda state, rng, name=name: state.pop(name)
            yield f"{name}: at another round", lambda state, rng, name=name: self.mix(state, name, rng)
            twins = [n for n, _, other in self.fields if other == shape and n != name]
            if twins:
                yield f"{name}: swapped", lambda state, rng, name=name, twins=twins: swap(state, name, twins, rng)
        for size, n in memory(self.made).sizes.items():
            for other in sorted({0, 1, n - 1, n + 1, n // 2, 2 * n, 16, 64, 65_536} - {n, -1}):
                yield f"{size} = {other}", lambda state, rng, size=size, other=other: self.resize(state, size, other)
        for key in [key for key in self.states[-1] if key not in names]:
            for value in (None, np.zeros(3), "nonsense", [[1], [2, 3]], 7):
                yield f"{key}: {value}", lambda state, rng, key=key, value=value: state.update({key: value})

    def resize(self, state, size, n):
        """Every field that has this size gets another one, as if the state had grown or shrunk."""
        for prefix, mine in memories(self.made):
            arrays = mine.block.moved(mine.layout.plan({**mine.sizes, size: n})).arrays
            state.update({prefix + name: array for name, array in arrays.items()})

    def mix(self, state, name, rng):
        state[name] = copy.deepcopy(self.states[rng.integers(len(self.states) - 1)].get(name))

    def run(self, damages, rng):
        """Returns "refused" or "played", or raises."""
        state = copy.deepcopy(self.states[-1 if rng.random() < 0.7 else rng.integers(len(self.states))])
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                for one in damages:
                    one(state, rng)
        except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError):  # cannot be done to this array
            return "nothing"
        made = self.bystander
        try:
            made.restore(state)
        except StateError:
            assert blocks(made) == self.blocks, "refused, but the block is another one"
            assert same(made.state(), self.before), "refused, but the state changed"
            assert np.array_equal(show(self.name, made), self.shown), "refused, but the decision changed"
            return "refused"
        try:
            first = int(rng.integers(0, 150))
            with np.errstate(all="ignore"):
                play(self.name, made, first, first + AFTER)
            made.restore(made.state())
        finally:
            self.bystander = samples.make(self.name) if blocks(made) == self.blocks else made
            self.bystander.restore(self.before)
            self.remember()
        return "played"


def put(state, name, way, rng):
    state[name] = way(state[name], rng)


def swap(state, name, twins, rng):
    twin = twins[rng.integers(len(twins))]
    state[name], state[twin] = state[twin], state[name]


def campaign(name, count=None, seed=0):
    """Damage one sample: `count` ways drawn from all, or all; outcomes, and the faults in words."""
    trial, rng = Trial(name), np.random.default_rng([seed, *name.encode()])
    found, faults = collections.Counter(), []
    every = list(trial.damages())
    order = rng.permutation(len(every))[:count]
    for told, damage in (every[i] for i in order):
        more = [every[i] for i in rng.integers(len(every), size=rng.choice(3, p=[0.6, 0.25, 0.15]))]
        told = "; ".join([told, *(other for other, _ in more)])
        try:
            found[trial.run([damage, *(other for _, other in more)], rng)] += 1
        except Exception as error:
            found["faults"] += 1
            faults.append(f"{name}, {told}: {type(error).__name__}: {error}\n{traceback.format_exc()}")
            trial = Trial(name)
    return found, faults


# -------------------------------------------------------------------------------------------- what is refused, recorded

ENTRIES = 6  # of a field, evenly spaced, that are changed one at a time


def _changes(x):
    """Other values for an entry, none of them near."""
    if isinstance(x, np.integer):
        return x + 1, x - 1, x + 2**40
    return x + 0.37 * (1 + abs(x)), -abs(x) - 0.37, 1e6 * (1 + abs(x))


def refusals(name):
    """For every field whether each change of an entry is refused: a digit for each, three for an entry."""
    made, other, found = samples.played(name), samples.played(name, 6), {}
    saved = made.state()
    for field, _, _ in fields(made):
        digits, a = "", saved[field]
        for i in sorted({*np.linspace(0, a.size - 1, ENTRIES).astype(int).tolist()} if a.size else ()):
            for value in _changes(a.flat[i]):
                changed = a.copy()
                changed.flat[i] = value
                try:
                    other.restore(saved | {field: changed})
                    digits += "0"
                except StateError:
                    digits += "1"
        found[field] = digits
    return found


def kinds(made):
    """Every class of states in a sample."""

    def walk(plan):
        yield plan.state.__name__
        for part in plan.parts.values():
            yield from walk(part)

    return {*walk(memory(made).block.plan)}


def representatives():
    """Samples that together have every class of states, and everything that is not a learner."""
    seen, found = set(), []
    for name in SAMPLES:
        new = kinds(samples.played(name)) | {type(SAMPLES[name].make()).__name__}
        if new - seen:
            found.append(name)
            seen |= new
    return found


# ------------------------------------------------------------------------------------------------- indices, checked


def kernels():
    """The code of all functions that are compiled."""
    functions = [*jit.INNER, *(one.function for one in jit.KERNELS)]
    functions += [one for table in jit.CHOSEN.values() for one in table.values()]
    return {one.__code__ for one in functions if hasattr(one, "__code__")}


class Guarded(np.ndarray):
    """An array that refuses an index that wraps around, where a kernel asks."""

    codes: frozenset = frozenset()

    def _look(self, key):
        if sys._getframe(2).f_code in Guarded.codes:
            for one in key if isinstance(key, tuple) else (key,):
                if isinstance(one, int | np.integer) and one < 0:
                    raise IndexError(f"index {key} wraps around")

    def __getitem__(self, key):
        self._look(key)
        return super().__getitem__(key)

    def __setitem__(self, key, value):
        self._look(key)
        super().__setitem__(key, value)


def guard():
    """Have all arrays of states, settings and scratch space guarded from here on; returns how to stop that."""
    tree, made = declared._tree, declared._settings
    Guarded.codes = frozenset(kernels())
    for table in jit.CHOSEN.values():
        if np.ndarray in table:
            table[Guarded] = table[np.ndarray]

    def settings(plan):
        found = made(plan)
        return _guarded(found)

    declared._tree = lambda plan, arrays: tree(plan, (array.view(Guarded) for array in arrays))
    declared._settings = settings

    def stop():
        declared._tree, declared._settings = tree, made

    return stop


def _guarded(value):
    if type(value) is np.ndarray:
        return value.view(Guarded)
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return value._replace(**{k: _guarded(v) for k, v in value._asdict().items()})
    return value


RECORD = pathlib.Path(__file__).parent / "data" / "refused.json"

if __name__ == "__main__" and sys.argv[1] == "--record":
    warnings.simplefilter("ignore")
    known = json.loads(RECORD.read_text()) if RECORD.exists() else {}
    RECORD.write_text(json.dumps(known | {name: refusals(name) for name in representatives()}, indent=0))
elif __name__ == "__main__":
    total, seed = int(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 0
    names = [name for name in SAMPLES if not sys.argv[3:] or any(word in name for word in sys.argv[3:])]
    warnings.simplefilter("ignore")
    if jit.PLAIN:
        guard()
    sums, wrong = collections.Counter(), []
    for name in names:
        found, faults = campaign(name, total // len(names) + 1 if total else None, seed)
        sums += found
        wrong += faults
        print(f"{name}: {dict(found)}", flush=True)
        print("".join(faults[:3]), file=sys.stderr, flush=True)
    print(f"all: {dict(sums)}")
    sys.exit(bool(wrong))
