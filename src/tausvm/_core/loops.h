/* The innermost loops of the cores, written so that gcc turns them into vector
 * code. Sums and maxima are kept in fixed lanes, never reassociated by the
 * compiler, so one machine gives the same bits on every run. */
#ifndef TAUSVM_LOOPS_H
#define TAUSVM_LOOPS_H

#include <math.h>
#include <stdint.h>
#include <string.h>

#include "clones.h"

#if defined(__GNUC__) && !defined(__clang__) && defined(__x86_64__) && defined(__linux__)
#define TAUSVM_AVX2
#include <immintrin.h>
#endif

#define CHUNK 64   /* columns per step of a search: one horizontal maximum each */
#define STRIP 512  /* columns per step of a fill: accumulators stay in L1 */
#define LANES 8

/* ---- exp: range reduction x = k ln 2 + r, polynomial in r, scaling by 2^k ---- */

static inline float exp_f32(float x)
{
    /* |error| < 2 ulp on [-87, 88]; below, the true value is a denormal and 0 will do */
    float clipped = x < -87.0f ? -87.0f : (x > 88.0f ? 88.0f : x);
    float shifted = clipped * 1.44269504f + 12582912.0f; /* rounds to an integer */
    int32_t bits;
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
    int32_t power = (bits + 127) << 23; /* the magic number's low bits hold k */
    float scale;
    memcpy(&scale, &power, 4);
    float value = p * scale;
    return x < -87.0f ? 0.0f : value;
}

static inline double exp_f64(double x)
{
    double clipped = x < -708.0 ? -708.0 : (x > 709.0 ? 709.0 : x);
    double shifted = clipped * 1.4426950408889634 + 6755399441055744.0;
    int64_t bits;
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
    int64_t power = (bits + 1023) << 52;
    double scale;
    memcpy(&scale, &power, 8);
    double value = p * scale;
    return x < -708.0 ? 0.0 : value;
}

/* ---- kernel rows from differences: no cancellation, columns in vector lanes ----
 * points are stored feature by feature: xt[k * n + j] is feature k of point j. */

#define DEFINE_DISTANCE_ROW(NAME, T, EXP, TERM)                                       \
    static void NAME(const T *restrict xt, long stride, const T *restrict point, long d, \
                     long n, T gamma, T *restrict out)                                \
    {                                                                                 \
        T sum[STRIP];                                                                 \
        for (long start = 0; start < n; start += STRIP) {                             \
            long m = n - start < STRIP ? n - start : STRIP;                           \
            for (long j = 0; j < m; j++)                                              \
                sum[j] = 0;                                                           \
            for (long k = 0; k < d; k++) {                                            \
                const T *restrict column = xt + k * stride + start;                   \
                T value = point[k];                                                   \
                for (long j = 0; j < m; j++) {                                        \
                    T diff = column[j] - value;                                       \
                    sum[j] += TERM;                                                   \
                }                                                                     \
            }                                                                         \
            for (long j = 0; j < m; j++)                                              \
                out[start + j] = EXP(-gamma * sum[j]);                                \
        }                                                                             \
    }

DEFINE_DISTANCE_ROW(rbf_row_f32_any, float, exp_f32, diff * diff)
DEFINE_DISTANCE_ROW(rbf_row_f64_any, double, exp_f64, diff * diff)
DEFINE_DISTANCE_ROW(laplacian_row_f32_any, float, exp_f32, (diff < 0 ? -diff : diff))
DEFINE_DISTANCE_ROW(laplacian_row_f64_any, double, exp_f64, (diff < 0 ? -diff : diff))

/* ---- RBF from inner products (many features): d^2 = |a|^2 + |b|^2 - 2 a.b ---- */

static void rbf_from_products_f32_any(const double *restrict products,
                                                const double *restrict norms, double norm,
                                                long n, double gamma, float *restrict out)
{
    for (long j = 0; j < n; j++) {
        double distance = norm + norms[j] - 2.0 * products[j];
        out[j] = exp_f32((float)(-gamma * (distance > 0 ? distance : 0)));
    }
}

static void rbf_from_products_f64_any(const double *restrict products,
                                                const double *restrict norms, double norm,
                                                long n, double gamma, double *restrict out)
{
    for (long j = 0; j < n; j++) {
        double distance = norm + norms[j] - 2.0 * products[j];
        out[j] = exp_f64(-gamma * (distance > 0 ? distance : 0));
    }
}

/* ---- the same by hand for AVX2: eight floats or four doubles at a time ---- */

#ifdef TAUSVM_AVX2

#define AVX2 __attribute__((target("avx2,fma")))

