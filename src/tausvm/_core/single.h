/* Searches of pair steps in single precision: eight numbers at a time, see single.pyx. */
#ifndef TAUSVM_SINGLE_H
#define TAUSVM_SINGLE_H

#include "loops.h"
#include "products.h"

typedef float floats __attribute__((vector_size(32), aligned(4), may_alias));
typedef int32_t floats_at __attribute__((vector_size(32), aligned(4), may_alias));
#define LOAD_single(P) (*(const floats *)(P))

DEFINE_UPDATE_PAIR(raise_index, float, floats, floats_at, float, LOAD_single)
DEFINE_SECOND_INDEX(lower_index, float, floats, floats_at, float, LOAD_single)

/* the sum of what residuals -gradient - b pull at b: upper beyond the kink, lower below it */
static TAUSVM_CLONES double offset_pull(const float *restrict gradient,
                                        const float *restrict lower,
                                        const float *restrict upper,
                                        const float *restrict kink, float b, int64_t n)
{
    float sums[LANES] = {0};
    double total = 0;
    for (int64_t start = 0; start < n; start += 512) {
        int64_t end = n - start < 512 ? n : start + 512;
        int64_t full = start + (end - start) / LANES * LANES;
        for (int64_t from = start; from < full; from += LANES)
            for (int l = 0; l < LANES; l++) {
                float r = -gradient[from + l] - b;
                float high = r > kink[from + l] ? upper[from + l] : 0.0f;
                sums[l] += r < -kink[from + l] ? lower[from + l] : high;
            }
        for (int64_t k = full; k < end; k++) {
            float r = -gradient[k] - b;
            sums[0] += r > kink[k] ? upper[k] : (r < -kink[k] ? lower[k] : 0.0f);
        }
        for (int l = 0; l < LANES; l++) {
            total += sums[l];
            sums[l] = 0;
        }
    }
    return total;
}

#endif
