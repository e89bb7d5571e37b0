"""The commands of `thalweg`: they read arguments, call the laboratory and print. Notes and progress go to stderr."""

import contextlib
import errno
import importlib
import json
import pathlib
import shlex
import sys
from collections.abc import Iterator
from enum import StrEnum
from types import ModuleType
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from thalweg import files
from thalweg._core.extras import need
from thalweg._core.validate import visible
from thalweg._version import __version__
from thalweg.cards import markdown
from thalweg.errors import InputError, MissingExtraError, ProjectionError, StateError
from thalweg.lab import _options as option
from thalweg.lab._console import aligned, echo, notify, shows_progress
from thalweg.lab._options import described
from thalweg.lab._store import LabError, write_file
from thalweg.lab.catalog import ALGORITHMS, DOMAINS, USUAL, find
from thalweg.lab.streams import STREAMS
from thalweg.lab.studies import OUTSIDE, REPRODUCE, STUDIES

EXPECTED = (InputError, MissingExtraError, ProjectionError, StateError, LabError, OSError, MemoryError)


class Commands(TyperGroup):
    """All commands; errors that a user can mend end as one line."""

    ORDER = ("sample", "forecast", "run", "compare", "list", "show", "fleet", "bench", "reproduce", "study")

    def list_commands(self, ctx: Any) -> list[str]:
        """Names in the order of the help: daily work first."""
        return sorted(super().list_commands(ctx), key=self.ORDER.index)

    def make_context(self, *arguments: Any, **options: Any) -> Any:
        """Read the arguments; also prints help."""
        with _exit_codes(debug=False):
            return super().make_context(*arguments, **options)

    def invoke(self, ctx: Any) -> Any:
        """Run the command."""
        with _exit_codes(debug=ctx.params["debug"]):
            return super().invoke(ctx)


@contextlib.contextmanager
def _exit_codes(debug: bool) -> Iterator[None]:
    """Turn errors into a line on stderr and an exit code. A closed pipe is left to typer, which says nothing."""
    try:
        yield
    except KeyboardInterrupt:
        notify("interrupted")
        raise typer.Exit(130) from None
    except EXPECTED as error:
        if debug or getattr(error, "errno", None) == errno.EPIPE:
            raise
        notify(f"error: {one_line(error)}")
        raise typer.Exit(1) from None


def one_line(error: BaseException) -> str:
    """Return an error as one line, with the short notes added on the way."""
    text = str(error) or type(error).__name__
    if isinstance(error, OSError) and error.strerror:
        text = f"{error.filename}: {error.strerror}." if error.filename else f"{error.strerror}."
    notes = [note for note in getattr(error, "__notes__", []) if "\n" not in note]
    return " ".join(" ".join([text, *notes]).split())


app = typer.Typer(
    cls=Commands,
    add_completion=False,
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 120},
)


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"thalweg {__version__}")
        raise typer.Exit


@app.callback()
def thalweg(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version and exit.")
    ] = False,
    debug: Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")] = False,
) -> None:
    """Online learning when the best answer keeps moving.

    \b
    thalweg sample load.csv                      write a sample file
    thalweg forecast load.csv --target demand    forecast it, with its errors
    thalweg compare Tracker SOGD --on piecewise  play two algorithms on one stream
    thalweg COMMAND --help                       show options and examples
    """


# ----------------------------------------------------------------------------------------------------------------- list


Kind = StrEnum("Kind", ["algorithms", "domains", "streams"])


