/* The innermost steps of the linear solvers: rows of X against a vector, and the five numbers
 * of a sample's term. Sums are kept in fixed lanes, never reassociated by the compiler, so one
 * machine gives the same bits on every run. */
#ifndef TAUSVM_LINEAR_H
#define TAUSVM_LINEAR_H

#include <math.h>
#include <stdint.h>

#include "clones.h"

static inline void fetch_early(const void *at)
{
#if defined(__GNUC__)
    __builtin_prefetch(at, 0, 3);
#else
    (void)at;
#endif
}

/* ---- dense rows ---- */

#define DENSE_LANES 16

#define DEFINE_DENSE(SUFFIX, T)                                                        \
    static TAUSVM_CLONES double dense_dot_##SUFFIX(const T *restrict x,                \
                                                   const double *restrict w, int64_t d) \
    {                                                                                  \
        double lane[DENSE_LANES] = {0};                                                \
        int64_t j = 0;                                                                 \
        for (; j + DENSE_LANES <= d; j += DENSE_LANES)                                 \
            for (int l = 0; l < DENSE_LANES; l++)                                      \
                lane[l] += (double)x[j + l] * w[j + l];                                \
        double sum = 0;                                                                \
        for (; j < d; j++)                                                             \
            sum += (double)x[j] * w[j];                                                \
        for (int l = 0; l < DENSE_LANES; l++)                                          \
            sum += lane[l];                                                            \
        return sum;                                                                    \
    }                                                                                  \
    static TAUSVM_CLONES void dense_add_##SUFFIX(const T *restrict x, double step,     \
                                                 double *restrict w, int64_t d)        \
    {                                                                                  \
        for (int64_t j = 0; j < d; j++)                                                \
            w[j] += step * (double)x[j];                                               \
    }

DEFINE_DENSE(f32, float)
DEFINE_DENSE(f64, double)

/* ---- one sample's term: kink |b| + ridge b^2 / 2 on [lower, upper] ---- */

typedef struct {
    double lower, upper, kink, ridge_minus, ridge_plus;
} Term;

static inline Term load_term(const double *table, int64_t rows, int64_t columns, int64_t i)
{
    const double *t = table + i * columns;
    Term term = {t[0], t[rows], t[2 * rows], t[3 * rows], t[4 * rows]};
    return term;
}

/* argmax_b (r b - g(b)), and its derivative with respect to r where it has one */
static inline double term_response(const Term *t, double r, double *slope)
{
    double size, end, ridge, sign;
    *slope = 0;
    if (r > t->kink) {
        size = r - t->kink;
        end = t->upper;
        ridge = t->ridge_plus;
        sign = 1;
    } else if (r < -t->kink) {
        size = -r - t->kink;
        end = -t->lower;
        ridge = t->ridge_minus;
        sign = -1;
    } else {
        /* without a tube the curvature at 0 is that of a side */
        if (t->kink == 0 && t->ridge_plus > 0)
            *slope = 1 / t->ridge_plus;
        return 0;
    }
    if (size >= ridge * end)
        return sign * end;
    *slope = 1 / ridge;
    return sign * size / ridge;
}

static inline double term_value(const Term *t, double b)
{
    return t->kink * fabs(b) + 0.5 * (b > 0 ? t->ridge_plus : t->ridge_minus) * b * b;
}

/* sup_b (r b - g(b)): the primal loss */
static inline double term_conjugate(const Term *t, double r)
{
    double excess = fabs(r) - t->kink;
    if (excess <= 0)
        return 0;
    double end = r > 0 ? t->upper : -t->lower;
    double ridge = r > 0 ? t->ridge_plus : t->ridge_minus;
    double size = excess >= ridge * end ? end : excess / ridge;
    return size * (excess - 0.5 * ridge * size);
}

/* ---- one step of Algorithm 4 ---- */

typedef struct {
    double total;   /* the sum of the violations (24) met */
    double largest; /* the largest of them */
    double gap;     /* the sum of each sample's share of the duality gap when met */
    double gained;  /* what the steps have added to the dual */
    double gain;    /* the last step's part of that */
} Met;

/* Steps 6.2.1 to 6.2.4: the best value of one variable, all else fixed; 1 in *settled where
 * (26)-(28) hold and the variable leaves. gradient is x'w - y, q the squared row. */
static inline double coordinate_step(const Term *t, double beta, double gradient, double q,
                                     double threshold, Met *met, int *settled)
{
    double up = gradient + (beta >= 0 ? t->kink + t->ridge_plus * beta
                                      : -t->kink + t->ridge_minus * beta);
    double down = gradient + (beta > 0 ? t->kink + t->ridge_plus * beta
                                       : -t->kink + t->ridge_minus * beta);
    up = beta >= t->upper ? INFINITY : up;
    down = beta <= t->lower ? -INFINITY : down;
    met->gain = 0;
    *settled = up > threshold && down < -threshold;
    if (*settled)
        return beta;
    double violation = -up > down ? -up : down;
    if (!(violation > 0))
        return beta;
    met->total += violation;
    met->largest = violation > met->largest ? violation : met->largest;
    met->gap += term_conjugate(t, -gradient) + term_value(t, beta) + gradient * beta;
    double z = q * beta - gradient, next = 0;
    if (z > t->kink) {
        next = (z - t->kink) / (q + t->ridge_plus);
        next = next > t->upper ? t->upper : next;
    } else if (z < -t->kink) {
        next = (z + t->kink) / (q + t->ridge_minus);
        next = next < t->lower ? t->lower : next;
    }
    double step = next - beta;
    met->gain = term_value(t, beta) - term_value(t, next) - (gradient + 0.5 * q * step) * step;
    met->gained += met->gain;
    return next;
}

/* ---- how often a sample is visited (Glasmachers and Dogan's adaptive frequencies) ---- */

#define ADAPT_RATE 0.2
#define LEAST_PREFERENCE 0.02f
#define MOST_PREFERENCE 5.0f

/* the preference after a step: more where it gained more than steps do at the time */
static inline float adapted(float preference, double gain, double usual)
{
    if (!(usual > 0))
        return preference;
    double change = ADAPT_RATE * (gain / usual - 1);
    preference *= expf((float)(change < 3 ? change : 3));
    if (!(preference > LEAST_PREFERENCE))
        return LEAST_PREFERENCE;
    return preference < MOST_PREFERENCE ? preference : MOST_PREFERENCE;
}

/* ---- random order: xorshift64*, so that equal seeds give equal fits everywhere ---- */

static inline uint64_t next_random(uint64_t *state)
{
    uint64_t x = *state;
    x ^= x >> 12;
    x ^= x << 25;
    x ^= x >> 27;
    *state = x;
    return x * 2685821657736338717ULL;
}

/* an integer in [0, bound), bound < 2^32: the high half of the product of 64 by 64 bits */
static inline int64_t random_below(uint64_t *state, int64_t bound)
{
    uint64_t x = next_random(state), b = (uint64_t)bound;
    return (int64_t)(((x >> 32) * b + ((x & 0xffffffffu) * b >> 32)) >> 32);
}

#endif
