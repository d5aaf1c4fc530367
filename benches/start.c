/* A job with one barrier, whose start and end are timed from outside, because no program sees when
 * its launcher starts and ends. */
#include <shmem.h>

int main(void)
{
    shmem_init();
    shmem_barrier_all();
    shmem_finalize();
    return 0;
}
