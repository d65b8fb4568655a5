/* The innermost loops of the cores, written so that gcc turns them into vector
 * code. Sums and maxima are kept in fixed lanes, never reassociated by the
 * compiler, so one machine gives the same bits on every run. */
#ifndef TAUSVM_LOOPS_H
#define TAUSVM_LOOPS_H

#include <math.h>
#include <stdint.h>
#include <string.h>

#include "clones.h"

/* The two searches for a pair have twins written by hand for AVX2, which are taken where the machine
 * has that: on 100 to 10,000 columns they are 1.4 to 2.2 times as fast as what the compiler makes
 * of the portable ones for the same machine. The portable one ends a row that is no multiple of
 * the vectors: it is inline, so that it becomes AVX2 code there too. */
#if defined(__GNUC__) && defined(__x86_64__) && defined(__linux__)
#define TAUSVM_AVX2
#include <immintrin.h>
#define AVX2 __attribute__((target("avx2,fma")))
#define BY_CPU(NAME, ...)                                                              \
    (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") ? NAME##_avx2(__VA_ARGS__) \
                                                                     : NAME##_any(__VA_ARGS__))
#else
#define BY_CPU(NAME, ...) NAME##_any(__VA_ARGS__)
#endif

#define CHUNK 64   /* columns per step of a search: one horizontal maximum each */
#define STRIP 512  /* columns per step of a fill: accumulators stay in L1 */
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
 * points are stored feature by feature: xt[k * n + j] is feature k of point j. */

#define DEFINE_DISTANCE_ROW(NAME, T, EXP, TERM)                                        \
    static TAUSVM_CLONES void NAME(const T *restrict xt, int64_t stride,               \
                                   const T *restrict point, int64_t d, int64_t n, T gamma, \
                                   T *restrict out)                                    \
    {                                                                                  \
        T sum[STRIP];                                                                  \
        for (int64_t start = 0; start < n; start += STRIP) {                           \
            int64_t m = n - start < STRIP ? n - start : STRIP;                         \
            for (int64_t j = 0; j < m; j++)                                            \
                sum[j] = 0;                                                            \
            for (int64_t k = 0; k < d; k++) {                                          \
                const T *restrict column = xt + k * stride + start;                    \
                T value = point[k];                                                    \
                for (int64_t j = 0; j < m; j++) {                                      \
                    T diff = column[j] - value;                                        \
                    sum[j] += TERM;                                                    \
                }                                                                      \
            }                                                                          \
            for (int64_t j = 0; j < m; j++)                                            \
                out[start + j] = EXP(-gamma * sum[j]);                                 \
        }                                                                              \
    }

DEFINE_DISTANCE_ROW(rbf_row_f32, float, exp_f32, diff * diff)
DEFINE_DISTANCE_ROW(rbf_row_f64, double, exp_f64, diff * diff)
DEFINE_DISTANCE_ROW(laplacian_row_f32, float, exp_f32, (diff < 0 ? -diff : diff))
DEFINE_DISTANCE_ROW(laplacian_row_f64, double, exp_f64, (diff < 0 ? -diff : diff))

/* ---- RBF from inner products (many features): d^2 = |a|^2 + |b|^2 - 2 a.b ---- */

static TAUSVM_CLONES void rbf_from_products_f32(const double *restrict products,
                                                const double *restrict norms, double norm,
                                                int64_t n, double gamma, float *restrict out)
{
    for (int64_t j = 0; j < n; j++) {
        double distance = norm + norms[j] - 2.0 * products[j];
        out[j] = exp_f32((float)(-gamma * (distance > 0 ? distance : 0)));
    }
}

static TAUSVM_CLONES void rbf_from_products_f64(const double *restrict products,
                                                const double *restrict norms, double norm,
                                                int64_t n, double gamma, double *restrict out)
{
    for (int64_t j = 0; j < n; j++) {
        double distance = norm + norms[j] - 2.0 * products[j];
        out[j] = exp_f64(-gamma * (distance > 0 ? distance : 0));
    }
}

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

/* gradient += step * (row_i - row_j), and the index of the largest
 * up[k] = -gradient[k] - slope_up[k], the steepest way to raise a variable; -1 where all are
 * -inf. */
#define DEFINE_UPDATE_PAIR(NAME, T)                                                    \
    static inline int64_t NAME(                                                        \
        double *restrict gradient, const double *restrict slope_up,                    \
        const T *restrict row_i, const T *restrict row_j, double step, int64_t n,      \
        double *restrict top)                                                          \
    {                                                                                  \
        double up[CHUNK];                                                              \
        int64_t best_k = -1;                                                           \
        *top = -INFINITY;                                                              \
        for (int64_t start = 0; start < n; start += CHUNK) {                           \
            int64_t m = n - start < CHUNK ? n - start : CHUNK;                         \
            double *restrict g = gradient + start;                                     \
            const double *restrict s = slope_up + start;                               \
            const T *restrict a = row_i + start;                                       \
            const T *restrict b = row_j + start;                                       \
            for (int64_t k = 0; k < m; k++) {                                          \
                g[k] += step * ((double)a[k] - (double)b[k]);                          \
                up[k] = -(g[k] + s[k]);                                                \
            }                                                                          \
            better_in_chunk(up, m, start, top, &best_k);                               \
        }                                                                              \
        return best_k;                                                                 \
    }

DEFINE_UPDATE_PAIR(update_pair_f32_any, float)
DEFINE_UPDATE_PAIR(update_pair_f64_any, double)

/* The index of the second variable of a pair: the largest gain
 * (up_i - down_j)^2 / curvature with down_j = -gradient_j - slope_down_j < up_i, -1 where none
 * is positive. bottom receives the smallest down_j. Gains are compared by cross-multiplication,
 * without division. */
#define DEFINE_SECOND_INDEX(NAME, T)                                                   \
    static inline int64_t NAME(                                                        \
        const double *restrict gradient, const double *restrict slope_down,            \
        const double *restrict curvature_down, const T *restrict row_i, double up_i,   \
        double curvature_i, double floor_, int64_t n, double *restrict gain,           \
        double *restrict bottom)                                                       \
    {                                                                                  \
        double best = 0, best_q = 1, widest = -INFINITY;                               \
        int64_t best_k = -1;                                                           \
        for (int64_t k = 0; k < n; k++) {                                              \
            double r = up_i + gradient[k] + slope_down[k];                             \
            double q = curvature_i + curvature_down[k] - 2.0 * (double)row_i[k];       \
            q = q > floor_ ? q : floor_;                                               \
            widest = r > widest ? r : widest;                                          \
            if (r > 0 && r * r * best_q > best * q) {                                  \
                best = r * r;                                                          \
                best_q = q;                                                            \
                best_k = k;                                                            \
            }                                                                          \
        }                                                                              \
        *gain = best / best_q;                                                         \
        *bottom = up_i - widest;                                                       \
        return *gain > 0 ? best_k : -1;                                                \
    }

DEFINE_SECOND_INDEX(second_index_f32_any, float)
DEFINE_SECOND_INDEX(second_index_f64_any, double)

/* The same two searches by hand: the compiler does not keep an index beside a maximum in vector
 * registers. */
#ifdef TAUSVM_AVX2

static inline AVX2 __m256d load4_f32(const float *p) { return _mm256_cvtps_pd(_mm_loadu_ps(p)); }
static inline AVX2 __m256d load4_f64(const double *p) { return _mm256_loadu_pd(p); }

/* the first lane, in index order, that holds the largest value */
static inline AVX2 int64_t best_lane(__m256d value, __m256i index, double *top)
{
    double v[4];
    int64_t k[4];
    _mm256_storeu_pd(v, value);
    _mm256_storeu_si256((__m256i *)k, index);
    int best = 0;
    for (int l = 1; l < 4; l++)
        if (v[l] > v[best] || (v[l] == v[best] && k[l] < k[best]))
            best = l;
    *top = v[best];
    return k[best];
}

/* the place of the larger of two values, which goes to top; the first of equal ones */
static inline int64_t better_of(double *top, int64_t at, double other, int64_t other_at)
{
    if (other > *top || (other == *top && other_at < at)) {
        *top = other;
        return other_at;
    }
    return at;
}

#define DEFINE_UPDATE_PAIR_AVX2(SUFFIX, T)                                             \
    static AVX2 int64_t update_pair_##SUFFIX##_avx2(                                   \
        double *restrict gradient, const double *restrict slope_up,                    \
        const T *restrict row_i, const T *restrict row_j, double step, int64_t n,      \
        double *restrict top)                                                          \
    {                                                                                  \
        const __m256d t = _mm256_set1_pd(step), minus = _mm256_set1_pd(-0.0);          \
        const __m256i eight = _mm256_set1_epi64x(8);                                   \
        __m256d most[2] = {_mm256_set1_pd(-INFINITY), _mm256_set1_pd(-INFINITY)};      \
        __m256i at[2] = {_mm256_set1_epi64x(-1), _mm256_set1_epi64x(-1)};              \
        __m256i ks[2] = {_mm256_setr_epi64x(0, 1, 2, 3), _mm256_setr_epi64x(4, 5, 6, 7)}; \
        int64_t k = 0;                                                                 \
        for (; k + 8 <= n; k += 8)                                                     \
            for (int l = 0; l < 2; l++) { /* two chains hide the latency of the compare */ \
                int64_t p = k + 4 * l;                                                 \
                __m256d d = _mm256_sub_pd(load4_##SUFFIX(row_i + p), load4_##SUFFIX(row_j + p)); \
                __m256d g = _mm256_fmadd_pd(t, d, _mm256_loadu_pd(gradient + p));      \
                _mm256_storeu_pd(gradient + p, g);                                     \
                __m256d s = _mm256_add_pd(g, _mm256_loadu_pd(slope_up + p));           \
                __m256d up = _mm256_xor_pd(minus, s);                                  \
                __m256d more = _mm256_cmp_pd(up, most[l], _CMP_GT_OQ);                 \
                most[l] = _mm256_blendv_pd(most[l], up, more);                         \
                at[l] = _mm256_blendv_epi8(at[l], ks[l], _mm256_castpd_si256(more));   \
                ks[l] = _mm256_add_epi64(ks[l], eight);                                \
            }                                                                          \
        double best, other;                                                            \
        int64_t best_k = best_lane(most[0], at[0], &best);                             \
        int64_t other_k = best_lane(most[1], at[1], &other);                           \
        best_k = better_of(&best, best_k, other, other_k);                             \
        other_k = update_pair_##SUFFIX##_any(gradient + k, slope_up + k, row_i + k, row_j + k, \
                                             step, n - k, &other);                     \
        if (other > best) {                                                            \
            best = other;                                                              \
            best_k = k + other_k;                                                      \
        }                                                                              \
        *top = best;                                                                   \
        return best_k;                                                                 \
    }

