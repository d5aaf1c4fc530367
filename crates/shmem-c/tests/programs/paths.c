/* Data are written to one PE, and a word that announces them to another PE. Whether each of these
 * is reached by shared memory or by a transport, a quiet completes the data before the word is
 * sent. With virtual nodes, both paths are used. */
#include "check.h"

enum { ROUNDS = 40 };

int main(void) {
    check_begin();
    int me = check_me, n = check_n;
    /* For each PE, on every PE: a word that it puts, one that it sets atomically, and a flag. */
    long *put = shmem_calloc((size_t)n, sizeof(long));
    long *set = shmem_calloc((size_t)n, sizeof(long));
    uint64_t *flag = shmem_calloc((size_t)n, sizeof(uint64_t));
    long *counter = shmem_calloc(1, sizeof(long));

    for (int round = 1; round <= ROUNDS; round++) {
        /* Every PE writes to a holder and notifies a reader, which gets the word from the holder. */
        for (int step = 0; step < n; step++) {
            int holder = (me + step) % n, reader = (me + round) % n;
            long word = (long)round * 1000 + step;
            shmem_long_p(&put[me], word, holder);
            shmem_long_atomic_set(&set[me], -word, holder);
            shmem_quiet();
            shmem_signal_set(&flag[me], (uint64_t)word, reader);

            int origin = (me - round % n + n) % n, its_holder = (origin + step) % n;
            shmem_signal_wait_until(&flag[origin], SHMEM_CMP_EQ, (uint64_t)word);
            long got = shmem_long_g(&put[origin], its_holder);
            CHECK(got == word, 40, "PE %d expects %ld, PE %d holds %ld", me, word, its_holder, got);
            got = shmem_long_atomic_fetch(&set[origin], its_holder);
            CHECK(got == -word, 40, "PE %d expects %ld, PE %d holds %ld", me, word, its_holder, got);
            shmem_barrier_all();
        }
    }

    /* Atomic operations by all PEs on one word of each, over every way at once. */
    for (int i = 0; i < ROUNDS; i++)
        for (int pe = 0; pe < n; pe++) {
            if (i % 2)
                shmem_long_atomic_inc(counter, pe);
            else
                (void)shmem_long_atomic_fetch_add(counter, 1, pe);
        }
    shmem_barrier_all();
    CHECK(*counter == (long)ROUNDS * n, 35, "%ld of %ld additions arrived", *counter, (long)ROUNDS * n);

    shmem_free(counter);
    shmem_free(flag);
    shmem_free(set);
    shmem_free(put);
    return check_end();
}
