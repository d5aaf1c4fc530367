/* All other PEs report to PE 0 that they are done. PE 0 reads the
 * signal once, and then waits. */
#include <shmem.h>
#include <stdio.h>

static uint64_t reports;

int main(void) {
    shmem_init();
    int me = shmem_my_pe(), n = shmem_n_pes();
    if (me != 0)
        shmem_signal_add(&reports, 1, 0);
    if (me == 0) {
        if (shmem_signal_fetch(&reports) < (uint64_t)n - 1)
            shmem_signal_wait_until(&reports, SHMEM_CMP_EQ, n - 1);
        printf("%d reports\n", (int)shmem_signal_fetch(&reports));
    }
    shmem_finalize();
    return 0;
}

/* Prints on 4 PEs, in any order:
   3 reports */
