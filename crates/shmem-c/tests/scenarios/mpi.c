/* Point 83: MPI and OpenSHMEM in one program. argv[1] names the one that is initialized first,
 * argv[2] the one that is finalized first. */
#include <mpi.h>
#include <shmem.h>
#include <stdio.h>
#include <string.h>

int main(int argc, char **argv) {
    int mpi_first = argc > 1 && !strcmp(argv[1], "mpi");
    int mpi_ends_first = argc > 2 && !strcmp(argv[2], "mpi");
    if (mpi_first)
        MPI_Init(&argc, &argv);
    shmem_init();
    if (!mpi_first)
        MPI_Init(&argc, &argv);
    int rank, size, me = shmem_my_pe(), n = shmem_n_pes(), sum = 0;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (rank != me || size != n)
        printf("FAIL rank %d of %d is PE %d of %d\n", rank, size, me, n);
    int *from = shmem_malloc(sizeof *from);
    *from = -1;
    shmem_barrier_all();
    shmem_int_p(from, me, (me + 1) % n);
    shmem_barrier_all();
    MPI_Allreduce(from, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    if (*from != (me + n - 1) % n || sum != n * (n - 1) / 2)
        printf("FAIL PE %d has %d from its neighbor, and the sum is %d\n", me, *from, sum);
    if (me == 0)
        printf("n_pes %d\nPASS\n", n);
    fflush(stdout);
    if (mpi_ends_first)
        MPI_Finalize();
    shmem_finalize();
    if (!mpi_ends_first)
        MPI_Finalize();
    return 0;
}
