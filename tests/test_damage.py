"""Damaged states and files of everything that can be saved are refused and nothing changes, or it works.

`tests/damage.py` and `tests/damaged_files.py` make them from declarations; `tests/samples.py` has everything there is.
"""

import json
import os
import pathlib
import subprocess
import sys

import numpy as np
import pytest

import thalweg as tw
from tests import damage, damaged_files
from tests.samples import QUIET, SAMPLES, blocks, every, fields, memories, played, same
from thalweg._core import saving
from thalweg._core.recorded import build, describe
from thalweg._core.saving import FREE
from thalweg._kernels.clock import FRESH
from thalweg.errors import StateError

pytestmark = QUIET
ROOT = pathlib.Path(__file__).parents[1]
EACH = 75  # damaged states of each sample: 10,000 in all


@every
def test_a_damaged_state_is_refused_or_can_be_played(name):
    found, faults = damage.campaign(name, EACH)
    assert not faults, f"{len(faults)} of {EACH}:\n{faults[0]}"
    assert found["refused"] > EACH / 4


@every
@pytest.mark.slow
def test_every_field_in_every_way(name):
    faults = damage.campaign(name)[1]
    assert not faults, f"{len(faults)}:\n{faults[0]}"


@pytest.mark.slow
def test_no_index_lies_outside_or_wraps_around():
    """In plain Python, where every index of a kernel is checked."""
    env = os.environ | {"NUMBA_DISABLE_JIT": "1"}
    command = [sys.executable, "-m", "tests.damage", "20000", "7"]
    run = subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True)
    assert run.returncode == 0, run.stdout[-3000:] + run.stderr[-3000:]


# Fields of applications that no rule bounds: a round writes them before it reads them, or can work with any number.
UNBOUNDED = {
    "AdaptivePCA": ("basis", "spectrum"),
    "Aggregator": ("held", "B", "V", "x", "S", "time"),
    "ConformalTracker": ("x",),
    "Planted": ("past", "u", "x"),
    "StreamingPCA": ("total",),
    "TrackingControl": ("u", "x"),  # those of its members; its own are compared with their answers
}
OF_PARTS = "engine.", "model.", "jury.", "copies."


def free(made, saved, name):
    """Whether numbers of any size in a field can be what a run has left."""
    *place, last = name.split(".")
    clock = saved.get(".".join([*place, "clock"]))
    unbounded = getattr(made, "gradient_bound", None) is None
    return (
        last in UNBOUNDED.get(type(made).__name__, ())
        or (last in ("totals", "left") and name.startswith(OF_PARTS))  # of the jury and of linear models
        or last == "seed"  # words of a generator
        or (last in ("sums", "squares") and unbounded)  # of gradients of any length
        or (last == "paid" and not getattr(made, "nonnegative", True))  # losses below 0 of any size
        or (
            last == "x" and clock is not None and clock.size > FRESH and not clock[FRESH]
        )  # a decision that is not made yet
    )


@every
def test_every_field_is_guarded(name):
    """Numbers of the right kind and shape that no run can have left are refused, in every field."""
    made, other = played(name), played(name, 3)
    saved, before = made.state(), blocks(other)
    for field, said, _ in fields(made):
        if not saved[field].size or free(made, saved, field):
            continue
        for huge in (1.7e308, -1.7e308) if said.dtype.kind == "f" else (2**62 + 1, -(2**62)):
            with pytest.raises(StateError, match="cannot restore"):
                other.restore(saved | {field: np.full_like(saved[field], huge)})
            assert blocks(other) == before, field


RECORDED = json.loads(damage.RECORD.read_text())


@pytest.mark.parametrize("name", RECORDED)
def test_what_was_refused_is_refused(name):
    """Rules and relations may become stricter, never weaker: `python -m tests.damage --record` renews the record."""
    found = damage.refusals(name)
    assert found.keys() == RECORDED[name].keys()
    for field, before in RECORDED[name].items():
        weaker = [i for i, (old, new) in enumerate(zip(before, found[field], strict=True)) if old > new]
        assert not weaker, f"{field}: changes {weaker} were refused"


