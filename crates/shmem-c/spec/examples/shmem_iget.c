/* PE 1 reads a column of a matrix of PE 0: each fourth number. */
#include <shmem.h>
#include <stdio.h>

static int matrix[3][4] = {
    {0, 1, 2, 3}, {10, 11, 12, 13}, {20, 21, 22, 23}};

int main(void) {
    shmem_init();
    int me = shmem_my_pe();
    int column[3];
    if (me == 1) {
        shmem_int_iget(column, &matrix[0][2], 1, 4, 3, 0);
        printf("%d %d %d\n", column[0], column[1], column[2]);
    }
    shmem_finalize();
    return 0;
}

/* Prints on 4 PEs, in any order:
   2 12 22 */
