"""Intervals that Zaffran et al. (ICML 2022) published, as MAPIE keeps them: prices of electricity in France, 2019.

They are by ACI with gamma 0.04, around a random forest that is fitted again every day, for the price at midnight. The
file is in the source archive of MAPIE, not in its wheel:

    pip download mapie==1.6.0 --no-deps --no-binary mapie
    THALWEG_MAPIE=mapie-1.6.0.tar.gz thalweg study conformal

An interval is symmetric, so its centre is the forecast.
"""

from __future__ import annotations

import csv
import functools
import gzip
import io
import os
import tarfile

import numpy as np

from thalweg._core.types import Floats
from thalweg.errors import InputError

VARIABLE = "THALWEG_MAPIE"
YEAR = "2019-"
FILES = "zaffran2022_prices.csv.gz", "zaffran2022_aci_reference.csv"


def at_hand() -> bool:
    """Whether the archive is named."""
    return bool(os.environ.get(VARIABLE))


@functools.lru_cache(maxsize=1)
def intervals() -> tuple[Floats, Floats]:
    """Return prices (T,) and published intervals (T, 2)."""
    path, found = os.environ[VARIABLE], {}
    try:
        with tarfile.open(path) as archive:
            for member in archive:
                name = member.name.rpartition("/")[2]
                if name in FILES:
                    found[name] = archive.extractfile(member).read()  # type: ignore[union-attr]
    except (OSError, tarfile.TarError) as error:
        raise InputError(f"{VARIABLE} must name the source archive of MAPIE, mapie-1.6.0.tar.gz. {error}") from error
    if len(found) < len(FILES):
        raise InputError(f"{VARIABLE}: {path} lacks {FILES[0]} or {FILES[1]}. The archive of MAPIE 1.6.0 has both.")
    prices = _rows(gzip.decompress(found[FILES[0]]))
    y = [float(row["Spot"]) for row in prices if row["Date"].startswith(YEAR) and int(float(row["hour"])) == 0]
    limits = [(float(row["Y_inf"]), float(row["Y_sup"])) for row in _rows(found[FILES[1]])]
    if len(y) != len(limits):
        raise InputError(f"{VARIABLE}: {path} has {len(y)} prices and {len(limits)} intervals, of different days.")
    return np.array(y), np.array(limits)


def _rows(text: bytes) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(text.decode())))
