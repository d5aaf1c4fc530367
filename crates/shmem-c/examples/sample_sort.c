/* Sorts numbers that are spread over all PEs. Samples tell which range of numbers each PE will have;
 * an alltoall tells how many each PE sends to each; puts send them.
 *
 *     oshcc sample_sort.c -o sample_sort && oshrun -n 4 ./sample_sort
 */
#include <shmem.h>
#include <stdio.h>
#include <stdlib.h>

enum { NUMBERS = 5000 };

static int compare(const void *a, const void *b) {
    long x = *(const long *)a, y = *(const long *)b;
    return (x > y) - (x < y);
}

static void *symmetric(size_t nelems) {
    void *block = shmem_malloc(nelems * sizeof(long));
    if (block == NULL) {
        fprintf(stderr, "the symmetric heap is too small\n");
        shmem_global_exit(EXIT_FAILURE);
    }
    return block;
}

int main(void) {
    shmem_init();
    int me = shmem_my_pe(), n = shmem_n_pes();
    long *numbers = symmetric(NUMBERS), *samples = symmetric(n), *all = symmetric((size_t)n * n);
    long *counts = symmetric(n), *incoming = symmetric(n);
    long *places = symmetric(n), *there = symmetric(n);

    srand(me + 1);
    for (int i = 0; i < NUMBERS; i++)
        numbers[i] = rand() % 1000000;
    qsort(numbers, NUMBERS, sizeof *numbers, compare);

    /* PE p will have the numbers from all[p * n] to below all[(p + 1) * n]. */
    for (int i = 0; i < n; i++)
        samples[i] = numbers[(size_t)i * NUMBERS / n];
    shmem_long_fcollect(SHMEM_TEAM_WORLD, all, samples, n);
    qsort(all, (size_t)n * n, sizeof *all, compare);

    for (int pe = 0; pe < n; pe++)
        counts[pe] = 0;
    for (int i = 0, pe = 0; i < NUMBERS; i++) {
        while (pe < n - 1 && numbers[i] >= all[(pe + 1) * n])
            pe++;
        counts[pe]++;
    }
    shmem_long_alltoall(SHMEM_TEAM_WORLD, incoming, counts, 1);

    /* The numbers of PE p will lie here from places[p] on; on PE p, mine will from there[p] on. */
    static long length, longest;
    for (int pe = 0; pe < n; pe++) {
        places[pe] = length;
        length += incoming[pe];
    }
    shmem_long_alltoall(SHMEM_TEAM_WORLD, there, places, 1);

    /* All PEs allocate the same size, although they need different ones. */
    shmem_long_max_reduce(SHMEM_TEAM_WORLD, &longest, &length, 1);
    long *sorted = symmetric(longest + 1);
    for (int pe = 0, i = 0; pe < n; i += counts[pe], pe++)
        shmem_long_put(&sorted[there[pe]], &numbers[i], counts[pe], pe);
    shmem_barrier_all();
    qsort(sorted, length, sizeof *sorted, compare);

    /* Each PE compares its first number with the last one of the PE before it. */
    static long last = -1, total;
    if (length > 0)
        last = sorted[length - 1];
    shmem_barrier_all();
    int wrong = me > 0 && length > 0 && shmem_long_g(&last, me - 1) > sorted[0];
    shmem_long_sum_reduce(SHMEM_TEAM_WORLD, &total, &length, 1);
    if (me == 0)
        printf("%d PEs sorted %ld numbers; PE 0 has those up to %ld\n", n, total, last);
    shmem_finalize();
    return wrong || total != (long)n * NUMBERS ? EXIT_FAILURE : EXIT_SUCCESS;
}
