/* Solves block tridiagonal systems along each direction of a grid in turn, as the application BT
 * of the NAS Parallel Benchmarks does, with blocks of 5 x 5. It is written from the description in
 * NAS report RNR-94-007.
 *
 * The grid is divided into slabs along z. Lines along x and y are within a PE. Lines along z are
 * eliminated from the lowest PE to the highest, one row of lines at a time, and solved from the
 * highest to the lowest; each row is put to the next PE with a signal. `cargo xtask bench-races`
 * runs this program because it mostly loads and stores symmetric memory and small arrays on the
 * stack. It needs OpenSHMEM 1.5.
 */
#include "kernel.h"

enum { N = 5, SIDE = 24, ITERATIONS = 4 };

typedef double vector[N];
typedef double block[N][N];

/* The result of eliminating a cell: its value is right - upper * (value of the next cell). */
typedef struct {
    block upper;
    vector right;
} eliminated;

static vector *field;       /* [slab][y][x], symmetric */
static eliminated *lines;   /* the cells of one line or, along z, of the slab */
static eliminated *arrived; /* [y][x] from the PE below */
static vector *solved;      /* [y][x] from the PE above */
static uint64_t *forward, *backward; /* [y], signals: how often the row has been received */
static int slab;

static vector *at(int z, int y, int x)
{
    return field + ((size_t)z * SIDE + y) * SIDE + x;
}

/* target -= matrix * operand */
static void subtract_product(vector target, block matrix, const vector operand)
{
    for (int i = 0; i < N; i++)
        for (int j = 0; j < N; j++)
            target[i] -= matrix[i][j] * operand[j];
}

static void subtract_products(block target, block matrix, block operand)
{
    for (int i = 0; i < N; i++)
        for (int k = 0; k < N; k++)
            for (int j = 0; j < N; j++)
                target[i][j] -= matrix[i][k] * operand[k][j];
}

/* Gauss-Jordan elimination without pivots; the diagonal dominates. */
static void solve(block matrix, eliminated *sides)
{
    for (int pivot = 0; pivot < N; pivot++) {
        const double scale = 1 / matrix[pivot][pivot];
        for (int j = pivot; j < N; j++)
            matrix[pivot][j] *= scale;
        for (int j = 0; j < N; j++)
            sides->upper[pivot][j] *= scale;
        sides->right[pivot] *= scale;
        for (int i = 0; i < N; i++) {
            if (i == pivot)
                continue;
            const double factor = matrix[i][pivot];
            for (int j = pivot; j < N; j++)
                matrix[i][j] -= factor * matrix[pivot][j];
            for (int j = 0; j < N; j++)
                sides->upper[i][j] -= factor * sides->upper[pivot][j];
            sides->right[i] -= factor * sides->right[pivot];
        }
    }
}

/* Eliminates a cell. The blocks of the matrix depend on the field, so they are computed here in
 * each step. */
static void eliminate(const vector value, const eliminated *before, eliminated *made, int last)
{
    block lower, middle;
    for (int i = 0; i < N; i++) {
        for (int j = 0; j < N; j++) {
            const double coupling = 0.01 * value[i] * value[j];
            lower[i][j] = (i == j ? -1.0 : 0.0) + coupling;
            middle[i][j] = (i == j ? 4.0 : 0.0) - coupling;
            made->upper[i][j] = last ? 0 : (i == j ? -1.0 : 0.0) - coupling;
        }
        made->right[i] = value[i];
    }
    if (before != NULL) {
        subtract_product(made->right, lower, before->right);
        block product;
        memcpy(product, before->upper, sizeof product);
        subtract_products(middle, lower, product);
    }
    solve(middle, made);
}

static void substitute(vector value, eliminated *own, const vector next)
{
    if (next != NULL)
        subtract_product(own->right, own->upper, next);
    memcpy(value, own->right, sizeof own->right);
}

/* Solves a line of `SIDE` cells, which are `step` cells apart. */
static void solve_line(vector *first, size_t step)
{
    for (int i = 0; i < SIDE; i++)
        eliminate(first[i * step], i == 0 ? NULL : lines + i - 1, lines + i, i == SIDE - 1);
    for (int i = SIDE - 1; i >= 0; i--)
        substitute(first[i * step], lines + i, i == SIDE - 1 ? NULL : first[(i + 1) * step]);
}

