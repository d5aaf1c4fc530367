/* All PEs count into the same histogram, and mark themselves in a bit
 * mask. */
#include <shmem.h>
#include <stdio.h>

static long histogram[3];
static unsigned int seen;

int main(void) {
    shmem_init();
    int me = shmem_my_pe();
    for (int i = 0; i < 9; i++)
        shmem_long_atomic_add(&histogram[i % 3], 1, 0);
    shmem_uint_atomic_or(&seen, 1u << me, 0);
    shmem_barrier_all();
    if (me == 0)
        printf("%ld in the last one, mask %x\n", histogram[2], seen);
    shmem_finalize();
    return 0;
}

/* Prints on 4 PEs, in any order:
   12 in the last one, mask f */
