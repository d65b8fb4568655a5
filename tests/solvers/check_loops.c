/* The loops of the cores against plain ones that say what they compute: of every length up to 70
 * and around their strips, at aligned and unaligned starts, on random numbers, on numbers that tie,
 * on zeros, infinities and denormals. Prints what differs; exit code 1 if anything does. */
#include <stdio.h>
#include <stdlib.h>

#include "columns.h"
#include "loops.h"
#include "path_loops.h"
#include "pieces.h"
#include "rows.h"
#include "single.h"
#include "visits.h"

#define MOST 2080
#define SHIFTS 4 /* starts beyond an aligned address, in numbers */
#define ROOM (MOST + SHIFTS + 1)
#define FEATURES 7
#define GUARD 42

enum { PLAIN, TIES, DENORMAL, KINDS };

static int failures = 0;
static int kind;   /* of the numbers */
static int64_t n;  /* how many */
static int shift;  /* where they start */

static void expect(int holds, const char *what, double a, double b)
{
    if (!holds && failures++ < 20)
        printf("%s at n = %d, start %d, kind %d: %.17g and %.17g\n", what, (int)n, shift, kind, a, b);
}

static int close_to(double a, double b, double relative, double absolute)
{
    if (isnan(a) || isnan(b))
        return isnan(a) && isnan(b);
    if (isinf(a) || isinf(b))
        return a == b;
    return fabs(a - b) <= relative * fmax(fabs(a), fabs(b)) + absolute;
}

static double uniform(double low, double high)
{
    return low + (high - low) * (rand() / (double)RAND_MAX);
}

/* a number of this kind between low and high: quarters tie, and their sums and products are
 * exact */
static double number(double low, double high)
{
    if (kind == TIES)
        return floor(4 * uniform(low, high)) / 4;
    return kind == DENORMAL ? 1e-310 * uniform(low, high) : uniform(low, high);
}

static float single_number(double low, double high)
{
    return (float)(kind == DENORMAL ? 1e-40 * uniform(low, high) : number(low, high));
}

static void fill(double *v, double low, double high)
{
    for (int64_t k = 0; k < n; k++)
        v[k] = number(low, high);
    v[n] = GUARD;
}

static void fill_single(float *v, double low, double high)
{
    for (int64_t k = 0; k < n; k++)
        v[k] = single_number(low, high);
    v[n] = GUARD;
}

#define fill_f64 fill
#define fill_f32 fill_single
#define COPY(to, from) memcpy(to, from, (size_t)(n + 1) * sizeof *(to))

/* ---- exp and kernel rows ---- */

static void check_exp(void)
{
    for (int t = 0; t < 200000; t++) {
        double x = t % 2 ? uniform(-708, 0) : uniform(-3, 0);
        expect(close_to(exp_f64(x), exp(x), 5e-16, 0), "exp_f64", exp_f64(x), exp(x));
        float f = (float)(t % 2 ? uniform(-87, 0) : uniform(-3, 0));
        expect(close_to(exp_f32(f), exp((double)f), 2.4e-7, 0), "exp_f32", exp_f32(f), exp(f));
    }
    expect(exp_f64(0) == 1 && exp_f32(0) == 1, "exp at 0", exp_f64(0), exp_f32(0));
    expect(exp_f64(-4e-324) == 1 && exp_f32(-1e-45f) == 1, "exp of a denormal", exp_f64(-4e-324),
           exp_f32(-1e-45f));
    expect(exp_f64(-1e9) == 0 && exp_f32(-1e9f) == 0, "exp far out", exp_f64(-1e9), 0);
    expect(exp_f64(-INFINITY) == 0 && exp_f32(-INFINITY) == 0, "exp at -inf", exp_f64(-INFINITY),
           exp_f32(-INFINITY));
    expect(isnan(exp_f64(NAN)) && isnan(exp_f32(NAN)), "exp of NaN", exp_f64(NAN), exp_f32(NAN));
}

