/* Each PE sends one letter to PE 0, two to PE 1, and so on, and stores
 * what it receives without gaps. */
#include <shmem.h>
#include <shmemx.h>
#include <stdio.h>
#include <string.h>

enum { PES = 4 };

static long pSync[SHMEM_ALLTOALL_SYNC_SIZE];
static char source[PES], target[PES * PES + 1];

int main(void) {
    shmem_init();
    int me = shmem_my_pe();
    size_t t_offsets[PES], t_sizes[PES], s_offsets[PES], s_sizes[PES];
    memset(source, 'a' + me, sizeof source);
    for (int pe = 0; pe < PES; pe++) {
        s_offsets[pe] = 0;
        s_sizes[pe] = pe + 1;
        t_offsets[pe] = pe * (me + 1);
    }
    shmemx_alltoallv(target, t_offsets, t_sizes, source, s_offsets, s_sizes, 0, 0, PES, pSync);
    printf("PE %d: %s\n", me, target);
    shmem_finalize();
    return 0;
}

/* Prints on 4 PEs, in any order:
   PE 0: abcd
   PE 1: aabbccdd
   PE 2: aaabbbcccddd
   PE 3: aaaabbbbccccdddd */
