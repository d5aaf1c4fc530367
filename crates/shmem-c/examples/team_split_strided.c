/* Cray's strided split: the even PEs make a team and add up their numbers, and the odd ones need not call.
 *
 *     oshcc team_split_strided.c -o team_split_strided && oshrun -n 8 ./team_split_strided
 */
#include <shmemx.h>
#include <stdio.h>

int main(void)
{
    shmem_init();
    const int me = shmem_my_pe();
    const int pes = shmem_n_pes();
    long *sum = shmem_malloc(sizeof *sum);
    long *number = shmem_malloc(sizeof *number);
    *number = me;

    if (me % 2 == 0) {
        shmem_team_t even;
        shmemx_team_split_strided(SHMEM_TEAM_WORLD, 0, 2, (pes + 1) / 2, &even);
        shmem_long_sum_reduce(even, sum, number, 1);
        if (shmemx_team_my_pe(even) == 0)
            printf("the %d even PEs add up to %ld\n", shmemx_team_n_pes(even), *sum);
        shmemx_team_destroy(&even);
    } else if (me == 1) {
        /* A PE outside may call, too: it waits for nobody, and gets no team. */
        shmem_team_t even;
        shmemx_team_split_strided(SHMEM_TEAM_WORLD, 0, 2, (pes + 1) / 2, &even);
        if (even == SHMEM_TEAM_NULL)
            printf("PE 1 is not among them\n");
    }

    shmem_free(number);
    shmem_free(sum);
    shmem_finalize();
    return 0;
}
