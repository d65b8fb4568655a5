/* The innermost loops of the cores, written so that gcc turns them into vector
 * code. Sums and maxima are kept in fixed lanes, never reassociated by the
 * compiler, so one machine gives the same bits on every run. */
#ifndef TAUSVM_LOOPS_H
#define TAUSVM_LOOPS_H

#include <math.h>
#include <stdint.h>
#include <string.h>

#include "clones.h"

/* a loop in the precision of the rows that it is given */
#define BY_TYPE(P, NAME) _Generic((P), \
    float *: NAME##_f32, const float *: NAME##_f32, double *: NAME##_f64, const double *: NAME##_f64)

#define CHUNK 64   /* columns per step of a search: one horizontal maximum each */
#define STRIP 256  /* columns per step of a fill: their distances stay in L1 */
#define TILE 4     /* rows per step of a fill: their sums stay in registers */
#define LANES 8

/* ---- exp of x <= 0: range reduction x = k ln 2 + r, polynomial in r, scaling by 2^k; NaN stays
 * NaN ---- */

static inline float exp_f32(float x)
{
    /* |error| < 2 ulp on [-87, 0]; below, the true value is a denormal and 0 will do */
    float clipped = x < -87.0f ? -87.0f : x;
    float shifted = clipped * 1.44269504f + 12582912.0f; /* rounds to an integer */
    uint32_t bits;
    memcpy(&bits, &shifted, 4);
    float k = shifted - 12582912.0f;
    float r = clipped - k * 0.693359375f;
    r = r + k * 2.12194440e-4f;
    float p = 1.9875691500e-4f;
    p = p * r + 1.3981999507e-3f;
    p = p * r + 8.3334519073e-3f;
    p = p * r + 4.1665795894e-2f;
    p = p * r + 1.6666665459e-1f;
    p = p * r + 5.0000001201e-1f;
    p = p * r * r + r + 1.0f;
    uint32_t power = (bits + 127) << 23; /* the magic number's low bits hold k */
    float scale;
    memcpy(&scale, &power, 4);
    float value = p * scale;
    return x < -87.0f ? 0.0f : value;
}

static inline double exp_f64(double x)
{
    double clipped = x < -708.0 ? -708.0 : x;
    double shifted = clipped * 1.4426950408889634 + 6755399441055744.0;
    uint64_t bits;
    memcpy(&bits, &shifted, 8);
    double k = shifted - 6755399441055744.0;
    double r = clipped - k * 6.93147180369123816490e-01;
    r = r - k * 1.90821492927058770002e-10;
    /* Taylor to degree 12: the rest is below an ulp for |r| <= ln 2 / 2 */
    double p = 2.0876756987868099e-09;
    p = p * r + 2.5052108385441719e-08;
    p = p * r + 2.7557319223985891e-07;
    p = p * r + 2.7557319223985893e-06;
    p = p * r + 2.4801587301587302e-05;
    p = p * r + 1.9841269841269841e-04;
    p = p * r + 1.3888888888888889e-03;
    p = p * r + 8.3333333333333333e-03;
    p = p * r + 4.1666666666666664e-02;
    p = p * r + 1.6666666666666666e-01;
    p = p * r + 0.5;
    p = p * r + 1.0;
    p = p * r + 1.0;
    uint64_t power = (bits + 1023) << 52;
    double scale;
    memcpy(&scale, &power, 8);
    double value = p * scale;
    return x < -708.0 ? 0.0 : value;
}

/* ---- kernel rows from differences: no cancellation, columns in vector lanes ----
 * points are stored feature by feature: xt[k * stride + j] is feature k of column j. A few rows at a
 * time, so that a column is loaded once for all of them and their sums stay in registers. Every sum
 * goes through the features in order, whatever columns and rows it is computed with. */