static inline AVX2 __m256 exp8(__m256 x)
{
    const __m256 magic = _mm256_set1_ps(12582912.0f);
    __m256 inside = _mm256_cmp_ps(x, _mm256_set1_ps(-87.0f), _CMP_GE_OQ);
    __m256 c = _mm256_min_ps(_mm256_max_ps(x, _mm256_set1_ps(-87.0f)), _mm256_set1_ps(88.0f));
    __m256 shifted = _mm256_fmadd_ps(c, _mm256_set1_ps(1.44269504f), magic);
    __m256 k = _mm256_sub_ps(shifted, magic);
    __m256 r = _mm256_fnmadd_ps(k, _mm256_set1_ps(0.693359375f), c);
    r = _mm256_fmadd_ps(k, _mm256_set1_ps(2.12194440e-4f), r);
    __m256 p = _mm256_set1_ps(1.9875691500e-4f);
    p = _mm256_fmadd_ps(p, r, _mm256_set1_ps(1.3981999507e-3f));
    p = _mm256_fmadd_ps(p, r, _mm256_set1_ps(8.3334519073e-3f));
    p = _mm256_fmadd_ps(p, r, _mm256_set1_ps(4.1665795894e-2f));
    p = _mm256_fmadd_ps(p, r, _mm256_set1_ps(1.6666665459e-1f));
    p = _mm256_fmadd_ps(p, r, _mm256_set1_ps(5.0000001201e-1f));
    p = _mm256_fmadd_ps(_mm256_mul_ps(p, r), r, _mm256_add_ps(r, _mm256_set1_ps(1.0f)));
    __m256i power = _mm256_slli_epi32(
        _mm256_add_epi32(_mm256_castps_si256(shifted), _mm256_set1_epi32(127)), 23);
    return _mm256_and_ps(inside, _mm256_mul_ps(p, _mm256_castsi256_ps(power)));
}

static inline AVX2 __m256d exp4(__m256d x)
{
    const __m256d magic = _mm256_set1_pd(6755399441055744.0);
    __m256d inside = _mm256_cmp_pd(x, _mm256_set1_pd(-708.0), _CMP_GE_OQ);
    __m256d c = _mm256_min_pd(_mm256_max_pd(x, _mm256_set1_pd(-708.0)), _mm256_set1_pd(709.0));
    __m256d shifted = _mm256_fmadd_pd(c, _mm256_set1_pd(1.4426950408889634), magic);
    __m256d k = _mm256_sub_pd(shifted, magic);
    __m256d r = _mm256_fnmadd_pd(k, _mm256_set1_pd(6.93147180369123816490e-01), c);
    r = _mm256_fnmadd_pd(k, _mm256_set1_pd(1.90821492927058770002e-10), r);
    __m256d p = _mm256_set1_pd(2.0876756987868099e-09);
    p = _mm256_fmadd_pd(p, r, _mm256_set1_pd(2.5052108385441719e-08));
    p = _mm256_fmadd_pd(p, r, _mm256_set1_pd(2.7557319223985891e-07));
    p = _mm256_fmadd_pd(p, r, _mm256_set1_pd(2.7557319223985893e-06));
    p = _mm256_fmadd_pd(p, r, _mm256_set1_pd(2.4801587301587302e-05));
    p = _mm256_fmadd_pd(p, r, _mm256_set1_pd(1.9841269841269841e-04));
    p = _mm256_fmadd_pd(p, r, _mm256_set1_pd(1.3888888888888889e-03));
    p = _mm256_fmadd_pd(p, r, _mm256_set1_pd(8.3333333333333333e-03));
    p = _mm256_fmadd_pd(p, r, _mm256_set1_pd(4.1666666666666664e-02));
    p = _mm256_fmadd_pd(p, r, _mm256_set1_pd(1.6666666666666666e-01));
    p = _mm256_fmadd_pd(p, r, _mm256_set1_pd(0.5));
    p = _mm256_fmadd_pd(p, r, _mm256_set1_pd(1.0));
    p = _mm256_fmadd_pd(p, r, _mm256_set1_pd(1.0));
    __m256i power = _mm256_slli_epi64(
        _mm256_add_epi64(_mm256_castpd_si256(shifted), _mm256_set1_epi64x(1023)), 52);
    return _mm256_and_pd(inside, _mm256_mul_pd(p, _mm256_castsi256_pd(power)));
}

static inline AVX2 __m256 square8(__m256 d, __m256 sum) { return _mm256_fmadd_ps(d, d, sum); }
static inline AVX2 __m256d square4(__m256d d, __m256d sum) { return _mm256_fmadd_pd(d, d, sum); }
static inline AVX2 __m256 size8(__m256 d, __m256 sum)
{
    return _mm256_add_ps(sum, _mm256_andnot_ps(_mm256_set1_ps(-0.0f), d));
}
static inline AVX2 __m256d size4(__m256d d, __m256d sum)
{
    return _mm256_add_pd(sum, _mm256_andnot_pd(_mm256_set1_pd(-0.0), d));
}

