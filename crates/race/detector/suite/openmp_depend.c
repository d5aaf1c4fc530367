/* A task gets into a word, and another one, which depends on it or not, stores to the word.
 * PEs: 2
 * FLAGS: -fopenmp */
#include "suite.h"

static long x[8], to, d __attribute__((unused)), e __attribute__((unused));

static void run(int me, int n) {
    if (me != 0)
        return;
#pragma omp parallel num_threads(2)
#pragma omp single
    {
#pragma omp task depend(out : d)
        shmem_long_get(&to, x, 1, n - 1); /* RACE */
#ifdef CLEAN
#pragma omp task depend(in : d)
#else
#pragma omp task depend(in : e)
#endif
        to = 1; /* RACE */
    }
}
