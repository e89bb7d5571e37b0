"""`python -m thalweg._build`."""

import argparse
import os
from functools import partial

from thalweg._build import make
from thalweg._kernels import library


def main() -> None:
    """Make the library beside the package."""
    parser = argparse.ArgumentParser(prog="python -m thalweg._build", description="Make the library of kernels.")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="processes at a time")
    make.build(library.FOLDER, installed=False, jobs=parser.parse_args().jobs, report=partial(print, flush=True))


if __name__ == "__main__":
    main()
