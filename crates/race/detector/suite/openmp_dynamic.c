/* The threads of a loop fill an array, and one of them puts it after the loop or within.
 * PEs: 2
 * FLAGS: -fopenmp */
#include "suite.h"

static long x[64], from[64];
static int arrived;

static void run(int me, int n) {
    if (me != 0)
        return;
#pragma omp parallel num_threads(3)
    {
#pragma omp for schedule(dynamic) nowait
        for (int i = 0; i < 64; i++) {
            /* Each thread has a part of the loop. */
            __atomic_fetch_add(&arrived, 1, __ATOMIC_RELAXED);
            while (__atomic_load_n(&arrived, __ATOMIC_RELAXED) < 3) {
            }
            from[i] = i; /* RACE */
        }
#ifdef CLEAN
#pragma omp barrier
#endif
#pragma omp single
        shmem_long_put(x, from, 64, n - 1); /* RACE */
    }
}
