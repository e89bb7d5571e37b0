"""State of a forecaster, and its round: candidates forecast, are combined, get intervals and learn.

The candidates, in this order (those in logarithms exist while all values are positive):

    naive, drift, a damped trend, lags; the direct model without a season, also in logarithms, if no season was given;
    a model of columns, if there are any; then for every season
    seasonal naive, four smoothings, the same in logarithms, lags, seasonal differences (also in logarithms), the
    direct model (also in logarithms)

Drift forecasts from the 4th value on, and every linear model from its 3rd row on. All forecasts but the naive ones are
clipped to the range of cleaned values (`thalweg.parts.forecast.past`), widened by its own length on both sides.
"""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from thalweg._core.rules import counters
from thalweg._core.state import Nothing, Past, field, part, scratch
from thalweg._core.types import Floats, Ints
from thalweg._core.validate import LARGEST_ENTRY
from thalweg._kernels.handle import Handle, parts
from thalweg._kernels.jit import inner, kernel
from thalweg._kernels.vectors import copy
from thalweg.parts.forecast.columns import (
    ColumnsSettings,
    ColumnsState,
    forecast_columns,
    give_rows,
    has_capacity,
    keep_row,
    learn_columns,
)
from thalweg.parts.forecast.combination import (
    CombinationSettings,
    CombinationState,
    judge_candidates,
    weigh_candidates,
)
from thalweg.parts.forecast.direct import (
    BASE,
    SHARED,
    DirectSettings,
    DirectState,
    keep_shared,
    learn_direct,
    shift_bases,
    solve_direct,
    wait_direct,
)
from thalweg.parts.forecast.lagged import (
    LAGS,
    SEASONAL_DIFFERENCES,
    LaggedSettings,
    LaggedState,
    forecast_lagged,
    learn_lagged,
)
from thalweg.parts.forecast.past import (
    ABSENT,
    CHANGED,
    CHANGES,
    COUNTS,
    ERRORS,
    EXPECTED,
    FIRST,
    GAP,
    HIGH,
    LAST,
    LOW,
    OUTLIER,
    POSITIVE,
    RETURNED,
    SCALE,
    SEEN,
    SIDE,
    STAYED,
    STEP,
    TIME,
    TRUSTED,
    WARM,
    HistorySettings,
    HistoryState,
    accept,
    fill,
    hold,
    is_there,
    lay_out,
    logarithm,
    rebase,
    size_or_absent,
    spread_back,
    usual,
    usual_error,
)  # fmt: skip
from thalweg.parts.forecast.smoothing import (
    SEASONAL_ROWS,
    BankSettings,
    BankState,
    coast,
    forecast_smoothed,
    shift_levels,
    smooth,
    start_season,
)  # fmt: skip
from thalweg.parts.forecast.spans import (
    SpansSettings,
    SpansState,
    learn_scale,
    learn_span,
    wait_for_answer,
    write_spans,
)

# of `clock`: rounds, whether the current one was forecast, and the round of the next test for seasons (0: none)
ROUNDS, ASKED, CHECK = range(3)
FOUND = 2  # maximal number of seasons found in the series itself
PLAYED, WAITS = 0, 1  # status of a round; it WAITS for capacity or for a test for seasons
NAIVE, DRIFT, TREND, LAGGED, OTHERS = range(5)
SEASONAL = 14  # candidates of a season
LEAST_CUT = 1e-4  # as a share of the range of values: smaller errors are never cut


class ForecastState(NamedTuple):
    """The whole state of a forecaster."""

    history: HistoryState = part()
    bank: BankState = part()
    lagged: LaggedState = part()
    direct: DirectState = part()
    pool: CombinationState = part()
    spans: SpansState = part()
    columns: ColumnsState | Nothing = part()
    forecast: Floats = field("1", size_or_absent(LARGEST_ENTRY), start=ABSENT)  # of the next value
    found: Ints = field(str(FOUND), counters, called="seasons")  # in the series itself; 0: none
    clock: Ints = field("3", counters, called="counters")


