/* A word is passed around the PEs. Each PE waits for it by polling with routines of the library, in
 * every way that programs use. The argument is the number of rounds. */
#include "check.h"

enum { WAYS = 10 };
static long word, lock[2];
static int rounds;
static uint64_t signal_word;

/* Returns whether the word of this PE is `value`, as one of the ways to poll finds. */
static int is_there(int way, long value) {
    long got = 0;
    switch (way) {
    case 0: return shmem_long_atomic_fetch(&word, check_me) == value;
    case 1: return shmem_long_g(&word, check_me) == value;
    case 2: shmem_getmem(&got, &word, sizeof got, check_me); return got == value;
    case 3: return shmem_long_test(&word, SHMEM_CMP_EQ, value);
    case 4: return (long)shmem_signal_fetch(&signal_word) == value;
    case 5: return shmem_long_atomic_compare_swap(&word, value, value, check_me) == value;
    case 6: return shmem_long_atomic_fetch_add(&word, 0, check_me) == value;
    case 7: shmem_long_get_nbi(&got, &word, 1, check_me); shmem_quiet(); return got == value;
    case 8: shmem_long_atomic_fetch_nbi(&got, &word, check_me); shmem_quiet(); return got == value;
    default: return shmem_long_test_any(&word, 1, NULL, SHMEM_CMP_EQ, value) == 0;
    }
}

static void pass(int way, long value, int to) {
    if (way == 4)
        shmem_long_put_signal(&word, &value, 0, &signal_word, (uint64_t)value, SHMEM_SIGNAL_SET, to);
    else
        shmem_long_atomic_set(&word, value, to);
}

static void around(int way) {
    word = 0;
    signal_word = 0;
    shmem_barrier_all();
    for (long round = 1; round <= rounds; round++) {
        if (check_me > 0)
            while (!is_there(way, round)) {}
        pass(way, round, (check_me + 1) % check_n);
        if (check_me == 0)
            while (!is_there(way, round)) {}
    }
    shmem_barrier_all();
}

/* All PEs acquire the locks in turn, only by test_lock. */
static void locks(void) {
    static long held;
    for (int round = 0; round < rounds; round++) {
        long *mine = &lock[round % 2];
        while (shmem_test_lock(mine)) {}
        if (round % 2 == 0) {
            long now = shmem_long_g(&held, 0);
            shmem_long_p(&held, now + 1, 0);
        }
        shmem_clear_lock(mine);
    }
    shmem_barrier_all();
    CHECK(check_me || held == (long)((rounds + 1) / 2) * check_n, 0, "%ld increments under the lock", held);
}

int main(int count, char **words) {
    check_begin();
    rounds = count > 1 ? atoi(words[1]) : 20;
    for (int way = 0; way < WAYS; way++)
        around(way);
    locks();
    return check_end();
}
