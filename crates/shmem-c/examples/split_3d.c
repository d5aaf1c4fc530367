/* Arranges the PEs of a job in a box, as near to a cube as their number allows, with one team along
 * each axis: a 2-D split into lines along x and planes across them, then a 2-D split of each plane.
 *
 *     oshcc split_3d.c -o split_3d && oshrun -n 12 ./split_3d
 */
#include <shmem.h>
#include <stdio.h>
#include <stdlib.h>

/* The smallest number whose `power`-th power is at least n. */
static int root_above(int n, int power)
{
    for (int root = 1;; root++) {
        long product = 1;
        for (int i = 0; i < power; i++)
            product *= root;
        if (product >= n)
            return root;
    }
}

/* The largest divisor of n that is no greater than `limit`. */
static int divisor_below(int n, int limit)
{
    int divisor = limit;
    while (n % divisor != 0)
        divisor--;
    return divisor;
}

static void split_or_give_up(shmem_team_t parent, int xrange, shmem_team_t *x, shmem_team_t *y)
{
    if (shmem_team_split_2d(parent, xrange, NULL, 0, x, NULL, 0, y) != 0) {
        fprintf(stderr, "PE %d: the team of %d PEs could not be split with xrange %d\n",
                shmem_my_pe(), shmem_team_n_pes(parent), xrange);
        shmem_global_exit(EXIT_FAILURE);
    }
}

int main(void)
{
    shmem_init();
    const int me = shmem_my_pe();
    const int pes = shmem_n_pes();

    const int width = divisor_below(pes, root_above(pes, 3));
    const int height = divisor_below(pes / width, root_above(pes / width, 2));
    const int depth = pes / width / height;
    if (me == 0)
        printf("xdim = %d, ydim = %d, zdim = %d\n", width, height, depth);

    shmem_team_t line_x, plane, line_y, line_z;
    split_or_give_up(SHMEM_TEAM_WORLD, width, &line_x, &plane);
    split_or_give_up(plane, height, &line_y, &line_z);
    shmem_team_destroy(plane); /* the teams made from it live on */

    for (int turn = 0; turn < pes; turn++) {
        if (turn == me) {
            printf("(%d, %d, %d) is mype = %d\n", shmem_team_my_pe(line_x),
                   shmem_team_my_pe(line_y), shmem_team_my_pe(line_z), me);
            fflush(stdout);
        }
        shmem_team_sync(SHMEM_TEAM_WORLD);
    }

    shmem_team_destroy(line_z);
    shmem_team_destroy(line_y);
    shmem_team_destroy(line_x);
    shmem_finalize();
    return 0;
}