class ForecastSettings(NamedTuple):
    """Constants and scratch space."""

    seasons: Ints  # (Q,)
    plain: bool  # whether there is a direct model without a season: candidates 4, and 5 in logarithms
    calm: int  # rounds before outliers are recognised: two seasons, as a season may look like changes of level
    at_columns: int  # index of the candidate with columns, -1 if there are none
    at_seasons: int  # the first candidate with a season
    search: bool  # whether to test for seasons
    columns: ColumnsSettings | tuple[()] = part()
    history: HistorySettings = part()
    bank: BankSettings = part()
    lagged: LaggedSettings = part()
    direct: DirectSettings = part()
    pool: CombinationSettings = part()
    spans: SpansSettings = part()
    forecasts: Floats = scratch("K H")
    smoothed: Floats = scratch("4 H")
    mean: Floats = scratch("H")
    lower: Floats = scratch("V H")
    upper: Floats = scratch("V H")
    shares: Floats = scratch("K")  # weights of the candidates in the forecast of the next value


def forecast_holds(s: ForecastState, c: ForecastSettings, past: Past) -> Iterator[tuple[str, bool]]:
    """Relations that the next round relies on."""
    rounds, asked, check = s.clock.tolist()
    yield "counters", asked in (0, 1) and int(s.history.counts[TIME]) <= rounds
    yield "counters", check == 0 or bool(c.search)
    yield "seasons", bool((s.found != 1).all())
    for q, m in enumerate(c.seasons.tolist()):
        yield "seasons", not s.bank.started[q + 1] or 2 * m <= int(s.history.counts[TIME])


# ----------------------------------------------------------------------------------------------------------- forecasts


@inner
def _bounds(s: ForecastState) -> tuple[float, float]:
    """The range of values seen, widened by its own length, within the largest range allowed."""
    low, high = s.history.marks[LOW], s.history.marks[HIGH]
    return max(low - (high - low), -LARGEST_ENTRY), min(high + (high - low), LARGEST_ENTRY)


@inner
def _put(row: Floats, p: int, low: float, high: float, out: Floats) -> None:
    """out <- forecasts in space p, as values within the range; ABSENT where there is none."""
    for h in range(row.shape[0]):
        value = row[h] if p == 0 else np.exp(min(row[h], 700.0))
        out[h] = hold(value, low, high) if is_there(row[h]) else ABSENT


@inner
def _no_forecast(out: Floats) -> None:
    """Mark a candidate as without a forecast."""
    for h in range(out.shape[0]):
        out[h] = ABSENT


@inner
def _direct(
    s: ForecastState, c: ForecastSettings, i: int, q: int, p: int, low: float, high: float, out: Floats
) -> None:
    """out <- forecasts of direct model i of season q (-1: none) in space p, from `smoothed`; store its features."""
    H, L, t, gap = out.shape[0], s.history.z.shape[1], s.history.counts[TIME], s.history.counts[GAP]
    line, x = c.history.line[p], c.direct.x
    m, d = 0, 8
    if q >= 0:
        m, d = c.seasons[q], 10
    base, one, two = 1, 0, 2  # rows of `smoothed`
    ready = t > max(m + 1, 4) and s.bank.started[q + 1] == 1
    A = c.pool.horizons.shape[0]
    if ready:
        for a in range(A):
            solve_direct(s.direct, c.direct, i, d, a, c.pool.horizons[a])
        x[0] = line[L - 1] - line[L - 2]
        x[1] = line[L - 2] - line[L - 3]
        x[2] = s.bank.recent[q + 1, p, 0]
        x[3] = s.bank.recent[q + 1, p, 1]
        x[4] = s.history.step[p]
        x[SHARED + 3] = x[SHARED + 4] = 0.0
        keep_shared(s.direct, c.direct, i, t)
    _no_forecast(out)
    anchor = 0
    for h in range(H):
        if not ready:
            break
        b = c.smoothed[base, h]
        x[SHARED] = line[L - 1] - b
        x[SHARED + 1] = c.smoothed[one, h] - b
        x[SHARED + 2] = c.smoothed[two, h] - b
        if q >= 0:
            x[SHARED + 3] = s.bank.phases[2 * c.bank.starts[q] + p * m + (t + h) % m]
            x[SHARED + 4] = line[L - m + h % m] - b
        a = c.pool.below[min(h + gap, H - 1)]
        if c.direct.known[a] > 0.0 and (gap == 0 or h + gap < H):
            f = b
            for k in range(d):
                f += c.direct.w[a, k] * x[k]
            out[h] = f
        while anchor < A and c.pool.horizons[anchor] < h + 1:
            anchor += 1
        if anchor < A and c.pool.horizons[anchor] == h + 1:
            wait_direct(s.direct, c.direct, i, c.pool.first[anchor] + t % (h + 1), b if gap == 0 else ABSENT)
    if not ready:
        for a in range(A):
            s.direct.waiting[i, c.pool.first[a] + t % c.pool.horizons[a], BASE] = ABSENT
    _put(out, p, low, high, out)


