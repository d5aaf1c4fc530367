/* PE 0 waits until PE 1 has written; meanwhile PE 2 computes, and tests
 * now and then. */
#include <shmem.h>
#include <stdio.h>

static int flag, is_ready;

int main(void) {
    shmem_init();
    int me = shmem_my_pe();
    if (me == 1) {
        shmem_int_atomic_set(&flag, 7, 0);
        shmem_int_atomic_set(&is_ready, 1, 2);
    }
    if (me == 0) {
        shmem_int_wait_until(&flag, SHMEM_CMP_NE, 0);
        printf("PE 0 has %d\n", flag);
    }
    if (me == 2) {
        while (!shmem_int_test(&is_ready, SHMEM_CMP_EQ, 1))
            ;  /* a part of the computation */
        printf("PE 2 goes on\n");
    }
    shmem_finalize();
    return 0;
}

/* Prints on 4 PEs, in any order:
   PE 0 has 7
   PE 2 goes on */
