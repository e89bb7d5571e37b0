"""The best combinations in hindsight: one expert, fixed weights, or experts that change a few times.

    expert    min_i sum_t l(x_ti, y_t)                                                                            (1)
    convex    min over weights w >= 0 with sum 1 of sum_t l(sum_i w_i x_ti, y_t); linear: over all w                 (2)
    shifting  for m = 0, 1, ...: min over sequences of experts that change m times at most                          (3)

(2) is least squares (with weights of sum 1: the point of a polytope next to the origin), a linear programme for
absolute and pinball losses, and for log loss the fixed point of w_i <- w_i mean_t q_ti/q_t, q the probability of the
outcome.
The forecast of a sleeping expert is the mean of those awake.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from thalweg._core.types import Floats
from thalweg._core.validate import check_choice, check_count
from thalweg._kernels.jit import kernel
from thalweg.errors import InputError
from thalweg.estimators.aggregator.reading import read_answers, read_loss, read_rows
from thalweg.estimators.aggregator.result import costs

MODELS = "expert", "convex", "linear", "shifting"
MOST_CHANGES = 1000  # changes that are tried unless more are asked for
ACCEPTED_GAP = 1e-10  # of the mean log loss, the remaining gap


@dataclass(frozen=True, eq=False)
class Oracle:
    """The best combination in hindsight.

    Attributes
    ----------
    model : str
        "expert", "convex", "linear" or "shifting".
    loss : float
        Its mean loss; of "shifting" with as many changes as were tried.
    weights : array (K,), or None of "shifting"
        Its weights of the experts.
    predictions : array (T,), or None of "shifting"
        Its forecasts.
    losses : array (M + 1,), or None
        Of "shifting": the mean loss with at most 0, 1, ..., M changes.
    """

    model: str
    loss: float
    weights: Floats | None = None
    predictions: Floats | None = None
    losses: Floats | None = None

    def __repr__(self) -> str:
        return f"Oracle({self.model!r}, loss {self.loss:.6g})"


def oracle(
    experts: object,
    y: object,
    model: str = "convex",
    *,
    loss: str = "square",
    tau: float = 0.5,
    awake: object = None,
    changes: int | None = None,
) -> Oracle:
    """The best combination in hindsight.

    Parameters
    ----------
    experts, y, awake
        As for `Aggregator.run`.
    model : {"expert", "convex", "linear", "shifting"}
        One expert, fixed weights that sum to 1, any fixed weights, or experts that change.
    loss, tau
        As for `Aggregator`.
    changes : int, optional
        For "shifting": how many changes to try; 1000 when left out, or as many as the rounds allow.

    Examples
    --------
    >>> import numpy as np
    >>> from thalweg.estimators import oracle
    >>> y = np.array([0.0, 1.0, 0.0, 1.0])
    >>> experts = np.c_[np.zeros(4), np.ones(4)]
    >>> oracle(experts, y, "convex").weights.round(6).tolist()
    [0.5, 0.5]
    >>> oracle(experts, y, "shifting").losses.tolist()
    [0.5, 0.25, 0.25, 0.0]
    """
    loss = read_loss("oracle", loss)
    _, X, A = read_rows("oracle", experts, awake, None, loss=loss)
    Y = read_answers("oracle", y, loss, len(X))
    X = A * X + (1 - A) * ((A * X).sum(axis=1) / A.sum(axis=1))[:, None]
    check_choice("oracle", "model", model, MODELS)
    if len(Y) == 0:
        raise InputError("oracle needs at least one round. Got none.")
    T, K = X.shape
    if model == "shifting":
        most = min(T - 1, MOST_CHANGES)
        if changes is not None:
            most = check_count("oracle", "changes", changes, least=0, most=T - 1)
        losses = np.empty(most + 1)
        _shifting(costs(loss, tau, X, Y), np.full((most + 1, K), np.inf), losses)
        losses = np.minimum.accumulate(losses) / T
        return Oracle(model, float(losses[-1]), losses=losses)
    w: Floats = np.zeros(K)
    if model == "expert":
        w[np.argmin(costs(loss, tau, X, Y).mean(axis=0))] = 1.0
    elif loss == "square":
        w = _nearest(X - Y[:, None]) if model == "convex" else np.asarray(np.linalg.lstsq(X, Y)[0], dtype=np.float64)
    elif loss == "log":
        if model == "linear":
            raise InputError("oracle: for loss='log' weights must sum to 1. Use model='convex'.")
        w = _likeliest(np.where(Y[:, None] > 0.5, X, 1 - X))
    else:
        up = tau if loss == "pinball" else 0.5
        scale = 1 / np.abs(Y) if loss == "percentage" else np.ones(T)
        w = _programme(X * scale[:, None], Y * scale, up, model == "convex")
    said = X @ w
    return Oracle(model, float(costs(loss, tau, said, Y).mean()), w, said)


def _nearest(D: Floats) -> Floats:
    """The weights w >= 0 of sum 1 for which ||D w|| is smallest.

    v >= 0 that minimises ||D v||^2 + (sum v - 1)^2 is a multiple of it: in direction w the best length is 1/(1 + q),
    q = ||D w||^2, and then q/(1 + q) is left, which grows with q.
    """
    from scipy.optimize import nnls

    size = np.abs(D).max()
    if size == 0:
        return np.full(D.shape[1], 1 / D.shape[1])
    R = np.linalg.qr(D / size, mode="r") / np.sqrt(len(D))
    target = np.zeros(len(R) + 1)
    target[-1] = 1.0
    v, _ = nnls(np.vstack([R, np.ones(D.shape[1])]), target)
    return np.asarray(v / v.sum())


def _programme(X: Floats, y: Floats, up: float, convex: bool) -> Floats:
    """min sum_t up e+ + (1 - up) e-, where e+ - e- = y - X w."""
    from scipy import sparse
    from scipy.optimize import linprog

    T, K = X.shape
    size = max(np.abs(y).max(), np.abs(X).max(), 1e-300)
    eye = sparse.eye_array(T)
    rows = sparse.hstack([sparse.csr_array(X / size), eye, -eye])
    total = sparse.csr_array(np.concatenate([np.ones(K), np.zeros(2 * T)])[None])
    A = sparse.vstack([rows, total]) if convex else rows
    b = np.append(y / size, 1.0) if convex else y / size
    price = np.concatenate([np.zeros(K), np.full(T, up), np.full(T, 1 - up)])
    bounds = [(0 if convex else None, None)] * K + [(0, None)] * (2 * T)
    found = linprog(price, A_eq=A, b_eq=b, bounds=bounds, method="highs")
    if not found.success:
        raise RuntimeError(f"oracle: the linear programme was not solved: {found.message}")
    w: Floats = np.maximum(found.x[:K], 0.0) if convex else np.asarray(found.x[:K])
    return w / w.sum() if convex else w


def _likeliest(q: Floats) -> Floats:
    """Weights of sum 1 for which sum_t ln sum_i w_i q_ti is largest."""
    w: Floats = np.full(q.shape[1], 1 / q.shape[1])
    for _ in range(100_000):
        steps = (q / (q @ w)[:, None]).mean(axis=0)
        w = np.asarray(w * steps)  # the sum stays 1
        if steps.max() - 1 <= ACCEPTED_GAP:  # no w gains more than ln of the largest
            break
    return np.asarray(w / w.sum())


@kernel
def _shifting(paid: Floats, best: Floats, losses: Floats) -> None:
    """best[m, i] <- the smallest loss up to a round with at most m changes that ends at expert i."""
    T, K = paid.shape
    M = best.shape[0]
    for i in range(K):
        best[0, i] = paid[0, i]
    for t in range(1, T):
        for m in range(min(t, M - 1), -1, -1):
            least = np.inf
            if m > 0:
                for i in range(K):
                    least = min(least, best[m - 1, i])
            for i in range(K):
                best[m, i] = min(best[m, i], least) + paid[t, i]
    for m in range(M):
        losses[m] = np.inf
        for i in range(K):
            losses[m] = min(losses[m], best[m, i])
