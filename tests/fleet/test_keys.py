"""Keys: the table is a dict, collisions are resolved, other kinds are refused."""

import itertools
import os

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from thalweg.errors import InputError
from thalweg.fleet.keys import STRINGS, Keys, KeyTable, read_keys, shard_of
from thalweg.fleet.shelves import Shelf

INTEGERS = st.integers(-(2**63), 2**63 - 1) | st.integers(0, 20)
TEXTS = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=6)


def check(batches):
    table, known = KeyTable(), {}
    for keys, gone in batches:
        names, bad = read_keys("t", "keys", keys)
        assert not bad
        found = table.find(names)
        assert found.tolist() == [known.get(key, -1) for key in keys]
        table.add(names, found)
        for key, stream in zip(keys, found.tolist(), strict=True):
            assert known.setdefault(key, stream) == stream
        assert len(set(known.values())) == len(known) == table.count
        leaving = [known.pop(key) for key in dict.fromkeys(keys[:gone])]
        table.remove(np.array(leaving, dtype=np.int64))
        assert dict(zip(table.keys(np.flatnonzero(table.alive)), np.flatnonzero(table.alive), strict=True)) == known


@settings(deadline=None, max_examples=60)
@given(st.lists(st.tuples(st.lists(INTEGERS, min_size=1, max_size=30), st.integers(0, 10)), max_size=8))
def test_integers(batches):
    check(batches)


@settings(deadline=None, max_examples=60)
@given(st.lists(st.tuples(st.lists(TEXTS, min_size=1, max_size=30), st.integers(0, 10)), max_size=8))
def test_texts(batches):
    check(batches)


def test_many_keys_and_numbers_used_again():
    check([([f"key {i}" for i in range(3000)], 2000), ([f"other {i}" for i in range(5000)], 4999), (["key 2500"], 0)])
    check([(list(range(-500, 3000)), 3000), (list(range(10_000)), 0)])


def test_small_integers_are_read_and_not_searched():
    rng = np.random.default_rng(0)
    check(
        [(rng.permutation(n).tolist(), gone) for n, gone in ((700, 100), (1500, 1), (1400, 1300), (9000, 0), (20, 5))]
    )
    check([(list(range(2000)), 10), ([5, 2**40, 1999, -3], 1), (list(range(9000)), 2000), ([2**40, 8999], 0)])
    table, many = KeyTable(), read_keys("t", "keys", np.arange(1000))[0]
    table.add(many, table.find(many))
    assert table._direct.size == len(table._slots)
    for more, kept in ((np.arange(1500), True), (np.arange(5000), True), (np.array([3, 10**6]), False)):
        keys, mark = read_keys("t", "keys", more)[0], table.mark()
        new = table.add(keys, table.find(keys))
        assert (table._direct.size > 0) == kept
        table.undo(new, mark)  # as if they had never come
        assert table.find(many).tolist() == list(range(1000))
        assert (table.find(keys)[more >= 1000] == -1).all()
        assert table._direct.size == len(table._slots)


def test_different_texts_with_one_hash_are_different_keys():
    names, _ = read_keys("t", "keys", ["first", "second", "third", "first", "firsts"])
    same = names._replace(numbers=np.full(5, 42))
    table, found = KeyTable(), np.full(5, -1, dtype=np.int64)
    table.add(same, found)
    assert found.tolist() == [0, 1, 2, 0, 3]
    assert table.find(same).tolist() == [0, 1, 2, 0, 3]
    table.remove(np.array([1]))
    assert table.find(same).tolist() == [0, -1, 2, 0, 3]
    assert isinstance(same, Keys)
    assert same.kind == STRINGS


HASHES = (  # XXH64 with seed 42, as Spark finds them: of texts that take all branches of it, and of integers
    {
        "": 0x98B1582B0977E704,
        "a": 0x88E4FE59ADF7B0CC,
        "tea": 0x625CD61A380780FB,
        "coff": 0xF5F714E0EB8F292E,
        "kettle": 0x81DC35BE6391096B,
        "teaspoon": 0x4558A48CF530DB82,
        "é漢🐎": 0x3CE42C9BD6A93DB4,
        "a dozen cups": 0x7C53775472AC342C,
        "abcdef" * 5 + "g": 0xE1C8F29B10352BEB,
        "abcdef" * 5 + "gh": 0x7343FE172C55B0EB,
        "abcdef" * 11: 0xABE05C5FECC65C00,
        "abcdef" * 16 + "xyz": 0x47CC4E9F11100A29,
    },
    {
        0: 0xB71B47EBDA15746C,
        -1: 0x358AE035BFB46FD2,
        2**63 - 1: 0xD2F1C616AE7EB306,
        -(2**63): 0x88608019C494C1F4,
    },
)