@app.command("list", short_help="List the algorithms, domains and streams.")
def list_(
    kind: Annotated[Kind | None, typer.Argument(help="Only this kind.", show_default=False)] = None,
    as_json: option.Json = False,
    as_markdown: Annotated[bool, typer.Option("--markdown", help="Print the table of the documentation.")] = False,
) -> None:
    """List the algorithms, domains and streams.

    In the bounds, P is the length of the comparators' path, F their loss, S the sum of squared gradients, and |I| the
    length of an interval.

    \b
    thalweg list
    thalweg list streams
    thalweg list algorithms --json
    """
    if as_markdown:
        typer.echo(markdown())
        return
    found = {
        "algorithms": [
            {"name": name, "regret": card.regret, "bound": card.bound, "about": card.about}
            for name, card in ((name, recipe.card) for name, recipe in ALGORITHMS.items())
        ],
        "domains": [
            {"name": name, "written": f"{name}:{shape.usage}", "about": shape.about}
            if shape.make
            else {"name": name, "written": "", "about": f"{shape.about} (in Python only)"}
            for name, shape in DOMAINS.items()
        ],
        "streams": [
            {"name": name, "data": "real" if source.real else "synthetic", "about": source.about}
            for name, source in STREAMS.items()
        ],
    }
    chosen = {key: rows for key, rows in found.items() if kind is None or key == kind.value}
    if as_json:
        typer.echo(json.dumps(chosen, indent=2))
        return
    for k, (key, rows) in enumerate(chosen.items()):
        if k:
            typer.echo()
        heads = [key[:-1], *list(rows[0])[1:]]
        typer.echo(aligned(heads, [list(row.values()) for row in rows], left=len(heads)))


# ------------------------------------------------------------------------------------------------------------- forecast


@app.command(short_help="Forecast the series of a file, with intervals.")
@option.grouped
def forecast(
    file: Annotated[
        str, typer.Argument(metavar="FILE", help="A .csv or .parquet file; - for CSV from stdin.", show_default=False)
    ],
    asked: option.ForecastOptions,
) -> None:
    """Forecast the series of a file, with intervals, and measure the errors.

    Every past value is forecast from the rows before it; the errors are compared with those of naive forecasts. Empty
    targets and times without a row are missing values.

    \b
    thalweg forecast load.csv --target demand --time hour --horizon 24
    thalweg forecast sales.csv --target sold --id shop --time day --out next.csv
    tail -f load.csv | thalweg forecast - --target demand --time hour --freq h
    """
    from thalweg.lab._forecast import forecast_file, forecast_live

    play = forecast_live if file == "-" else forecast_file
    play(file, asked)


# ------------------------------------------------------------------------------------------------------------------ run


@app.command()
@option.grouped
def run(
    words: Annotated[
        list[str],
        typer.Argument(
            metavar="[ALGORITHM] STREAM_OR_FILE",
            help=f"See 'thalweg list'; {USUAL} if none is named. A .csv or .parquet file, or - for stdin.",
            show_default=False,
        ),
    ],
    asked: option.Data,
    learner: Annotated[str | None, described("Your learner, made from a domain.", "MODULE:FUNCTION")] = None,
    seed: Annotated[int, described("Seed of the stream.", "N", least=0)] = 0,
    out: Annotated[pathlib.Path | None, described("Write the losses: .csv, .json or .npz.", "FILE")] = None,
    as_json: option.Json = False,
    progress: option.Progress = None,
) -> None:
    """Play an algorithm on a stream or a file.

    Scales and bounds are computed from the whole file, so they look ahead; losses are in scaled units. To forecast a
    file, use thalweg forecast.

    \b
    thalweg run EfficientDynamic piecewise
    thalweg run Sword gradual --horizon 5000
    thalweg run SOGD load.csv --target demand --domain box:lower=-2,upper=2
    thalweg run load.csv --target demand --learner mine:make_learner
    """
    from thalweg.lab._run import play

    algorithm, source = _algorithm_and_source(words)
    data = asked.of(source)
    if learner is not None and len(words) == 2:
        raise InputError(f"Give {words[0]} or --learner {learner}, not both.")
    if "stream" not in data and len(words) == 1 and learner is None:
        raise InputError(
            f"{source} is a file: type thalweg forecast {source} to forecast it, or name an algorithm to play on it: "
            f"thalweg run {USUAL} {source}."
        )
    play(learner or algorithm, source, data, seed, out, as_json, progress)


def _algorithm_and_source(words: list[str]) -> tuple[str, str]:
    """Return the algorithm and the stream or file, from one or two words."""
    if len(words) > 2:
        raise typer.BadParameter(f"Give an algorithm, if any, and one stream or file. Got {visible(' '.join(words))}.")
    if len(words) == 1 and words[0].lower() in map(str.lower, ALGORITHMS):
        raise typer.BadParameter(f"{words[0]} is an algorithm. Say which stream or file it is to play.")
    return (USUAL, words[0]) if len(words) == 1 else (find("algorithm", words[0], ALGORITHMS), words[1])


