/* One step of dual coordinate descent on a linear machine. */
#ifndef TAUSVM_SWEEPS_H
#define TAUSVM_SWEEPS_H

#include "terms.h"

/* what the steps of a pass came across */
typedef struct {
    double total;   /* the sum of the violations (24) */
    double largest; /* the largest of them */
    double gap;     /* the sum of each sample's share of the duality gap when met */
    double gained;  /* what the steps have added to the dual */
} Met;

/* Steps 6.2.1 to 6.2.4 of Algorithm 4: the best value of one variable, all else fixed; *gain is what
 * it adds to the dual, negative where (26)-(28) hold and the variable leaves. gradient is x'w - y,
 * q the squared row. */
static inline double coordinate_step(const Term *t, double beta, double gradient, double q,
                                     double threshold, Met *met, double *gain)
{
    double up = gradient + (beta >= 0 ? t->kink + t->ridge_plus * beta
                                      : -t->kink + t->ridge_minus * beta);
    double down = gradient + (beta > 0 ? t->kink + t->ridge_plus * beta
                                       : -t->kink + t->ridge_minus * beta);
    up = beta >= t->upper ? INFINITY : up;
    down = beta <= t->lower ? -INFINITY : down;
    *gain = 0;
    if (up > threshold && down < -threshold) {
        *gain = -1;
        return beta;
    }
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
    double gained = term_value(t, beta) - term_value(t, next) - (gradient + 0.5 * q * step) * step;
    met->gained += gained;
    *gain = gained > 0 ? gained : 0; /* what rounding leaves of none */
    return next;
}

#endif
