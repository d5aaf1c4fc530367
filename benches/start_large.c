/* A job with one barrier and 4 GiB of static variables on each PE, to time how much they add to the
 * start and the end of a job. */
#include <shmem.h>

__attribute__((common)) char large[4l << 30];

int main(int count, char **words)
{
    (void)words;
    large[(4l << 30) - count] = 1;
    shmem_init();
    shmem_barrier_all();
    shmem_finalize();
    return 0;
}