# -------------------------------------------------------------------------------------------------------------- compare


@app.command()
@option.grouped
def compare(
    algorithms: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="ALGORITHM",
            help=f"See 'thalweg list algorithms'; MODULE:NAME for a learner of your own. [default: {USUAL}]",
            show_default=False,
        ),
    ] = None,
    *,
    on: Annotated[str, described("Data for all of them.", "STREAM_OR_FILE", shown=False)],
    asked: option.Data,
    seeds: Annotated[int, described("Seeds of the stream.", "N", least=1)] = 5,
    out: Annotated[pathlib.Path | None, described("Folder. [default: results/compare-NAME]", "DIR")] = None,
    engine: option.Engine = "serial",
    workers: option.Workers = None,
    scheduler: option.Scheduler = None,
    progress: option.Progress = None,
) -> None:
    """Play several algorithms on the same data.

    Prints means over seeds, with simple forecasts and the best weights in hindsight for comparison. Writes table.csv,
    runs.csv and loss.png. If you interrupt it, the same command continues.

    \b
    thalweg compare Tracker OGD Sword EfficientDynamic --on piecewise
    thalweg compare OGD SOGD EfficientCutkosky --on load.csv --target demand
    thalweg compare Tracker mine:MyLearner --on piecewise
    """
    from thalweg.lab import compare as lab
    from thalweg.lab.runs import tidy

    if on == "-":
        raise InputError("compare reads its data once for every run: save it to a file, and give that with --on.")
    data = asked.of(on)
    folder = out or pathlib.Path("results") / f"compare-{pathlib.Path(on).stem}"
    found = lab.compare(
        algorithms or [USUAL],
        data,
        folder,
        seeds=seeds,
        engine=engine,
        workers=workers,
        scheduler=scheduler,
        progress=shows_progress(progress),
    )
    if found[0]["runs"] < seeds:
        notify("one run each: on data that is given a seed changes nothing")
    cells = [
        [row["algorithm"], tidy(row["loss_mean"], 5), *(tidy(row[key], 3) for key in lab.COLUMNS[3:])] for row in found
    ]
    heads = ["algorithm", "total loss", "sd", "projections", "gradients", "values", "markers", "seconds"]
    typer.echo(aligned(heads, cells))
    written = visible(f"Written to {folder}: {', '.join(lab.WRITTEN)}")
    echo(f"\nprojections, gradients and values a round. {written}")


# ------------------------------------------------------------------------------------------------- studies and bench


class Studies(TyperGroup):
    """The studies of a checkout; in an installed package there are none, and the error says where they are."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Read the arguments."""
        if OUTSIDE is None and not {"-h", "--help"} & set(args):
            raise InputError(
                "The studies are not part of the installed package. Clone the repository and run pip install -e "
                "'.[lab]' there, or type thalweg reproduce for the paper's experiments."
            )
        return super().parse_args(ctx, args)


studies = typer.Typer(cls=Studies, rich_markup_mode=None)
app.add_typer(studies, name="study", short_help="Compare our methods with those of others.")


def _add_study(name: str, package: ModuleType) -> None:
    """Add the command of a study. Its help is the docstring of the study's package; the study is imported when run."""
    folder, about_full = pathlib.Path("results", package.__name__.rpartition(".")[2]), getattr(package, "FULL", "")

    @(app if name == REPRODUCE else studies).command(name, help=package.__doc__)
    def command(
        out: Annotated[pathlib.Path, described("Folder for results.", "DIR")] = folder,
        full: Annotated[bool, typer.Option("--full", help=about_full, hidden=not about_full)] = False,
        small: Annotated[bool, typer.Option("--small", help="A quick version of seconds.")] = False,
        engine: option.Engine = "local",
        workers: option.Workers = None,
        scheduler: option.Scheduler = None,
        progress: Annotated[bool, typer.Option("--progress/--no-progress", help="Progress on stderr.")] = True,
    ) -> None:
        from thalweg.lab import study

        if full and small:
            raise InputError("--full and --small exclude each other.")
        size = "full" if full else "small" if small else "usual"
        chosen = importlib.import_module(f"{package.__name__}.study").STUDY
        page = study.run(
            chosen,
            out,
            size,
            command=shlex.join(["thalweg", *sys.argv[1:]]),
            engine=engine,
            workers=workers,
            scheduler=scheduler,
            progress=progress,
        )
        echo(visible(f"Open {page}"))


