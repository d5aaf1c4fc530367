/* A process makes a unique id and starts the others, which inherit it. */
#include <shmem.h>
#include <shmemx.h>
#include <stdio.h>
#include <unistd.h>

enum { RANKS = 4 };

int main(void) {
    shmemx_uniqueid_t id = SHMEMX_UNIQUEID_INITIALIZER;
    shmemx_init_attr_t attr = SHMEMX_INIT_ATTR_INITIALIZER;
    int rank = 0;
    if (shmemx_get_uniqueid(&id) != 0)
        return 1;
    for (int other = 1; other < RANKS && rank == 0; other++)
        if (fork() == 0)
            rank = other;
    shmemx_set_attr_uniqueid_args(rank, RANKS, &id, &attr);
    if (shmemx_init_attr(SHMEMX_INIT_WITH_UNIQUEID, &attr) != 0)
        return 1;
    printf("PE %d of %d\n", shmem_my_pe(), shmem_n_pes());
    shmem_finalize();
    return 0;
}

/* Prints on 4 PEs, in any order:
   PE 0 of 4
   PE 1 of 4
   PE 2 of 4
   PE 3 of 4 */
