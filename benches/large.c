/* Times a fork in a job whose PEs have 4 GiB of static variables each: with almost none of them in use, and with some.
 *
 * The linker places common variables behind all others, so that the usual code model reaches their start.
 */
#define _GNU_SOURCE
#include "timing.h"
#include <sys/wait.h>

enum { USED = 64 << 20 };

__attribute__((common)) char large[4l << 30];

static void forks(long count)
{
    for (long i = 0; i < count; i++) {
        const pid_t child = fork();
        if (child == 0)
            _exit(0);
        waitpid(child, NULL, 0);
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
        report("fork_unused", each(forks, 1e6));
        memset(large, 1, USED);
        report("fork_used", each(forks, 1e6));
    }
    shmem_barrier_all();
    shmem_finalize();
    return 0;
}