/* UNROLL vectors of columns share each load of a feature of the point */
#define UNROLL 4
#define DEFINE_DISTANCE_ROW_AVX2(NAME, T, V, PS, WIDTH, EXP, ADD)                      \
    static AVX2 void NAME##_avx2(const T *restrict xt, long stride,                    \
                                 const T *restrict point, long d, long n, T gamma,     \
                                 T *restrict out)                                      \
    {                                                                                  \
        const V minus_gamma = _mm256_set1_##PS(-gamma);                                \
        long j = 0;                                                                    \
        for (; j + UNROLL * WIDTH <= n; j += UNROLL * WIDTH) {                         \
            V sum[UNROLL];                                                             \
            for (int u = 0; u < UNROLL; u++)                                           \
                sum[u] = _mm256_setzero_##PS();                                        \
            for (long k = 0; k < d; k++) {                                             \
                V value = _mm256_set1_##PS(point[k]);                                  \
                for (int u = 0; u < UNROLL; u++)                                       \
                    sum[u] = ADD(_mm256_sub_##PS(                                      \
                        _mm256_loadu_##PS(xt + k * stride + j + u * WIDTH), value), sum[u]); \
            }                                                                          \
            for (int u = 0; u < UNROLL; u++)                                           \
                _mm256_storeu_##PS(out + j + u * WIDTH,                                \
                                   EXP(_mm256_mul_##PS(minus_gamma, sum[u])));         \
        }                                                                              \
        if (j < n)                                                                     \
            NAME##_any(xt + j, stride, point, d, n - j, gamma, out + j);               \
    }

DEFINE_DISTANCE_ROW_AVX2(rbf_row_f32, float, __m256, ps, 8, exp8, square8)
DEFINE_DISTANCE_ROW_AVX2(rbf_row_f64, double, __m256d, pd, 4, exp4, square4)
DEFINE_DISTANCE_ROW_AVX2(laplacian_row_f32, float, __m256, ps, 8, exp8, size8)
DEFINE_DISTANCE_ROW_AVX2(laplacian_row_f64, double, __m256d, pd, 4, exp4, size4)

static AVX2 void rbf_from_products_f64_avx2(const double *restrict products,
                                            const double *restrict norms, double norm, long n,
                                            double gamma, double *restrict out)
{
    const __m256d base = _mm256_set1_pd(norm), two = _mm256_set1_pd(2.0);
    const __m256d minus_gamma = _mm256_set1_pd(-gamma), zero = _mm256_setzero_pd();
    long j = 0;
    for (; j + 4 <= n; j += 4) {
        __m256d d = _mm256_add_pd(base, _mm256_loadu_pd(norms + j));
        d = _mm256_max_pd(_mm256_fnmadd_pd(two, _mm256_loadu_pd(products + j), d), zero);
        _mm256_storeu_pd(out + j, exp4(_mm256_mul_pd(minus_gamma, d)));
    }
    rbf_from_products_f64_any(products + j, norms + j, norm, n - j, gamma, out + j);
}

static AVX2 void rbf_from_products_f32_avx2(const double *restrict products,
                                            const double *restrict norms, double norm, long n,
                                            double gamma, float *restrict out)
{
    const __m256d base = _mm256_set1_pd(norm), two = _mm256_set1_pd(2.0);
    const __m256d minus_gamma = _mm256_set1_pd(-gamma), zero = _mm256_setzero_pd();
    long j = 0;
    for (; j + 8 <= n; j += 8) {
        __m256d a = _mm256_add_pd(base, _mm256_loadu_pd(norms + j));
        __m256d b = _mm256_add_pd(base, _mm256_loadu_pd(norms + j + 4));
        a = _mm256_max_pd(_mm256_fnmadd_pd(two, _mm256_loadu_pd(products + j), a), zero);
        b = _mm256_max_pd(_mm256_fnmadd_pd(two, _mm256_loadu_pd(products + j + 4), b), zero);
        __m256 x = _mm256_set_m128(_mm256_cvtpd_ps(_mm256_mul_pd(minus_gamma, b)),
                                   _mm256_cvtpd_ps(_mm256_mul_pd(minus_gamma, a)));
        _mm256_storeu_ps(out + j, exp8(x));
    }
    rbf_from_products_f32_any(products + j, norms + j, norm, n - j, gamma, out + j);
}

#define BY_CPU(NAME, ...) \
    (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") ? NAME##_avx2(__VA_ARGS__) \
                                                                     : NAME##_any(__VA_ARGS__))
#else
#define BY_CPU(NAME, ...) NAME##_any(__VA_ARGS__)
#endif

#define DISPATCH_DISTANCE_ROW(NAME, T)                                                 \
    static void NAME(const T *xt, long stride, const T *point, long d, long n, T gamma, T *out) \
    {                                                                                  \
        BY_CPU(NAME, xt, stride, point, d, n, gamma, out);                             \
    }

DISPATCH_DISTANCE_ROW(rbf_row_f32, float)
DISPATCH_DISTANCE_ROW(rbf_row_f64, double)
DISPATCH_DISTANCE_ROW(laplacian_row_f32, float)
DISPATCH_DISTANCE_ROW(laplacian_row_f64, double)

#define DISPATCH_PRODUCTS(NAME, T)                                                     \
    static void NAME(const double *products, const double *norms, double norm, long n, \
                     double gamma, T *out)                                             \
    {                                                                                  \
        BY_CPU(NAME, products, norms, norm, n, gamma, out);                            \
    }

DISPATCH_PRODUCTS(rbf_from_products_f32, float)
DISPATCH_PRODUCTS(rbf_from_products_f64, double)

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

/* gradient += step * (row_i - row_j), and the index of the largest
 * up[k] = -gradient[k] - slope_up[k], the steepest way to raise a variable. */
#define DEFINE_UPDATE_PAIR(NAME, T)                                                    \
    static TAUSVM_CLONES long NAME(double *restrict gradient,                          \
                                   const double *restrict slope_up,                    \
                                   const T *restrict row_i, const T *restrict row_j,   \
                                   double step, long n, double *restrict top)          \
    {                                                                                  \
        double up[CHUNK];                                                              \
        double best = -INFINITY;                                                       \
        long best_k = -1;                                                              \
        for (long start = 0; start < n; start += CHUNK) {                              \
            long m = n - start < CHUNK ? n - start : CHUNK;                            \
            double *restrict g = gradient + start;                                     \
            const double *restrict s = slope_up + start;                               \
            const T *restrict a = row_i + start;                                       \
            const T *restrict b = row_j + start;                                       \
            if (m == CHUNK) {                                                          \
                for (int k = 0; k < CHUNK; k++) {                                      \
                    g[k] += step * ((double)a[k] - (double)b[k]);                      \
                    up[k] = -g[k] - s[k];                                              \
                }                                                                      \
            } else {                                                                   \
                for (long k = 0; k < m; k++) {                                         \
                    g[k] += step * ((double)a[k] - (double)b[k]);                      \
                    up[k] = -g[k] - s[k];                                              \
                }                                                                      \
                for (long k = m; k < CHUNK; k++)                                       \
                    up[k] = -INFINITY;                                                 \
            }                                                                          \
            double here = chunk_max(up);                                               \
            if (here > best) {                                                         \
                best = here;                                                           \
                for (long k = 0; k < m; k++)                                           \
                    if (up[k] == here) {                                               \
                        best_k = start + k;                                            \
                        break;                                                         \
                    }                                                                  \
            }                                                                          \
        }                                                                              \
        *top = best;                                                                   \
        return best_k;                                                                 \
    }

DEFINE_UPDATE_PAIR(update_pair_f32_any, float)
DEFINE_UPDATE_PAIR(update_pair_f64_any, double)

/* The index of the second variable of a pair: the largest gain
 * (up_i - down_j)^2 / curvature with down_j = -gradient_j - slope_down_j < up_i.
 * bottom receives the smallest down_j. */
#define DEFINE_SECOND_INDEX(NAME, T)                                                   \
    static TAUSVM_CLONES long NAME(const double *restrict gradient,                    \
                                   const double *restrict slope_down,                  \
                                   const double *restrict curvature_down,              \
                                   const T *restrict row_i, double up_i,               \
                                   double curvature_i, double floor_, long n,          \
                                   double *restrict bottom)                            \
    {                                                                                  \
        double gain[CHUNK], reach[CHUNK];                                              \
        double best = 0.0, widest = -INFINITY;                                         \
        long best_k = -1;                                                              \
        for (long start = 0; start < n; start += CHUNK) {                              \
            long m = n - start < CHUNK ? n - start : CHUNK;                            \
            const double *restrict g = gradient + start;                               \
            const double *restrict s = slope_down + start;                             \
            const double *restrict c = curvature_down + start;                         \
            const T *restrict a = row_i + start;                                       \
            long width = m == CHUNK ? CHUNK : m;                                       \
            for (long k = 0; k < width; k++) {                                         \
                double r = up_i + g[k] + s[k];                                         \
                double q = curvature_i + c[k] - 2.0 * (double)a[k];                    \
                q = q > floor_ ? q : floor_;                                           \
                double v = r > 0 ? r : 0;                                              \
                gain[k] = v * v / q;                                                   \
                reach[k] = r;                                                          \
            }                                                                          \
            for (long k = m; k < CHUNK; k++) {                                         \
                gain[k] = 0;                                                           \
                reach[k] = -INFINITY;                                                  \
            }                                                                          \
            double wide = chunk_max(reach);                                            \
            widest = wide > widest ? wide : widest;                                    \
            double here = chunk_max(gain);                                             \
            if (here > best) {                                                         \
                best = here;                                                           \
                for (long k = 0; k < m; k++)                                           \
                    if (gain[k] == here) {                                             \
                        best_k = start + k;                                            \
                        break;                                                         \
                    }                                                                  \
            }                                                                          \
        }                                                                              \
        *bottom = up_i - widest;                                                       \
        return best_k;                                                                 \
    }

DEFINE_SECOND_INDEX(second_index_f32_any, float)
DEFINE_SECOND_INDEX(second_index_f64_any, double)

/* The same two searches by hand for AVX2: the compiler does not keep an index beside a
 * maximum in vector registers. Gains are compared by cross-multiplication, without division. */
#ifdef TAUSVM_AVX2

static inline AVX2 __m256d load4_f32(const float *p) { return _mm256_cvtps_pd(_mm_loadu_ps(p)); }
static inline AVX2 __m256d load4_f64(const double *p) { return _mm256_loadu_pd(p); }

/* the first lane, in index order, that holds the largest value */
static inline AVX2 long best_lane(__m256d value, __m256i index, double *top)
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
static inline long better_of(double *top, long at, double other, long other_at)
{
    if (other > *top || (other == *top && other_at < at)) {
        *top = other;
        return other_at;
    }
    return at;
}

#define DEFINE_UPDATE_PAIR_AVX2(SUFFIX, T)                                             \
    static AVX2 long update_pair_##SUFFIX##_avx2(                                      \
        double *restrict gradient, const double *restrict slope_up,                    \
        const T *restrict row_i, const T *restrict row_j, double step, long n,         \
        double *restrict top)                                                          \
    {                                                                                  \
        const __m256d t = _mm256_set1_pd(step), minus = _mm256_set1_pd(-0.0);          \
        const __m256i eight = _mm256_set1_epi64x(8);                                   \
        __m256d best_a = _mm256_set1_pd(-INFINITY), best_b = best_a;                   \
        __m256i k_a = _mm256_setr_epi64x(0, 1, 2, 3);                                  \
        __m256i k_b = _mm256_setr_epi64x(4, 5, 6, 7);                                  \
        __m256i at_a = _mm256_set1_epi64x(-1), at_b = at_a;                            \
        long k = 0;                                                                    \
        for (; k + 8 <= n; k += 8) {                                                   \
            __m256d da = _mm256_sub_pd(load4_##SUFFIX(row_i + k), load4_##SUFFIX(row_j + k)); \
            __m256d db = _mm256_sub_pd(load4_##SUFFIX(row_i + k + 4),                  \
                                       load4_##SUFFIX(row_j + k + 4));                 \
            __m256d ga = _mm256_fmadd_pd(t, da, _mm256_loadu_pd(gradient + k));        \
            __m256d gb = _mm256_fmadd_pd(t, db, _mm256_loadu_pd(gradient + k + 4));    \
            _mm256_storeu_pd(gradient + k, ga);                                        \
            _mm256_storeu_pd(gradient + k + 4, gb);                                    \
            __m256d ua = _mm256_xor_pd(minus, _mm256_add_pd(ga, _mm256_loadu_pd(slope_up + k))); \
            __m256d ub = _mm256_xor_pd(minus, _mm256_add_pd(gb, _mm256_loadu_pd(slope_up + k + 4))); \
            __m256d ma = _mm256_cmp_pd(ua, best_a, _CMP_GT_OQ);                        \
            __m256d mb = _mm256_cmp_pd(ub, best_b, _CMP_GT_OQ);                        \
            best_a = _mm256_blendv_pd(best_a, ua, ma);                                 \
            best_b = _mm256_blendv_pd(best_b, ub, mb);                                 \
            at_a = _mm256_blendv_epi8(at_a, k_a, _mm256_castpd_si256(ma));             \
            at_b = _mm256_blendv_epi8(at_b, k_b, _mm256_castpd_si256(mb));             \
            k_a = _mm256_add_epi64(k_a, eight);                                        \
            k_b = _mm256_add_epi64(k_b, eight);                                        \
        }                                                                              \
        double best, other;                                                            \
        long best_k = best_lane(best_a, at_a, &best), other_k = best_lane(best_b, at_b, &other); \
        best_k = better_of(&best, best_k, other, other_k);                             \
        for (; k < n; k++) {                                                           \
            gradient[k] += step * ((double)row_i[k] - (double)row_j[k]);               \
            double up = -(gradient[k] + slope_up[k]);                                  \
            if (up > best) {                                                           \
                best = up;                                                             \
                best_k = k;                                                            \
            }                                                                          \
        }                                                                              \
        *top = best;                                                                   \
        return best_k;                                                                 \
    }

DEFINE_UPDATE_PAIR_AVX2(f32, float)
DEFINE_UPDATE_PAIR_AVX2(f64, double)

#define DEFINE_SECOND_INDEX_AVX2(SUFFIX, T)                                            \
    static AVX2 long second_index_##SUFFIX##_avx2(                                     \
        const double *restrict gradient, const double *restrict slope_down,            \
        const double *restrict curvature_down, const T *restrict row_i, double up_i,   \
        double curvature_i, double floor_, long n, double *restrict bottom)            \
    {                                                                                  \
        const __m256d u = _mm256_set1_pd(up_i), q_i = _mm256_set1_pd(curvature_i);     \
        const __m256d q_min = _mm256_set1_pd(floor_), two = _mm256_set1_pd(2.0);       \
        const __m256d zero = _mm256_setzero_pd();                                      \
        const __m256i eight = _mm256_set1_epi64x(8);                                   \
        __m256d widest[2] = {_mm256_set1_pd(-INFINITY), _mm256_set1_pd(-INFINITY)};     \
        __m256d best[2] = {zero, zero};                                                \
        __m256d best_q[2] = {_mm256_set1_pd(1.0), _mm256_set1_pd(1.0)};                \
        __m256i at[2] = {_mm256_set1_epi64x(-1), _mm256_set1_epi64x(-1)};              \
        __m256i ks[2] = {_mm256_setr_epi64x(0, 1, 2, 3), _mm256_setr_epi64x(4, 5, 6, 7)}; \
        long k = 0;                                                                    \
        for (; k + 8 <= n; k += 8)                                                     \
            for (int l = 0; l < 2; l++) { /* two chains hide the latency of the compare */ \
                long p = k + 4 * l;                                                    \
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
        double top, other, wide[4];                                                    \
        long best_k = best_lane(_mm256_div_pd(best[0], best_q[0]), at[0], &top);       \
        long other_k = best_lane(_mm256_div_pd(best[1], best_q[1]), at[1], &other);    \
        best_k = better_of(&top, best_k, other, other_k);                              \
        _mm256_storeu_pd(wide, _mm256_max_pd(widest[0], widest[1]));                   \
        double w = wide[0];                                                            \
        for (int l = 1; l < 4; l++)                                                    \
            w = wide[l] > w ? wide[l] : w;                                             \
        if (!(top > 0))                                                                \
            best_k = -1;                                                               \
        for (; k < n; k++) {                                                           \
            double r = up_i + gradient[k] + slope_down[k];                             \
            double q = curvature_i + curvature_down[k] - 2.0 * (double)row_i[k];       \
            q = q > floor_ ? q : floor_;                                               \
            w = r > w ? r : w;                                                         \
            if (r > 0 && r * r / q > top) {                                            \
                top = r * r / q;                                                       \
                best_k = k;                                                            \
            }                                                                          \
        }                                                                              \
        *bottom = up_i - w;                                                            \
        return best_k;                                                                 \
    }

DEFINE_SECOND_INDEX_AVX2(f32, float)
DEFINE_SECOND_INDEX_AVX2(f64, double)

#endif

#define DISPATCH_PAIR(SUFFIX, T)                                                       \
    static long update_pair_##SUFFIX(double *gradient, const double *slope_up,         \
                                     const T *row_i, const T *row_j, double step,      \
                                     long n, double *top)                              \
    {                                                                                  \
        return BY_CPU(update_pair_##SUFFIX, gradient, slope_up, row_i, row_j, step, n, top); \
    }                                                                                  \
    static long second_index_##SUFFIX(const double *gradient, const double *slope_down, \
                                      const double *curvature_down, const T *row_i,    \
                                      double up_i, double curvature_i, double floor_,  \
                                      long n, double *bottom)                          \
    {                                                                                  \
        return BY_CPU(second_index_##SUFFIX, gradient, slope_down, curvature_down,     \
                      row_i, up_i, curvature_i, floor_, n, bottom);                    \
    }

DISPATCH_PAIR(f32, float)
DISPATCH_PAIR(f64, double)

/* out += sum of delta[r] * rows[slot[r]], strip by strip so that out stays in L1 */
#define DEFINE_ACCUMULATE(NAME, T)                                                     \
    static TAUSVM_CLONES void NAME(const T *restrict rows, long stride,                \
                                   const int64_t *restrict slot,                       \
                                   const double *restrict delta, long count, long n,   \
                                   double *restrict out)                               \
    {                                                                                  \
        for (long start = 0; start < n; start += 2048) {                               \
            long m = n - start < 2048 ? n - start : 2048;                              \
            double *restrict o = out + start;                                          \
            long r = 0;                                                                \
            for (; r + 4 <= count; r += 4) {                                           \
                const T *restrict a = rows + slot[r] * stride + start;                 \
                const T *restrict b = rows + slot[r + 1] * stride + start;             \
                const T *restrict c = rows + slot[r + 2] * stride + start;             \
                const T *restrict e = rows + slot[r + 3] * stride + start;             \
                double da = delta[r], db = delta[r + 1], dc = delta[r + 2],            \
                       de = delta[r + 3];                                              \
                for (long k = 0; k < m; k++)                                           \
                    o[k] += da * (double)a[k] + db * (double)b[k] +                    \
                            dc * (double)c[k] + de * (double)e[k];                     \
            }                                                                          \
            for (; r < count; r++) {                                                   \
                const T *restrict a = rows + slot[r] * stride + start;                 \
                double da = delta[r];                                                  \
                for (long k = 0; k < m; k++)                                           \
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
    static TAUSVM_CLONES void NAME(double *restrict gradient, const double *restrict beta, \
                                   const double *restrict table, long tstride,         \
                                   const double *restrict diagonal,                    \
                                   const T *restrict row_i, const T *restrict row_j,   \
                                   double step_i, double step_j, long begin, long end, \
                                   long *restrict index, double *restrict gain)        \
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
        long best_k = begin;                                                           \
        for (long start = begin; start < end; start += CHUNK) {                        \
            long m = end - start < CHUNK ? end - start : CHUNK;                        \
            for (long k = 0; k < m; k++) {                                             \
                long t = start + k;                                                    \
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
            for (long k = m; k < CHUNK; k++)                                           \
                g[k] = -INFINITY;                                                      \
            double here = chunk_max(g);                                                \
            if (here > best) {                                                         \
                best = here;                                                           \
                for (long k = 0; k < m; k++)                                           \
                    if (g[k] == here) {                                                \
                        best_k = start + k;                                            \
                        break;                                                         \
                    }                                                                  \
            }                                                                          \
        }                                                                              \
        *index = best_k;                                                               \
        *gain = best;                                                                  \
    }

DEFINE_UPDATE_GAINS(update_gains_f32_any, float)
DEFINE_UPDATE_GAINS(update_gains_f64_any, double)

#ifdef TAUSVM_AVX2
#define DEFINE_UPDATE_GAINS_AVX2(SUFFIX, T)                                            \
    static AVX2 void update_gains_##SUFFIX##_avx2(                                     \
        double *restrict gradient, const double *restrict beta,                        \
        const double *restrict table, long tstride, const double *restrict diagonal,   \
        const T *restrict row_i, const T *restrict row_j, double step_i, double step_j, \
        long begin, long end, long *restrict index, double *restrict gain)             \
    {                                                                                  \
        const __m256d si = _mm256_set1_pd(step_i), sj = _mm256_set1_pd(step_j);        \
        const __m256d zero = _mm256_setzero_pd(), half = _mm256_set1_pd(0.5);          \
        const __m256d sign = _mm256_set1_pd(-0.0);                                     \
        const __m256i four = _mm256_set1_epi64x(4);                                    \
        __m256d best = _mm256_set1_pd(-INFINITY);                                      \
        __m256i at = _mm256_set1_epi64x(begin);                                        \
        __m256i ks = _mm256_add_epi64(at, _mm256_setr_epi64x(0, 1, 2, 3));             \
        long t = begin;                                                                \
        for (; t + 4 <= end; t += 4) {                                                 \
            __m256d g = _mm256_fmadd_pd(si, load4_##SUFFIX(row_i + t),                 \
                                        _mm256_loadu_pd(gradient + t));                \
            g = _mm256_fmadd_pd(sj, load4_##SUFFIX(row_j + t), g);                     \
            _mm256_storeu_pd(gradient + t, g);                                         \
            __m256d b = _mm256_loadu_pd(beta + t), q = _mm256_loadu_pd(diagonal + t);  \
            __m256d kink = _mm256_loadu_pd(table + 2 * tstride + t);                   \
            __m256d ridge_minus = _mm256_loadu_pd(table + 3 * tstride + t);            \
            __m256d ridge_plus = _mm256_loadu_pd(table + 4 * tstride + t);             \
            __m256d c = _mm256_fmsub_pd(q, b, g);                                      \
            __m256d above = _mm256_sub_pd(c, kink), below = _mm256_add_pd(c, kink);    \
            __m256d next = _mm256_add_pd(                                              \
                _mm256_mul_pd(_mm256_max_pd(above, zero),                              \
                              _mm256_loadu_pd(table + 6 * tstride + t)),               \
                _mm256_mul_pd(_mm256_min_pd(below, zero),                              \
                              _mm256_loadu_pd(table + 5 * tstride + t)));              \
            next = _mm256_min_pd(next, _mm256_loadu_pd(table + tstride + t));          \
            next = _mm256_max_pd(next, _mm256_loadu_pd(table + t));                    \
            __m256d rise = _mm256_sub_pd(_mm256_andnot_pd(sign, next),                 \
                                         _mm256_andnot_pd(sign, b));                   \
            __m256d r1 = _mm256_blendv_pd(ridge_minus, ridge_plus,                     \
                                          _mm256_cmp_pd(next, zero, _CMP_GT_OQ));      \
            __m256d r0 = _mm256_blendv_pd(ridge_minus, ridge_plus,                     \
                                          _mm256_cmp_pd(b, zero, _CMP_GT_OQ));         \
            __m256d bend = _mm256_sub_pd(_mm256_mul_pd(r1, _mm256_mul_pd(next, next)), \
                                         _mm256_mul_pd(r0, _mm256_mul_pd(b, b)));      \
            __m256d v = _mm256_fnmadd_pd(_mm256_mul_pd(half, q), _mm256_add_pd(next, b), c); \
            v = _mm256_mul_pd(v, _mm256_sub_pd(next, b));                              \
            v = _mm256_fnmadd_pd(kink, rise, v);                                       \
            v = _mm256_fnmadd_pd(half, bend, v);                                       \
            __m256d better = _mm256_cmp_pd(v, best, _CMP_GT_OQ);                       \
            best = _mm256_blendv_pd(best, v, better);                                  \
            at = _mm256_blendv_epi8(at, ks, _mm256_castpd_si256(better));              \
            ks = _mm256_add_epi64(ks, four);                                           \
        }                                                                              \
        double top;                                                                    \
        long best_k = best_lane(best, at, &top), tail_k;                               \
        if (t < end) {                                                                 \
            double tail;                                                               \
            update_gains_##SUFFIX##_any(gradient, beta, table, tstride, diagonal, row_i, \
                                        row_j, step_i, step_j, t, end, &tail_k, &tail); \
            if (tail > top) {                                                          \
                top = tail;                                                            \
                best_k = tail_k;                                                       \
            }                                                                          \
        }                                                                              \
        *index = best_k;                                                               \
        *gain = top;                                                                   \
    }

DEFINE_UPDATE_GAINS_AVX2(f32, float)
DEFINE_UPDATE_GAINS_AVX2(f64, double)
#endif

/* The same for a loss that is bounds alone (no kink, no ridge: pinball, hinge): a step is
 * -gradient / q cut to the room left, so that fewer numbers pass through the cache.
 * room holds two rows of length tstride: lower - beta and upper - beta. */
#define DEFINE_UPDATE_BOX_GAINS(NAME, T)                                               \
    static TAUSVM_CLONES void NAME(int uniform, double *restrict gradient,             \
                                   const double *restrict room, long tstride,          \
                                   const double *restrict diagonal,                    \
                                   const double *restrict inverse,                     \
                                   const T *restrict row_i, const T *restrict row_j,   \
                                   double step_i, double step_j, long begin, long end, \
                                   long *restrict index, double *restrict gain)        \
    {                                                                                  \
        (void)uniform; /* whether the diagonal is the same all along */                \
        double best = -INFINITY;                                                       \
        long best_k = begin;                                                           \
        for (long t = begin; t < end; t++) {                                           \
            double g = gradient[t] + step_i * (double)row_i[t] + step_j * (double)row_j[t]; \
            gradient[t] = g;                                                           \
            double step = -g * inverse[t];                                             \
            step = step < room[tstride + t] ? step : room[tstride + t];                \
            step = step > room[t] ? step : room[t];                                    \
            double v = -step * (g + 0.5 * diagonal[t] * step);                         \
            if (v > best) {                                                            \
                best = v;                                                              \
                best_k = t;                                                            \
            }                                                                          \
        }                                                                              \
        *index = best_k;                                                               \
        *gain = best;                                                                  \
    }

DEFINE_UPDATE_BOX_GAINS(update_box_gains_f32_any, float)
DEFINE_UPDATE_BOX_GAINS(update_box_gains_f64_any, double)

#ifdef TAUSVM_AVX2
#define DEFINE_UPDATE_BOX_GAINS_AVX2(SUFFIX, T)                                        \
    static inline AVX2 __attribute__((always_inline)) void box_gains_##SUFFIX(         \
        const int uniform, double *restrict gradient, const double *restrict room, long tstride, \
        const double *restrict diagonal, const double *restrict inverse,               \
        const T *restrict row_i, const T *restrict row_j, double step_i, double step_j, \
        long begin, long end, long *restrict index, double *restrict gain)             \
    {                                                                                  \
        const __m256d inverse_0 = _mm256_set1_pd(inverse[begin]);                      \
        const __m256d half_q_0 = _mm256_set1_pd(0.5 * diagonal[begin]);                \
        const __m256d si = _mm256_set1_pd(step_i), sj = _mm256_set1_pd(step_j);        \
        const __m256d half = _mm256_set1_pd(0.5), minus = _mm256_set1_pd(-0.0);        \
        const __m256i eight = _mm256_set1_epi64x(8);                                   \
        const __m256i from = _mm256_set1_epi64x(begin);                                \
        __m256d best[2] = {_mm256_set1_pd(-INFINITY), _mm256_set1_pd(-INFINITY)};      \
        __m256i at[2] = {from, from};                                                  \
        __m256i ks[2] = {_mm256_add_epi64(from, _mm256_setr_epi64x(0, 1, 2, 3)),       \
                         _mm256_add_epi64(from, _mm256_setr_epi64x(4, 5, 6, 7))};      \
        long t = begin;                                                                \
        for (; t + 8 <= end; t += 8)                                                   \
            for (int l = 0; l < 2; l++) {                                              \
                long p = t + 4 * l;                                                    \
                __m256d g = _mm256_fmadd_pd(si, load4_##SUFFIX(row_i + p),             \
                                            _mm256_loadu_pd(gradient + p));            \
                g = _mm256_fmadd_pd(sj, load4_##SUFFIX(row_j + p), g);                 \
                _mm256_storeu_pd(gradient + p, g);                                     \
                __m256d down = _mm256_xor_pd(minus, g);                                \
                __m256d step = _mm256_mul_pd(                                          \
                    down, uniform ? inverse_0 : _mm256_loadu_pd(inverse + p));         \
                step = _mm256_min_pd(step, _mm256_loadu_pd(room + tstride + p));       \
                step = _mm256_max_pd(step, _mm256_loadu_pd(room + p));                 \
                __m256d half_q =                                                       \
                    uniform ? half_q_0 : _mm256_mul_pd(half, _mm256_loadu_pd(diagonal + p)); \
                __m256d v = _mm256_mul_pd(step, _mm256_fnmadd_pd(half_q, step, down)); \
                __m256d better = _mm256_cmp_pd(v, best[l], _CMP_GT_OQ);                \
                best[l] = _mm256_blendv_pd(best[l], v, better);                        \
                at[l] = _mm256_blendv_epi8(at[l], ks[l], _mm256_castpd_si256(better)); \
                ks[l] = _mm256_add_epi64(ks[l], eight);                                \
            }                                                                          \
        double top, other;                                                             \
        long best_k = best_lane(best[0], at[0], &top), other_k = best_lane(best[1], at[1], &other); \
        best_k = better_of(&top, best_k, other, other_k);                              \
        if (t < end) {                                                                 \
            update_box_gains_##SUFFIX##_any(0, gradient, room, tstride, diagonal, inverse, row_i, \
                                            row_j, step_i, step_j, t, end, &other_k, &other); \
            if (other > top) {                                                         \
                top = other;                                                           \
                best_k = other_k;                                                      \
            }                                                                          \
        }                                                                              \
        *index = best_k;                                                               \
        *gain = top;                                                                   \
    }                                                                                  \
    static AVX2 void update_box_gains_##SUFFIX##_avx2(                                 \
        int uniform, double *gradient, const double *room, long tstride,               \
        const double *diagonal, const double *inverse, const T *row_i, const T *row_j, \
        double step_i, double step_j, long begin, long end, long *index, double *gain) \
    {                                                                                  \
        if (uniform)                                                                   \
            box_gains_##SUFFIX(1, gradient, room, tstride, diagonal, inverse, row_i, row_j, \
                               step_i, step_j, begin, end, index, gain);               \
        else                                                                           \
            box_gains_##SUFFIX(0, gradient, room, tstride, diagonal, inverse, row_i, row_j, \
                               step_i, step_j, begin, end, index, gain);               \
    }

DEFINE_UPDATE_BOX_GAINS_AVX2(f32, float)
DEFINE_UPDATE_BOX_GAINS_AVX2(f64, double)
#endif

#define DISPATCH_BOX_GAINS(SUFFIX, T)                                                  \
    static void update_box_gains_##SUFFIX(int uniform, double *gradient,               \
                                          const double *room, long tstride,            \
                                          const double *diagonal, const double *inverse, \
                                          const T *row_i, const T *row_j, double step_i, \
                                          double step_j, long begin, long end, long *index, \
                                          double *gain)                                \
    {                                                                                  \
        BY_CPU(update_box_gains_##SUFFIX, uniform, gradient, room, tstride, diagonal,  \
               inverse, row_i, row_j, step_i, step_j, begin, end, index, gain);                        \
    }

DISPATCH_BOX_GAINS(f32, float)
DISPATCH_BOX_GAINS(f64, double)

#define DISPATCH_GAINS(SUFFIX, T)                                                      \
    static void update_gains_##SUFFIX(double *gradient, const double *beta,            \
                                      const double *table, long tstride,               \
                                      const double *diagonal, const T *row_i,          \
                                      const T *row_j, double step_i, double step_j,    \
                                      long begin, long end, long *index, double *gain) \
    {                                                                                  \
        BY_CPU(update_gains_##SUFFIX, gradient, beta, table, tstride, diagonal, row_i, \
               row_j, step_i, step_j, begin, end, index, gain);                        \
    }

DISPATCH_GAINS(f32, float)
DISPATCH_GAINS(f64, double)

#endif
