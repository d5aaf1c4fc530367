/* PEs draw the numbers of 100 tasks from a counter of PE 0, so that
 * each is done once. */
#include <shmem.h>
#include <stdio.h>

static long next, done;

int main(void) {
    shmem_init();
    while (shmem_long_atomic_fetch_inc(&next, 0) < 100)
        shmem_long_atomic_inc(&done, 0);  /* the task */
    shmem_barrier_all();
    if (shmem_my_pe() == 0)
        printf("%ld tasks are done\n", done);
    shmem_finalize();
    return 0;
}

/* Prints on 4 PEs, in any order:
   100 tasks are done */
