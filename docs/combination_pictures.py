"""The six pictures of a combination, on polls of a president's approval.

    python docs/combination_pictures.py [--out DIR]

Writes combine-*.png to DIR (docs/img when left out). Needs: pip install 'thalweg[lab,data]'
"""

from __future__ import annotations

import argparse
import pathlib

import numpy as np
import pandas as pd
from river.datasets import TrumpApproval

from thalweg.estimators import Aggregator
from thalweg.estimators.aggregator.pictures import DRAWN


def main() -> None:
    """Draw them."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=pathlib.Path, default=pathlib.Path(__file__).parent / "img")
    out = parser.parse_args().out
    out.mkdir(parents=True, exist_ok=True)
    rows = list(TrumpApproval())
    names = [name for name in rows[0][0] if name != "ordinal_date"]
    polls = {name: np.array([x[name] for x, _ in rows]) for name in names}
    run = Aggregator().run(pd.DataFrame(polls), np.array([y for _, y in rows]))
    for kind in DRAWN:
        run.plot(kind).figure.savefig(out / f"combine-{kind}.png", dpi=90)
        print(out / f"combine-{kind}.png")


if __name__ == "__main__":
    main()
