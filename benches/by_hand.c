/* Collectives, each in turn with the same thing written with puts and one barrier, where PEs may
 * outnumber the CPUs. shmem-perf, which measures any library, has neither the reductions to a root
 * nor the exchanges of this library's extensions, and compares jobs, not calls of one job.
 *
 *     oshcc -O2 benches/by_hand.c -o by_hand && taskset -c 0,1 oshrun -n 4 ./by_hand [CALLS]
 *
 * For each collective and size of a block or vector, PE 0 prints the time of the library divided by
 * that of the other form, the median of 15 rounds, and the library's time in microseconds. Both
 * times are those in which the result was also read.
 */
#define _GNU_SOURCE
#include "timing.h"
#include <shmemx.h>

enum { MOST_WORDS = 512, MOST_PES = 64, ROUNDS = 15 };

static int me, n, calls = 300;
static long *source, *dest;

/* What the puts of one call store here. The next call uses the other one: a PE may begin it before
 * its peers have read what it has put. */
static long *received[2];
static int turn;

static size_t source_offsets[MOST_PES], sizes[MOST_PES], dest_offsets[MOST_PES], received_sizes[MOST_PES];
static size_t requested[2][MOST_PES], announced[MOST_PES];

static void put_to_all(long *to, const long *from, size_t words, size_t step)
{
    for (int distance = 1; distance <= n; distance++) {
        const int peer = (me + distance) % n;
        shmem_long_put(to + me * words, from + peer * step, words, peer);
    }
}

static void add_up(const long *parts, int count, size_t words)
{
    memcpy(dest, parts, words * sizeof *dest);
    for (int pe = 1; pe < count; pe++)
        for (size_t i = 0; i < words; i++)
            dest[i] += parts[pe * words + i];
}

static void reduce(size_t words)
{
    shmem_long_sum_reduce(SHMEM_TEAM_WORLD, dest, source, words);
}

static void reduce_by_hand(size_t words)
{
    long *parts = received[turn];
    put_to_all(parts, source, words, 0);
    shmem_barrier_all();
    add_up(parts, n, words);
}

static void reduce_to(size_t words)
{
    shmemx_long_sum_reduce_to(SHMEM_TEAM_WORLD, dest, source, words, 0);
}

static void reduce_to_by_hand(size_t words)
{
    long *parts = received[turn];
    shmem_long_put(parts + me * words, source, words, 0);
    shmem_barrier_all();
    if (me == 0)
        add_up(parts, n, words);
}

static void reduce_scatter(size_t words)
{
    shmemx_long_sum_reduce_scatter(SHMEM_TEAM_WORLD, dest, source, words);
}

static void reduce_scatter_by_hand(size_t words)
{
    long *parts = received[turn];
    put_to_all(parts, source, words, words);
    shmem_barrier_all();
    add_up(parts, n, words);
}

static void scan(size_t words)
{
    shmem_long_sum_inscan(SHMEM_TEAM_WORLD, dest, source, words);
}

static void scan_by_hand(size_t words)
{
    long *parts = received[turn];
    for (int peer = me; peer < n; peer++)
        shmem_long_put(parts + me * words, source, words, peer);
    shmem_barrier_all();
    add_up(parts, me + 1, words);
}

static void fcollect(size_t words)
{
    shmem_long_fcollect(SHMEM_TEAM_WORLD, dest, source, words);
}

static void fcollect_by_hand(size_t words)
{
    put_to_all(dest, source, words, 0);
    shmem_barrier_all();
}

static void alltoall(size_t words)
{
    shmem_long_alltoall(SHMEM_TEAM_WORLD, dest, source, words);
}

static void alltoall_by_hand(size_t words)
{
    put_to_all(dest, source, words, words);
    shmem_barrier_all();
}

static void alltoallv(size_t words)
{
    (void)words;
    shmemx_team_alltoallvmem(SHMEM_TEAM_WORLD, dest, dest_offsets, received_sizes, source, source_offsets, sizes);
}

static void alltoallv_by_hand(size_t words)
{
    (void)words;
    for (int pe = 0; pe < n; pe++)
        shmem_size_p(&requested[turn][me], dest_offsets[pe], pe);
    shmem_barrier_all();
    for (int distance = 1; distance <= n; distance++) {
        const int peer = (me + distance) % n;
        const char *block = (char *)source + source_offsets[peer];
        shmem_putmem((char *)dest + requested[turn][peer], block, sizes[peer], peer);
        shmem_size_p(&announced[me], sizes[peer], peer);
    }
    shmem_barrier_all();
    memcpy(received_sizes, announced, n * sizeof *announced);
}

