/* PE 0 deals out numbers; each PE squares its own, and PE 0 collects them. */
#include <shmem.h>
#include <shmemx.h>
#include <stdio.h>

static long numbers[4], squares[4], number, square;

int main(void) {
    shmem_init();
    int me = shmem_my_pe(), n = shmem_n_pes();
    for (int i = 0; i < n; i++)
        numbers[i] = me == 0 ? 10 + i : 0;
    shmem_barrier_all();
    shmemx_long_scatter(SHMEM_TEAM_WORLD, &number, numbers, 1, 0);
    square = number * number;
    shmemx_long_gather(SHMEM_TEAM_WORLD, squares, &square, 1, 0);
    for (int i = 0; i < n && me == 0; i++)
        printf("PE %d: %ld\n", i, squares[i]);
    shmem_finalize();
    return 0;
}

/* Prints on 4 PEs, in any order:
   PE 0: 100
   PE 1: 121
   PE 2: 144
   PE 3: 169 */