DEFINE_UPDATE_PAIR_AVX2(f32, float)
DEFINE_UPDATE_PAIR_AVX2(f64, double)

#define DEFINE_SECOND_INDEX_AVX2(SUFFIX, T)                                            \
    static AVX2 int64_t second_index_##SUFFIX##_avx2(                                  \
        const double *restrict gradient, const double *restrict slope_down,            \
        const double *restrict curvature_down, const T *restrict row_i, double up_i,   \
        double curvature_i, double floor_, int64_t n, double *restrict gain,           \
        double *restrict bottom)                                                       \
    {                                                                                  \
        const __m256d u = _mm256_set1_pd(up_i), q_i = _mm256_set1_pd(curvature_i);     \
        const __m256d q_min = _mm256_set1_pd(floor_), two = _mm256_set1_pd(2.0);       \
        const __m256d zero = _mm256_setzero_pd();                                      \
        const __m256i eight = _mm256_set1_epi64x(8);                                   \
        __m256d widest[2] = {_mm256_set1_pd(-INFINITY), _mm256_set1_pd(-INFINITY)};    \
        __m256d best[2] = {zero, zero};                                                \
        __m256d best_q[2] = {_mm256_set1_pd(1.0), _mm256_set1_pd(1.0)};                \
        __m256i at[2] = {_mm256_set1_epi64x(-1), _mm256_set1_epi64x(-1)};              \
        __m256i ks[2] = {_mm256_setr_epi64x(0, 1, 2, 3), _mm256_setr_epi64x(4, 5, 6, 7)}; \
        int64_t k = 0;                                                                 \
        for (; k + 8 <= n; k += 8)                                                     \
            for (int l = 0; l < 2; l++) {                                              \
                int64_t p = k + 4 * l;                                                 \
                __m256d r = _mm256_add_pd(_mm256_add_pd(u, _mm256_loadu_pd(gradient + p)), \
                                          _mm256_loadu_pd(slope_down + p));            \
                __m256d q = _mm256_fnmadd_pd(                                          \
                    two, load4_##SUFFIX(row_i + p),                                    \
                    _mm256_add_pd(q_i, _mm256_loadu_pd(curvature_down + p)));          \
                q = _mm256_max_pd(q, q_min);                                           \
                widest[l] = _mm256_max_pd(widest[l], r);                               \
                __m256d v = _mm256_max_pd(r, zero);                                    \
                __m256d v2 = _mm256_mul_pd(v, v);                                      \
                __m256d better = _mm256_cmp_pd(_mm256_mul_pd(v2, best_q[l]),           \
                                               _mm256_mul_pd(best[l], q), _CMP_GT_OQ); \
                best[l] = _mm256_blendv_pd(best[l], v2, better);                       \
                best_q[l] = _mm256_blendv_pd(best_q[l], q, better);                    \
                at[l] = _mm256_blendv_epi8(at[l], ks[l], _mm256_castpd_si256(better)); \
                ks[l] = _mm256_add_epi64(ks[l], eight);                                \
            }                                                                          \
        double top, other, wide[4], low;                                               \
        int64_t best_k = best_lane(_mm256_div_pd(best[0], best_q[0]), at[0], &top);    \
        int64_t other_k = best_lane(_mm256_div_pd(best[1], best_q[1]), at[1], &other); \
        best_k = better_of(&top, best_k, other, other_k);                              \
        _mm256_storeu_pd(wide, _mm256_max_pd(widest[0], widest[1]));                   \
        double w = wide[0];                                                            \
        for (int l = 1; l < 4; l++)                                                    \
            w = wide[l] > w ? wide[l] : w;                                             \
        other_k = second_index_##SUFFIX##_any(gradient + k, slope_down + k, curvature_down + k, \
                                              row_i + k, up_i, curvature_i, floor_, n - k, \
                                              &other, &low);                           \
        if (other > top) {                                                             \
            top = other;                                                               \
            best_k = k + other_k;                                                      \
        }                                                                              \
        *gain = top;                                                                   \
        *bottom = up_i - w < low ? up_i - w : low;                                     \
        return top > 0 ? best_k : -1;                                                  \
    }

DEFINE_SECOND_INDEX_AVX2(f32, float)
DEFINE_SECOND_INDEX_AVX2(f64, double)

#endif

#define DISPATCH_PAIR(SUFFIX, T)                                                       \
    static int64_t update_pair_##SUFFIX(double *gradient, const double *slope_up,      \
                                     const T *row_i, const T *row_j, double step,      \
                                     int64_t n, double *top)                           \
    {                                                                                  \
        return BY_CPU(update_pair_##SUFFIX, gradient, slope_up, row_i, row_j, step, n, top); \
    }                                                                                  \
    static int64_t second_index_##SUFFIX(const double *gradient, const double *slope_down, \
                                      const double *curvature_down, const T *row_i,    \
                                      double up_i, double curvature_i, double floor_,  \
                                      int64_t n, double *bottom)                       \
    {                                                                                  \
        double gain;                                                                   \
        return BY_CPU(second_index_##SUFFIX, gradient, slope_down, curvature_down,     \
                      row_i, up_i, curvature_i, floor_, n, &gain, bottom);             \
    }

DISPATCH_PAIR(f32, float)
DISPATCH_PAIR(f64, double)

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

#endif
