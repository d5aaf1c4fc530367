/* PE 0 uses the data of the others in the order in which they arrive,
 * and does not wait for itself. */
#include <shmem.h>
#include <stdio.h>

static long inbox[64];

int main(void) {
    shmem_init();
    int me = shmem_my_pe(), n = shmem_n_pes();
    int used[64] = {1};  /* 1 leaves an element out, first PE 0 itself */
    long sum = 0;
    if (me != 0)
        shmem_long_atomic_set(&inbox[me], 10 * me, 0);
    for (int left = n - 1; me == 0 && left > 0; left--) {
        int cmp = SHMEM_CMP_NE;
        size_t pe = shmem_long_wait_until_any(inbox, n, used, cmp, 0);
        sum += inbox[pe];
        used[pe] = 1;
    }
    if (me == 0)
        printf("the sum is %ld\n", sum);
    shmem_finalize();
    return 0;
}

/* Prints on 4 PEs, in any order:
   the sum is 60 */
