/* The library is initialized again after it was finalized, and a put is not waited for then.
 * PEs: 2 */
#define main first_session
#include "suite.h"
#undef main

static long x[8], from;

static void run(int me, int n) {
    (void)me, (void)n;
}

int main(void) {
    first_session();
    shmem_init();
    int me = shmem_my_pe();
    if (me == 0)
        shmem_long_put(x, &from, 1, 1); /* RACE */
    ORDER(shmem_barrier_all());
    if (me == 1)
        used = x[0]; /* RACE */
    shmem_barrier_all();
    shmem_finalize();
    return 0;
}
