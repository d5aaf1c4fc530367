/* Changes a symmetric table of 2-byte words, in the manner of the kernels of SSCA: puts, gets, p, g
 * and atomic operations of one word at a time, on consecutive and on random words of the next PE,
 * from and to private arrays of the same size.
 *
 * Almost all of its time is spent in the shortest calls, so it shows the cost of a call, and how
 * much SHMEM_CHECK, SHMEM_STATS and SHMEM_TRACE add to it.
 */
#include "kernel.h"

enum { WORDS = 1 << 22, JUMPS = 1 << 21, COUNTERS = 1 << 10 };

static unsigned short *table;  /* symmetric, changed only by the PE before this one */
static unsigned int *counters; /* symmetric */
static unsigned short *copies; /* private */
static long words, jumps;      /* number of words in order, and of changes of random words */

static unsigned int next(unsigned int *state)
{
    *state = *state * 1664525u + 1013904223u;
    return *state >> 10; /* below WORDS */
}

/* Adds 1 to each word in order. */
static void walk(int pe)
{
    for (long i = 0; i < words; i++) {
        shmem_ushort_get(copies + i, table + i, 1, pe);
        copies[i]++;
        shmem_ushort_put(table + i, copies + i, 1, pe);
    }
}

/* Adds 2 to random words, and counts these changes on the other PE. */
static void jump(int pe)
{
    unsigned int state = 1;
    for (long i = 0; i < jumps; i++) {
        const unsigned int word = next(&state);
        shmem_ushort_p(table + word, shmem_ushort_g(table + word, pe) + 1, pe);
        shmem_ushort_get(copies + word, table + word, 1, pe);
        copies[word]++;
        shmem_ushort_put(table + word, copies + word, 1, pe);
        shmem_uint_atomic_inc(counters + word % COUNTERS, pe);
    }
}

int main(int argc, char **argv)
{
    shmem_init();
    words = share_of(WORDS, argc, argv);
    jumps = share_of(JUMPS, argc, argv);
    const int me = shmem_my_pe();
    const int n_pes = shmem_n_pes();
    const int pe = (me + 1) % n_pes;
    table = symmetric(WORDS * sizeof *table);
    counters = symmetric(COUNTERS * sizeof *counters);
    copies = calloc(WORDS, sizeof *copies);
    if (copies == NULL)
        give_up("there is no memory");
    shmem_barrier_all();

    const double start = now();
    walk(pe);
    jump(pe);
    shmem_barrier_all();
    const double time = now() - start;

    unsigned int state = 1;
    for (long i = 0; i < words; i++)
        table[i]--;
    for (long i = 0; i < jumps; i++) {
        const unsigned int word = next(&state);
        table[word] -= 2;
        counters[word % COUNTERS]--;
    }
    for (int i = 0; i < WORDS; i++)
        if (table[i] != 0)
            give_up("a word is wrong");
    for (int i = 0; i < COUNTERS; i++)
        if (counters[i] != 0)
            give_up("a counter is wrong");
    report_kernel(time);
    shmem_finalize();
    return 0;
}