@inner
def _speak(s: ForecastState, c: ForecastSettings, known: int) -> None:
    """forecasts <- the forecasts of all candidates."""
    history, out = s.history, c.forecasts
    L, t, H = history.z.shape[1], history.counts[TIME], out.shape[1]
    low, high = _bounds(s)
    last, gap = history.marks[LAST], history.counts[GAP]
    if history.counts[SIDE] != 0 and history.counts[TRUSTED] == 0:  # an outlier, not yet confirmed
        last = history.z[0, (t - 1 - gap) % L]
    enough = history.counts[SEEN] > 3
    drift = (last - history.marks[FIRST]) / max(t - 1 - gap, 1)
    for h in range(H):
        out[NAIVE, h] = last
        out[DRIFT, h] = hold(last + (h + 1 + gap) * drift, low, high) if enough else ABSENT
    forecast_smoothed(s.bank, c.bank, -1, 0, 2, t, c.smoothed[2])
    _put(c.smoothed[2], 0, low, high, out[TREND])
    line = c.history.line
    if not forecast_lagged(s.lagged, c.lagged, history, line[0], LAGS, -1, 0, low, high, out[LAGGED]):
        _no_forecast(out[LAGGED])
    if c.plain:
        for p in range(2):
            if usual(history, p):
                for j in range(3):
                    forecast_smoothed(s.bank, c.bank, -1, p, j, t, c.smoothed[j])
                _direct(s, c, p, -1, p, low, high, out[OTHERS + p])
            else:
                _no_forecast(out[OTHERS + p])
    if c.at_columns >= 0:
        _no_forecast(out[c.at_columns])
        forecast_columns(s.columns, c.columns, line[0], L, t, known, low, high, out[c.at_columns])
    for q in range(c.seasons.shape[0]):
        _speak_season(s, c, q, low, high)


@inner
def _speak_season(s: ForecastState, c: ForecastSettings, q: int, low: float, high: float) -> None:
    """forecasts <- the forecasts of the candidates with season q."""
    history, out, m = s.history, c.forecasts, c.seasons[q]
    L, t, H = history.z.shape[1], history.counts[TIME], out.shape[1]
    first, line = c.at_seasons + SEASONAL * q, c.history.line
    for k in range(SEASONAL):
        _no_forecast(out[first + k])
    if t < m:
        return
    for h in range(H):
        out[first, h] = line[0, L - m + h % m]
    if s.bank.started[q + 1] == 0 and t >= 2 * m:
        start_season(s.bank, c.bank, q, t, line, L, history.step)
    forecast_lagged(s.lagged, c.lagged, history, line[0], LAGS, q, 0, low, high, out[first + 9])
    low_z, high_z = low, high
    for p in range(2):
        i = 2 * (int(c.plain) + q) + p
        if not usual(history, p):
            continue
        if s.bank.started[q + 1] == 1:
            for j in range(SEASONAL_ROWS):
                forecast_smoothed(s.bank, c.bank, q, p, j, t, c.smoothed[j])
                _put(c.smoothed[j], p, low, high, out[first + 1 + 4 * p + j])
        _direct(s, c, i, q, p, low, high, out[first + 12 + p])
        if p == 1:
            low_z, high_z = -700.0, np.log(max(high, 1e-300))
        differences = out[first + 10 + p]
        if forecast_lagged(
            s.lagged, c.lagged, history, line[p], SEASONAL_DIFFERENCES, q, p, low_z, high_z, differences
        ):
            _put(differences, p, low, high, differences)


