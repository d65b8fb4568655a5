/* The portable loops of the core against the AVX2 ones, on random input of every length up
 * to 200, and both against the C library. Prints what differs; exit code 1 if anything does,
 * 77 on a machine without AVX2. */
#include <stdio.h>
#include <stdlib.h>

#include "loops.h"

#define MOST 200
#define FEATURES 7

static int failures = 0;

static void expect(int holds, const char *what, long n, double a, double b)
{
    if (!holds && failures++ < 20)
        printf("%s at n = %ld: %.17g and %.17g\n", what, n, a, b);
}

static int close_to(double a, double b, double relative, double absolute)
{
    if (isinf(a) || isinf(b))
        return a == b;
    return fabs(a - b) <= relative * fmax(fabs(a), fabs(b)) + absolute;
}

static double uniform(double low, double high)
{
    return low + (high - low) * (rand() / (double)RAND_MAX);
}

#ifdef TAUSVM_AVX2

/* ---- exp and kernel rows ---- */

static void check_exp(void)
{
    for (int t = 0; t < 200000; t++) {
        double x = t % 2 ? uniform(-708, 0) : uniform(-3, 0);
        expect(close_to(exp_f64(x), exp(x), 5e-16, 0), "exp_f64", t, exp_f64(x), exp(x));
        float f = (float)(t % 2 ? uniform(-87, 0) : uniform(-3, 0));
        expect(close_to(exp_f32(f), exp((double)f), 2.4e-7, 0), "exp_f32", t, exp_f32(f), exp(f));
    }
    expect(exp_f64(0) == 1 && exp_f32(0) == 1, "exp at 0", 0, exp_f64(0), exp_f32(0));
    expect(exp_f64(-1e9) == 0 && exp_f32(-1e9f) == 0, "exp far out", 0, exp_f64(-1e9), 0);
}

