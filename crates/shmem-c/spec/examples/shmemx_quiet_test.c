/* PE 0 computes until what it has put is complete. */
#include <shmem.h>
#include <shmemx.h>
#include <stdio.h>

static int source[1000], dest[1000];

int main(void) {
    shmem_init();
    int me = shmem_my_pe();
    if (me == 0) {
        source[999] = 7;
        shmem_int_put_nbi(dest, source, 1000, 1);
        double work = 0;
        while (!shmemx_quiet_test())
            work += 0.5;
    }
    shmem_barrier_all();
    if (me == 1)
        printf("PE 1: %d\n", dest[999]);
    shmem_finalize();
    return 0;
}

/* Prints on 4 PEs, in any order:
   PE 1: 7 */
