/* PE 0 writes a column of a matrix of 3 x 4 numbers of PE 1: each
 * fourth number. */
#include <shmem.h>
#include <stdio.h>

static int matrix[3][4];

int main(void) {
    shmem_init();
    int me = shmem_my_pe();
    int column[3] = {7, 8, 9};
    if (me == 0)
        shmem_int_iput(&matrix[0][2], column, 4, 1, 3, 1);
    shmem_barrier_all();
    for (int row = 0; me == 1 && row < 3; row++)
        printf("row %d: %d %d\n", row, matrix[row][1], matrix[row][2]);
    shmem_finalize();
    return 0;
}

/* Prints on 4 PEs, in any order:
   row 0: 0 7
   row 1: 0 8
   row 2: 0 9 */