#define DEFINE_CHECK_ROWS(SUFFIX, T, RELATIVE)                                          \
    static void check_rows_##SUFFIX(long n)                                             \
    {                                                                                   \
        static T xt[FEATURES * MOST], point[FEATURES], a[MOST + 1], b[MOST + 1];        \
        for (long d = 1; d <= FEATURES; d += 3) {                                       \
            for (long k = 0; k < d * n; k++)                                            \
                xt[k] = (T)uniform(-2, 2);                                              \
            for (long k = 0; k < d; k++)                                                \
                point[k] = k % 2 ? xt[k * n] : (T)uniform(-2, 2);                       \
            T gamma = (T)uniform(0.01, 5);                                              \
            a[n] = b[n] = 42;                                                           \
            rbf_row_##SUFFIX##_any(xt, n, point, d, n, gamma, a);                       \
            rbf_row_##SUFFIX##_avx2(xt, n, point, d, n, gamma, b);                      \
            for (long j = 0; j < n; j++)                                                \
                expect(close_to(a[j], b[j], RELATIVE, 0), "rbf_row_" #SUFFIX, n, a[j], b[j]); \
            laplacian_row_##SUFFIX##_any(xt, n, point, d, n, gamma, a);                 \
            laplacian_row_##SUFFIX##_avx2(xt, n, point, d, n, gamma, b);                \
            for (long j = 0; j < n; j++)                                                \
                expect(close_to(a[j], b[j], RELATIVE, 0), "laplacian_row_" #SUFFIX, n, a[j], b[j]); \
            expect(a[n] == 42 && b[n] == 42, "end of row " #SUFFIX, n, a[n], b[n]);     \
        }                                                                               \
        static double products[MOST], norms[MOST];                                      \
        double norm = uniform(0, 4);                                                    \
        for (long k = 0; k < n; k++) {                                                  \
            norms[k] = uniform(0, 4);                                                   \
            products[k] = k % 5 ? uniform(-2, 2) : 0.5 * (norm + norms[k]) + 1e-12;     \
        }                                                                               \
        rbf_from_products_##SUFFIX##_any(products, norms, norm, n, 0.7, a);             \
        rbf_from_products_##SUFFIX##_avx2(products, norms, norm, n, 0.7, b);            \
        for (long j = 0; j < n; j++)                                                    \
            expect(close_to(a[j], b[j], RELATIVE, 0) && a[j] <= 1 && b[j] <= 1,         \
                   "rbf_from_products_" #SUFFIX, n, a[j], b[j]);                        \
        expect(a[n] == 42 && b[n] == 42, "end of products " #SUFFIX, n, a[n], b[n]);    \
    }

/* the exponent itself is rounded: its size times the unit of rounding */
DEFINE_CHECK_ROWS(f32, float, 3e-5)
DEFINE_CHECK_ROWS(f64, double, 1e-13)

/* ---- searches ---- */

#define DEFINE_CHECK_SEARCHES(SUFFIX, T)                                                \
    static void check_searches_##SUFFIX(long n)                                         \
    {                                                                                   \
        static double g[2][MOST + 1], slope_up[MOST], slope_down[MOST], curvature[MOST]; \
        static T row_i[MOST], row_j[MOST];                                              \
        for (int trial = 0; trial < 4; trial++) {                                       \
            for (long k = 0; k < n; k++) {                                              \
                g[0][k] = g[1][k] = uniform(-1, 1);                                     \
                int shut = trial == 3 || uniform(0, 1) < 0.3 * trial;                   \
                slope_up[k] = shut ? INFINITY : uniform(-1, 1);                         \
                slope_down[k] = shut ? -INFINITY : uniform(-1, 1);                      \
                curvature[k] = uniform(0, 2);                                           \
                row_i[k] = (T)uniform(-1, 1);                                           \
                row_j[k] = (T)uniform(-1, 1);                                           \
            }                                                                           \
            g[0][n] = g[1][n] = 42;                                                     \
            double top[2], bottom[2], step = trial == 1 ? 0.0 : uniform(-1, 1);         \
            long at[2];                                                                 \
            at[0] = update_pair_##SUFFIX##_any(g[0], slope_up, row_i, row_j, step, n, &top[0]); \
            at[1] = update_pair_##SUFFIX##_avx2(g[1], slope_up, row_i, row_j, step, n, &top[1]); \
            for (long k = 0; k < n; k++)                                                \
                expect(close_to(g[0][k], g[1][k], 0, 1e-15), "gradient " #SUFFIX, n, g[0][k], \
                       g[1][k]);                                                        \
            expect(g[0][n] == 42 && g[1][n] == 42, "end of gradient " #SUFFIX, n, 0, 0); \
            expect(close_to(top[0], top[1], 0, 1e-15), "top " #SUFFIX, n, top[0], top[1]); \
            expect(at[0] == at[1], "first index " #SUFFIX, n, at[0], at[1]);            \
            expect(trial != 3 || at[0] == -1, "nothing to raise " #SUFFIX, n, at[0], -1); \
            double up = top[0] > -INFINITY ? top[0] : 0.0;                              \
            at[0] = second_index_##SUFFIX##_any(g[0], slope_down, curvature, row_i, up, 1.5, \
                                                1e-12, n, &bottom[0]);                  \
            at[1] = second_index_##SUFFIX##_avx2(g[0], slope_down, curvature, row_i, up, 1.5, \
                                                 1e-12, n, &bottom[1]);                 \
            expect(close_to(bottom[0], bottom[1], 0, 1e-15), "bottom " #SUFFIX, n, bottom[0], \
                   bottom[1]);                                                          \
            expect(at[0] == at[1], "second index " #SUFFIX, n, at[0], at[1]);           \
            double best = 0;                                                            \
            long best_k = -1;                                                           \
            for (long k = 0; k < n; k++) {                                              \
                double r = up + g[0][k] + slope_down[k];                                \
                double q = fmax(1.5 + curvature[k] - 2.0 * (double)row_i[k], 1e-12);    \
                if (r > 0 && r * r / q > best) {                                        \
                    best = r * r / q;                                                   \
                    best_k = k;                                                         \
                }                                                                       \
            }                                                                           \
            expect(at[0] == best_k, "second index by hand " #SUFFIX, n, at[0], best_k); \
        }                                                                               \
    }

DEFINE_CHECK_SEARCHES(f32, float)
DEFINE_CHECK_SEARCHES(f64, double)

#define DEFINE_CHECK_GAINS(SUFFIX, T)                                                   \
    static void check_gains_##SUFFIX(long n)                                            \
    {                                                                                   \
        static double g[2][MOST + 1], beta[MOST], diagonal[MOST], table[7 * MOST];      \
        static T row_i[MOST], row_j[MOST];                                              \
        for (int trial = 0; trial < 3; trial++) {                                       \
            for (long k = 0; k < n; k++) {                                              \
                double *t = table + k;                                                  \
                g[0][k] = g[1][k] = uniform(-1, 1);                                     \
                diagonal[k] = trial == 2 ? 0.0 : uniform(0, 2);                         \
                t[0] = trial == 1 ? -INFINITY : -uniform(0, 1);                         \
                t[n] = trial == 1 ? INFINITY : uniform(0, 1);                           \
                beta[k] = k % 3 ? uniform(trial == 1 ? -1 : t[0], trial == 1 ? 1 : t[n]) : 0.0; \
                t[2 * n] = k % 2 ? uniform(0, 0.5) : 0.0;                               \
                t[3 * n] = trial == 1 ? uniform(0.1, 1) : 0.0;                          \
                t[4 * n] = trial == 1 ? uniform(0.1, 1) : 0.0;                          \
                t[5 * n] = 1 / fmax(diagonal[k] + t[3 * n], 1e-300);                    \
                t[6 * n] = 1 / fmax(diagonal[k] + t[4 * n], 1e-300);                    \
                row_i[k] = (T)uniform(-1, 1);                                           \
                row_j[k] = (T)uniform(-1, 1);                                           \
            }                                                                           \
            g[0][n] = g[1][n] = 42;                                                     \
            long begin = trial == 0 ? n / 3 : 0, at[2];                                 \
            double gain[2], si = uniform(-1, 1), sj = uniform(-1, 1);                   \
            update_gains_##SUFFIX##_any(g[0], beta, table, n, diagonal, row_i, row_j, si, sj, \
                                        begin, n, &at[0], &gain[0]);                    \
            update_gains_##SUFFIX##_avx2(g[1], beta, table, n, diagonal, row_i, row_j, si, sj, \
                                         begin, n, &at[1], &gain[1]);                   \
            for (long k = 0; k <= n; k++)                                               \
                expect(close_to(g[0][k], g[1][k], 0, 1e-15), "gains' gradient " #SUFFIX, n, \
                       g[0][k], g[1][k]);                                               \
            expect(close_to(gain[0], gain[1], 1e-13, 1e-15), "gain " #SUFFIX, n, gain[0], gain[1]); \
            expect(at[0] == at[1], "index of gain " #SUFFIX, n, at[0], at[1]);          \
            expect(begin == n || (at[0] >= begin && at[0] < n), "range " #SUFFIX, n, at[0], begin); \
            double best = -INFINITY; /* by the definition, not by the formula of the loop */ \
            for (long k = begin; k < n; k++) {                                          \
                double *t = table + k, q = diagonal[k], b = beta[k], c = q * b - g[0][k]; \
                double next = one_variable(c, t[0], t[n], t[2 * n], t[5 * n], t[6 * n]); \
                double values[2], points[2] = {b, next};                                \
                for (int p = 0; p < 2; p++) {                                           \
                    double x = points[p], ridge = x > 0 ? t[4 * n] : t[3 * n];          \
                    values[p] = 0.5 * (q + ridge) * x * x - c * x + t[2 * n] * fabs(x); \
                }                                                                       \
                best = fmax(best, values[0] - values[1]);                               \
            }                                                                           \
            expect(close_to(gain[0], best, 1e-12, 1e-14), "gain by hand " #SUFFIX, n, gain[0], best); \
        }                                                                               \
    }

DEFINE_CHECK_GAINS(f32, float)
DEFINE_CHECK_GAINS(f64, double)

/* bounds alone: the same gains as the general loop with no kink and no ridge */
#define DEFINE_CHECK_BOX_GAINS(SUFFIX, T)                                               \
    static void check_box_gains_##SUFFIX(long n)                                        \
    {                                                                                   \
        static double g[3][MOST + 1], beta[MOST], diagonal[MOST], table[7 * MOST], room[2 * MOST]; \
        static T row_i[MOST], row_j[MOST];                                              \
        for (int trial = 0; trial < 4; trial++) {                                       \
            for (long k = 0; k < n; k++) {                                              \
                double *t = table + k;                                                  \
                g[0][k] = g[1][k] = g[2][k] = uniform(-1, 1);                           \
                diagonal[k] = trial == 2 ? 0.0 : trial == 3 ? 1.5 : uniform(0, 2);      \
                t[0] = k % 4 ? -uniform(0, 1) : 0.0;                                    \
                t[n] = uniform(0, 1);                                                   \
                t[2 * n] = t[3 * n] = t[4 * n] = 0.0;                                   \
                t[5 * n] = t[6 * n] = 1 / fmax(diagonal[k], 1e-300);                    \
                beta[k] = k % 3 ? uniform(t[0], t[n]) : t[k % 2 * n];                   \
                room[k] = t[0] - beta[k];                                               \
                room[n + k] = t[n] - beta[k];                                           \
                row_i[k] = (T)uniform(-1, 1);                                           \
                row_j[k] = (T)uniform(-1, 1);                                           \
            }                                                                           \
            g[0][n] = g[1][n] = g[2][n] = 42;                                           \
            long begin = trial == 0 ? n / 3 : 0, at[3];                                 \
            double gain[3], si = uniform(-1, 1), sj = uniform(-1, 1);                   \
            int same_q = trial >= 2; /* the diagonal is the same all along */             \
            update_box_gains_##SUFFIX##_any(same_q, g[0], room, n, diagonal,           \
                                            table + 6 * n, row_i, row_j, si, sj, begin, n, &at[0], &gain[0]);        \
            update_box_gains_##SUFFIX##_avx2(same_q, g[1], room, n, diagonal,          \
                                             table + 6 * n, row_i, row_j, si, sj, begin, n, &at[1], &gain[1]);       \
            update_gains_##SUFFIX##_any(g[2], beta, table, n, diagonal, row_i, row_j, si, sj, \
                                        begin, n, &at[2], &gain[2]);                    \
            for (long k = 0; k <= n; k++)                                               \
                expect(close_to(g[0][k], g[1][k], 0, 1e-15) &&                          \
                           close_to(g[0][k], g[2][k], 0, 1e-15),                        \
                       "box gains' gradient " #SUFFIX, n, g[0][k], g[1][k]);            \
            for (int other = 1; other < 3; other++) {                                   \
                expect(close_to(gain[0], gain[other], 1e-13, 1e-15), "box gain " #SUFFIX, n, \
                       gain[0], gain[other]);                                           \
                expect(at[0] == at[other] || gain[0] < 1e-14, "index of box gain " #SUFFIX, n, \
                       at[0], at[other]);                                               \
            }                                                                           \
        }                                                                               \
    }

DEFINE_CHECK_BOX_GAINS(f32, float)
DEFINE_CHECK_BOX_GAINS(f64, double)

#define DEFINE_CHECK_ACCUMULATE(SUFFIX, T)                                              \
    static void check_accumulate_##SUFFIX(long n)                                       \
    {                                                                                   \
        static T rows[9 * MOST];                                                        \
        static double out[MOST + 1], wanted[MOST];                                      \
        int64_t slot[9];                                                                \
        double delta[9];                                                                \
        for (long k = 0; k < 9 * n; k++)                                                \
            rows[k] = (T)uniform(-1, 1);                                                \
        for (long count = 0; count <= 9; count++) {                                     \
            for (long k = 0; k < n; k++)                                                \
                out[k] = wanted[k] = uniform(-1, 1);                                    \
            out[n] = 42;                                                                \
            for (long r = 0; r < count; r++) {                                          \
                slot[r] = (5 * r + 2) % 9;                                              \
                delta[r] = uniform(-1, 1);                                              \
                for (long k = 0; k < n; k++)                                            \
                    wanted[k] += delta[r] * (double)rows[slot[r] * n + k];              \
            }                                                                           \
            accumulate_##SUFFIX(rows, n, slot, delta, count, n, out);                   \
            for (long k = 0; k < n; k++)                                                \
                expect(close_to(out[k], wanted[k], 0, 1e-14), "accumulate " #SUFFIX, n, out[k], \
                       wanted[k]);                                                      \
            expect(out[n] == 42, "end of sum " #SUFFIX, n, out[n], 42);                 \
        }                                                                               \
    }

DEFINE_CHECK_ACCUMULATE(f32, float)
DEFINE_CHECK_ACCUMULATE(f64, double)

int main(void)
{
    if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma"))
        return 77;
    srand(1);
    check_exp();
    for (long n = 1; n <= MOST; n++) {
        check_rows_f32(n);
        check_rows_f64(n);
        check_searches_f32(n);
        check_searches_f64(n);
        check_gains_f32(n);
        check_gains_f64(n);
        check_box_gains_f32(n);
        check_box_gains_f64(n);
        check_accumulate_f32(n);
        check_accumulate_f64(n);
    }
    if (failures)
        printf("%d differences\n", failures);
    return failures > 0;
}

#else
int main(void) { return 77; }
#endif
