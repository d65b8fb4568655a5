/* Two threads that work on the halves of the same rows tell each other their parts of a sum.
 *
 * A sum is needed every microsecond or so: no lock is that quick, so the thread that comes first
 * looks again and again. Which one that is does not change the sum. A thread that has looked for
 * long (the other one's processor is taken away) ends the work for both, at the same row. */
#ifndef TAUSVM_EXCHANGE_H
#define TAUSVM_EXCHANGE_H

#include <stdint.h>
#include <string.h>

#if defined(__GNUC__) && defined(__unix__)
#include <sched.h>
#define CAN_EXCHANGE 1
#else
#define CAN_EXCHANGE 0
#endif

/* a box has the number of a turn and a part; a side has two boxes, for odd and even turns: one
 * that is a turn ahead does not write what the other still reads */
#define BOX 8
#define TABLE_SIZE (4 * BOX)
/* some 100 microseconds; and for the first turn, at which a thread has to start, some ten
 * milliseconds */
#define LOOKS 4000
#define FIRST_LOOKS 40000

/* the sum of the parts of this turn (turns count from 1), or *ended */
static inline double exchanged(int64_t *table, int side, int64_t turn, double part, int *ended)
{
#if CAN_EXCHANGE
    int64_t *mine = table + BOX * (2 * side + (turn & 1));
    int64_t *theirs = table + BOX * (2 * (1 - side) + (turn & 1));
    int64_t before = turn > 2 ? turn - 2 : 0, found = before;
    int most = turn == 1 ? FIRST_LOOKS : LOOKS;
    double other;
    memcpy(mine + 1, &part, sizeof part);
    /* fails where the other side has put the end there */
    if (!__atomic_compare_exchange_n(mine, &found, turn, 0, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)) {
        *ended = 1;
        return 0;
    }
    for (int looks = 0; __atomic_load_n(theirs, __ATOMIC_ACQUIRE) != turn; looks++) {
        found = before;
        if (looks >= most && __atomic_compare_exchange_n(theirs, &found, -turn, 0,
                                                         __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)) {
            *ended = 1;
            return 0;
        }
        if (looks >= LOOKS)
            sched_yield();
#if defined(__x86_64__)
        __builtin_ia32_pause();
#endif
    }
    memcpy(&other, theirs + 1, sizeof other);
    return part + other;
#else
    (void)table, (void)side, (void)turn;
    *ended = 1;
    return part;
#endif
}

#endif
