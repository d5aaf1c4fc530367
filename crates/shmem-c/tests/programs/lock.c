/* Locks: exclusion, test_lock's answers, quiet on clear. That waiters are served in order cannot be seen from outside. */
#include "check.h"

enum { TURNS = 60 };

static long *lock, *other, *word;

/* Read, think, write at PE 0, unprotected but for the lock; clear_lock completes the last put. */
static void exclusion(int by_test) {
    *word = 0;
    shmem_barrier_all();
    for (int i = 0; i < TURNS; i++) {
        if (by_test)
            while (shmem_test_lock(lock))
                sched_yield();
        else
            shmem_set_lock(lock);
        long seen = shmem_long_g(word, 0), next = seen + 1;
        if (i % 5 == 0)
            sched_yield();
        shmem_long_put_nbi(word, &next, 1, 0);
        shmem_clear_lock(lock);
    }
    shmem_barrier_all();
    CHECK(check_me != 0 || *word == (long)TURNS * check_n, by_test ? 70 : 71, "%ld of %ld turns are counted", *word,
          (long)TURNS * check_n);
    shmem_barrier_all();
}

static void answers(void) {
    if (check_me == 0)
        CHECK(shmem_test_lock(lock) == 0, 70, "test_lock of a free lock");
    shmem_barrier_all();
    if (check_me != 0)
        for (int i = 0; i < 3; i++)
            CHECK(shmem_test_lock(lock) == 1, 70, "test_lock of a taken lock");
    shmem_barrier_all();
    if (check_me == 0)
        shmem_clear_lock(lock);
    shmem_barrier_all();
}

/* Two locks at once, taken in one order everywhere. */
static void nested(void) {
    *word = 0;
    shmem_barrier_all();
    for (int i = 0; i < TURNS / 3; i++) {
        shmem_set_lock(lock);
        shmem_set_lock(other);
        shmem_long_p(word, shmem_long_g(word, check_n - 1) + 1, check_n - 1);
        shmem_clear_lock(other);
        shmem_clear_lock(lock);
    }
    shmem_barrier_all();
    CHECK(check_me != check_n - 1 || *word == (long)(TURNS / 3) * check_n, 71, "%ld turns", *word);
    shmem_barrier_all();
}

int main(void) {
    check_begin();
    lock = shmem_calloc(1, sizeof *lock);
    other = shmem_calloc(1, sizeof *other);
    word = shmem_calloc(1, sizeof *word);
    answers();
    exclusion(0);
    exclusion(1);
    nested();
    shmem_free(word);
    shmem_free(other);
    shmem_free(lock);
    return check_end();
}
