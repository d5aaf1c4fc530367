/* A PE announces that many small operations follow, so that they may
 * be sent together. */
#include <shmem.h>
#include <stdio.h>

static long counts[100];

int main(void) {
    shmem_init();
    int me = shmem_my_pe(), n = shmem_n_pes();
    shmem_ctx_session_config_t config = {.total_ops = 100};
    shmem_ctx_session_start(SHMEM_CTX_DEFAULT, SHMEM_CTX_SESSION_BATCH,
                            &config, SHMEM_CTX_SESSION_TOTAL_OPS);
    for (int i = 0; i < 100; i++)
        shmem_long_atomic_add(&counts[i], i, (me + i) % n);
    shmem_ctx_session_stop(SHMEM_CTX_DEFAULT);
    shmem_barrier_all();
    if (me == 0)
        printf("%ld %ld %ld\n", counts[0], counts[1], counts[99]);
    shmem_finalize();
    return 0;
}

/* Prints on 4 PEs, in any order:
   0 1 99 */
