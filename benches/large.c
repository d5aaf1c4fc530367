/* Times a fork in a job whose PEs have 4 GiB of static variables each: while almost none of the
 * memory is in use, and while 64 MiB are. shmem-perf has few static variables, and does not fork.
 *
 * The linker places common variables after all others, so the small code model reaches their start.
 */
#define _GNU_SOURCE
#include "timing.h"
#include <sys/wait.h>

enum { USED = 64 << 20 };

__attribute__((common)) char large[4l << 30];

/* Returns the mean time of a fork. Doubles the number of forks until they take a millisecond;
 * returns the mean of the last loop. */
static double fork_time(void)
{
    for (long count = 64;; count *= 2) {
        const double start = now();
        for (long i = 0; i < count; i++) {
            const pid_t child = fork();
            if (child == 0)
                _exit(0);
            waitpid(child, NULL, 0);
        }
        const double lasted = now() - start;
        if (lasted >= 1e6)
            return lasted / count;
    }
}

int main(int count, char **words)
{
    (void)words;
    shmem_init();
    const int me = shmem_my_pe();
    shmem_char_p(large + (4l << 30) - count, 1, 1 - me);
    shmem_barrier_all();
    if (me == 0) {
        report("fork_unused", fork_time());
        memset(large, 1, USED);
        report("fork_used", fork_time());
    }
    shmem_barrier_all();
    shmem_finalize();
    return 0;
}