@inner
def _forecast(s: ForecastState, c: ForecastSettings, known: int) -> None:
    """mean, lower, upper <- forecasts of the next values, kept until these arrive."""
    H, V, K = c.mean.shape[0], c.lower.shape[0], c.forecasts.shape[0]
    s.clock[ASKED] = 1
    keep_row(s.columns, c.columns)
    if s.history.counts[SEEN] == 0:
        for h in range(H):
            c.mean[h] = np.nan
            for v in range(V):
                c.lower[v, h] = c.upper[v, h] = np.nan
        for k in range(K):
            c.shares[k] = 0.0
        s.forecast[0] = ABSENT
        return
    gap, t, A = s.history.counts[GAP], s.history.counts[TIME], c.pool.horizons.shape[0]
    lay_out(s.history, c.history)
    _speak(s, c, known)
    weigh_candidates(s.pool, c.pool, c.forecasts)
    for h in range(H):
        far = min(h + gap, H - 1)
        a, part = c.pool.below[far], c.pool.part[far]
        above = min(a + 1, A - 1)
        total, mean = 0.0, 0.0
        for k in range(K):
            if is_there(c.forecasts[k, h]):
                w = (1.0 - part) * c.pool.weights[a, k] + part * c.pool.weights[above, k]
                total += w
                mean += w * c.forecasts[k, h]
                if h == 0:
                    c.shares[k] = w
            elif h == 0:
                c.shares[k] = 0.0
        c.mean[h] = mean / total
        if h == 0:
            for k in range(K):
                c.shares[k] /= total
    s.forecast[0] = c.mean[0]
    if V > 0:
        _enclose(s, c, gap)
    for a in range(A):
        n = c.pool.horizons[a]
        slot = c.pool.first[a] + t % n
        for k in range(K):
            s.pool.said[slot, k] = c.forecasts[k, n - 1] if gap == 0 else ABSENT
        if V > 0:
            wait_for_answer(s.spans, c.spans, a, slot, c.mean[n - 1] if gap == 0 else ABSENT)


@inner
def _enclose(s: ForecastState, c: ForecastSettings, gap: int) -> None:
    """lower, upper <- intervals around the mean."""
    H, A = c.mean.shape[0], c.pool.horizons.shape[0]
    write_spans(s.spans, c.spans, c.pool.horizons, c.mean)
    for h in range(H):
        far = min(h + gap, H - 1)
        a, part = c.pool.below[far], c.pool.part[far]
        above, widest = min(a + 1, A - 1), 0.0
        for v in range(c.lower.shape[0]):
            one, two = c.spans.q[a, v], c.spans.q[above, v]
            q = one if part == 0.0 else np.sqrt((1.0 - part) * one * one + part * two * two)
            widest = max(widest, q)  # of this and all lower levels
            c.lower[v, h] = c.mean[h] - widest if is_there(c.spans.q[a, v]) else np.nan
            c.upper[v, h] = c.mean[h] + widest if is_there(c.spans.q[a, v]) else np.nan


# ------------------------------------------------------------------------------------------------------------ learning