#define DEFINE_VECTORS(BYTES, FLOATS, DOUBLES)                                         \
    typedef float FLOATS __attribute__((vector_size(BYTES), aligned(4), may_alias));   \
    typedef double DOUBLES __attribute__((vector_size(BYTES), aligned(8), may_alias)); \
    typedef int32_t FLOATS##_bits __attribute__((vector_size(BYTES), aligned(4), may_alias)); \
    typedef int64_t DOUBLES##_bits __attribute__((vector_size(BYTES), aligned(8), may_alias))

#ifdef __x86_64__
DEFINE_VECTORS(32, floats_usual, doubles_usual);
#else
DEFINE_VECTORS(16, floats_usual, doubles_usual);
#endif

#define SQUARE(V, I, D) ((D) * (D))
/* without the sign's bit */
#define SIZE(V, I, D) ((V)((I)(D) & ~(((I){0} + 1) << (8 * (int)sizeof((D)[0]) - 1))))

/* the distances of the TILE points to 2 WIDTH columns, of which feature k begins at COLUMN */
#define TILE_DISTANCES(T, V, I, TERM, COLUMN, TO)                                      \
    do {                                                                               \
        V left[TILE] = {{0}}, right[TILE] = {{0}};                                     \
        for (int64_t k = 0; k < d; k++) {                                              \
            const T *column = COLUMN;                                                  \
            V a = *(const V *)column, b = *(const V *)(column + WIDTH);                \
            for (int r = 0; r < TILE; r++) {                                           \
                V below = a - point[r][k], above = b - point[r][k];                    \
                left[r] += TERM(V, I, below);                                          \
                right[r] += TERM(V, I, above);                                         \
            }                                                                          \
        }                                                                              \
        for (int r = 0; r < TILE; r++) {                                               \
            *(V *)(sum[r] + TO) = left[r];                                             \
            *(V *)(sum[r] + TO + WIDTH) = right[r];                                    \
        }                                                                              \
    } while (0)

/* sum[r][j] = the distance of point r to column j, for the TILE points and the m columns from xt on.
 * The last columns go through the same vectors, with zeros beside them: the same bits everywhere. */
#define DEFINE_DISTANCES(NAME, T, V, I, TERM)                                          \
    static inline __attribute__((always_inline)) void NAME(                            \
        const T *restrict xt, int64_t stride, const T *const *point, int64_t d, int64_t m, \
        T (*restrict sum)[STRIP])                                                      \
    {                                                                                  \
        enum { WIDTH = sizeof(V) / sizeof(T) };                                        \
        int64_t j = 0;                                                                 \
        for (; j + 2 * WIDTH <= m; j += 2 * WIDTH)                                     \
            TILE_DISTANCES(T, V, I, TERM, xt + k * stride + j, j);                     \
        if (j < m) {                                                                   \
            T edge[2 * WIDTH] = {0};                                                   \
            TILE_DISTANCES(T, V, I, TERM,                                              \
                           memcpy(edge, xt + k * stride + j, (m - j) * sizeof(T)), j); \
        }                                                                              \
    }

/* the points of a tile; past the last one it again */
#define TILE_POINTS(T)                                                                 \
    const T *point[TILE];                                                              \
    int64_t rows = count - i < TILE ? count - i : TILE;                                \
    for (int r = 0; r < TILE; r++)                                                     \
        point[r] = points + (i + (r < rows ? r : rows - 1)) * d

