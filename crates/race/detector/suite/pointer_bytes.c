/* Two PEs store the same bytes of a third one, one by one.
 * PEs: 3 */
#include "suite.h"

static char x[64];

static void run(int me, int n) {
    (void)n;
    if (me == 0 || me == IF_CLEAN(0, 1)) {
        char *there = shmem_ptr(x, 2);
        for (int i = 0; i < 64; i++)
            there[i] = (char)me; /* RACE with itself */
    }
}
