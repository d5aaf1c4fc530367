/* PE i has i + 1 results, and every PE gets those of all. First, each
 * puts one number, which fcollect does. */
#include <shmem.h>
#include <stdio.h>

static int source[64], counts[64], all[64 * 65 / 2];

int main(void) {
    shmem_init();
    int me = shmem_my_pe(), n = shmem_n_pes();
    source[0] = me + 1;
    shmem_int_fcollect(SHMEM_TEAM_WORLD, counts, source, 1);
    shmem_barrier_all();  /* all have read source */
    for (int i = 0; i <= me; i++)
        source[i] = 10 * me + i;
    shmem_int_collect(SHMEM_TEAM_WORLD, all, source, me + 1);
    int total = 0;
    for (int pe = 0; pe < n; pe++)
        total += counts[pe];
    if (me == 0)
        printf("%d results, to %d\n", total, all[total - 1]);
    shmem_finalize();
    return 0;
}

/* Prints on 4 PEs, in any order:
   10 results, to 33 */