typedef void (*form)(size_t words);

static const struct {
    const char *name;
    form library, by_hand;
} collectives[] = {
    { "reduce", reduce, reduce_by_hand },
    { "reduce_to", reduce_to, reduce_to_by_hand },
    { "reduce_scatter", reduce_scatter, reduce_scatter_by_hand },
    { "inscan", scan, scan_by_hand },
    { "fcollect", fcollect, fcollect_by_hand },
    { "alltoall", alltoall, alltoall_by_hand },
    { "alltoallv", alltoallv, alltoallv_by_hand },
};

/* Reads a word of each cache line that a call may have written to dest, as a program does: until
 * then the lines need not have come from the CPUs of the peers. */
static void read_dest(size_t words)
{
    enum { WORDS_OF_LINE = 8 };
    static volatile long sum;
    for (size_t i = 0; i < words * n; i += WORDS_OF_LINE)
        sum += dest[i];
}

/* Returns the microseconds of a call and of the reads of its result. */
static double timed(form call, size_t words)
{
    shmem_barrier_all();
    const double start = now();
    for (int i = 0; i < calls; i++) {
        turn = !turn;
        call(words);
        read_dest(words);
    }
    shmem_barrier_all();
    return (now() - start) / calls / 1e3;
}

static int compare(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Ends the job unless both forms have the same result. */
static void verify(int which, size_t words)
{
    static long expected[MOST_WORDS * MOST_PES];
    const size_t bytes = MOST_WORDS * n * sizeof *dest;
    memset(dest, 0, bytes);
    shmem_barrier_all();
    collectives[which].by_hand(words);
    shmem_barrier_all();
    memcpy(expected, dest, bytes);

    memset(dest, 0, bytes);
    shmem_barrier_all();
    collectives[which].library(words);
    shmem_barrier_all();
    if (memcmp(expected, dest, bytes) != 0)
        give_up(collectives[which].name);
}

static void measure(int which, size_t words)
{
    for (int pe = 0; pe < n; pe++) {
        sizes[pe] = words * sizeof *source;
        source_offsets[pe] = pe * sizes[pe];
        dest_offsets[pe] = pe * sizes[pe];
    }
    verify(which, words);

    double ratios[ROUNDS], times[ROUNDS];
    for (int round = 0; round < ROUNDS; round++) {
        const double before = timed(collectives[which].by_hand, words);
        times[round] = timed(collectives[which].library, words);
        const double after = timed(collectives[which].by_hand, words);
        ratios[round] = 2 * times[round] / (before + after);
    }
    qsort(ratios, ROUNDS, sizeof *ratios, compare);
    qsort(times, ROUNDS, sizeof *times, compare);
    if (me == 0) {
        printf(" %6.2f (%5.1f)", ratios[ROUNDS / 2], times[ROUNDS / 2]);
        fflush(stdout);
    }
}

int main(int argc, char **argv)
{
    shmem_init();
    me = shmem_my_pe();
    n = shmem_n_pes();
    if (n > MOST_PES)
        give_up("it is for at most 64 PEs");
    if (argc > 1)
        calls = atoi(argv[1]);
    if (calls < 1)
        give_up("the number of calls is not positive");

    const size_t bytes = MOST_WORDS * n * sizeof *source;
    source = symmetric(bytes);
    dest = symmetric(bytes);
    received[0] = symmetric(bytes);
    received[1] = symmetric(bytes);
    for (int i = 0; i < MOST_WORDS * n; i++)
        source[i] = me * 1000 + i;

    if (me == 0)
        printf("%d PEs: library / puts and a barrier (microseconds of the library)\n%-15s", n, "bytes");
    for (size_t words = 1; words <= MOST_WORDS && me == 0; words *= 8)
        printf(" %14zu", words * sizeof *source);
    for (size_t which = 0; which < sizeof collectives / sizeof *collectives; which++) {
        if (me == 0)
            printf("\n%-15s", collectives[which].name);
        for (size_t words = 1; words <= MOST_WORDS; words *= 8)
            measure(which, words);
    }
    if (me == 0)
        printf("\n");
    shmem_finalize();
    return 0;
}