/* out[places[i]][j] = exp(-gamma * distance of points[i] to column j) */
#define DEFINE_DISTANCE_ROWS(NAME, T, EXP, DISTANCES, COPIES)                          \
    static COPIES void NAME(                                                    \
        const T *restrict xt, int64_t stride, const T *restrict points, int64_t count, \
        int64_t d, int64_t n, T gamma, T *restrict out, int64_t out_stride,            \
        const int64_t *restrict places)                                                \
    {                                                                                  \
        T sum[TILE][STRIP];                                                            \
        for (int64_t start = 0; start < n; start += STRIP) {                           \
            int64_t m = n - start < STRIP ? n - start : STRIP;                         \
            for (int64_t i = 0; i < count; i += TILE) {                                \
                TILE_POINTS(T);                                                        \
                DISTANCES(xt + start, stride, point, d, m, sum);                       \
                for (int64_t r = 0; r < rows; r++) {                                   \
                    T *restrict to = out + places[i + r] * out_stride + start;         \
                    for (int64_t j = 0; j < m; j++)                                    \
                        to[j] = EXP(-gamma * sum[r][j]);                               \
                }                                                                      \
            }                                                                          \
        }                                                                              \
    }

/* out[j] += sum over i of beta[i] k(points[i], column j), k = exp(-gamma * distance); and, where
 * ``back`` is not NULL, back[i] += sum over j of at[j] k(points[i], column j) */
#define DEFINE_DISTANCE_SUMS(NAME, T, EXP, DISTANCES, COPIES)                          \
    static COPIES void NAME(                                                    \
        const T *restrict xt, int64_t stride, const T *restrict points, int64_t count, \
        int64_t d, int64_t n, T gamma, const double *restrict beta, double *restrict out, \
        const double *restrict at, double *restrict back)                              \
    {                                                                                  \
        T sum[TILE][STRIP];                                                            \
        for (int64_t start = 0; start < n; start += STRIP) {                           \
            int64_t m = n - start < STRIP ? n - start : STRIP;                         \
            for (int64_t i = 0; i < count; i += TILE) {                                \
                TILE_POINTS(T);                                                        \
                DISTANCES(xt + start, stride, point, d, m, sum);                       \
                double weight[TILE] = {0};                                             \
                for (int64_t r = 0; r < rows; r++)                                     \
                    weight[r] = beta[i + r];                                           \
                for (int r = 0; r < TILE; r++)                                         \
                    for (int64_t j = 0; j < m; j++)                                    \
                        sum[r][j] = EXP(-gamma * sum[r][j]);                           \
                for (int64_t j = 0; j < m; j++) {                                      \
                    double total = out[start + j];                                     \
                    for (int r = 0; r < TILE; r++)                                     \
                        total += weight[r] * (double)sum[r][j];                        \
                    out[start + j] = total;                                            \
                }                                                                      \
                for (int64_t r = 0; back && r < rows; r++) {                           \
                    double lane[LANES] = {0};                                          \
                    int64_t j = 0;                                                     \
                    for (; j + LANES <= m; j += LANES)                                 \
                        for (int l = 0; l < LANES; l++)                                \
                            lane[l] += at[start + j + l] * (double)sum[r][j + l];      \
                    for (; j < m; j++)                                                 \
                        lane[0] += at[start + j] * (double)sum[r][j];                  \
                    for (int l = 0; l < LANES; l++)                                    \
                        back[i + r] += lane[l];                                        \
                }                                                                      \
            }                                                                          \
        }                                                                              \
    }

