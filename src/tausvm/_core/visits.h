/* Random order by xorshift64*, so that equal seeds give equal fits everywhere. */
#ifndef TAUSVM_VISITS_H
#define TAUSVM_VISITS_H

#include <stdint.h>

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

/* items in random order */
static inline void shuffle_items(int32_t *items, int64_t count, uint64_t *state)
{
    for (int64_t k = count - 1; k > 0; k--) {
        int64_t other = random_below(state, k + 1);
        int32_t held = items[k];
        items[k] = items[other];
        items[other] = held;
    }
}

#endif
