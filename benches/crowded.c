/* Times small operations between PE 0 and the last PE while the other PEs wait in a barrier, for
 * machines on which PEs outnumber the processors or other processes compute. It reports means,
 * which include operations that waited for a time slice; the medians of shmem-perf do not show
 * these. It prints one line for each operation, in nanoseconds.
 *
 * `crowded busy` computes until it is killed, without initializing the library: a neighbor that
 * takes a processor.
 */
#define _GNU_SOURCE
#include "timing.h"

enum { AT_ONCE = 20, WORDS = 64, STOP = 32 };

static const double LIMIT = 0.3e9; /* nanoseconds for each operation */

static long *words;
static int me, peer;

static void put(long turn)
{
    shmem_long_p(words + 8, turn, peer);
    shmem_quiet();
}

static void get(long turn)
{
    (void)turn;
    (void)shmem_long_g(words + 8, peer);
}

static void fetch_add(long turn)
{
    (void)turn;
    (void)shmem_long_atomic_fetch_add(words + 16, 1, peer);
}

static void round_trip(long turn)
{
    if (me == 0)
        shmem_long_p(words, turn, peer);
    shmem_long_wait_until(words, SHMEM_CMP_EQ, turn);
    if (me != 0)
        shmem_long_p(words, turn, peer);
}

/* Times `operate`, which PE 0 calls, and also the last PE if `is_mutual`, until LIMIT is over. All
 * PEs call this. After each AT_ONCE operations, PE 0 writes the number of these parts, or -1 after
 * the last one, to words[STOP] of its own and, if `is_mutual`, of the last PE, which waits for it,
 * so that both call `operate` equally often. */
static void measure(const char *name, void (*operate)(long), int is_mutual)
{
    const int is_last = me == shmem_n_pes() - 1;
    memset(words, 0, WORDS * sizeof *words);
    shmem_barrier_all();
    long turn = 0;
    const double start = now();
    if (me == 0 || (is_mutual && is_last))
        for (long part = 1; words[STOP] >= 0; part++) {
            for (int i = 0; i < AT_ONCE; i++)
                operate(++turn);
            const long next = now() - start < LIMIT ? part : -1;
            if (me == 0)
                words[STOP] = next;
            if (me == 0 && is_mutual)
                shmem_long_p(words + STOP, next, peer);
            else if (is_mutual)
                while (words[STOP] >= 0 && words[STOP] < part)
                    shmem_long_wait_until(words + STOP, SHMEM_CMP_NE, part - 1);
        }
    const double end = now();
    shmem_barrier_all();
    if (me == 0)
        report(name, (end - start) / turn);
}

int main(int argc, char **argv)
{
    if (argc == 2 && strcmp(argv[1], "busy") == 0)
        for (volatile unsigned long value = 1;;)
            value = value * 6364136223846793005 + 1442695040888963407;
    shmem_init();
    me = shmem_my_pe();
    if (shmem_n_pes() < 2)
        give_up("it takes 2 PEs or more");
    peer = me == 0 ? shmem_n_pes() - 1 : 0;
    words = symmetric(WORDS * sizeof *words);
    measure("put", put, 0);
    measure("get", get, 0);
    measure("fetch_add", fetch_add, 0);
    measure("round_trip", round_trip, 1);
    shmem_free(words);
    shmem_finalize();
    return 0;
}
