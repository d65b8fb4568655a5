/* Rows of X against a vector. X is dense or CSR, in float or double, with indices of 32 or 64 bits:
 * which of these is decided once a row, so that the loops over rows are written once. Sums are
 * in double and in fixed lanes, never reassociated by the compiler, so one machine gives the same
 * bits on every run. */
#ifndef TAUSVM_ROWS_H
#define TAUSVM_ROWS_H

#include <stddef.h>
#include <stdint.h>

#include "clones.h"

/* a matrix, or some of its rows. A row of a CSR matrix has no column twice. */
typedef struct {
    const void *values;
    const void *columns;   /* of the values; NULL: dense, in C order */
    const void *begins;    /* where the rows of a CSR matrix begin, and where the last one ends */
    const int64_t *chosen; /* the rows that take part, in order; NULL: all */
    int64_t n_columns;
    int wide_values, wide_columns, wide_begins; /* 64 bits each, else 32 */
} RowTable;

/* one row: its values, and their columns where it is sparse */
typedef struct {
    const void *x;
    const void *at;
    int64_t length;
} Row;

static inline int64_t row_begin(const RowTable *table, int64_t i)
{
    return table->wide_begins ? ((const int64_t *)table->begins)[i]
                              : ((const int32_t *)table->begins)[i];
}

static inline Row row_of(const RowTable *table, int64_t k)
{
    int64_t i = table->chosen ? table->chosen[k] : k;
    int64_t first = i * table->n_columns, end = first + table->n_columns;
    Row row = {NULL, NULL, 0};
    if (table->columns) {
        first = row_begin(table, i);
        end = row_begin(table, i + 1);
        row.at = (const char *)table->columns + first * (table->wide_columns ? 8 : 4);
    }
    row.x = (const char *)table->values + first * (table->wide_values ? 8 : 4);
    row.length = end - first;
    return row;
}

/* ---- dense rows ---- */

#define DENSE_LANES 16

#define DEFINE_DENSE(NAME, REAL)                                                           \
    static TAUSVM_CLONES double dot_##NAME(const REAL *restrict x,                         \
                                           const double *restrict w, int64_t d)            \
    {                                                                                      \
        double lane[DENSE_LANES] = {0};                                                    \
        int64_t j = 0;                                                                     \
        for (; j + DENSE_LANES <= d; j += DENSE_LANES)                                     \
            for (int l = 0; l < DENSE_LANES; l++)                                          \
                lane[l] += (double)x[j + l] * w[j + l];                                    \
        double sum = 0;                                                                    \
        for (; j < d; j++)                                                                 \
            sum += (double)x[j] * w[j];                                                    \
        for (int l = 0; l < DENSE_LANES; l++)                                              \
            sum += lane[l];                                                                \
        return sum;                                                                        \
    }                                                                                      \
    static TAUSVM_CLONES void add_##NAME(const REAL *restrict x, double step,              \
                                         double *restrict w, int64_t d)                    \
    {                                                                                      \
        for (int64_t j = 0; j < d; j++)                                                    \
            w[j] += step * (double)x[j];                                                   \
    }                                                                                      \
    static inline void add_squares_##NAME(const REAL *restrict x, double weight,           \
                                          double *restrict out, int64_t d)                 \
    {                                                                                      \
        for (int64_t j = 0; j < d; j++)                                                    \
            out[j] += weight * (double)x[j] * (double)x[j];                                \
    }                                                                                      \
    static inline void scale_##NAME(const REAL *restrict x, double factor,                 \
                                    double *restrict out, int64_t d)                       \
    {                                                                                      \
        for (int64_t j = 0; j < d; j++)                                                    \
            out[j] = factor * (double)x[j];                                                \
    }                                                                                      \
    static inline double square_##NAME(const REAL *x, int64_t m)                           \
    {                                                                                      \
        double a = 0, b = 0, c = 0, e = 0;                                                 \
        int64_t k = 0;                                                                     \
        for (; k + 4 <= m; k += 4) {                                                       \
            a += (double)x[k] * (double)x[k];                                              \
            b += (double)x[k + 1] * (double)x[k + 1];                                      \
            c += (double)x[k + 2] * (double)x[k + 2];                                      \
            e += (double)x[k + 3] * (double)x[k + 3];                                      \
        }                                                                                  \
        for (; k < m; k++)                                                                 \
            a += (double)x[k] * (double)x[k];                                              \
        return (a + b) + (c + e);                                                          \
    }

DEFINE_DENSE(f32, float)
DEFINE_DENSE(f64, double)

/* ---- sparse rows ---- */

