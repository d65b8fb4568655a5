/* Sums of products with rows of a kernel matrix, and multiples of them, in double precision. */
#ifndef TAUSVM_PRODUCTS_H
#define TAUSVM_PRODUCTS_H

#include "loops.h"

/* the sum of row * beta, for rows of one precision */
#define DEFINE_ROW_PRODUCT(NAME, REAL)                                                          \
    static TAUSVM_CLONES double NAME(const REAL *restrict row, const double *restrict beta,     \
                                     int64_t n)                                                 \
    {                                                                                           \
        double sums[LANES] = {0};                                                               \
        int64_t full = n / LANES * LANES;                                                       \
        for (int64_t from = 0; from < full; from += LANES)                                      \
            for (int l = 0; l < LANES; l++)                                                     \
                sums[l] += row[from + l] * beta[from + l];                                      \
        for (int64_t k = full; k < n; k++)                                                      \
            sums[0] += row[k] * beta[k];                                                        \
        for (int l = 1; l < LANES; l++)                                                         \
            sums[0] += sums[l];                                                                 \
        return sums[0];                                                                         \
    }

DEFINE_ROW_PRODUCT(row_product, float)
DEFINE_ROW_PRODUCT(exact_product, double)

/* y += factor x */
static TAUSVM_CLONES void add_multiple(double factor, const double *restrict x,
                                       double *restrict y, int64_t n)
{
    for (int64_t k = 0; k < n; k++)
        y[k] += factor * x[k];
}

/* a rotation of a column of a factor and a vector: column = (column + s x) / c, x = c x - s column */
static TAUSVM_CLONES void rotate_column(double *restrict column, double *restrict x, double c,
                                        double s, int64_t n)
{
    for (int64_t k = 0; k < n; k++) {
        column[k] = (column[k] + s * x[k]) / c;
        x[k] = c * x[k] - s * column[k];
    }
}

#endif
