/* A lock makes a change of several steps one: no PE reads the count of
 * PE 0 between the read and the write of another one. */
#include <shmem.h>
#include <stdio.h>

static long lock;  /* 0 on all PEs */
static int count;

int main(void) {
    shmem_init();
    int me = shmem_my_pe();
    shmem_set_lock(&lock);
    int before = shmem_int_g(&count, 0);
    shmem_int_p(&count, before + 1, 0);
    shmem_clear_lock(&lock);  /* completes the puts */
    shmem_barrier_all();
    if (me == 0)
        printf("%d times\n", count);
    shmem_finalize();
    return 0;
}

/* Prints on 4 PEs, in any order:
   4 times */
