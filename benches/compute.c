/* Times a loop in PE 0 that only computes, while the other PE sleeps in the kernel.
 *
 * The same loop in a job of one PE, which serves no peer, shows how much the other PE slows it
 * down. shmem-perf cannot compare two jobs. The program prints one line, `compute nanoseconds`.
 */
#define _GNU_SOURCE
#include "plain.h"

enum { STEPS = 300 * 1000 * 1000 };

static volatile unsigned long sink; /* receives the result */

/* Each step depends on the one before, so the CPU cannot overlap them. */
static void compute(void)
{
    unsigned long value = sink;
    for (long step = 0; step < STEPS; step++)
        value = value * 6364136223846793005 + 1442695040888963407;
    sink = value;
}

int main(void)
{
    shmem_init();
    const int me = shmem_my_pe();
    const int n_pes = shmem_n_pes();
    if (n_pes > 2)
        give_up("it takes 1 PE or 2");
    run_on_processor(me);
    long *words = symmetric(2 * sizeof *words);

    /* Libraries that connect PEs at first use do so now, in both directions. */
    for (int pe = 0; pe < n_pes; pe++)
        shmem_long_p(words + me, 1, pe);
    shmem_barrier_all();
    const int connection = n_pes == 2 ? connect_plainly(words, 1 - me) : -1;

    char woken = 1;
    if (me == 0) {
        const double start = now();
        compute();
        report("compute", now() - start);
        if (n_pes == 2 && send(connection, &woken, 1, MSG_NOSIGNAL) != 1)
            give_up("the plain connection failed");
    } else if (recv(connection, &woken, 1, 0) != 1) {
        give_up("the plain connection failed");
    }
    if (n_pes == 2)
        close(connection);
    shmem_free(words);
    shmem_finalize();
    return 0;
}