@inner
def _clean(s: ForecastState, c: ForecastSettings, y: float) -> float:
    """Return the value cleaned for the candidates, by (1) and (2) of `past`."""
    history = s.history
    if not is_there(s.forecast[0]):
        return y
    f, scale = s.forecast[0], history.marks[SCALE]
    e = y - f
    side = 0
    if history.counts[TIME] >= c.calm and history.counts[ERRORS] >= WARM and abs(e) > OUTLIER * scale > 0.0:
        side = 1 if e > 0.0 else -1
    before, odd, trusted = history.counts[SIDE], history.marks[LAST], history.counts[TRUSTED]
    if history.counts[GAP] == 0:
        usual_error(history, e)
    history.counts[SIDE] = side
    history.counts[TRUSTED] = 0
    if before != 0:
        stayed = abs(y - odd) < abs(y - history.marks[EXPECTED])
        history.counts[STAYED if stayed else RETURNED] += 1
        if stayed and trusted == 0:
            history.marks[EXPECTED] = f
            history.marks[STEP] = max(history.marks[STEP], abs(e))
            _change_level(s, c, y, odd)
            return y
    history.marks[EXPECTED] = f
    if side == 0:
        return y
    if history.counts[STAYED] > 2 * history.counts[RETURNED] and abs(e) <= 2.0 * history.marks[STEP]:
        history.counts[TRUSTED] = 1
        _change_level(s, c, y, y)
        history.counts[SIDE] = side
        return y
    clean: float = f + side * COUNTS * scale
    return y if y > 0.0 >= clean else clean


@inner
def _change_level(s: ForecastState, c: ForecastSettings, y: float, before: float) -> None:
    """Move to a new level: `before` is its first value, y the current one."""
    history, shift, shift_log = s.history, y - s.forecast[0], 0.0
    if usual(history, 1) and y > 0.0:
        shift_log = np.log(y) - logarithm(history, s.forecast[0])
    rebase(history, shift, shift_log)
    L, t = history.z.shape[1], history.counts[TIME]
    if history.counts[GAP] == 0 and history.counts[TRUSTED] == 0:
        history.z[0, (t - 1) % L] = before
        if usual(history, 1) and before > 0.0:
            history.z[1, (t - 1) % L] = np.log(before)
    shift_levels(s.bank, c.bank, shift, shift_log)
    for i in range(s.direct.waiting.shape[0]):
        shift_bases(s.direct, i, shift if i % 2 == 0 else shift_log)
    history.marks[LOW] = min(history.marks[LOW], before)
    history.marks[HIGH] = max(history.marks[HIGH], before)
    history.changes[history.counts[CHANGED] % CHANGES] = s.clock[ROUNDS]
    history.counts[CHANGED] += 1
    history.counts[SIDE] = history.counts[ERRORS] = 0  # the scale of errors may have changed
    history.marks[SCALE] = 0.0


@inner
def _learn(s: ForecastState, c: ForecastSettings, y: float) -> None:
    """Learn y (nan if missing), after `_forecast`."""
    s.clock[ROUNDS] += 1
    s.clock[ASKED] = 0
    history = s.history
    if y != y:
        if history.counts[SEEN] > 0:
            fill(history, s.forecast[0])
            coast(s.bank, c.bank)
        return
    t = history.counts[TIME]
    least = LEAST_CUT * (history.marks[HIGH] - history.marks[LOW])
    if history.counts[SEEN] > 0:
        for a in range(c.pool.horizons.shape[0]):
            h = c.pool.horizons[a]
            if t + 1 >= h:
                slot = c.pool.first[a] + (t + 1) % h
                judge_candidates(s.pool, c.pool, a, slot, y, least)
                if c.lower.shape[0] > 0:
                    learn_span(s.spans, c.spans, a, h, slot, y)
        if c.lower.shape[0] > 0 and history.counts[GAP] == 0 and is_there(s.forecast[0]):
            learn_scale(s.spans, y, s.forecast[0])
    clean = _clean(s, c, y)
    gap, seen = history.counts[GAP], history.counts[SEEN]
    if y <= 0.0 and history.counts[POSITIVE] == 1:
        history.counts[POSITIVE] = 0
    if gap > 0:
        spread_back(
            history,
            clean - s.forecast[0],
            np.log(clean) - logarithm(history, s.forecast[0]) if usual(history, 1) else 0.0,
        )
    lay_out(history, c.history)
    if seen > 0:
        _learn_models(s, c, clean)
    for p in range(2):
        if usual(history, p):
            smooth(s.bank, c.bank, p, clean if p == 0 else np.log(clean), t, seen, gap)
    s.bank.started[0] = 1
    accept(history, y, clean)


