/* The PEs form rows of 2; each learns its place in its row and in its
 * column. */
#include <shmem.h>
#include <stdio.h>

int main(void) {
    shmem_init();
    int me = shmem_my_pe();
    shmem_team_t row, column;
    if (shmem_team_split_2d(SHMEM_TEAM_WORLD, 2, NULL, 0, &row,
                            NULL, 0, &column) != 0)
        shmem_global_exit(1);
    int x = shmem_team_my_pe(row), y = shmem_team_my_pe(column);
    printf("PE %d is at (%d, %d)\n", me, x, y);
    shmem_team_destroy(row);
    shmem_team_destroy(column);
    shmem_finalize();
    return 0;
}

/* Prints on 4 PEs, in any order:
   PE 0 is at (0, 0)
   PE 1 is at (1, 0)
   PE 2 is at (0, 1)
   PE 3 is at (1, 1) */
