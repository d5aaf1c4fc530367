/* A PE sends to all others, computes meanwhile, and waits before it
 * changes the data that it sends. */
#include <shmem.h>
#include <stdio.h>

static long inbox[64];

int main(void) {
    shmem_init();
    int me = shmem_my_pe(), n = shmem_n_pes();
    long message = 100 + me, sum = 0;
    for (int pe = 0; pe < n; pe++)
        shmem_long_put_nbi(&inbox[me], &message, 1, pe);
    for (int i = 0; i < 1000; i++)
        sum += i;  /* message is not touched */
    shmem_quiet();  /* now it may be */
    message = sum;
    shmem_barrier_all();
    if (me == 0)
        printf("%ld, then %ld\n", inbox[n - 1], message);
    shmem_finalize();
    return 0;
}

/* Prints on 4 PEs, in any order:
   103, then 499500 */
