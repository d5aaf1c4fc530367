/* A PE waits for a signal of the next one, and says so when that takes long. */
#include <shmem.h>
#include <shmemx.h>
#include <stdio.h>

static long ready;

int main(void) {
    shmem_init();
    int me = shmem_my_pe(), n = shmem_n_pes();
    shmem_long_p(&ready, me + 1, (me + n - 1) % n);
    while (shmemx_long_wait_until_timed(&ready, SHMEM_CMP_NE, 0, 10.0) == SHMEMX_TIMED_OUT)
        fprintf(stderr, "PE %d: nothing has come for 10 s\n", me);
    printf("PE %d: %ld\n", me, ready);
    shmem_finalize();
    return 0;
}

/* Prints on 4 PEs, in any order:
   PE 0: 2
   PE 1: 3
   PE 2: 4
   PE 3: 1 */
