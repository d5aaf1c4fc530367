/* The target need not call the library for progress: PE 0 only computes until its peers have
 * finished. */
#include "check.h"

enum { WORDS = 10000, ADDS = 200 };

int main(void) {
    check_begin();
    long *data = shmem_calloc(WORDS, sizeof *data), *sum = shmem_calloc(2, sizeof *sum);
    uint64_t *signal = shmem_calloc(1, sizeof *signal);
    long *done = &sum[1];
    shmem_barrier_all();
    if (check_me == 0) {
        volatile double work = 1;
        while (__atomic_load_n(done, __ATOMIC_ACQUIRE) != check_n - 1)
            for (int i = 0; i < 1000; i++)
                work = work * 1.0000001;
        CHECK(*sum == (long)ADDS * (check_n - 1), 43, "the sum is %ld", *sum);
        CHECK(*signal == (uint64_t)(check_n - 1), 43, "%llu signals", (unsigned long long)*signal);
    } else {
        long mine = check_me, *got = malloc(WORDS * sizeof *got), *put = malloc(WORDS * sizeof *put);
        for (int i = 0; i < WORDS; i++)
            put[i] = i;
        shmem_long_put(data, put, WORDS, 0);
        shmem_quiet();
        shmem_long_get(got, data, WORDS, 0);
        CHECK(memcmp(put, got, WORDS * sizeof *got) == 0, 43, "what I put is not there after quiet");
        long last = -1;
        for (int i = 0; i < ADDS; i++) {
            long before = shmem_long_atomic_fetch_add(sum, 1, 0);
            CHECK(before > last, 43, "fetch_add went from %ld to %ld", last, before);
            last = before;
        }
        shmem_long_put_signal(&data[0], &mine, 0, signal, 1, SHMEM_SIGNAL_ADD, 0);
        shmem_quiet();
        shmem_long_atomic_inc(done, 0);
        free(got);
        free(put);
    }
    shmem_barrier_all();
    shmem_free(signal);
    shmem_free(sum);
    shmem_free(data);
    return check_end();
}
