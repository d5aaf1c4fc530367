/* Each PE gets a row from its neighbor. All PEs allocate and free the
 * same blocks in the same order. */
#include <shmem.h>
#include <stdio.h>

int main(void) {
    shmem_init();
    int me = shmem_my_pe(), n = shmem_n_pes();
    double *row = shmem_malloc(100 * sizeof *row);
    if (!row) {  /* on all PEs or on none */
        fprintf(stderr, "no room: raise SHMEM_SYMMETRIC_SIZE\n");
        shmem_global_exit(1);
    }
    for (int i = 0; i < 100; i++)
        row[i] = me + i / 100.0;
    shmem_barrier_all();  /* every row is written */
    double copy[100];
    shmem_double_get(copy, row, 100, (me + 1) % n);
    printf("PE %d has got a row that ends with %.2f\n", me, copy[99]);
    shmem_free(row);  /* begins with a barrier */
    shmem_finalize();
    return 0;
}

/* Prints on 4 PEs, in any order:
   PE 0 has got a row that ends with 1.99
   PE 1 has got a row that ends with 2.99
   PE 2 has got a row that ends with 3.99
   PE 3 has got a row that ends with 0.99 */