/* the exponent itself is rounded: its size times the unit of rounding */
#define DEFINE_CHECK_ROWS(SUFFIX, T, RELATIVE)                                          \
    static void check_rows_##SUFFIX(void)                                               \
    {                                                                                   \
        static T xt_[FEATURES * ROOM], point[FEATURES], points[5 * FEATURES];           \
        static T out_[2][ROOM], rows[5 * ROOM];                                         \
        static double sums[ROOM], at[ROOM];                                             \
        const int64_t first = 0, places[5] = {3, 0, 4, 1, 2};                           \
        const double beta[5] = {1.0, -2.0, 0.5, 3.0, -1.0};                             \
        T *xt = xt_ + shift, *rbf = out_[0] + shift, *laplacian = out_[1] + shift;      \
        for (int64_t d = 0; d <= FEATURES; d += d ? 3 : 1) {                            \
            for (int64_t k = 0; k < d; k++)                                             \
                fill_##SUFFIX(xt + k * MOST, -2, 2);                                    \
            for (int64_t k = 0; k < d; k++)                                             \
                point[k] = k % 2 && n ? xt[k * MOST] : (T)uniform(-2, 2);               \
            if (n > 1 && d)                                                             \
                xt[n / 2] = INFINITY;                                                   \
            T gamma = (T)uniform(0.01, 5);                                              \
            rbf[n] = laplacian[n] = GUARD;                                              \
            rbf_##SUFFIX##_rows(xt, MOST, point, 1, d, n, gamma, rbf, ROOM, &first);    \
            laplacian_##SUFFIX##_rows(xt, MOST, point, 1, d, n, gamma, laplacian, ROOM, \
                                      &first);                                          \
            for (int64_t j = 0; j < n; j++) {                                           \
                double square = 0, size = 0;                                            \
                for (int64_t k = 0; k < d; k++) {                                       \
                    double diff = (double)xt[k * MOST + j] - (double)point[k];          \
                    square += diff * diff;                                              \
                    size += fabs(diff);                                                 \
                }                                                                       \
                square = exp(-(double)gamma * square);                                  \
                size = exp(-(double)gamma * size);                                      \
                expect(close_to(rbf[j], square, RELATIVE, 1e-36), "rbf_rows_" #SUFFIX, rbf[j], \
                       square);                                                         \
                expect(close_to(laplacian[j], size, RELATIVE, 1e-36),                   \
                       "laplacian_rows_" #SUFFIX, laplacian[j], size);                   \
            }                                                                           \
            expect(rbf[n] == GUARD && laplacian[n] == GUARD, "end of row " #SUFFIX, rbf[n], \
                   laplacian[n]);                                                       \
            /* several points at a time: the same bits, and their sum */                \
            for (int64_t k = 0; k < 5 * d; k++)                                         \
                points[k] = k < d ? point[k] : (T)uniform(-2, 2);                       \
            for (int64_t j = 0; j <= n; j++)                                            \
                sums[j] = GUARD;                                                        \
            rbf_##SUFFIX##_rows(xt, MOST, points, 5, d, n, gamma, rows, ROOM, places);  \
            double back[6] = {1, 1, 1, 1, 1, GUARD};                                    \
            for (int64_t j = 0; j < n; j++)                                             \
                at[j] = uniform(-1, 1);                                                 \
            rbf_##SUFFIX##_sums(xt, MOST, points, 5, d, n, gamma, beta, sums, at, back); \
            for (int i = 0; i < 5; i++) {                                               \
                double sum = 1;                                                         \
                for (int64_t j = 0; j < n; j++)                                         \
                    sum += at[j] * (double)rows[places[i] * ROOM + j];                  \
                expect(close_to(back[i], sum, 1e-13, 1e-13), "sums back " #SUFFIX, back[i], sum); \
            }                                                                           \
            expect(back[5] == GUARD, "end of sums back " #SUFFIX, back[5], GUARD);      \
            for (int64_t j = 0; j < n; j++) {                                           \
                double sum = GUARD;                                                     \
                for (int i = 0; i < 5; i++)                                             \
                    sum += beta[i] * (double)rows[places[i] * ROOM + j];                \
                expect(rows[places[0] * ROOM + j] == rbf[j], "rows " #SUFFIX,           \
                       rows[places[0] * ROOM + j], rbf[j]);                             \
                expect(close_to(sums[j], sum, 1e-14, 1e-14), "sums " #SUFFIX, sums[j], sum); \
            }                                                                           \
            expect(sums[n] == GUARD, "end of sums " #SUFFIX, sums[n], GUARD);           \
        }                                                                               \
        static double products_[ROOM], norms_[ROOM];                                    \
        double *products = products_ + shift, *norms = norms_ + shift, norm = number(0, 4); \
        fill(products, -2, 2);                                                          \
        fill(norms, 0, 4);                                                              \
        for (int64_t k = 0; k < n; k += 5) /* rounding has made a distance negative */  \
            products[k] = 0.5 * (norm + norms[k]) + 1e-12;                              \
        rbf_from_products_##SUFFIX(products, norms, norm, n, 0.7, rbf);                 \
        for (int64_t j = 0; j < n; j++) {                                               \
            double value = exp(-0.7 * fmax(norm + norms[j] - 2 * products[j], 0));      \
            expect(close_to(rbf[j], value, RELATIVE, 0) && rbf[j] <= 1,                 \
                   "rbf_from_products_" #SUFFIX, rbf[j], value);                        \
        }                                                                               \
        expect(rbf[n] == GUARD, "end of products " #SUFFIX, rbf[n], GUARD);             \
    }

DEFINE_CHECK_ROWS(f32, float, 3e-5)
DEFINE_CHECK_ROWS(f64, double, 1e-13)

#define DEFINE_CHECK_ACCUMULATE(SUFFIX, T)                                              \
    static void check_accumulate_##SUFFIX(void)                                         \
    {                                                                                   \
        static T rows[9 * ROOM];                                                        \
        static double out_[ROOM], wanted[ROOM];                                         \
        double *out = out_ + shift, delta[9];                                           \
        int64_t slot[9];                                                                \
        for (int64_t r = 0; r < 9; r++)                                                 \
            fill_##SUFFIX(rows + shift + r * MOST, -1, 1);                              \
        for (int64_t count = 0; count <= 9; count++) {                                  \
            fill(out, -1, 1);                                                           \
            COPY(wanted, out);                                                          \
            for (int64_t r = 0; r < count; r++) {                                       \
                slot[r] = (5 * r + 2) % 9;                                              \
                delta[r] = uniform(-1, 1);                                              \
                for (int64_t k = 0; k < n; k++)                                         \
                    wanted[k] += delta[r] * (double)rows[shift + slot[r] * MOST + k];   \
            }                                                                           \
            accumulate_##SUFFIX(rows + shift, MOST, slot, delta, count, n, out);        \
            for (int64_t k = 0; k < n; k++)                                             \
                expect(close_to(out[k], wanted[k], 0, 1e-14), "accumulate " #SUFFIX, out[k], \
                       wanted[k]);                                                      \
            expect(out[n] == GUARD, "end of sum " #SUFFIX, out[n], GUARD);              \
        }                                                                               \
    }

DEFINE_CHECK_ACCUMULATE(f32, float)
DEFINE_CHECK_ACCUMULATE(f64, double)

/* ---- searches of pairs: in double precision, and all in single precision ---- */

#define DEFINE_CHECK_PAIRS(NAME, RAISE, LOWER, G, T, FILL, FILL_ROW, LEAST, ROUNDING)   \
    static void check_pairs_##NAME(void)                                                \
    {                                                                                   \
        static G g_[2][ROOM], slopes_[2][ROOM], curvature_[ROOM];                       \
        static T rows_[2][ROOM];                                                        \
        G *g = g_[0] + shift, *before = g_[1] + shift, *curvature = curvature_ + shift; \
        G *slope_up = slopes_[0] + shift, *slope_down = slopes_[1] + shift;             \
        T *row_i = rows_[0] + shift, *row_j = rows_[1] + shift;                         \
        for (int trial = 0; trial < 4; trial++) {                                       \
            FILL(g, -1, 1);                                                             \
            FILL(slope_up, -1, 1);                                                      \
            FILL(slope_down, -1, 1);                                                    \
            FILL(curvature, 0, 2);                                                      \
            FILL_ROW(row_i, -1, 1);                                                     \
            FILL_ROW(row_j, -1, 1);                                                     \
            for (int64_t k = 0; k < n; k++)                                             \
                if (trial == 3 || uniform(0, 1) < 0.3 * trial) {                        \
                    slope_up[k] = INFINITY;                                             \
                    slope_down[k] = -INFINITY;                                          \
                }                                                                       \
            COPY(before, g);                                                            \
            G top, bottom, best = -INFINITY, widest = -INFINITY;                        \
            G step = trial == 1 ? 0 : (G)number(-1, 1);                                 \
            int64_t at, first = -1, second = -1;                                        \
            at = RAISE(g, slope_up, row_i, row_j, step, n, &top);                       \
            for (int64_t k = 0; k < n; k++) {                                           \
                G wanted = before[k] + step * ((G)row_i[k] - (G)row_j[k]);              \
                expect(close_to(g[k], wanted, ROUNDING, ROUNDING), "gradient " #NAME, g[k], \
                       wanted);                                                         \
                if (-(g[k] + slope_up[k]) > best) {                                     \
                    best = -(g[k] + slope_up[k]);                                       \
                    first = k;                                                          \
                }                                                                       \
            }                                                                           \
            expect(g[n] == GUARD, "end of gradient " #NAME, g[n], GUARD);               \
            expect(top == best, "top " #NAME, top, best);                               \
            expect(at == first, "first index " #NAME, at, first);                       \
            G up = first < 0 ? 0 : top;                                                 \
            at = LOWER(g, slope_down, curvature, row_i, up, 1.5, LEAST, n, &bottom);    \
            best = 0;                                                                   \
            for (int64_t k = 0; k < n; k++) {                                           \
                G r = up + g[k] + slope_down[k];                                        \
                G q = (G)1.5 + curvature[k] - 2 * (G)row_i[k];                          \
                q = q > LEAST ? q : LEAST;                                              \
                widest = r > widest ? r : widest;                                       \
                if (r > 0 && r * r / q > best) {                                        \
                    best = r * r / q;                                                   \
                    second = k;                                                         \
                }                                                                       \
            }                                                                           \
            expect(bottom == up - widest, "bottom " #NAME, bottom, up - widest);        \
            expect(at == second, "second index " #NAME, at, second);                    \
        }                                                                               \
    }

DEFINE_CHECK_PAIRS(f32, update_pair_f32, second_index_f32, double, float, fill, fill_single, 1e-12, 1e-15)
DEFINE_CHECK_PAIRS(f64, update_pair_f64, second_index_f64, double, double, fill, fill, 1e-12, 1e-15)
DEFINE_CHECK_PAIRS(single, raise_index, lower_index, float, float, fill_single, fill_single, 1e-6f, 3e-7)

/* ---- the best single variable ---- */

/* by the definition, not by the formula of the loops */
static double gain_of(double c, double q, double from, double to, double kink, double ridge_minus,
                      double ridge_plus)
{
    double values[2], points[2] = {from, to};
    for (int p = 0; p < 2; p++) {
        double x = points[p], ridge = x > 0 ? ridge_plus : ridge_minus;
        values[p] = 0.5 * (q + ridge) * x * x - c * x + kink * fabs(x);
    }
    return values[0] - values[1];
}

#define DEFINE_CHECK_GAINS(SUFFIX, T)                                                   \
    static void check_gains_##SUFFIX(void)                                              \
    {                                                                                   \
        static double g_[2][ROOM], beta_[ROOM], diagonal_[ROOM], table_[7 * ROOM], room_[2 * ROOM]; \
        static T rows_[2][ROOM];                                                        \
        double *g[2], *beta = beta_ + shift, *diagonal = diagonal_ + shift;             \
        double *table = table_ + shift, *room = room_ + shift;                          \
        T *row_i = rows_[0] + shift, *row_j = rows_[1] + shift;                         \
        for (int c = 0; c < 2; c++)                                                     \
            g[c] = g_[c] + shift;                                                       \
        /* a tube; ridges without bounds; flat; bounds alone */                         \
        for (int trial = 0; trial < 4; trial++) {                                       \
            int box = trial == 3, ridges = trial == 1;                                  \
            FILL_ALL(SUFFIX);                                                           \
            for (int64_t k = 0; k < n; k++) {                                           \
                double *t = table + k;                                                  \
                diagonal[k] = trial == 2 ? 0.0 : number(0, 2);                          \
                t[0] = ridges ? -INFINITY : k % 4 ? -uniform(0, 1) : 0.0;               \
                t[MOST] = ridges ? INFINITY : uniform(0, 1);                            \
                t[2 * MOST] = k % 2 && !box ? number(0, 0.5) : 0.0;                     \
                t[3 * MOST] = ridges ? uniform(0.1, 1) : 0.0;                           \
                t[4 * MOST] = ridges ? uniform(0.1, 1) : 0.0;                           \
                t[5 * MOST] = 1 / fmax(diagonal[k] + t[3 * MOST], 1e-300);              \
                t[6 * MOST] = 1 / fmax(diagonal[k] + t[4 * MOST], 1e-300);              \
                beta[k] = k % 3 ? uniform(ridges ? -1 : t[0], ridges ? 1 : t[MOST])     \
                                : ridges ? 0.0 : t[k % 2 * MOST];                       \
                room[k] = t[0] - beta[k];                                               \
                room[MOST + k] = t[MOST] - beta[k];                                     \
            }                                                                           \
            int64_t begin = trial == 0 ? n / 3 : 0, at[2] = {0};                        \
            double gain[2] = {0}, si = number(-1, 1), sj = number(-1, 1);               \
            update_gains_##SUFFIX(g[0], beta, table, MOST, diagonal, row_i, row_j, si, sj, begin, \
                                  n, &at[0], &gain[0]);                                 \
            if (box)                                                                    \
                update_box_gains_##SUFFIX(g[1], room, MOST, diagonal, table + 6 * MOST, row_i, \
                                          row_j, si, sj, begin, n, &at[1], &gain[1]);   \
            double best = -INFINITY;                                                    \
            for (int64_t k = begin; k < n; k++) {                                       \
                double *t = table + k, q = diagonal[k], b = beta[k], c = q * b - g[0][k]; \
                double next = one_variable(c, t[0], t[MOST], t[2 * MOST], t[5 * MOST],  \
                                           t[6 * MOST]);                                \
                best = fmax(best, gain_of(c, q, b, next, t[2 * MOST], t[3 * MOST], t[4 * MOST])); \
            }                                                                           \
            for (int c = 0; c <= box; c++) {                                            \
                expect(close_to(gain[c], best, 1e-12, 1e-14), "gain " #SUFFIX, gain[c], best); \
                expect(at[c] == at[0] || kind != PLAIN, "index of gain " #SUFFIX, at[c], at[0]); \
                expect(at[c] >= begin && at[c] < n, "range " #SUFFIX, at[c], begin);    \
                for (int64_t k = 0; k <= n; k++)                                        \
                    expect(close_to(g[c][k], g[0][k], 0, 1e-15), "gains' gradient " #SUFFIX, \
                           g[c][k], g[0][k]);                                           \
            }                                                                           \
        }                                                                               \
    }
#define FILL_ALL(SUFFIX)                                                                \
    fill(g[0], -1, 1);                                                                  \
    COPY(g[1], g[0]);                                                                   \
    fill_##SUFFIX(row_i, -1, 1);                                                        \
    fill_##SUFFIX(row_j, -1, 1)

DEFINE_CHECK_GAINS(f32, float)
DEFINE_CHECK_GAINS(f64, double)

/* ---- sums over columns in single precision ---- */

static void check_columns(void)
{
    static float v_[6][ROOM], w_[ROOM];
    float *y = v_[0] + shift, *fitted = v_[1] + shift, *beta = v_[2] + shift, *w = w_ + shift;
    float *gradient = v_[3] + shift, *other = v_[4] + shift, *turned = v_[5] + shift;
    float rise = 0.3f, fall = 1.7f, b = single_number(-1, 1), t = single_number(-1, 1);
    double found[2], pull = 0, bend = 0, gap = 0, primal = 0, dot = 0, slope = 0, curve = 0;
    double size = kind == DENORMAL ? 1e-40 : 1, rounding = 2e-5 * n * size * size + 1e-45;
    fill_single(y, -1, 1);
    fill_single(fitted, -1, 1);
    fill_single(beta, -1, 1);
    for (int64_t k = 0; k < n; k++)
        w[k] = (float)uniform(0.5, 2);
    gradient[n] = GUARD;
    for (int64_t k = 0; k < n; k++) {
        double r = (double)y[k] - fitted[k] - b, here = w[k] / (r > 0 ? rise : fall);
        double ridge = (beta[k] > 0 ? rise : fall) / w[k];
        pull += here * r;
        bend += here;
        gap += 0.5 * here * r * r + (0.5 * ridge * beta[k] - r) * beta[k];
        primal += 0.5 * here * r * r + 0.5 * (double)beta[k] * fitted[k];
        dot += (double)y[k] * fitted[k];
        double moved = beta[k] + (double)t * y[k], along = (moved > 0 ? rise : fall) / w[k] * y[k];
        slope += along * moved;
        curve += along * y[k];
    }
    column_pull(y, fitted, w, b, rise, fall, n, &found[0], &found[1]);
    expect(close_to(found[0], pull, 0, 2e-5 * n * size + 1e-44), "column_pull", found[0], pull);
    expect(close_to(found[1], bend, 1e-5, 0), "column_pull's bend", found[1], bend);
    column_gap(y, fitted, w, beta, b, rise, fall, n, gradient, &found[0], &found[1]);
    expect(close_to(found[0], gap, 0, rounding), "column_gap", found[0], gap);
    expect(close_to(found[1], primal, 0, rounding), "column_gap's primal", found[1], primal);
    for (int64_t k = 0; k < n; k++) {
        double wanted = (beta[k] > 0 ? rise : fall) / w[k] * (double)beta[k] -
                        ((double)y[k] - fitted[k] - b);
        expect(close_to(gradient[k], wanted, 0, 1e-5 * size + 1e-44), "column_gap's gradient",
               gradient[k], wanted);
    }
    expect(gradient[n] == GUARD, "end of column_gap", gradient[n], GUARD);
    found[0] = column_dot(y, fitted, n);
    expect(close_to(found[0], dot, 0, rounding), "column_dot", found[0], dot);
    column_slope(beta, y, w, t, rise, fall, n, &found[0], &found[1]);
    /* at a kink of a moved variable rounding may choose the other side: its part is 0 there */
    expect(close_to(found[0], slope, 0, rounding), "column_slope", found[0], slope);
    expect(kind == TIES || close_to(found[1], curve, 0, rounding), "column_slope's bend", found[1],
           curve);
    double now = 0, before = 0;
    fill_single(other, -1, 1);
    for (int64_t k = 0; k < n; k++) {
        now += (double)beta[k] * y[k];
        before += (double)other[k] * y[k];
    }
    column_descent(y, beta, other, n, &found[0], &found[1]);
    expect(close_to(found[0], now, 0, rounding), "column_descent", found[0], now);
    expect(close_to(found[1], before, 0, rounding), "column_descent before", found[1], before);
    for (int64_t k = 0; k <= n; k++)
        expect(other[k] == beta[k], "column_descent's copy", other[k], beta[k]);
    COPY(turned, beta);
    column_turn(turned, y, t, n);
    column_add(other, y, t, n);
    for (int64_t k = 0; k < n; k++) {
        double wanted = (double)t * beta[k] - y[k];
        expect(close_to(turned[k], wanted, 0, 1e-6 * size + 1e-44), "column_turn", turned[k], wanted);
        wanted = beta[k] + (double)t * y[k];
        expect(close_to(other[k], wanted, 0, 1e-6 * size + 1e-44), "column_add", other[k], wanted);
    }
    expect(turned[n] == GUARD && other[n] == GUARD, "end of column", turned[n], other[n]);
    /* what residuals pull at an offset: quarters are exact, others do not lie at a kink */
    float *lower = gradient, *upper = other, *kink = turned;
    fill_single(lower, -1, 0);
    fill_single(upper, 0, 1);
    fill_single(kink, 0, 0.5);
    double total = 0;
    for (int64_t k = 0; k < n; k++) {
        float r = -y[k] - b;
        total += r > kink[k] ? upper[k] : r < -kink[k] ? lower[k] : 0.0f;
    }
    found[0] = offset_pull(y, lower, upper, kink, b, n);
    expect(close_to(found[0], total, 0, 1e-6 * n * size + 1e-45), "offset_pull", found[0], total);
}

/* ---- rows of linear machines, and the loops of paths ---- */

#define DEFINE_CHECK_DENSE(SUFFIX, T)                                                   \
    static void check_dense_##SUFFIX(void)                                              \
    {                                                                                   \
        static T x_[ROOM];                                                              \
        static double w_[ROOM], before[ROOM];                                           \
        T *x = x_ + shift;                                                              \
        double *w = w_ + shift, dot = 0, step = number(-1, 1);                          \
        fill_##SUFFIX(x, -1, 1);                                                        \
        fill(w, -1, 1);                                                                 \
        COPY(before, w);                                                                \
        for (int64_t k = 0; k < n; k++)                                                 \
            dot += (double)x[k] * w[k];                                                 \
        double found = dot_##SUFFIX(x, w, n);                                           \
        expect(close_to(found, dot, 0, 1e-15 * n), "dense_dot " #SUFFIX, found, dot);   \
        add_##SUFFIX(x, step, w, n);                                                    \
        for (int64_t k = 0; k < n; k++)                                                 \
            expect(close_to(w[k], before[k] + step * (double)x[k], 0, 1e-15),           \
                   "dense_add " #SUFFIX, w[k], before[k]);                              \
        expect(w[n] == GUARD, "end of dense_add " #SUFFIX, w[n], GUARD);                \
    }

DEFINE_CHECK_DENSE(f32, float)
DEFINE_CHECK_DENSE(f64, double)

static void check_random(void)
{
    uint64_t state = 88172645463325252u, again = state;
    for (int t = 0; t < 100000; t++) {
        int64_t bound = 1 + (int64_t)(next_random(&state) >> (33 + t % 30));
        again = state;
        int64_t got = random_below(&state, bound);
        int64_t wanted = got;
#ifdef __SIZEOF_INT128__
        wanted = (int64_t)((unsigned __int128)next_random(&again) * (uint64_t)bound >> 64);
#endif
        expect(got >= 0 && got < bound && got == wanted, "random_below", (double)got, (double)wanted);
    }
}

static void check_path(void)
{
    static double v_[7][ROOM], matrix[9 * ROOM];
    double *v[7], weight[9], found, wanted = 0;
    for (int c = 0; c < 7; c++)
        fill(v[c] = v_[c] + shift, -1, 1);
    for (int64_t r = 0; r < 9; r++)
        for (int64_t k = 0; k < n; k++)
            matrix[r * n + k] = number(-1, 1);
    for (int64_t k = 0; k < n; k++)
        wanted += v[0][k] * v[1][k];
    found = path_dot(v[0], v[1], n);
    expect(close_to(found, wanted, 0, 1e-15 * n), "path_dot", found, wanted);

    COPY(v[6], v[1]);
    add_multiple(0.75, v[0], v[6], n);
    for (int64_t k = 0; k < n; k++)
        expect(close_to(v[6][k], v[1][k] + 0.75 * v[0][k], 0, 1e-15), "add_multiple", v[6][k], v[1][k]);
    expect(v[6][n] == GUARD, "end of add_multiple", v[6][n], GUARD);

    for (int64_t count = 0; count <= 9; count++) {
        int64_t rows[9];
        for (int64_t r = 0; r < count; r++) {
            rows[r] = (5 * r + 2) % 9;
            weight[r] = number(-1, 1);
        }
        path_rates(matrix, n, rows, weight, count, v[0], 0.25, v[6]);
        for (int64_t k = 0; k < n; k++) {
            wanted = v[0][k] + 0.25;
            for (int64_t r = 0; r < count; r++)
                wanted += weight[r] * matrix[rows[r] * n + k];
            expect(close_to(v[6][k], -wanted, 0, 1e-14), "path_rates", v[6][k], -wanted);
        }
        expect(v[6][n] == GUARD, "end of path_rates", v[6][n], GUARD);
    }

    double step, nearest = INFINITY;
    int64_t first = -1;
    for (int64_t k = 0; k < n; k++) {
        v[0][k] = k % 5 ? (k % 2 ? 1 : -1) : 0;
        v[3][k] = 1;
        double speed = -v[0][k] * v[2][k], distance = v[0][k] * fabs(v[1][k]) * v[0][k];
        v[1][k] = v[0][k] * fabs(v[1][k]);
        if (speed > 0.1 && distance / speed < nearest) {
            nearest = distance / speed;
            first = k;
        }
    }
    int64_t at = path_first_to_enter(v[0], v[1], v[2], v[3], n, 0.1, &step);
    expect(close_to(step, nearest, 1e-15, 0) && (at == first || kind == TIES),
           "path_first_to_enter", step, nearest);
}

/* a point's parts of the gaps at n records, and of twice those between them */
static void check_pieces(void)
{
    static double v_[7][ROOM], scratch[4 * ROOM];
    double *v[7], *t, *part, *offset, *away, *bent, *ends, *middles, bounds[4];
    for (int c = 0; c < 7; c++)
        fill(v[c] = v_[c] + shift, -1, 1);
    t = v[0], part = v[1], offset = v[2], away = v[3], bent = v[4], ends = v[5], middles = v[6];
    double beta0 = number(-1, 1), beta1 = number(-1, 1), r0 = number(-1, 1), r1 = number(-1, 1);
    for (int c = 0; c < 4; c++)
        bounds[c] = number(-1, 1);
    for (int stays = 0; stays < 2; stays++) {
        for (int64_t k = 0; k < n; k++)
            ends[k] = middles[k] = 0.5;
        if (n > 0) /* there is one piece less than records */
            middles[n - 1] = GUARD;
        piece_sums_of_point(t, part, offset, n, beta0, beta1, stays ? NULL : away, r0, r1, bent,
                            bounds, scratch, ends, middles);
        double before[4] = {0};
        for (int64_t k = 0; k < n; k++) {
            double beta = beta0 + part[k] * (beta1 - beta0) + (stays ? 0 : away[k]);
            double r = r0 + part[k] * (r1 - r0) - bent[k] - offset[k];
            double now[4] = {fmax(bounds[2] + t[k] * bounds[3] - beta, 0),
                             fmax(beta - bounds[0] - t[k] * bounds[1], 0), fmax(r, 0), fmax(-r, 0)};
            double end = 0.5 + now[0] * now[2] + now[1] * now[3];
            double middle = 0.5 + before[0] * now[2] + now[0] * before[2] + before[1] * now[3] +
                            now[1] * before[3];
            expect(close_to(ends[k], end, 0, 1e-14), "piece_sums", ends[k], end);
            if (k > 0)
                expect(close_to(middles[k - 1], middle, 0, 1e-14), "piece_sums between",
                       middles[k - 1], middle);
            memcpy(before, now, sizeof now);
        }
        expect(n == 0 || middles[n - 1] == GUARD, "end of pieces", n ? middles[n - 1] : 0, GUARD);
        expect(ends[n] == GUARD, "end of piece_sums", ends[n], GUARD);
    }
}

/* L L' x is what x was before, for one and for two */
static void check_solves(void)
{
    static double L[70 * 72], one[71], x[71], z[71];
    if (n < 1 || n > 70)
        return;
    for (int64_t i = 0; i < n; i++) {
        for (int64_t j = 0; j < 72; j++)
            L[i * 72 + j] = j < i ? number(-1, 1) / (double)n : NAN; /* never read beyond */
        L[i * 72 + i] = uniform(1, 2);
        one[i] = x[i] = number(-1, 1);
        z[i] = number(-1, 1);
    }
    one[n] = x[n] = z[n] = GUARD;
    double given[2][70];
    memcpy(given[0], x, sizeof given[0]);
    memcpy(given[1], z, sizeof given[1]);
    path_solve(L, 72, n, one);
    path_solve_two(L, 72, n, x, z);
    for (int64_t i = 0; i < n; i++) {
        double back[2] = {0};
        for (int64_t j = 0; j < n; j++) {
            double entry = 0; /* of L L' */
            for (int64_t k = 0; k <= (i < j ? i : j); k++)
                entry += L[i * 72 + k] * L[j * 72 + k];
            back[0] += entry * x[j];
            back[1] += entry * z[j];
        }
        expect(close_to(one[i], x[i], 1e-12, 1e-300), "path_solve", one[i], x[i]);
        expect(close_to(back[0], given[0][i], 0, 1e-12), "path_solve_two", back[0], given[0][i]);
        expect(close_to(back[1], given[1][i], 0, 1e-12), "its second", back[1], given[1][i]);
    }
    expect(one[n] == GUARD && x[n] == GUARD && z[n] == GUARD, "end of solves", x[n], GUARD);
}

static void check_all(void)
{
    check_rows_f32();
    check_rows_f64();
    check_accumulate_f32();
    check_accumulate_f64();
    check_pairs_f32();
    check_pairs_f64();
    check_pairs_single();
    if (n > 0) {
        check_gains_f32();
        check_gains_f64();
    }
    check_columns();
    check_dense_f32();
    check_dense_f64();
    check_path();
    check_pieces();
    check_solves();
}

int main(void)
{
    static const int64_t strips[] = {127, 129, 511, 512, 513, 1023, 1025, 2047, 2049};
    srand(1);
    check_exp();
    check_random();
    for (kind = 0; kind < KINDS; kind++) {
        for (n = 0; n <= 70; n++)
            for (shift = 0; shift < SHIFTS; shift++)
                check_all();
        for (unsigned s = 0; s < sizeof strips / sizeof *strips; s++) {
            n = strips[s];
            shift = s % SHIFTS;
            check_all();
        }
    }
    if (failures)
        printf("%d differences\n", failures);
    return failures > 0;
}
