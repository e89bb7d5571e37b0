"""Files that were damaged, by chance or on purpose: `python -m tests.damaged_files FOLDER COUNT SEED`.

Each must be refused with a StateError, or give a learner that decides within its set and goes on.
"""

import collections
import contextlib
import copy
import io
import json
import pathlib
import resource
import sys
import time
import warnings
import zipfile

import numpy as np

import thalweg as tw
from tests import samples
from tests.samples import SAMPLES, play
from thalweg._core.archive import TEXT
from thalweg.errors import InputError, ProjectionError, StateError

VALUES = (
    None, True, False, 0, 1, -1, 2, 7, 2**31, 2**53, 2**62, 2**63, 10**30, 0.0, -0.0, 1e-320, 1e-9, 0.5, 1e9, 1e150,
    1e308, -1e308, "", "observed", "own", "clip", "Ball", "inf", "x" * 1000, "\x1b[2J", [], [[]], [0], [1, 2, 3], {},
    [1e308] * 3, {"float": "inf"}, {"float": "nan"}, {"tuple": [2]}, {"object": 0}, {"object": -1}, {"object": 10**9},
    {"name": "SOGD"}, {"name": "fixed"}, {"name": "os"}, {"array": "state.clock"}, {"array": "none"},
    {"missing": "\x07"}, {"a": 1, "b": 2},
)  # fmt: skip
MEGABYTES = 160  # more than before, for one file: objects may hold 2**24 numbers whatever the file has
NUMBERS = (0.0, -1.0, 1.0, np.nan, np.inf, -np.inf, 1e-320, 1e-160, 1e150, 1.7e308, -1e300, 0.5, 1e-3)
# Arguments that say how large something is; those that a class does not have are added, too.
SIZES = (
    "shape", "dim", "rank", "horizon", "delay", "max_delay", "memory", "lags", "columns", "n_features_in_", "sizes",
    "n_components", "window", "points", "total", "max_iterations", "radius",
)  # fmt: skip
LARGE = (2**16, 2**20, 2**24, 2**26, 2**31, 2**40, 2**62, 10**30, 1e9, -1, 0, [2**13, 2**13], {"tuple": [2**26, 2]})
WHOLE = (0, 1, -1, 2, 5, 63, 64, 1000, 2**31, 2**62, -(2**63), 2**63 - 1)


def to_npy(array):
    file = io.BytesIO()
    np.lib.format.write_array(file, array, allow_pickle=False)
    return file.getvalue()


def pack(members, how=zipfile.ZIP_STORED):
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", how) as archive, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # two members of one name
        for name, data in members:
            archive.writestr(name, data)
    return file.getvalue()


def unpack(data):
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        return [(name, archive.read(name)) for name in archive.namelist()]


# ---------------------------------------------------------------------------------------------------- ways to damage it


def flip(rng, data):
    found = bytearray(data)
    for _ in range(rng.integers(1, 20)):
        found[rng.integers(len(found))] = rng.integers(256)
    return bytes(found)


def cut(rng, data):
    return data[: rng.integers(len(data))]


def shift(rng, data):
    at, n = rng.integers(len(data)), int(rng.integers(1, 40))
    return (
        data[:at] + (bytes(rng.integers(256, size=n, dtype=np.uint8)) if rng.random() < 0.5 else b"") + data[at + n :]
    )


def lie(rng, data):
    """Sizes, offsets, flags and methods in the headers of the zip."""
    found = bytearray(data)
    starts = [i for i in range(len(data) - 4) if data[i : i + 4] in (b"PK\x01\x02", b"PK\x03\x04", b"PK\x05\x06")]
    at = int(rng.choice(starts)) + int(rng.integers(4, 46))
    value = int(rng.choice([0, 1, 8, 2**16 - 1, 2**31, 2**32 - 1]))
    found[at : at + 4] = value.to_bytes(4, "little")
    return bytes(found)


