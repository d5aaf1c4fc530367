/* Children of fork store to their copies of a PE's variables and to the symmetric heap, and are killed. PEs: 2 */
#include <shmem.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

enum { N = 512 };
static volatile long of_all[N], counter;

static int ends_with(pid_t child) {
    int status;
    waitpid(child, &status, 0);
    return status;
}

int main(void) {
    shmem_init();
    int me = shmem_my_pe();
    volatile long *own = malloc(N * sizeof *own);
    volatile long *heap = shmem_malloc(8 * N * sizeof *heap);
    static long source[N];
    own[0] = 1;
    shmem_barrier_all();

    /* The child stores to its copies; the PE's own buffer is in flight, and other PEs put into its static data. */
    shmem_long_put_nbi((long *)of_all, (long *)own, N, !me);
    pid_t child = fork();
    if (child == 0) {
        for (int i = 0; i < N; i++)
            own[i] = of_all[i] = 2;
        counter = 1;
        _exit(0);
    }
    int status = ends_with(child);
    shmem_quiet();
    own[0] = 3;
    shmem_barrier_all();
    if (me == 0)
        shmem_long_put((long *)of_all, source, N, 1);
    shmem_barrier_all();

    /* A child that is killed must not hold a lock of the detector. */
    for (int i = 0; i < 40; i++) {
        child = fork();
        if (child == 0)
            for (;;)
                for (int j = 0; j < 8 * N; j++)
                    heap[j] = j;
        usleep(500 + rand() % 1000);
        kill(child, SIGKILL);
        ends_with(child);
        for (int j = 0; j < 8 * N; j++)
            heap[j] = j;
        shmem_barrier_all();
    }
    shmem_finalize();
    return status;
}
