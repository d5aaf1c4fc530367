/* PE k sends k + 1 characters to each PE. */
#include <shmem.h>
#include <shmemx.h>
#include <stdio.h>

static char outbox[4], inbox[4][8];

int main(void) {
    shmem_init();
    int me = shmem_my_pe(), n = shmem_n_pes();
    size_t s_offsets[4], s_sizes[4], d_offsets[4], d_sizes[4];
    for (int i = 0; i < n; i++) {
        outbox[i] = (char)('a' + me);
        s_offsets[i] = 0;
        s_sizes[i] = (size_t)me + 1;
        d_offsets[i] = (size_t)i * sizeof inbox[0];
    }
    shmem_barrier_all();
    shmemx_team_alltoallvmem(SHMEM_TEAM_WORLD, inbox, d_offsets, d_sizes, outbox, s_offsets, s_sizes);
    printf("PE %d: %s %s %s %s, %zu from PE 2\n", me, inbox[0], inbox[1], inbox[2], inbox[3], d_sizes[2]);
    shmem_finalize();
    return 0;
}

/* Prints on 4 PEs, in any order:
   PE 0: a bb ccc dddd, 3 from PE 2
   PE 1: a bb ccc dddd, 3 from PE 2
   PE 2: a bb ccc dddd, 3 from PE 2
   PE 3: a bb ccc dddd, 3 from PE 2 */
