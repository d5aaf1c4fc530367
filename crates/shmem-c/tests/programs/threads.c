/* Threads: private, serialized and default contexts at once, collectives on different teams, and a
 * call that blocks only its thread. */
#include "members.h"
#include <pthread.h>

enum { THREADS = 4, TURNS = 200 };

static long *counter, *slots;
static int left, right;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static shmem_ctx_t serialized;

static void run(void *(*body)(void *), void *arguments, size_t each) {
    pthread_t threads[THREADS];
    for (long i = 0; i < THREADS; i++)
        CHECK(pthread_create(&threads[i], NULL, body, (char *)arguments + i * each) == 0, 77, "no thread can be had");
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
}

/* Point 75: a private context is created and destroyed by its own thread.
 * Each thread on a context of its own, on the shared one under a mutex, and on the default one. */
static void *communicate(void *argument) {
    int me = *(int *)argument;
    shmem_ctx_t own;
    CHECK(shmem_ctx_create(SHMEM_CTX_PRIVATE, &own) == 0, 22, "thread %d: no private context", me);
    for (long turn = 1; turn <= TURNS; turn++) {
        long value = turn * 100 + me, back = 0;
        shmem_ctx_long_put_nbi(own, &slots[me], &value, 1, right);
        shmem_ctx_quiet(own);
        shmem_ctx_long_get(own, &back, &slots[me], 1, right);
        CHECK(back == value, 40, "thread %d, turn %ld: read back %ld", me, turn, back);
        shmem_long_atomic_inc(&counter[0], 0);
        pthread_mutex_lock(&mutex);
        shmem_ctx_long_atomic_add(serialized, &counter[1], 2, 0);
        if (turn % 50 == 0)
            shmem_ctx_quiet(serialized);
        pthread_mutex_unlock(&mutex);
        long before = shmem_long_atomic_fetch_add(&counter[2], 1, 0);
        CHECK(before >= turn - 1, 35, "thread %d, turn %ld: the counter was %ld", me, turn, before);
    }
    shmem_ctx_destroy(own);
    return NULL;
}

/* Collectives of different teams by different threads at the same time. */
struct reduction {
    shmem_team_t team;
    long *source, *dest;
};

static void *reduce(void *argument) {
    struct reduction *r = argument;
    for (long turn = 0; turn < TURNS; turn++) {
        *r->source = turn + check_me;
        CHECK(shmem_long_sum_reduce(r->team, &r->dest[turn], r->source, 1) == 0, 53, "turn %ld", turn);
        if (turn % 10 == 0)
            CHECK(shmem_team_sync(r->team) == 0, 53, "sync in turn %ld", turn);
    }
    for (long turn = 0; turn < TURNS; turn++)
        CHECK(r->dest[turn] == turn * check_n + (long)check_n * (check_n - 1) / 2, 19, "turn %ld: %ld", turn, r->dest[turn]);
    return NULL;
}

/* One thread waits for a word that another thread of the same PE writes by the library. */
static void *wait_for_it(void *argument) {
    int me = *(int *)argument;
    if (me == 0)
        shmem_long_wait_until(&slots[0], SHMEM_CMP_EQ, -1);
    else if (me == 1)
        shmem_signal_wait_until((uint64_t *)&slots[1], SHMEM_CMP_NE, 0);
    else if (me == 2)
        shmem_long_wait_until_all(&slots[2], 2, NULL, SHMEM_CMP_EQ, 7);
    else {
        for (int i = 0; i < TURNS; i++)
            shmem_long_atomic_fetch(&counter[0], right);
        shmem_long_p(&slots[2], 7, right);
        shmem_long_p(&slots[3], 7, right);
        shmem_quiet();
        shmem_signal_set((uint64_t *)&slots[1], 1, right);
        shmem_long_atomic_set(&slots[0], -1, right);
        shmem_quiet();
    }
    return NULL;
}

int main(void) {
    int provided = -1, numbers[THREADS];
    CHECK(shmem_init_thread(SHMEM_THREAD_MULTIPLE, &provided) == 0, 76, "shmem_init_thread failed");
    check_start();
    members_begin();
    CHECK(provided == SHMEM_THREAD_MULTIPLE, 76, "SHMEM_THREAD_MULTIPLE was requested, %d is provided", provided);
    left = (check_me + check_n - 1) % check_n;
    right = (check_me + 1) % check_n;
    counter = shmem_calloc(3, sizeof *counter);
    slots = shmem_calloc(THREADS, sizeof *slots);
    for (int i = 0; i < THREADS; i++)
        numbers[i] = i;
    CHECK(shmem_ctx_create(SHMEM_CTX_SERIALIZED, &serialized) == 0, 22, "no serialized context");

    run(communicate, numbers, sizeof *numbers);
    shmem_ctx_quiet(serialized);
    shmem_barrier_all();
    long operations = (long)THREADS * TURNS * check_n;
    CHECK(check_me != 0 || counter[0] == operations, 22, "default context: %ld of %ld", counter[0], operations);
    CHECK(check_me != 0 || counter[1] == 2 * operations, 22, "serialized context: %ld of %ld", counter[1], 2 * operations);
    CHECK(check_me != 0 || counter[2] == operations, 22, "default context, fetching: %ld of %ld", counter[2], operations);
    for (int i = 0; i < THREADS; i++)
        CHECK(slots[i] == TURNS * 100 + i, 22, "private context of thread %d: %ld", i, slots[i]);

    struct reduction reductions[THREADS];
    for (int i = 0; i < THREADS; i++) {
        struct reduction *r = &reductions[i];
        CHECK(shmem_team_split_strided(SHMEM_TEAM_WORLD, i % 2 ? check_n - 1 : 0, i % 2 ? -1 : 1, check_n, NULL, 0, &r->team) == 0,
              19, "team %d", i);
        r->source = check_malloc(sizeof *r->source);
        r->dest = check_malloc(TURNS * sizeof *r->dest);
    }
    run(reduce, reductions, sizeof *reductions);
    shmem_barrier_all();
    for (int i = 0; i < THREADS; i++) {
        shmem_team_destroy(reductions[i].team);
        shmem_free(reductions[i].dest);
        shmem_free(reductions[i].source);
    }

    memset(slots, 0, THREADS * sizeof *slots);
    shmem_barrier_all();
    run(wait_for_it, numbers, sizeof *numbers);
    CHECK(slots[0] == -1 && slots[1] == 1 && slots[2] == 7 && slots[3] == 7, 77, "a wait ended early");
    shmem_barrier_all();

    shmem_ctx_destroy(serialized);
    shmem_free(slots);
    shmem_free(counter);
    members_end();
    return check_end();
}