#define DEFINE_DISTANCE(SHAPE, T, EXP, V, TERM, COPIES)                                \
    DEFINE_DISTANCES(SHAPE##_distances, T, V, V##_bits, TERM)                          \
    DEFINE_DISTANCE_ROWS(SHAPE##_rows, T, EXP, SHAPE##_distances, COPIES)              \
    DEFINE_DISTANCE_SUMS(SHAPE##_sums, T, EXP, SHAPE##_distances, COPIES)

DEFINE_DISTANCE(rbf_f32, float, exp_f32, floats_usual, SQUARE, TAUSVM_CLONES)
DEFINE_DISTANCE(rbf_f64, double, exp_f64, doubles_usual, SQUARE, TAUSVM_CLONES)
DEFINE_DISTANCE(laplacian_f32, float, exp_f32, floats_usual, SIZE, TAUSVM_CLONES)
DEFINE_DISTANCE(laplacian_f64, double, exp_f64, doubles_usual, SIZE, TAUSVM_CLONES)

#ifdef TAUSVM_WIDE
DEFINE_VECTORS(64, floats_wide, doubles_wide);
DEFINE_DISTANCE(wide_rbf_f32, float, exp_f32, floats_wide, SQUARE, TAUSVM_WIDE)
DEFINE_DISTANCE(wide_rbf_f64, double, exp_f64, doubles_wide, SQUARE, TAUSVM_WIDE)
DEFINE_DISTANCE(wide_laplacian_f32, float, exp_f32, floats_wide, SIZE, TAUSVM_WIDE)
DEFINE_DISTANCE(wide_laplacian_f64, double, exp_f64, doubles_wide, SIZE, TAUSVM_WIDE)
#define BY_WIDTH(NAME) (TAUSVM_HAS_WIDE ? wide_##NAME : NAME)
#else
#define BY_WIDTH(NAME) NAME
#endif

#define distance_rows(SQUARED, XT, ...) _Generic((XT),                                 \
    const float *: (SQUARED) ? BY_WIDTH(rbf_f32_rows) : BY_WIDTH(laplacian_f32_rows),  \
    const double *: (SQUARED) ? BY_WIDTH(rbf_f64_rows) : BY_WIDTH(laplacian_f64_rows)) \
    (XT, __VA_ARGS__)
#define distance_sums(SQUARED, XT, ...) _Generic((XT),                                 \
    const float *: (SQUARED) ? BY_WIDTH(rbf_f32_sums) : BY_WIDTH(laplacian_f32_sums),  \
    const double *: (SQUARED) ? BY_WIDTH(rbf_f64_sums) : BY_WIDTH(laplacian_f64_sums)) \
    (XT, __VA_ARGS__)

/* ---- RBF from inner products (many features): d^2 = |a|^2 + |b|^2 - 2 a.b ---- */

#define DEFINE_RBF_FROM_PRODUCTS(NAME, T, EXP)                                         \
    static TAUSVM_CLONES void NAME(const double *restrict products,                    \
                                   const double *restrict norms, double norm, int64_t n, \
                                   double gamma, T *restrict out)                      \
    {                                                                                  \
        for (int64_t j = 0; j < n; j++) {                                              \
            double distance = norm + norms[j] - 2.0 * products[j];                     \
            out[j] = EXP((T)(-gamma * (distance > 0 ? distance : 0)));                 \
        }                                                                              \
    }

DEFINE_RBF_FROM_PRODUCTS(rbf_from_products_f32, float, exp_f32)
DEFINE_RBF_FROM_PRODUCTS(rbf_from_products_f64, double, exp_f64)
#define rbf_of_products(PRODUCTS, NORMS, NORM, N, GAMMA, OUT) \
    BY_TYPE(OUT, rbf_from_products)(PRODUCTS, NORMS, NORM, N, GAMMA, OUT)

/* ---- searches over an interval of the working variables ---- */

static inline double chunk_max(const double *v)
{
    double best[LANES];
    for (int l = 0; l < LANES; l++)
        best[l] = v[l];
    for (int k = LANES; k < CHUNK; k += LANES)
        for (int l = 0; l < LANES; l++)
            best[l] = v[k + l] > best[l] ? v[k + l] : best[l];
    double top = best[0];
    for (int l = 1; l < LANES; l++)
        top = best[l] > top ? best[l] : top;
    return top;
}

/* the values of a chunk that starts at `start` are v[:m]: whether their largest is beyond *best,
 * which it becomes, its place in *place */
static inline void better_in_chunk(double *v, int64_t m, int64_t start, double *best,
                                   int64_t *place)
{
    for (int64_t k = m; k < CHUNK; k++)
        v[k] = -INFINITY;
    double here = chunk_max(v);
    if (!(here > *best))
        return;
    *best = here;
    for (int64_t k = m - 1; k >= 0; k--)
        *place = v[k] == here ? start + k : *place;
}

/* The two searches for a pair keep an index beside a maximum, which compilers do not put into
 * vectors by themselves: these are written with the vectors of gcc and clang, two of 32 bytes at a
 * time, which hides the latency of the comparison. G is the type of the numbers, V a vector of
 * them, T the type of the rows, and an I holds the first index of the vectors where the best was
 * met. Plain loops over lanes take 1.4 to 2.5 times as long on 300 to 1,000 columns. */
typedef double doubles __attribute__((vector_size(32), aligned(8), may_alias));
typedef int64_t doubles_at __attribute__((vector_size(32), aligned(8), may_alias));

#define LOAD_f64(P) (*(const doubles *)(P))
#define LOAD_f32(P) ((doubles){(P)[0], (P)[1], (P)[2], (P)[3]})
#define CHOOSE(V, I, MASK, A, B) ((V)(((I)(MASK) & (I)(A)) | (~(I)(MASK) & (I)(B))))

/* gradient += step * (row_i - row_j), and the index of the largest
 * up[k] = -gradient[k] - slope_up[k], the steepest way to raise a variable; -1 where all are
 * -inf. The first of equal ones. */
#define DEFINE_UPDATE_PAIR(NAME, G, V, I, T, LOAD)                                     \
    static TAUSVM_CLONES int64_t NAME(                                                 \
        G *restrict gradient, const G *restrict slope_up, const T *restrict row_i,     \
        const T *restrict row_j, G step, int64_t n, G *restrict top)                   \
    {                                                                                  \
        enum { WIDTH = sizeof(V) / sizeof(G), BOTH = 2 * WIDTH };                      \
        const V nothing = (V){0} - INFINITY;                                           \
        V best[2] = {nothing, nothing};                                                \
        I at[2] = {{0}, {0}};                                                          \
        int64_t k = 0, place = -1;                                                     \
        for (; k + BOTH <= n; k += BOTH)                                               \
            for (int half = 0; half < 2; half++) {                                     \
                int64_t p = k + half * WIDTH;                                          \
                V g = *(V *)(gradient + p) + step * (LOAD(row_i + p) - LOAD(row_j + p)); \
                *(V *)(gradient + p) = g;                                              \
                V up = -(g + *(const V *)(slope_up + p));                              \
                I more = up > best[half];                                              \
                at[half] = CHOOSE(I, I, more, (I){0} + (__typeof__(at[0][0]))k, at[half]); \
                best[half] = CHOOSE(V, I, more, up, best[half]);                       \
            }                                                                          \
        *top = -INFINITY;                                                              \
        for (int l = 0; l < BOTH; l++) {                                               \
            G value = best[l / WIDTH][l % WIDTH];                                      \
            int64_t here = at[l / WIDTH][l % WIDTH] + l;                               \
            if (value > *top || (value == *top && here < place)) {                     \
                *top = value;                                                          \
                place = here;                                                          \
            }                                                                          \
        }                                                                              \
        for (; k < n; k++) {                                                           \
            gradient[k] += step * ((G)row_i[k] - (G)row_j[k]);                         \
            G up = -(gradient[k] + slope_up[k]);                                       \
            if (up > *top) {                                                           \
                *top = up;                                                             \
                place = k;                                                             \
            }                                                                          \
        }                                                                              \
        return place;                                                                  \
    }

DEFINE_UPDATE_PAIR(update_pair_f32, double, doubles, doubles_at, float, LOAD_f32)
DEFINE_UPDATE_PAIR(update_pair_f64, double, doubles, doubles_at, double, LOAD_f64)
#define update_pair(G, S, ROW, ...) BY_TYPE(ROW, update_pair)(G, S, ROW, __VA_ARGS__)

/* The index of the second variable of a pair: the largest gain
 * (up_i - down_j)^2 / curvature with down_j = -gradient_j - slope_down_j < up_i, -1 where none
 * is positive. bottom receives the smallest down_j. Gains are compared by cross-multiplication,
 * without division. */
#define DEFINE_SECOND_INDEX(NAME, G, V, I, T, LOAD)                                    \
    static TAUSVM_CLONES int64_t NAME(                                                 \
        const G *restrict gradient, const G *restrict slope_down,                      \
        const G *restrict curvature_down, const T *restrict row_i, G up_i,             \
        G curvature_i, G least, int64_t n, G *restrict bottom)                         \
    {                                                                                  \
        enum { WIDTH = sizeof(V) / sizeof(G), BOTH = 2 * WIDTH };                      \
        const V zero = {0}, nothing = zero - INFINITY, q_min = zero + least;           \
        V best[2] = {zero, zero}, best_q[2] = {zero + 1, zero + 1};                    \
        V widest[2] = {nothing, nothing};                                              \
        I at[2] = {{0}, {0}};                                                          \
        int64_t k = 0, place = -1;                                                     \
        for (; k + BOTH <= n; k += BOTH)                                               \
            for (int half = 0; half < 2; half++) {                                     \
                int64_t p = k + half * WIDTH;                                          \
                V r = up_i + *(const V *)(gradient + p) + *(const V *)(slope_down + p); \
                V q = curvature_i + *(const V *)(curvature_down + p) - 2 * LOAD(row_i + p); \
                q = CHOOSE(V, I, q > q_min, q, q_min);                                 \
                widest[half] = CHOOSE(V, I, r > widest[half], r, widest[half]);        \
                V v = CHOOSE(V, I, r > zero, r, zero);                                 \
                v *= v;                                                                \
                I more = v * best_q[half] > best[half] * q;                            \
                at[half] = CHOOSE(I, I, more, (I){0} + (__typeof__(at[0][0]))k, at[half]); \
                best_q[half] = CHOOSE(V, I, more, q, best_q[half]);                    \
                best[half] = CHOOSE(V, I, more, v, best[half]);                        \
            }                                                                          \
        G gain = 0, wide = -INFINITY;                                                  \
        for (int l = 0; l < BOTH; l++) {                                               \
            G value = best[l / WIDTH][l % WIDTH] / best_q[l / WIDTH][l % WIDTH];       \
            G r = widest[l / WIDTH][l % WIDTH];                                        \
            int64_t here = at[l / WIDTH][l % WIDTH] + l;                               \
            wide = r > wide ? r : wide;                                                \
            if (value > gain || (value == gain && here < place)) {                     \
                gain = value;                                                          \
                place = here;                                                          \
            }                                                                          \
        }                                                                              \
        for (; k < n; k++) {                                                           \
            G r = up_i + gradient[k] + slope_down[k];                                  \
            G q = curvature_i + curvature_down[k] - 2 * (G)row_i[k];                   \
            q = q > least ? q : least;                                                 \
            wide = r > wide ? r : wide;                                                \
            if (r > 0 && r * r / q > gain) {                                           \
                gain = r * r / q;                                                      \
                place = k;                                                             \
            }                                                                          \
        }                                                                              \
        *bottom = up_i - wide;                                                         \
        return place;                                                                  \
    }

DEFINE_SECOND_INDEX(second_index_f32, double, doubles, doubles_at, float, LOAD_f32)
DEFINE_SECOND_INDEX(second_index_f64, double, doubles, doubles_at, double, LOAD_f64)
#define second_index(G, S, C, ROW, ...) BY_TYPE(ROW, second_index)(G, S, C, ROW, __VA_ARGS__)

/* out += sum of delta[r] * rows[slot[r]], strip by strip so that out stays in L1 */
#define DEFINE_ACCUMULATE(NAME, T)                                                     \
    static TAUSVM_CLONES void NAME(const T *restrict rows, int64_t stride,             \
                                   const int64_t *restrict slot,                       \
                                   const double *restrict delta, int64_t count, int64_t n, \
                                   double *restrict out)                               \
    {                                                                                  \
        for (int64_t start = 0; start < n; start += 2048) {                            \
            int64_t m = n - start < 2048 ? n - start : 2048;                           \
            double *restrict o = out + start;                                          \
            int64_t r = 0;                                                             \
            for (; r + 4 <= count; r += 4) {                                           \
                const T *restrict a = rows + slot[r] * stride + start;                 \
                const T *restrict b = rows + slot[r + 1] * stride + start;             \
                const T *restrict c = rows + slot[r + 2] * stride + start;             \
                const T *restrict e = rows + slot[r + 3] * stride + start;             \
                double da = delta[r], db = delta[r + 1], dc = delta[r + 2],            \
                       de = delta[r + 3];                                              \
                for (int64_t k = 0; k < m; k++)                                        \
                    o[k] += da * (double)a[k] + db * (double)b[k] +                    \
                            dc * (double)c[k] + de * (double)e[k];                     \
            }                                                                          \
            for (; r < count; r++) {                                                   \
                const T *restrict a = rows + slot[r] * stride + start;                 \
                double da = delta[r];                                                  \
                for (int64_t k = 0; k < m; k++)                                        \
                    o[k] += da * (double)a[k];                                         \
            }                                                                          \
        }                                                                              \
    }

DEFINE_ACCUMULATE(accumulate_f32, float)
DEFINE_ACCUMULATE(accumulate_f64, double)
#define accumulate(ROWS, ...) BY_TYPE(ROWS, accumulate)(ROWS, __VA_ARGS__)

/* One variable alone: the minimiser of ½ q β² − c β + kink|β| + ½ ridge β² on
 * [lower, upper], with the reciprocals of q + ridge on both sides. A flat direction has a
 * huge reciprocal and so goes to its bound. */
static inline double one_variable(double c, double lower, double upper, double kink,
                                  double inverse_minus, double inverse_plus)
{
    double above = c - kink, below = c + kink;
    double plus = above * inverse_plus, minus = below * inverse_minus;
    double value = below < 0 ? minus : 0.0;
    value = above > 0 ? plus : value;
    value = value > upper ? upper : value;
    return value < lower ? lower : value;
}

/* What the step from beta to next lowers the dual by, all else fixed. */
static inline double one_variable_gain(double c, double q, double beta, double next,
                                       double kink, double ridge_minus, double ridge_plus)
{
    double rise = fabs(next) - fabs(beta);
    double after = (next > 0 ? ridge_plus : ridge_minus) * next * next;
    double before = (beta > 0 ? ridge_plus : ridge_minus) * beta * beta;
    return (c - 0.5 * q * (next + beta)) * (next - beta) - kink * rise - 0.5 * (after - before);
}

/* gradient += step_i row_i + step_j row_j, then the best single variable of a range by
 * exact gain (the ER-SVM paper's Procedures 1 and 2 in one pass).
 * table holds seven rows of length tstride: lower, upper, kink, ridge-, ridge+ and the
 * reciprocals of diagonal + ridge on both sides. */
#define DEFINE_UPDATE_GAINS(NAME, T)                                                   \
    static TAUSVM_CLONES void NAME(                                                    \
        double *restrict gradient, const double *restrict beta,                        \
        const double *restrict table, int64_t tstride,                                 \
        const double *restrict diagonal, const T *restrict row_i,                      \
        const T *restrict row_j, double step_i, double step_j, int64_t begin,          \
        int64_t end, int64_t *restrict index, double *restrict gain)                   \
    {                                                                                  \
        const double *restrict lower = table;                                          \
        const double *restrict upper = table + tstride;                                \
        const double *restrict kink = table + 2 * tstride;                             \
        const double *restrict ridge_minus = table + 3 * tstride;                      \
        const double *restrict ridge_plus = table + 4 * tstride;                       \
        const double *restrict inverse_minus = table + 5 * tstride;                    \
        const double *restrict inverse_plus = table + 6 * tstride;                     \
        double g[CHUNK];                                                               \
        double best = -INFINITY;                                                       \
        int64_t best_k = begin;                                                        \
        for (int64_t start = begin; start < end; start += CHUNK) {                     \
            int64_t m = end - start < CHUNK ? end - start : CHUNK;                     \
            for (int64_t k = 0; k < m; k++) {                                          \
                int64_t t = start + k;                                                 \
                double grad = gradient[t] + step_i * (double)row_i[t] +                \
                              step_j * (double)row_j[t];                               \
                gradient[t] = grad;                                                    \
                double b = beta[t], q = diagonal[t];                                   \
                double c = q * b - grad;                                               \
                double next = one_variable(c, lower[t], upper[t], kink[t],             \
                                           inverse_minus[t], inverse_plus[t]);         \
                g[k] = one_variable_gain(c, q, b, next, kink[t], ridge_minus[t],       \
                                         ridge_plus[t]);                               \
            }                                                                          \
            better_in_chunk(g, m, start, &best, &best_k);                              \
        }                                                                              \
        *index = best_k;                                                               \
        *gain = best;                                                                  \
    }

DEFINE_UPDATE_GAINS(update_gains_f32, float)
DEFINE_UPDATE_GAINS(update_gains_f64, double)
#define update_gains(G, BETA, TABLE, STRIDE, DIAGONAL, ROW, ...) \
    BY_TYPE(ROW, update_gains)(G, BETA, TABLE, STRIDE, DIAGONAL, ROW, __VA_ARGS__)

/* The same for a loss that is bounds alone (no kink, no ridge: pinball, hinge): a step is
 * -gradient / q cut to the room left, so that fewer numbers pass through the cache.
 * room holds two rows of length tstride: lower - beta and upper - beta. */
#define DEFINE_UPDATE_BOX_GAINS(NAME, T)                                               \
    static TAUSVM_CLONES void NAME(                                                    \
        double *restrict gradient, const double *restrict room, int64_t tstride,       \
        const double *restrict diagonal, const double *restrict inverse,               \
        const T *restrict row_i, const T *restrict row_j, double step_i, double step_j, \
        int64_t begin, int64_t end, int64_t *restrict index, double *restrict gain)    \
    {                                                                                  \
        double gains[CHUNK];                                                           \
        double best = -INFINITY;                                                       \
        int64_t best_k = begin;                                                        \
        for (int64_t start = begin; start < end; start += CHUNK) {                     \
            int64_t m = end - start < CHUNK ? end - start : CHUNK;                     \
            for (int64_t k = 0; k < m; k++) {                                          \
                int64_t t = start + k;                                                 \
                double g = gradient[t] + step_i * (double)row_i[t] +                   \
                           step_j * (double)row_j[t];                                  \
                gradient[t] = g;                                                       \
                double step = -g * inverse[t];                                         \
                step = step < room[tstride + t] ? step : room[tstride + t];            \
                step = step > room[t] ? step : room[t];                                \
                gains[k] = -step * (g + 0.5 * diagonal[t] * step);                     \
            }                                                                          \
            better_in_chunk(gains, m, start, &best, &best_k);                          \
        }                                                                              \
        *index = best_k;                                                               \
        *gain = best;                                                                  \
    }

DEFINE_UPDATE_BOX_GAINS(update_box_gains_f32, float)
DEFINE_UPDATE_BOX_GAINS(update_box_gains_f64, double)
#define update_box_gains(G, ROOM, STRIDE, DIAGONAL, INVERSE, ROW, ...) \
    BY_TYPE(ROW, update_box_gains)(G, ROOM, STRIDE, DIAGONAL, INVERSE, ROW, __VA_ARGS__)

#endif