static void solve_z(int me, int n_pes, uint64_t turn)
{
    const int bottom = me == 0, top = me == n_pes - 1;
    const size_t layer = SIDE * SIDE;
    for (int y = 0; y < SIDE; y++) {
        if (!bottom)
            shmem_signal_wait_until(forward + y, SHMEM_CMP_EQ, turn);
        eliminated *const row = lines + (size_t)y * SIDE, *const from = arrived + (size_t)y * SIDE;
        for (int z = 0; z < slab; z++)
            for (int x = 0; x < SIDE; x++) {
                const eliminated *const below = z > 0 ? row + (z - 1) * layer + x : from + x;
                eliminate(*at(z, y, x), bottom && z == 0 ? NULL : below, row + z * layer + x,
                          top && z == slab - 1);
            }
        if (!top)
            shmem_putmem_signal(from, row + (slab - 1) * layer, SIDE * sizeof *row, forward + y,
                                turn, SHMEM_SIGNAL_SET, me + 1);
    }
    for (int y = 0; y < SIDE; y++) {
        if (!top)
            shmem_signal_wait_until(backward + y, SHMEM_CMP_EQ, turn);
        for (int z = slab - 1; z >= 0; z--)
            for (int x = 0; x < SIDE; x++) {
                const vector *const above = z < slab - 1 ? at(z + 1, y, x) : solved + y * SIDE + x;
                substitute(*at(z, y, x), lines + (size_t)y * SIDE + z * layer + x,
                           top && z == slab - 1 ? NULL : *above);
            }
        if (!bottom)
            shmem_putmem_signal(solved + y * SIDE, at(0, y, 0), SIDE * sizeof(vector), backward + y,
                                turn, SHMEM_SIGNAL_SET, me - 1);
    }
}

/* The sum of the squares over the grid, equal for any number of PEs but for rounding. */
static double norm(void)
{
    static double own, all;
    own = 0;
    for (size_t cell = 0; cell < (size_t)slab * SIDE * SIDE; cell++)
        for (int i = 0; i < N; i++)
            own += field[cell][i] * field[cell][i];
    shmem_double_sum_reduce(SHMEM_TEAM_WORLD, &all, &own, 1);
    return all;
}

int main(void)
{
    shmem_init();
    const int me = shmem_my_pe();
    const int n_pes = shmem_n_pes();
    if (SIDE % n_pes != 0)
        give_up("the number of PEs must divide 24");
    slab = SIDE / n_pes;
    const size_t layer = SIDE * SIDE;
    field = symmetric(slab * layer * sizeof *field);
    arrived = symmetric(layer * sizeof *arrived);
    solved = symmetric(layer * sizeof *solved);
    forward = symmetric(SIDE * sizeof *forward);
    backward = symmetric(SIDE * sizeof *backward);
    lines = symmetric(slab * layer * sizeof *lines);
    for (int z = 0; z < slab; z++)
        for (int y = 0; y < SIDE; y++)
            for (int x = 0; x < SIDE; x++)
                for (int i = 0; i < N; i++)
                    (*at(z, y, x))[i] = 1 + 0.1 * i + 0.01 * ((x + 2 * y + 3 * (z + me * slab)) % 7);
    const double norm_before = norm();
    shmem_barrier_all();

    const double start = now();
    for (uint64_t turn = 1; turn <= ITERATIONS; turn++) {
        for (int z = 0; z < slab; z++)
            for (int i = 0; i < SIDE; i++)
                solve_line(at(z, i, 0), 1);
        for (int z = 0; z < slab; z++)
            for (int i = 0; i < SIDE; i++)
                solve_line(at(z, 0, i), SIDE);
        solve_z(me, n_pes, turn);
        shmem_barrier_all();
    }
    const double time = now() - start;

    const double left = norm();
    if (!(left > 0 && left < norm_before))
        give_up("the solution grows");
    if (me == 0)
        report("norm", left * 1e6);
    report_kernel(time);
    shmem_finalize();
    return 0;
}
