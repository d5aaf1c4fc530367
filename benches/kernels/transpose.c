/* Transposes a matrix whose columns are spread over all PEs, again and again. For each PE, a PE
 * transposes the block of its own columns that belongs there, and puts it without waiting.
 */
#include "kernel.h"

enum { ORDER = 1024, ROUNDS = 64, TILE = 16 /* columns whose cache lines stay in the cache */ };

static double *matrix, *transposed; /* symmetric: this PE's columns, stored row by row */
static double *blocks;              /* private, the sources of the puts */

static double value(long row, long column, int round)
{
    return (double)(row * ORDER + column + round);
}

/* Transposes and puts a block of `width` x `width` elements for each PE. */
static void transpose(int me, int n_pes)
{
    const int width = ORDER / n_pes;
    const size_t nelems = (size_t)width * width;
    for (int pe = 0; pe < n_pes; pe++) {
        const double *const from = matrix + pe * nelems;
        double *const block = blocks + pe * nelems;
        for (int tile = 0; tile < width; tile += TILE)
            for (int row = 0; row < width; row++)
                for (int column = tile; column < tile + TILE; column++)
                    block[(size_t)column * width + row] = from[(size_t)row * width + column];
        shmem_double_put_nbi(transposed + me * nelems, block, nelems, pe);
    }
    shmem_barrier_all();
}

static void add_one(int n_pes)
{
    const size_t nelems = (size_t)ORDER * ORDER / n_pes;
    for (size_t i = 0; i < nelems; i++)
        matrix[i] = transposed[i] + 1;
    shmem_barrier_all();
}

int main(void)
{
    shmem_init();
    const int me = shmem_my_pe();
    const int n_pes = shmem_n_pes();
    if (ORDER % (n_pes * TILE) != 0)
        give_up("the number of PEs does not divide the matrix into tiles");
    const int width = ORDER / n_pes;
    const size_t nbytes = (size_t)ORDER * width * sizeof(double);
    matrix = symmetric(nbytes);
    transposed = symmetric(nbytes);
    blocks = malloc(nbytes);
    if (blocks == NULL)
        give_up("there is no memory");
    for (int row = 0; row < ORDER; row++)
        for (int column = 0; column < width; column++)
            matrix[(size_t)row * width + column] = value(row, (long)me * width + column, 0);
    shmem_barrier_all();

    const double start = now();
    for (int round = 0; round < ROUNDS; round++) {
        transpose(me, n_pes);
        add_one(n_pes);
    }
    const double time = now() - start;

    /* An even number of transpositions restores the order of the elements. */
    for (int row = 0; row < ORDER; row++)
        for (int column = 0; column < width; column++)
            if (matrix[(size_t)row * width + column]
                != value(row, (long)me * width + column, ROUNDS))
                give_up("an element is wrong");
    report_kernel(time);
    shmem_finalize();
    return 0;
}
