/* Each PE reads a value of its left neighbor. */
#include <shmem.h>
#include <stdio.h>

static int value;

int main(void) {
    shmem_init();
    int me = shmem_my_pe(), n = shmem_n_pes();
    value = me * me;
    shmem_barrier_all();
    printf("PE %d sees %d\n", me, shmem_int_g(&value, (me + n - 1) % n));
    shmem_finalize();
    return 0;
}

/* Prints on 4 PEs, in any order:
   PE 0 sees 9
   PE 1 sees 0
   PE 2 sees 1
   PE 3 sees 4 */
