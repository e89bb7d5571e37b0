/* The speed limit: one learner, one problem, one domain, written out by hand.
 *
 * Plays the one-projection ensemble of Theorem 3 (small-loss pool, self-confident Hedge) on T rounds of squared-loss
 * linear regression over the ellipsoid {w : sum e_j w_j^2 <= 1}, inside the ball of radius R, both around 0.
 * No objects, no dispatch, no allocation, no checks. Each round passes over the pool twice, the least there is: the
 * weights need all N inner products before the decision can be combined. The rescale onto the ball costs no pass of
 * its own: row i of Z holds Y_i / scale[i], and the factor is applied when the row is next read.
 *
 * `track` does the same for the Tracker without intervals and curvature: scale-free steps on cut losses, members that
 * join, Hedge on the gains it has seen.
 */
#include <math.h>
#include <string.h>

/* x <- the point of {w : sum e_j w_j^2 <= 1} nearest to y: x_j = y_j / (1 + lam e_j) with S(lam) = sum e_j x_j^2 = 1.
 * Newton on 1 / sqrt(S) = 1, from the better of its steps from 0 and from infinity. r = 1 / e. */
static void project(int d, const double *restrict e, const double *restrict r, const double *restrict y,
                    double *restrict x)
{
    double near = 0.0, near_slope = 0.0, far = 0.0, far_slope = 0.0;
    for (int j = 0; j < d; j++)
        near += e[j] * y[j] * y[j];
    if (near <= 1.0) {
        memcpy(x, y, (size_t)d * sizeof *x);
        return;
    }
    for (int j = 0; j < d; j++) {
        double square = y[j] * y[j];
        near_slope += square * e[j] * e[j];
        far += square * r[j];
        far_slope += square * r[j] * r[j];
    }
    double lam = fmax((sqrt(near) - 1.0) * near / near_slope, sqrt(far) - far_slope / far);
    for (int step = 0; step < 100; step++) {
        double value = 0.0, slope = 0.0;
        for (int j = 0; j < d; j++) {
            double q = 1.0 / (1.0 + lam * e[j]), w = y[j] * q, s = e[j] * w * w;
            value += s;
            slope += e[j] * q * s;
        }
        double residual = sqrt(value) - 1.0;
        if (residual <= 0.0)
            break;
        lam += residual * value / slope;
        if (residual < 1e-11)
            break;
    }
    for (int j = 0; j < d; j++)
        x[j] = y[j] / (1.0 + lam * e[j]);
}

/* Z (N, d), A, scale, p (N), y, x, h (d): state and scratch space, all zero at the start but scale = 1. Writes
 * the loss of every round and, where decisions is not NULL, every decision. */
void play(int T, int d, int N, const double *restrict features, const double *restrict labels,
          const double *restrict e, const double *restrict r, double R, double tol, const double *restrict eta,
          double *restrict Z, double *restrict A, double *restrict scale, double *restrict p, double *restrict y,
          double *restrict x, double *restrict h, double *restrict losses, double *restrict decisions)
{
    const double log_n = log((double)N);
    double squares = 0.0;
    for (int t = 0; t < T; t++) {
        const double *restrict a = features + (size_t)t * d;
        project(d, e, r, y, x);

        double z = 0.0, gap2 = 0.0, along = 0.0;
        for (int j = 0; j < d; j++) {
            double v = y[j] - x[j];
            z += a[j] * x[j];
            gap2 += v * v;
            along += a[j] * v;
        }
        double residual = z - labels[t];
        losses[t] = 0.5 * residual * residual;
        if (decisions)
            for (int j = 0; j < d; j++)
                decisions[(size_t)t * d + j] = x[j];

        /* h = g - min(0, <g, v>) v with g = residual a and v the unit vector from x to y */
        double c = 0.0;
        if (gap2 > tol * tol && residual * along < 0.0)
            c = residual * along / gap2;
        double hh = 0.0, hy = 0.0;
        for (int j = 0; j < d; j++) {
            h[j] = residual * a[j] - c * (y[j] - x[j]);
            hh += h[j] * h[j];
            hy += h[j] * y[j];
        }
        squares += hh;

        double best = INFINITY;
        for (int i = 0; i < N; i++) {
            double *restrict row = Z + (size_t)i * d;
            const double s = scale[i], step = eta[i];
            double dot = 0.0, size2 = 0.0;
            for (int j = 0; j < d; j++) {
                double old = s * row[j];
                double new = old - step * h[j];
                dot += h[j] * old;
                size2 += new * new;
                row[j] = new;
            }
            scale[i] = size2 > R * R ? R / sqrt(size2) : 1.0;
            A[i] += dot - hy;
            best = A[i] < best ? A[i] : best;
        }
        const double eps = sqrt(log_n / (1.0 + R * R * squares));
        double total = 0.0;
        for (int i = 0; i < N; i++) {
            p[i] = exp(-eps * (A[i] - best));
            total += p[i];
        }
        for (int j = 0; j < d; j++)
            y[j] = 0.0;
        for (int i = 0; i < N; i++) {
            const double *restrict row = Z + (size_t)i * d;
            const double weight = p[i] * scale[i] / total;
            for (int j = 0; j < d; j++)
                y[j] += weight * row[j];
        }
    }
}

