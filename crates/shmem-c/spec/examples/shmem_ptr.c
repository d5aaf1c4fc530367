/* PE 0 writes to the other PEs of its node by plain stores, and to
 * those of other nodes by puts. */
#include <shmem.h>
#include <stdio.h>

static long inbox;

int main(void) {
    shmem_init();
    int me = shmem_my_pe(), n = shmem_n_pes();
    for (int pe = 1; me == 0 && pe < n; pe++) {
        long *there = shmem_ptr(&inbox, pe);
        if (there)
            *there = 10 * pe;
        else
            shmem_long_p(&inbox, 10 * pe, pe);
    }
    shmem_barrier_all();
    printf("PE %d has %ld\n", me, inbox);
    shmem_finalize();
    return 0;
}

/* Prints on 4 PEs, in any order:
   PE 0 has 0
   PE 1 has 10
   PE 2 has 20
   PE 3 has 30 */
