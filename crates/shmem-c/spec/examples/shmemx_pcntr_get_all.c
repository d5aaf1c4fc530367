/* The number of puts of PE 0, which a PE counts with SHMEM_STATS=1. */
#include <shmem.h>
#include <shmemx.h>
#include <stdio.h>
#include <stdlib.h>

static int x;

int main(void) {
    setenv("SHMEM_STATS", "1", 1);
    shmem_init();
    if (shmem_my_pe() == 0) {
        shmemx_pcntr_t counts;
        for (int pe = 0; pe < shmem_n_pes(); pe++)
            shmem_int_p(&x, 7, pe);
        shmem_quiet();
        shmemx_pcntr_get_all(SHMEM_CTX_DEFAULT, &counts);
        printf("%d issued, %d complete\n", (int)counts.pending_put, (int)counts.completed_put);
    }
    shmem_finalize();
    return 0;
}

/* Prints on 4 PEs, in any order:
   4 issued, 4 complete */