/* columns differ, so that four weights may be read before one is written */
#define DEFINE_SPARSE(NAME, REAL, INDEX)                                                   \
    static inline double dot_##NAME(const REAL *x, const INDEX *at, const double *w,       \
                                    int64_t m)                                             \
    {                                                                                      \
        double a = 0, b = 0, c = 0, e = 0;                                                 \
        int64_t k = 0;                                                                     \
        for (; k + 4 <= m; k += 4) {                                                       \
            a += (double)x[k] * w[at[k]];                                                  \
            b += (double)x[k + 1] * w[at[k + 1]];                                          \
            c += (double)x[k + 2] * w[at[k + 2]];                                          \
            e += (double)x[k + 3] * w[at[k + 3]];                                          \
        }                                                                                  \
        for (; k < m; k++)                                                                 \
            a += (double)x[k] * w[at[k]];                                                  \
        return (a + b) + (c + e);                                                          \
    }                                                                                      \
    static inline void add_##NAME(const REAL *x, const INDEX *at, double step, double *w,  \
                                  int64_t m)                                               \
    {                                                                                      \
        int64_t k = 0;                                                                     \
        for (; k + 4 <= m; k += 4) {                                                       \
            double a = w[at[k]] + step * (double)x[k];                                     \
            double b = w[at[k + 1]] + step * (double)x[k + 1];                             \
            double c = w[at[k + 2]] + step * (double)x[k + 2];                             \
            double e = w[at[k + 3]] + step * (double)x[k + 3];                             \
            w[at[k]] = a;                                                                  \
            w[at[k + 1]] = b;                                                              \
            w[at[k + 2]] = c;                                                              \
            w[at[k + 3]] = e;                                                              \
        }                                                                                  \
        for (; k < m; k++)                                                                 \
            w[at[k]] += step * (double)x[k];                                               \
    }                                                                                      \
    static inline void add_squares_##NAME(const REAL *x, const INDEX *at, double weight,   \
                                          double *out, int64_t m)                          \
    {                                                                                      \
        for (int64_t k = 0; k < m; k++)                                                    \
            out[at[k]] += weight * (double)x[k] * (double)x[k];                            \
    }                                                                                      \
    static inline void add_outer_##NAME(const REAL *x, const INDEX *at, double weight,     \
                                        double *out, int64_t d, int64_t m)                 \
    {                                                                                      \
        for (int64_t k = 0; k < m; k++)                                                    \
            add_##NAME(x, at, weight * (double)x[k], out + d * (int64_t)at[k], m);         \
    }

DEFINE_SPARSE(f32_i32, float, int32_t)
DEFINE_SPARSE(f32_i64, float, int64_t)
DEFINE_SPARSE(f64_i32, double, int32_t)
DEFINE_SPARSE(f64_i64, double, int64_t)

/* ---- any row ---- */

#define SPARSE_ROW(NAME, ...)                                                              \
    (table->wide_values                                                                    \
         ? (table->wide_columns                                                            \
                ? NAME##_f64_i64((const double *)row.x, (const int64_t *)row.at, __VA_ARGS__) \
                : NAME##_f64_i32((const double *)row.x, (const int32_t *)row.at, __VA_ARGS__)) \
         : (table->wide_columns                                                            \
                ? NAME##_f32_i64((const float *)row.x, (const int64_t *)row.at, __VA_ARGS__) \
                : NAME##_f32_i32((const float *)row.x, (const int32_t *)row.at, __VA_ARGS__)))
#define DENSE_ROW(NAME, ...)                                                               \
    (table->wide_values ? NAME##_f64((const double *)row.x, __VA_ARGS__)                   \
                        : NAME##_f32((const float *)row.x, __VA_ARGS__))

/* x'w */
static inline double row_dot(const RowTable *table, Row row, const double *w)
{
    return row.at ? SPARSE_ROW(dot, w, row.length) : DENSE_ROW(dot, w, row.length);
}

/* w += step x */
static inline void row_add(const RowTable *table, Row row, double step, double *w)
{
    row.at ? SPARSE_ROW(add, step, w, row.length) : DENSE_ROW(add, step, w, row.length);
}

/* x'x */
static inline double row_square(const RowTable *table, Row row)
{
    return DENSE_ROW(square, row.length);
}

/* out_j += weight x_j^2 */
static inline void row_add_squares(const RowTable *table, Row row, double weight, double *out)
{
    row.at ? SPARSE_ROW(add_squares, weight, out, row.length)
           : DENSE_ROW(add_squares, weight, out, row.length);
}

/* out = factor x, of a dense row */
static inline void row_scale(const RowTable *table, Row row, double factor, double *out)
{
    DENSE_ROW(scale, factor, out, row.length);
}

/* out += weight xx', of a sparse row */
static inline void row_add_outer(const RowTable *table, Row row, double weight, double *out)
{
    SPARSE_ROW(add_outer, weight, out, table->n_columns, row.length);
}

/* ask early for what a sparse row will need: its numbers, and later the weights at its columns */
static inline void fetch_early(const void *at)
{
#if defined(__GNUC__)
    __builtin_prefetch(at, 0, 3);
#else
    (void)at;
#endif
}

static inline void row_fetch(Row row)
{
    fetch_early(row.x);
    fetch_early(row.at);
}

static inline void row_fetch_weights(const RowTable *table, Row row, const double *w)
{
    for (int64_t k = 0; k < row.length; k++)
        fetch_early(w + (table->wide_columns ? ((const int64_t *)row.at)[k]
                                             : ((const int32_t *)row.at)[k]));
}

#undef SPARSE_ROW
#undef DENSE_ROW

#endif