for name, package in STUDIES.items():
    _add_study(name, package)


@studies.callback(invoke_without_command=True)
def study(context: typer.Context) -> None:
    """Compare our methods with those of others: tables, pictures and a page.

    The studies are in the repository of Thalweg, not in its wheel. If you interrupt one, the same command continues.
    'thalweg reproduce' runs the paper's experiments.

    \b
    thalweg study tracker
    thalweg study pca --small --out /tmp/look
    """
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())


@app.command(short_help="Describe the file of a saved learner.")
def show(
    file: Annotated[
        pathlib.Path, typer.Argument(metavar="FILE", help="File written by learner.save(FILE).", show_default=False)
    ],
) -> None:
    """Describe the file of a saved learner: class, arguments, rounds, version, arrays. Nothing is built.

    \b
    thalweg show learner.npz
    """
    typer.echo(files.summary(file))


@app.command(short_help="Describe the folder of a fleet.")
def fleet(
    folder: Annotated[
        pathlib.Path, typer.Argument(metavar="FOLDER", help="Folder of Fleet(..., folder=FOLDER).", show_default=False)
    ],
    keys: Annotated[int, described("Number of keys to show.", "N", least=0)] = 5,
) -> None:
    """Describe the folder of a fleet: template, keys, rounds, journal, bytes, damage. Nothing changes.

    \b
    thalweg fleet state/
    thalweg fleet state/ --keys 100
    """
    from thalweg.fleet.describe import describe

    typer.echo(describe(folder, keys))


@app.command()
def bench(rounds: Annotated[int, described("Rounds of a run.", "N", least=1)] = 20_000) -> None:
    """Measure the speed of every algorithm.

    Prints microseconds of processor time a round on the paper's stream (d = 8): the best of 5 runs after a warm-up. The
    spread is the slowest run divided by the fastest.

    \b
    thalweg bench
    thalweg bench --rounds 2000
    """
    from thalweg.lab.runs import measure, tidy
    from thalweg.lab.streams import draw

    stream, rows = draw("piecewise", horizon=rounds), []
    for name in need("tqdm", "lab", "bench").tqdm(ALGORITHMS, unit="algorithm", leave=False, disable=None):
        found = measure(name, stream)
        queries = [tidy(found[key], 4) for key in ("projections", "gradients", "values")]
        rows.append([name, f"{found['us']:.2f}", f"{found['spread']:.2f}", *queries])
    typer.echo(aligned(["algorithm", "us a round", "spread", "projections", "gradients", "values"], rows))


@app.command(short_help="Write a sample file: a year of hourly demand.")
def sample(
    path: Annotated[pathlib.Path, typer.Argument(help="The file to write.", metavar="FILE")] = pathlib.Path("load.csv"),
) -> None:
    """Write a sample file: a year of hourly demand with a change in it.

    The data are synthetic and always the same. Demand has a daily and a weekly season and depends on the temperature;
    in hour 5000 heat pumps arrive, and from then on demand depends on the cold far more than before.

    \b
    thalweg sample load.csv
    thalweg forecast load.csv --target demand --time hour --horizon 24
    """
    from thalweg.lab.sample import demand

    if path.suffix.lower() != ".csv":
        raise InputError(f"The sample is a CSV file: its name must end in .csv. Got {path}.")
    if path.exists() and path.read_bytes() != demand():
        raise InputError(f"{path} is there already, and is another file. Give another name.")
    write_file(path, demand())
    echo(f"Written to {path}: 8760 hours of demand and temperature.")
