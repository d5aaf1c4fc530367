/* A task gets into an array that another task uses, after it or at any time.
 * PEs: 2
 * FLAGS: -fopenmp */
#include "suite.h"

static long x[8], to;

static void run(int me, int n) {
    if (me != 0)
        return;
#pragma omp parallel num_threads(2)
#pragma omp single
    {
#pragma omp task
        shmem_long_get(&to, x, 1, n - 1); /* RACE */
#ifdef CLEAN
#pragma omp taskwait
#endif
#pragma omp task
        used = to; /* RACE */
    }
}
