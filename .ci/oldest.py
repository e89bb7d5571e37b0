"""Print every declared requirement, of the extras too, at the oldest version that is allowed: for `make oldest`."""

import pathlib
import sys
import tomllib

project = tomllib.loads(pathlib.Path(__file__).parents[1].joinpath("pyproject.toml").read_text())["project"]
declared = [*project["dependencies"], *(one for extra in project["optional-dependencies"].values() for one in extra)]
ranges = [one for one in declared if ">=" in one]  # not the package itself, nor what is pinned
oldest = {one.replace(">=", "==") for one in ranges}
sys.stdout.writelines(f"{one}\n" for one in sorted(oldest))
