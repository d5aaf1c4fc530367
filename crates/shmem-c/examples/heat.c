/* Heat in a plate whose edges stay at 0 degrees. Each PE has a band of rows. In each step it sends
 * its first and its last row to the PEs above and below, each with a signal.
 *
 *     oshcc heat.c -o heat -lm && oshrun -n 4 ./heat
 */
#include <math.h>
#include <shmem.h>
#include <stdio.h>
#include <stdlib.h>

enum { ROWS = 16, COLUMNS = 64, STEPS = 200 };

/* The temperatures in odd and in even steps. Rows 0 and ROWS + 1 are copies of the neighbors'. */
static double plate[2][ROWS + 2][COLUMNS + 2];
/* The last step for which the neighbor's row has arrived, for each of the two plates. */
static uint64_t from_above[2], from_below[2];

static double start(int row, int column, int rows) {
    const double pi = acos(-1);
    return sin(pi * row / (rows + 1)) * sin(pi * column / (COLUMNS + 1));
}

/* The factor by which a step multiplies the temperatures that `start` returns. */
static double decay(int rows) {
    const double pi = acos(-1);
    return (cos(pi / (rows + 1)) + cos(pi / (COLUMNS + 1))) / 2;
}

int main(void) {
    shmem_init();
    int me = shmem_my_pe(), n = shmem_n_pes();
    int above = me - 1, below = me + 1;

    for (int i = 1; i <= ROWS; i++)
        for (int j = 1; j <= COLUMNS; j++)
            plate[0][i][j] = start(me * ROWS + i, j, n * ROWS);

    for (uint64_t step = 1; step <= STEPS; step++) {
        int old = (step + 1) % 2, new = step % 2;

        if (above >= 0)
            shmem_double_put_signal(plate[old][ROWS + 1], plate[old][1], COLUMNS + 2,
                                    &from_below[old], step, SHMEM_SIGNAL_SET, above);
        if (below < n)
            shmem_double_put_signal(plate[old][0], plate[old][ROWS], COLUMNS + 2,
                                    &from_above[old], step, SHMEM_SIGNAL_SET, below);

        if (above >= 0)
            shmem_signal_wait_until(&from_above[old], SHMEM_CMP_GE, step);
        if (below < n)
            shmem_signal_wait_until(&from_below[old], SHMEM_CMP_GE, step);

        for (int i = 1; i <= ROWS; i++)
            for (int j = 1; j <= COLUMNS; j++)
                plate[new][i][j] = (plate[old][i - 1][j] + plate[old][i + 1][j] +
                                    plate[old][i][j - 1] + plate[old][i][j + 1]) / 4;
    }

    static double error, largest;
    double factor = pow(decay(n * ROWS), STEPS);
    for (int i = 1; i <= ROWS; i++)
        for (int j = 1; j <= COLUMNS; j++) {
            double right = factor * start(me * ROWS + i, j, n * ROWS);
            error = fmax(error, fabs(plate[STEPS % 2][i][j] - right));
        }
    shmem_double_max_reduce(SHMEM_TEAM_WORLD, &largest, &error, 1);
    if (me == 0)
        printf("%d PEs, %d steps: the largest error is %.0e\n", n, STEPS, largest);
    shmem_finalize();
    return largest < 1e-12 ? EXIT_SUCCESS : EXIT_FAILURE;
}
