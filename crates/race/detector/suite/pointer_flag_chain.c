/* A flag that is stored through shmem_ptr by a PE which has waited for another one.
 * PEs: 3 */
#include "suite.h"

static long x[8];
static int flag;

static void run(int me, int n) {
    (void)me, (void)n;
    long *last = shmem_ptr(x, 2);
    int *next = shmem_ptr(&flag, (me + 1) % n);
    if (me == 0 && last)
        last[2] = 1; /* RACE */
    if (me > 0 && last && IF_CLEAN(1, 0))
        shmem_int_wait_until(&flag, SHMEM_CMP_EQ, 1);
    if (me < 2 && next) {
        shmem_fence();
        *next = 1;
    }
    if (me == 2)
        used = x[2]; /* RACE */
}