/* Z (60, d), A, scale, p, q, logs (60), y, x, h (d): all zero at the start. Returns the number of members. */
int track(int T, int d, const double *restrict features, const double *restrict labels, const double *restrict e,
          const double *restrict r, double R, double tol, double *restrict Z, double *restrict A,
          double *restrict scale, double *restrict p, double *restrict q, double *restrict logs, double *restrict y,
          double *restrict x, double *restrict h, double *restrict losses, double *restrict decisions)
{
    double S = 0.0, H = 0.0, V = 0.0, B = 0.0;
    int N = 0, k0 = 0, K = 0;
    for (int t = 0; t < T; t++) {
        const double *restrict a = features + (size_t)t * d;
        project(d, e, r, y, x);
        double z = 0.0, gap2 = 0.0, along = 0.0;
        for (int j = 0; j < d; j++) {
            double v = y[j] - x[j];
            z += a[j] * x[j];
            gap2 += v * v;
            along += a[j] * v;
        }
        double residual = z - labels[t], f = 0.5 * residual * residual;
        losses[t] = f;
        if (decisions)
            for (int j = 0; j < d; j++)
                decisions[(size_t)t * d + j] = x[j];
        double c = 0.0;
        if (gap2 > tol * tol && residual * along < 0.0)
            c = residual * along / gap2;
        double n = 0.0;
        for (int j = 0; j < d; j++) {
            h[j] = residual * a[j] - c * (y[j] - x[j]);
            n += h[j] * h[j];
        }
        if (n <= 1e-300)
            continue;
        if (N == 0) {
            k0 = (int)fmin(fmax(floor(log2(2.0 * f / (sqrt(n) * R))), -20.0), -4.0);
            K = 1;
            double total = 0.0;
            for (int k = k0 - 2; k <= K; k++, N++) {
                logs[N] = (k >= k0 ? -0.5 : 1.0) * log(2.0) * (k - k0);
                scale[N] = 1.0;
                total += p[N] = exp(logs[N]);
            }
            for (int i = 0; i < N; i++)
                p[i] /= total;
        }
        S += n;
        H += sqrt(n);
        double step = R / sqrt(S) * exp2(k0 - 2), Q = 0.0;
        for (int i = 0; i < N; i++) {
            double *restrict row = Z + (size_t)i * d;
            const double s = scale[i];
            double gain = 0.0, size2 = 0.0;
            for (int j = 0; j < d; j++)
                gain += h[j] * (y[j] - s * row[j]);
            const double cut = fmin(step, fmax(2.0 * f - gain, 0.0) / n);
            for (int j = 0; j < d; j++) {
                double new = s * row[j] - cut * h[j];
                size2 += new * new;
                row[j] = new;
            }
            scale[i] = size2 > R * R ? R / sqrt(size2) : 1.0;
            q[i] = fmin(gain, 2.0 * f);
            Q += p[i] * q[i];
            step *= 2.0;
        }
        for (int i = 0; i < N; i++) {
            double v = q[i] - Q;
            A[i] += v;
            V += p[i] * v * v;
            B = v > B ? v : B;
        }
        while (exp2(K + 1) * sqrt(S) <= 2.0 * H) {
            K++;
            memcpy(Z + (size_t)N * d, y, (size_t)d * sizeof *y);
            scale[N] = 1.0;
            logs[N] = -0.5 * log(2.0) * (K - k0);
            N++;
        }
        const double rate = B > 0.0 ? 1.0 / sqrt(B * B + V) : 0.0;
        double best = -INFINITY, total = 0.0;
        for (int i = 0; i < N; i++) {
            q[i] = rate * A[i] + logs[i];
            best = q[i] > best ? q[i] : best;
        }
        for (int i = 0; i < N; i++) {
            p[i] = exp(q[i] - best);
            total += p[i];
        }
        for (int j = 0; j < d; j++)
            y[j] = 0.0;
        for (int i = 0; i < N; i++) {
            const double *restrict row = Z + (size_t)i * d;
            p[i] /= total;
            const double weight = p[i] * scale[i];
            for (int j = 0; j < d; j++)
                y[j] += weight * row[j];
        }
    }
    return N;
}
