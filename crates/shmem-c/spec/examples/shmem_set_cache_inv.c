/* A program of 1999 that asks for what others have put. */
#include <shmem.h>
#include <stdio.h>

static int x;

int main(void) {
    shmem_init();
    int me = shmem_my_pe();
    shmem_set_cache_inv();
    shmem_int_p(&x, me + 1, (me + 1) % shmem_n_pes());
    shmem_barrier_all();
    shmem_udcflush();
    printf("PE %d: %d\n", me, x);
    shmem_finalize();
    return 0;
}

/* Prints on 4 PEs, in any order:
   PE 0: 4
   PE 1: 1
   PE 2: 2
   PE 3: 3 */