def members(rng, data):
    """Removed, exchanged, renamed, repeated, added, emptied."""
    parts = unpack(data)
    i, j = rng.integers(len(parts), size=2)
    (a, x), (b, y) = parts[i], parts[j]
    way = rng.integers(6)
    if way == 0:
        del parts[i]
    elif way == 1:
        parts[i], parts[j] = (a, y), (b, x)
    elif way == 2:
        parts[i] = (str(rng.choice(["x.npy", "../x.npy", "/etc/x", "a" * 3000, b, "\x07.npy"])), x)
    elif way == 3:
        parts.append((a, y))
    elif way == 4:
        parts.append(("more.npy", x))
    else:
        parts[i] = (a, b"")
    return pack(parts)


def array(rng, data):
    """Other numbers, shapes and types in an array, with a right checksum."""
    parts = unpack(data)
    i = int(rng.choice([k for k, (name, _) in enumerate(parts) if name != TEXT]))
    name, content = parts[i]
    a = np.load(io.BytesIO(content))
    way = rng.integers(7)
    if way <= 2 and a.size:
        flat, values = a.reshape(-1).copy(), NUMBERS if a.dtype.kind == "f" else WHOLE
        for _ in range(rng.integers(1, 4)):
            flat[rng.integers(a.size)] = rng.choice(np.array(values, dtype=a.dtype))
        a = flat.reshape(a.shape)
    elif way == 3:
        a = np.zeros(tuple(rng.integers(0, 5, size=rng.integers(0, 4))), dtype=a.dtype)
    elif way == 4:
        a = a.astype(rng.choice(["f4", "i4", "c16", "U3", "u8", ">f8", "?"]))
    elif way == 5:
        a = np.concatenate([a.ravel(), a.ravel()])
    else:
        a = rng.permutation(a.ravel()).reshape(a.shape)
    parts[i] = (name, to_npy(a))
    return pack(parts)


def header(rng, data):
    """The header of an array: huge, negative and odd shapes, objects, depth."""
    parts = unpack(data)
    i = int(rng.choice([k for k, (name, _) in enumerate(parts) if name != TEXT]))
    name, content = parts[i]
    shape = rng.choice(
        ["(10**9,)", "(1000000000000,)", "(-1,)", "(-5, -1)", "(2.5,)", "()", "(" * 50, "(0, 99999999999)"]
    )
    kind = rng.choice(["'<f8'", "'|O'", "'<f8'", "[('a', '<f8')]", "'|V9'", "'<M8[s]'", "3", "'|S1000000000'"])
    text = f"{{'descr': {kind}, 'fortran_order': {rng.choice(['True', 'False', '3'])}, 'shape': {shape}, }}\n".encode()
    parts[i] = (name, b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text + content[128:])
    return pack(parts)


def walk(value, path=()):
    yield path
    children = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in children:
        yield from walk(item, (*path, key))


def text(rng, data):
    """Values of the text replaced, removed and renamed."""
    parts = dict(unpack(data))
    about = json.loads(parts[TEXT])
    for _ in range(rng.integers(1, 3)):
        paths = [path for path in walk(about) if path]
        *before, last = paths[rng.integers(len(paths))]
        place = about
        for key in before:
            place = place[key]
        way = rng.integers(10)
        if way == 0:
            del place[last]
        elif way == 1 and isinstance(place, dict):
            place[str(rng.choice([*place, "x", "shape", "rng", "foreign", "missing"]))] = place.pop(last)
        else:
            place[last] = copy.deepcopy(VALUES[rng.integers(len(VALUES))])
    return pack((parts | {TEXT: json.dumps(about)}).items())