@inner
def _learn_models(s: ForecastState, c: ForecastSettings, clean: float) -> None:
    """Update the linear models with the cleaned value."""
    history = s.history
    L, t, line = history.z.shape[1], history.counts[TIME], c.history.line
    learn_lagged(s.lagged, c.lagged, history, line[0], LAGS, -1, 0, clean)
    learn_columns(s.columns, c.columns, line[0], L, t, clean)
    for p in range(2):
        if not usual(history, p):
            continue
        z = clean if p == 0 else np.log(clean)
        for q in range(-1, c.seasons.shape[0]):
            if q >= 0:
                if p == 0:
                    learn_lagged(s.lagged, c.lagged, history, line[0], LAGS, q, 0, z)
                learn_lagged(s.lagged, c.lagged, history, line[p], SEASONAL_DIFFERENCES, q, p, z)
            if q >= 0 or c.plain:
                i = 2 * (int(c.plain) + q) + p
                for a in range(c.pool.horizons.shape[0]):
                    h = c.pool.horizons[a]
                    if t + 1 >= h:
                        slot = c.pool.first[a] + (t + 1) % h
                        learn_direct(s.direct, c.direct, i, 10 if q >= 0 else 8, a, slot, t + 1 - h, z)


# ------------------------------------------------------------------------------------------------------------- kernels


@kernel
def ask(handle: Handle, known: int) -> float:
    """Forecast the next values, given the columns of the first `known` rounds; return the first forecast."""
    s, c = parts(handle)
    _forecast(s, c, known)
    return float(c.mean[0])


@inner
def _waits(s: ForecastState) -> bool:
    """Whether the round has to wait, for capacity or for a test for seasons."""
    rounds = s.clock[ROUNDS]
    return not has_capacity(s.columns, rounds + 1) or (s.clock[CHECK] > 0 and rounds >= s.clock[CHECK])


@kernel
def answer(handle: Handle, y: float) -> int:
    """Learn one value, after forecasting it if necessary. Return PLAYED, or WAITS with nothing changed."""
    s, c = parts(handle)
    if _waits(s):
        return WAITS
    if s.clock[ASKED] == 0:
        _forecast(s, c, 0)
    _learn(s, c, y)
    return PLAYED


@kernel
def play(
    handle: Handle, rows: Floats, values: Floats, means: Floats, lower: Floats, upper: Floats, weights: Floats
) -> int:
    """Forecast and learn values up to the end or to a round that has to wait; return its index.

    means[t] (H,), lower[t], upper[t] (V, H) <- the forecasts made before values[t] is seen. There may be more rows of
    columns than values.
    """
    s, c = parts(handle)
    T, H = values.shape[0], c.mean.shape[0]
    for t in range(T):
        if _waits(s):
            return t
        known = min(H, rows.shape[0] - t)
        give_rows(s.columns, c.columns, rows, t, known)
        _forecast(s, c, known)
        copy(c.mean, means[t])
        copy(c.shares, weights[t])
        for v in range(lower.shape[1]):
            copy(c.lower[v], lower[t, v])
            copy(c.upper[v], upper[t, v])
        _learn(s, c, values[t])
    return T
