/* Max reductions over an active set, in the form that OpenSHMEM 1.5 deprecated and old programs use:
 * three values in one call, the same three in three calls that alternate between two pairs of work
 * arrays so that no barrier stands between them, and one value over the even PEs alone.
 *
 *     oshcc max_to_all.c -o max_to_all && oshrun -n 8 ./max_to_all
 */
#include <shmem.h>
#include <stdio.h>
#include <stdlib.h>

enum { VALUES = 3, PAIRS = 2 };

static long all_sync[PAIRS][SHMEM_REDUCE_SYNC_SIZE];
static int all_work[PAIRS][SHMEM_REDUCE_MIN_WRKDATA_SIZE + VALUES];
static long even_sync[SHMEM_REDUCE_SYNC_SIZE];
static double even_work[SHMEM_REDUCE_MIN_WRKDATA_SIZE];

static void *symmetric(size_t bytes)
{
    void *block = shmem_malloc(bytes);
    if (block == NULL) {
        fprintf(stderr, "PE %d: the symmetric heap has no %zu bytes left\n", shmem_my_pe(), bytes);
        shmem_global_exit(EXIT_FAILURE);
    }
    return block;
}

static void expect(int right, const char *what)
{
    if (!right) {
        fprintf(stderr, "PE %d: %s is wrong\n", shmem_my_pe(), what);
        shmem_global_exit(EXIT_FAILURE);
    }
}

int main(void)
{
    shmem_init();
    const int me = shmem_my_pe();
    const int pes = shmem_n_pes();

    for (int i = 0; i < SHMEM_REDUCE_SYNC_SIZE; i++)
        all_sync[0][i] = all_sync[1][i] = even_sync[i] = SHMEM_SYNC_VALUE;

    int *mine = symmetric(VALUES * sizeof *mine);
    int *together = symmetric(VALUES * sizeof *together);
    int *one_by_one = symmetric(VALUES * sizeof *one_by_one);
    double *height = symmetric(sizeof *height);
    double *highest = symmetric(sizeof *highest);

    /* The largest values lie on the last PE, on PE 0 and in the middle. */
    const int middle = pes / 2;
    mine[0] = 100 + me;
    mine[1] = -me;
    mine[2] = 1000 - (me - middle) * (me - middle);
    *height = me + 0.5;
    shmem_barrier_all(); /* every PE's work arrays are ready */

    shmem_int_max_to_all(together, mine, VALUES, 0, 0, pes, all_work[0], all_sync[0]);
    shmem_barrier_all(); /* no PE is still at work with the first pair */

    for (int i = 0; i < VALUES; i++)
        shmem_int_max_to_all(&one_by_one[i], &mine[i], 1, 0, 0, pes, all_work[i % PAIRS],
                             all_sync[i % PAIRS]);

    for (int i = 0; i < VALUES; i++)
        expect(together[i] == one_by_one[i], "one of the three maxima");
    expect(together[0] == 99 + pes && together[1] == 0 && together[2] == 1000, "the maximum");
    if (me == 0)
        printf("largest over all %d PEs: %d %d %d\n", pes, together[0], together[1], together[2]);

    if (me % 2 == 0) {
        const int evens = (pes + 1) / 2;
        shmem_double_max_to_all(highest, height, 1, 0, 1, evens, even_work, even_sync);
        expect(*highest == 2 * (evens - 1) + 0.5, "the maximum over the even PEs");
        printf("PE %d: largest over the %d even PEs: %.1f\n", me, evens, *highest);
    }

    shmem_free(highest);
    shmem_free(height);
    shmem_free(one_by_one);
    shmem_free(together);
    shmem_free(mine);
    shmem_finalize();
    return 0;
}
