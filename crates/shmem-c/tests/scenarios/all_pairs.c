/* All PEs at once put a word to every PE and get one from it. */
#include "../programs/check.h"

enum { ROUNDS = 2 };

int main(void) {
    check_begin();
    long *words = (long *)shmem_calloc((size_t)check_n, sizeof(long));
    for (int round = 1; round <= ROUNDS; round++) {
        for (int d = 0; d < check_n; d++)
            shmem_long_p(words + check_me, 1000 * round + check_me, (check_me + d) % check_n);
        shmem_barrier_all();
        for (int pe = 0; pe < check_n; pe++) {
            CHECK(words[pe] == 1000 * round + pe, 0, "PE %d put %ld in round %d", pe, words[pe], round);
            const long there = shmem_long_g(words + pe, pe);
            CHECK(there == 1000 * round + pe, 0, "PE %d has %ld in round %d", pe, there, round);
        }
        shmem_barrier_all();
    }
    shmem_free(words);
    return check_end();
}
