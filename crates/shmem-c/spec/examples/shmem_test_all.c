/* PE 0 computes until all others have reported that they are done. */
#include <shmem.h>
#include <stdio.h>

static int reports[64];

int main(void) {
    shmem_init();
    int me = shmem_my_pe(), n = shmem_n_pes();
    if (me != 0)
        shmem_int_atomic_set(&reports[me], 1, 0);
    int is_self[64] = {1};  /* left out */
    while (me == 0 &&
           !shmem_int_test_all(reports, n, is_self, SHMEM_CMP_EQ, 1))
        ;  /* a part of the computation */
    if (me == 0)
        printf("%d reports\n", n - 1);
    shmem_finalize();
    return 0;
}

/* Prints on 4 PEs, in any order:
   3 reports */
