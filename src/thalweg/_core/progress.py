"""One progress bar for all that takes long: silent unless asked for."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from thalweg._core.extras import need
from thalweg._core.validate import check_flag


@contextmanager
def progress_bar(owner: str, total: int, wanted: bool, unit: str) -> Iterator[Callable[[int], object]]:
    """Yield a function that advances the bar by a number of units, or does nothing without a bar."""
    if not check_flag(owner, "progress", wanted):
        yield lambda units: None
        return
    with need("tqdm.auto", "lab", f"{owner}(progress=True)").tqdm(total=total, unit=unit, unit_scale=True) as bar:
        yield bar.update
