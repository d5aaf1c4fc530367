/* Locks for which all PEs contend: no two PEs hold one, and the next holder reads what the last one
 * wrote. */
#include "check.h"
#include <time.h>

/* The acquisitions of each lock by all PEs together, and the number of locks, whose words are on
 * different PEs. */
enum { TURNS = 96, LOCKS = 3 };

static void take(long *lock, int by_test) {
    if (!by_test)
        shmem_set_lock(lock);
    else
        while (shmem_test_lock(lock))
            sched_yield();
}

/* A holder counts itself in, adds to a word that only the lock protects, and counts itself out; it
 * leaves the completion of that to shmem_clear_lock in every other turn. The words are on PE
 * `keeper`. */
static void exclusion(long *lock, int by_test, int keeper) {
    static uint64_t holders, word;
    holders = word = 0;
    shmem_barrier_all();
    for (int i = 0; i < TURNS / check_n; i++) {
        take(lock, by_test == 2 ? (i + check_me) % 2 : by_test);
        uint64_t before = shmem_uint64_atomic_fetch_add(&holders, 1, keeper);
        CHECK(before == 0, 70, "in turn %d, %d other PEs hold the lock", i, (int)before);
        shmem_uint64_p(&word, shmem_uint64_g(&word, keeper) + 1, keeper);
        if (i % 2)
            shmem_quiet();
        shmem_uint64_atomic_add(&holders, (uint64_t)-1, keeper);
        shmem_clear_lock(lock);
    }
    shmem_barrier_all();
    uint64_t turns = (uint64_t)(TURNS / check_n * check_n);
    CHECK(check_me != keeper || word == turns, 71, "%d of %d turns are counted", (int)word, (int)turns);
    CHECK(check_me != keeper || holders == 0, 71, "%d holders are counted in the end", (int)holders);
    shmem_barrier_all();
}

/* Each PE but the first sleeps until it gets the lock; no other message wakes it. */
static void grant_to_sleepers(long *lock) {
    static int holders, all_had_it;
    shmem_barrier_all();
    shmem_set_lock(lock);
    int is_last = shmem_int_atomic_fetch_inc(&holders, 0) == check_n - 1;
    nanosleep(&(struct timespec){.tv_nsec = 20 * 1000 * 1000}, NULL);
    shmem_clear_lock(lock);
    for (int pe = 0; is_last && pe < check_n; pe++)
        shmem_int_p(&all_had_it, 1, pe);
    shmem_int_wait_until(&all_had_it, SHMEM_CMP_EQ, 1);
    shmem_barrier_all();
}

int main(void) {
    static long locks[LOCKS];
    check_begin();
    long *on_heap = shmem_calloc(LOCKS, sizeof *on_heap);
    for (int i = 0; i < LOCKS; i++)
        for (int by_test = 0; by_test < 3; by_test++)
            exclusion(i % 2 ? &locks[i] : &on_heap[i], by_test, (i + by_test) % check_n);
    grant_to_sleepers(on_heap);
    shmem_free(on_heap);
    return check_end();
}
