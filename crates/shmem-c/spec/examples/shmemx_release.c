/* Each PE gives up two blocks in another order; then both are freed. */
#include <shmem.h>
#include <shmemx.h>
#include <stdio.h>

int main(void) {
    shmem_init();
    int me = shmem_my_pe();
    void *blocks[2] = {shmem_malloc(1000), shmem_malloc(24)};
    shmemx_release(blocks[me % 2]);
    size_t before = shmemx_reclaim(); /* PE 1 has not released what PE 0 has */
    shmemx_release(blocks[1 - me % 2]);
    size_t after = shmemx_reclaim();
    printf("PE %d: %zu bytes, then %zu\n", me, before, after);
    shmem_finalize();
    return 0;
}

/* Prints on 4 PEs, in any order:
   PE 0: 0 bytes, then 1024
   PE 1: 0 bytes, then 1024
   PE 2: 0 bytes, then 1024
   PE 3: 0 bytes, then 1024 */
