"""Preview and committee controllers in plain NumPy: explicit sums over all rounds, nothing recursive."""

import numpy as np

RIDGE, STILL = 0.01, 10.0


def riccati(A, B, Q, R):
    P = Q.astype(float)
    for _ in range(20_000):
        K = np.linalg.solve(R + B.T @ P @ B, B.T @ P @ A)
        after = Q + A.T @ P @ (A - B @ K)
        if np.abs(after - P).max() <= 1e-14 * np.abs(after).max():
            break
        P = after
    return P, K


def preview_gains(A, B, P, K, R):
    F, found = A - B @ K, []
    for j in range(1000):
        found.append(np.linalg.inv(R + B.T @ P @ B) @ B.T @ np.linalg.matrix_power(F.T, j) @ P)
        if np.abs(found[-1]).max() <= 1e-3 * max(np.abs(g).max() for g in found):
            break
    return found


def forecast(seen, order, keep, ahead):
    """The next `ahead` values of one series, from the autoregression that fits all rounds so far best."""
    T = len(seen)
    discounts = keep ** np.arange(T - 1, -1, -1.0)
    b = max(np.array(seen) ** 2 * discounts, default=0.0)
    if b == 0:
        return np.zeros(ahead)
    padded = np.concatenate([np.zeros(order), seen])
    rows = np.array([np.append(padded[t : t + order][::-1], 1.0) for t in range(T)])
    penalty = np.diag(np.append(np.full(order, RIDGE * b), STILL))
    theta = np.linalg.solve(rows.T @ (discounts[:, None] * rows) + penalty, rows.T @ (discounts * np.array(seen)))
    values = list(padded)
    for _ in range(ahead):
        lags = values[len(values) - order :][::-1]
        values.append(float(np.clip(np.dot(theta[:-1], lags) + theta[-1], -np.sqrt(b), np.sqrt(b))))
    return np.array(values[len(padded) :])


def preview(A, B, Q, R, w, order, keep, start):
    """States and inputs of a run."""
    P, K = riccati(A, B, Q, R)
    L = preview_gains(A, B, P, K, R)
    x, states, inputs = start, [], []
    for t in range(len(w)):
        ahead = np.array([forecast(w[:t, m], order, keep, len(L)) for m in range(len(A))])
        u = -K @ x - sum(gain @ ahead[:, j] for j, gain in enumerate(L))
        states.append(x)
        inputs.append(u)
        x = A @ x + B @ u + w[t]
    return np.array(states), np.array(inputs)


def committee(A, B, K, members, weights, w, start):
    """States and inputs under given weights of given runs of the members, (states, inputs) each."""
    x, states, inputs = start, [], []
    for t in range(len(w)):
        u = -K @ x
        for p, (xs, us) in zip(weights[t], members, strict=True):
            u = u + p * (us[t] + K @ xs[t])
        states.append(x)
        inputs.append(u)
        x = A @ x + B @ u + w[t]
    return np.array(states), np.array(inputs)
