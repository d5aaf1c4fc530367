/* A stencil of five points on a grid that is divided into strips of rows. In each step, a PE puts
 * its outermost rows to its two neighbors; no step has a barrier. With OpenSHMEM 1.5, a row is put
 * with a signal; with an older library, the row is put, then a fence and a put of a flag follow.
 *
 * Each step replaces a value by the mean of its neighbors plus 1. The mean does not change the
 * field x + y, so the exact values are known: x + y + the number of steps.
 */
#include "kernel.h"

enum { ROWS = 64, /* of a PE */ COLUMNS = 1024, STEPS = 4096 };

static double fields[2][ROWS][COLUMNS];    /* of an even and of an odd step */
static double halos[2][2][COLUMNS];        /* symmetric: by step, rows of the PE above and below */
#if SHMEM_MAJOR_VERSION > 1 || SHMEM_MINOR_VERSION > 4
static uint64_t arrived[2];                /* symmetric: number of rows received from each */
#else
static long arrived[2];
#endif

static void send(const double *row, int from, long step, int pe)
{
    double *const dest = halos[step % 2][from];
#if SHMEM_MAJOR_VERSION > 1 || SHMEM_MINOR_VERSION > 4
    shmem_double_put_signal(dest, row, COLUMNS, arrived + from, step + 1, SHMEM_SIGNAL_SET, pe);
#else
    shmem_double_put(dest, row, COLUMNS, pe);
    shmem_fence();
    shmem_long_p(arrived + from, step + 1, pe);
#endif
}

static void receive(int from, long step)
{
#if SHMEM_MAJOR_VERSION > 1 || SHMEM_MINOR_VERSION > 4
    shmem_signal_wait_until(arrived + from, SHMEM_CMP_GE, step + 1);
#else
    shmem_long_wait_until(arrived + from, SHMEM_CMP_GE, step + 1);
#endif
}

static double exact(long x, long y, long step)
{
    return (double)(x + y + step);
}

/* Returns a row by its index on this PE, from -1 to ROWS: its own, a neighbor's, or the fixed edge
 * of the grid, which is written to `edge`. */
static const double *row_at(int row, long step, long top, int n_pes, double *edge)
{
    const double(*const field)[COLUMNS] = fields[step % 2];
    if (row >= 0 && row < ROWS)
        return field[row];
    const long y = top + row;
    if (y >= 0 && y < (long)ROWS * n_pes)
        return halos[step % 2][row < 0 ? 0 : 1];
    for (int x = 0; x < COLUMNS; x++)
        edge[x] = exact(x, y, step);
    return edge;
}

static void compute(long step, long top, int n_pes)
{
    static double edge[2][COLUMNS];
    double(*const out)[COLUMNS] = fields[(step + 1) % 2];
    for (int row = 0; row < ROWS; row++) {
        const double *const above = row_at(row - 1, step, top, n_pes, edge[0]);
        const double *const here = row_at(row, step, top, n_pes, NULL);
        const double *const below = row_at(row + 1, step, top, n_pes, edge[1]);
        out[row][0] = exact(0, top + row, step + 1);
        for (int x = 1; x < COLUMNS - 1; x++)
            out[row][x] = (above[x] + below[x] + here[x - 1] + here[x + 1]) / 4 + 1;
        out[row][COLUMNS - 1] = exact(COLUMNS - 1, top + row, step + 1);
    }
}

int main(void)
{
    shmem_init();
    const int me = shmem_my_pe();
    const int n_pes = shmem_n_pes();
    const long top = (long)ROWS * me;
    for (int row = 0; row < ROWS; row++)
        for (int x = 0; x < COLUMNS; x++)
            fields[0][row][x] = exact(x, top + row, 0);
    shmem_barrier_all();

    const double start = now();
    for (long step = 0; step < STEPS; step++) {
        if (me > 0)
            send(fields[step % 2][0], 1, step, me - 1);
        if (me < n_pes - 1)
            send(fields[step % 2][ROWS - 1], 0, step, me + 1);
        if (me > 0)
            receive(0, step);
        if (me < n_pes - 1)
            receive(1, step);
        compute(step, top, n_pes);
    }
    shmem_barrier_all();
    const double time = now() - start;

    for (int row = 0; row < ROWS; row++)
        for (int x = 0; x < COLUMNS; x++)
            if (fields[STEPS % 2][row][x] != exact(x, top + row, STEPS))
                give_up("a value of the grid is wrong");
    report_kernel(time);
    shmem_finalize();
    return 0;
}
