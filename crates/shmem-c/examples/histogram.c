/* A histogram whose counters are spread over all PEs. Each PE draws numbers, and adds 1 to the
 * counter of each, wherever it is.
 *
 *     oshcc histogram.c -o histogram && oshrun -n 4 ./histogram
 */
#include <shmem.h>
#include <stdio.h>
#include <stdlib.h>

enum { BUCKETS = 1000, NUMBERS = 5000 };

/* Bucket b is counts[b / n] of PE b % n, where n is the number of PEs. */
static long counts[BUCKETS];

/* The i-th number that PE `pe` draws: the sum of two dice with BUCKETS / 2 sides. */
static unsigned draw(unsigned pe, unsigned i) {
    unsigned long x = (pe + 1) * 1000003ul + i;
    x = (x ^ (x >> 15)) * 0xd168aaadul;
    x = (x ^ (x >> 15)) * 0xaf723597ul;
    x ^= x >> 15;
    return x % (BUCKETS / 2) + (x >> 16) % (BUCKETS / 2);
}

int main(void) {
    shmem_init();
    int me = shmem_my_pe(), n = shmem_n_pes();

    for (unsigned i = 0; i < NUMBERS; i++) {
        unsigned bucket = draw(me, i);
        shmem_long_atomic_inc(&counts[bucket / n], bucket % n);
    }

    shmem_barrier_all();

    /* Each PE draws the numbers of all, and compares the counters that it has. */
    static long right[BUCKETS];
    for (int pe = 0; pe < n; pe++)
        for (unsigned i = 0; i < NUMBERS; i++)
            right[draw(pe, i)]++;
    static long wrong, all_wrong, sum, all;
    for (int bucket = me; bucket < BUCKETS; bucket += n) {
        sum += counts[bucket / n];
        wrong += counts[bucket / n] != right[bucket];
    }
    shmem_long_sum_reduce(SHMEM_TEAM_WORLD, &all, &sum, 1);
    shmem_long_sum_reduce(SHMEM_TEAM_WORLD, &all_wrong, &wrong, 1);
    if (me == 0)
        printf("%d PEs counted %ld numbers; %ld of %d counters are wrong\n", n, all, all_wrong,
               BUCKETS);
    shmem_finalize();
    return all_wrong == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
