/* A job with one barrier, to time its start and its end from outside: no program sees when its
 * launcher starts and ends. */
#include <shmem.h>

int main(void)
{
    shmem_init();
    shmem_barrier_all();
    shmem_finalize();
    return 0;
}
