/* A function in C for a program in Rust, in the same job: adds up a number of each PE. */
#include <shmem.h>

static long number, sum;

long sum_in_c(long mine, long *inbox)
{
    /* The library, which is initialized already, counts this initialization and its end. */
    shmem_init();
    number = mine;
    shmem_barrier_all();
    shmem_long_sum_reduce(SHMEM_TEAM_WORLD, &sum, &number, 1);
    shmem_long_p(inbox, shmem_my_pe(), (shmem_my_pe() + 1) % shmem_n_pes());
    shmem_finalize();
    return sum;
}
