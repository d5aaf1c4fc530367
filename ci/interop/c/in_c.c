/* A function in C for a program in Rust: the sum of a number of all PEs, which are in one job in both languages. */
#include <shmem.h>

static long number, sum;

long sum_in_c(long mine, long *inbox)
{
    /* Where the library is initialized already, this is counted, and so is its end. */
    shmem_init();
    number = mine;
    shmem_barrier_all();
    shmem_long_sum_reduce(SHMEM_TEAM_WORLD, &sum, &number, 1);
    shmem_long_p(inbox, shmem_my_pe(), (shmem_my_pe() + 1) % shmem_n_pes());
    shmem_finalize();
    return sum;
}