@pytest.mark.slow
def test_every_class_of_states_is_recorded():
    names = [name for name in SAMPLES if name in RECORDED]
    recorded = set().union(*(damage.kinds(played(name)) for name in names))
    assert all(damage.kinds(played(name)) <= recorded for name in SAMPLES)


@every
def test_shapes_are_compared_before_anything_is_allocated(name, monkeypatch):
    made = played(name, 6)
    saved = made.state()
    monkeypatch.setattr(saving, "Block", None)
    mine = {prefix + name for prefix, one in memories(made) for name, _, _ in one.block.plan.fields()}
    for field in mine:
        with pytest.raises(StateError):
            made.restore(saved | {field: np.broadcast_to(np.zeros(1, saved[field].dtype), (2**40,))})
    with pytest.raises((TypeError, StateError), match="NoneType"):  # a state that fits is the first to need memory
        made.restore(saved)


@every
def test_entries_that_nobody_reads_are_refused(name):
    made = played(name, 6)
    saved, before = made.state(), blocks(made)
    prefixes = {key.rpartition(".")[0] + "." for key in saved if "." in key} | {""}
    for prefix in prefixes - {key for key in prefixes if "settings." in key}:
        with pytest.raises(StateError, match="cannot restore"):
            made.restore(saved | {f"{prefix}nobody": np.zeros(1)})
    with pytest.raises(StateError, match="cannot restore"):
        made.restore(saved | {"settings.nobody": "1"})
    assert blocks(made) == before
    made.restore(saved)


@pytest.mark.parametrize(
    "saved",
    [{1: 2}, {"class": np.array(["a", "b"])}, {"class": "SOGD", "schema": [[1], [2, 3]]}, {"class": [[1], [2, 3]]}],
)
def test_mappings_that_are_no_states_are_refused(saved):
    with pytest.raises(StateError):
        tw.SOGD(tw.domains.Ball(2)).restore(saved)
    learner = tw.EfficientDynamic(tw.domains.Ball(2), 10, 1.0)
    with pytest.raises(StateError):
        learner.restore(learner.state() | {7: 7} | saved | {"x": None})


def _others(value):
    """Other values for an argument."""
    if isinstance(value, bool | np.bool_):
        return [not value]
    if isinstance(value, int | float):
        return [2 * value, value + 1, value / 2]
    if isinstance(value, str):
        return ["own", "shared", "absolute", "BOA", "hinge", "huber"]
    return []


def test_states_with_other_arguments_are_refused():
    """Every argument that is a number, a word or a truth value, where another one can be built."""
    tried = set()
    for name in SAMPLES:
        made = played(name, 3)
        before, given = made.state(), made._arguments()
        for argument, value in given.items():
            if argument in FREE:
                continue
            for other in _others(value):
                try:
                    twin = build(type(made), {**given, argument: other})
                except (tw.errors.InputError, tw.errors.MissingExtraError):
                    continue
                if describe(other) == describe(getattr(twin, argument)) != describe(getattr(made, argument)):
                    tried.add((type(made).__name__, argument))
                    with pytest.raises(StateError, match="it was saved with"):
                        twin.restore(before)
                    assert twin.rounds == 0
    assert len(tried) > 60


def test_states_of_others_are_refused():
    everybody = {type(made).__name__: made for made in (played(name, 3) for name in SAMPLES)}
    for made in everybody.values():
        before = made.state()
        for other in everybody.values():
            if other is not made:
                with pytest.raises(StateError, match="another"):
                    made.restore(other.state())
        assert same(made.state(), before)


# ---------------------------------------------------------------------------------------------------------------- files


def test_damaged_files_are_refused_or_work(tmp_path):
    told = damaged_files.campaign(tmp_path, 2500)
    assert told["faults"] == []
    assert min(told["refused"] / 4, told["loaded"]) > 100
    assert told["megabytes"] < 400


@pytest.mark.slow
def test_ten_thousand_damaged_files(tmp_path):
    """In a process of its own, with the indices of compiled code checked."""
    env = os.environ | {"NUMBA_BOUNDSCHECK": "1", "NUMBA_CACHE_DIR": str(tmp_path / "cache")}
    command = [sys.executable, "-m", "tests.damaged_files", tmp_path, "10000", "1"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, env=env)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    assert json.loads(done.stdout)["megabytes"] < 400
