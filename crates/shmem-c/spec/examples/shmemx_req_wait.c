/* A sum over all PEs while each of them computes something else. */
#include <shmem.h>
#include <shmemx.h>
#include <stdio.h>

static long source, dest;

int main(void) {
    shmem_init();
    int me = shmem_my_pe();
    long other = 1;
    shmemx_req_t req = SHMEMX_REQ_NULL;
    source = me;
    shmem_barrier_all();
    shmemx_long_sum_reduce_nb(SHMEM_TEAM_WORLD, &dest, &source, 1, &req);
    for (int i = 0; i < me; i++)
        other *= 2;
    shmemx_req_wait(&req);
    printf("PE %d: %ld and %ld\n", me, dest, other);
    shmem_finalize();
    return 0;
}

/* Prints on 4 PEs, in any order:
   PE 0: 6 and 1
   PE 1: 6 and 2
   PE 2: 6 and 4
   PE 3: 6 and 8 */
