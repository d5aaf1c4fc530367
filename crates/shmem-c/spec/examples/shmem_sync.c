/* A PE waits for its puts by shmem_quiet, and then for the other PEs;
 * together this is a barrier. */
#include <shmem.h>
#include <stdio.h>

static int inbox;

int main(void) {
    shmem_init();
    int me = shmem_my_pe(), n = shmem_n_pes();
    shmem_int_p(&inbox, 10 * me, (me + 1) % n);
    shmem_quiet();
    shmem_sync_all();
    printf("PE %d: %d\n", me, inbox);
    shmem_finalize();
    return 0;
}

/* Prints on 4 PEs, in any order:
   PE 0: 30
   PE 1: 0
   PE 2: 10
   PE 3: 20 */
