/* One sample's term of the dual, kink |b| + ridge b^2 / 2 on [lower, upper], by its five numbers. */
#ifndef TAUSVM_TERMS_H
#define TAUSVM_TERMS_H

#include <math.h>
#include <stdint.h>

typedef struct {
    double lower, upper, kink, ridge_minus, ridge_plus;
} Term;

/* the terms of all samples: term i has its numbers at table[i * column + k * row] */
typedef struct {
    const double *numbers;
    int64_t row, column; /* strides; a column stride of 0 is one term for all */
} TermTable;

/* term i, as g + sigma/2 (b - centre)^2 has it: the centre moves y, not these numbers */
static inline Term smoothed_term(const TermTable *table, int64_t i, double sigma)
{
    const double *t = table->numbers + i * table->column;
    int64_t row = table->row;
    Term term = {t[0], t[row], t[2 * row], t[3 * row] + sigma, t[4 * row] + sigma};
    return term;
}

static inline Term term_of(const TermTable *table, int64_t i)
{
    return smoothed_term(table, i, 0);
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

#endif