def sizes(rng, data):
    """An argument, or a setting in the state, that asks for far more than the file holds."""
    parts = dict(unpack(data))
    about = json.loads(parts[TEXT])
    places = [entry["arguments"] for entry in about["objects"]]
    numbers = [(place, name) for place in places for name, value in place.items() if type(value) is int]
    numbers += [(about["state"], name) for name, value in about["state"].items() if type(value) is int]
    if numbers and rng.random() < 0.7:
        place, name = numbers[rng.integers(len(numbers))]
    else:
        place, name = places[rng.integers(len(places))], SIZES[rng.integers(len(SIZES))]
    place[name] = copy.deepcopy(LARGE[rng.integers(len(LARGE))])
    return pack((parts | {TEXT: json.dumps(about)}).items())


def odd_text(rng, data):
    """Text that is no JSON, or far too deep, or with a number that is far too long."""
    parts = dict(unpack(data))
    whole = parts[TEXT].decode()
    depth = int(rng.choice([60, 200, 5000, 100_000]))
    deep = rng.choice(
        ["[" * depth + "]" * depth, '{"tuple": ' * depth + "[]" + "}" * depth, "9" * depth, "1e999", "NaN"]
    )
    at = rng.choice([i for i, c in enumerate(whole) if c == ":"])
    end = min(i for i in range(at, len(whole)) if whole[i] in ",}")
    return pack((parts | {TEXT: f"{whole[: at + 1]}{deep}{whole[end:]}"}).items())


def bomb(rng, data):
    """Little that becomes much."""
    size = int(rng.choice([10**6, 3 * 10**7]))
    return pack([*unpack(data), ("more.npy", to_npy(np.zeros(size // 8)))], zipfile.ZIP_DEFLATED)


WAYS = (flip, cut, shift, lie, members, array, array, header, sizes, sizes, text, text, text, odd_text)


# ------------------------------------------------------------------------------------------------------------ campaign


def try_one(name, path):
    """What came of a damaged file: "refused", "loaded", or a fault in words."""
    try:
        made = tw.load(path, **SAMPLES[name].again)
    except (StateError, InputError) as error:
        if len(str(error)) > 5000 or "\x1b" in str(error):
            return f"a message that should not be printed: {str(error)[:100]!r}"
        return "it asked for memory" if "MemoryError" in str(error) or "allocate" in str(error) else "refused"
    except Exception as error:
        return f"load: {type(error).__name__}: {error}"
    try:
        with contextlib.suppress(InputError, ProjectionError), np.errstate(all="ignore"):  # refused in words
            play(name, made, 0, 6)
    except Exception as error:
        return f"a round: {type(error).__name__}: {error}"
    return "loaded"


def campaign(folder, count, seed=0, names=None):
    """Damage as many files: how many were refused or loaded, the faults, the slowest, and the memory it took."""
    rng, sound, found, faults = np.random.default_rng(seed), {}, collections.Counter(), []
    for name in names or SAMPLES:
        made = samples.played(name, 12)
        made.save(folder / "sound.npz")
        sound[name] = (folder / "sound.npz").read_bytes()
        assert try_one(name, folder / "sound.npz") == "loaded", name
    names, path, slowest = list(sound), folder / "damaged.npz", 0.0
    start = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for k in range(count):
            name = names[k % len(names)]
            way = bomb if k % 97 == 0 else WAYS[rng.integers(len(WAYS))]
            path.write_bytes(way(rng, sound[name]))
            began, most = time.process_time(), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
            came = try_one(name, path)
            took = time.process_time() - began
            more = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - most) / 1024
            slowest = max(slowest, took)
            if came not in ("refused", "loaded") or took > 10 or more > MEGABYTES:
                faults.append(f"{k} {name} {way.__name__}: {came[:300]}, {took:.1f} s, {more:.0f} MB")
                path.rename(folder / f"fault-{k}.npz")
            found[came if came in ("refused", "loaded") else "fault"] += 1
    grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - start) / 1024
    return dict(found) | {"faults": faults, "slowest": round(slowest, 2), "megabytes": round(grown)}


if __name__ == "__main__":
    told = campaign(pathlib.Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]), sys.argv[4:])
    print(json.dumps(told, indent=1))
    sys.exit(bool(told["faults"]))