@pytest.mark.parametrize("hashes", HASHES)
@pytest.mark.parametrize("shards", [1, 7, 2**31 - 1])
def test_shards_are_those_of_spark(hashes, shards):
    found = np.array([*hashes.values()], dtype=np.uint64).view(np.int64)
    assert shard_of([*hashes], shards).tolist() == (found % shards).tolist()


def test_shards_are_refused():
    with pytest.raises(InputError, match="shards"):
        shard_of(["a"], 0)
    with pytest.raises(InputError, match="row 1 is missing"):
        shard_of(["a", None], 3)


@pytest.mark.parametrize(
    ("keys", "why"),
    [
        ([1.5, 2.5], "integers or strings"),
        ([True, False], "integers or strings"),
        ([1, "a"], "all of one kind"),
        ([("a", 1)], "integers or strings"),
        ([2**70], "64 bits"),
        (np.array([2**63], dtype=np.uint64), r"below 2\*\*63"),
        (np.array([1.0]), "float64"),
        (np.zeros((2, 2), dtype=np.int64), "one axis"),
        (np.array(["2020-01-01"], dtype="datetime64[D]"), "datetime64"),
        (["a\0b", "c"], "zero character in row 0"),
        (["fine", "\ud800"], "valid Unicode"),
        (5, "a list of keys"),
        ("text", "a list of keys"),
    ],
)
def test_other_keys_are_refused(keys, why):
    with pytest.raises(InputError, match=why):
        read_keys("t", "keys", keys)


def test_missing_keys_are_named():
    assert list(read_keys("t", "keys", ["a", None, "b", float("nan")])[1]) == [1, 3]
    assert list(read_keys("t", "keys", [1, None, 3])[1]) == [1]
    assert read_keys("t", "keys", [None])[1] == {0: "keys is missing"}
    assert read_keys("t", "keys", [])[0].size == 0


def test_shelves_give_memory_back_and_lose_nothing():
    shelf, rng = Shelf(3000), np.random.default_rng(0)
    assert shelf.rows < 400
    places = shelf.take(2000)
    words = rng.integers(-(2**62), 2**62, (2000, 3000))
    shelf.write(places, words)
    for share in (0.9, 0.3, 0.5):
        keep = rng.random(places.size) < share
        shelf.give(places[~keep])
        places, words = places[keep], words[keep]
        if shelf.loose():
            places = shelf.pack(places)
        assert (shelf.read(places) == words).all()
        assert sum(one is not None for one in shelf._chunks) <= 1 + 1.2 * len(places) / shelf.rows + 1
        more = shelf.take(50)
        assert not set(more.tolist()) & set(places.tolist())
        shelf.write(more, np.zeros(3000, dtype=np.int64))
        assert (shelf.read(places) == words).all()
        shelf.give(more)


def test_memory_that_streams_leave_goes_back():
    def resident():
        with open("/proc/self/statm") as file:
            return int(file.read().split()[1]) * 4096

    if not os.path.exists("/proc/self/statm"):
        pytest.skip("the memory of this process is not known")
    before, shelves = resident(), [Shelf(width) for width in (3000, 2900, 2950, 3050)]
    places = shelves[0].take(20 * shelves[0].rows)
    shelves[0].write(places, np.ones(3000, dtype=np.int64))
    for here, there in itertools.pairwise(shelves):  # streams change their size, a chunk at a time
        moved = []
        for some in np.split(places, 20):
            moved.append(there.take(some.size))
            there.write(moved[-1], np.ones(there.width, dtype=np.int64))
            here.give(some)
        places = np.concatenate(moved)
    assert resident() - before < 1.05 * there.nbytes
