/* All PEs add their parts of a sum to one number. */
#include <shmem.h>
#include <shmemx.h>
#include <stdio.h>

static double energy;

int main(void) {
    shmem_init();
    int me = shmem_my_pe();
    for (int i = 0; i < 4; i++)
        shmemx_double_atomic_add(&energy, 0.25 * (me + 1), 0);
    shmem_barrier_all();
    double half = shmemx_double_atomic_fetch_add(&energy, 0.5, me);
    if (me == 0)
        printf("energy %g, then %g\n", half, energy);
    shmem_finalize();
    return 0;
}

/* Prints on 4 PEs, in any order:
   energy 10, then 10.5 */
