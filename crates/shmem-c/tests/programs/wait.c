/* Scalar waits and tests: six comparisons on fourteen types, the deprecated names, updates by other
 * PEs and by the PE itself. */
#include "check.h"
#include "types.h"
#include <pthread.h>

static unsigned char *cells;
static int left, right;

/* The comparisons of `low` < `high`: tests in both orders, and waits that are satisfied at once. */
#define COMPARED(N, T)                                                                                                 \
    static void compared_##N(void) {                                                                                   \
        T *word = (T *)cells;                                                                                          \
        const T low = (T)-1 < (T)1 ? (T)-5 : 5, high = (T)-1 < (T)1 ? (T)7 : (T)-3;                                          \
        static const int comparisons[] = {SHMEM_CMP_EQ, SHMEM_CMP_NE, SHMEM_CMP_GT,                                    \
                                          SHMEM_CMP_GE, SHMEM_CMP_LT, SHMEM_CMP_LE};                                   \
        static const int of_low[] = {0, 1, 0, 0, 1, 1}, of_high[] = {0, 1, 1, 1, 0, 0}, of_equal[] = {1, 0, 0, 1, 0, 1}; \
        for (int k = 0; k < 6; k++) {                                                                                  \
            *word = low;                                                                                               \
            CHECK(!!shmem_##N##_test(word, comparisons[k], high) == of_low[k], 50, #N ": low against high, %d", k);    \
            CHECK(!!shmem_##N##_test(word, comparisons[k], low) == of_equal[k], 50, #N ": low against itself, %d", k); \
            if (of_low[k])                                                                                             \
                shmem_##N##_wait_until(word, comparisons[k], high);                                                    \
            *word = high;                                                                                              \
            CHECK(!!shmem_##N##_test(word, comparisons[k], low) == of_high[k], 50, #N ": high against low, %d", k);    \
            if (of_high[k])                                                                                            \
                shmem_##N##_wait_until(word, comparisons[k], low);                                                     \
        }                                                                                                              \
    }

/* The left neighbor writes this PE's word: 0, then larger values. This PE waits for each and
 * answers. */
#define UPDATED(N, T)                                                                                                  \
    static void updated_##N(void) {                                                                                    \
        T *word = (T *)cells, *answer = word + 1;                                                                      \
        enum { STEPS = 6 };                                                                                            \
        word[0] = 0, word[1] = 0;                                                                                      \
        shmem_barrier_all();                                                                                           \
        for (int i = 1; i <= STEPS; i++) {                                                                             \
            shmem_##N##_p(word, (T)i, right);                                                                          \
            shmem_##N##_wait_until(word, SHMEM_CMP_GE, (T)i);                                                          \
            CHECK(*word == (T)i, 50, #N ": the wait ended on another value");                                          \
            shmem_##N##_p(answer, (T)i, left);                                                                         \
            while (!shmem_##N##_test(answer, SHMEM_CMP_EQ, (T)i))                                                      \
                sched_yield();                                                                                         \
        }                                                                                                              \
        shmem_barrier_all();                                                                                           \
    }

/* shmem_wait returns as soon as the word differs from the value given. */
#define OLD_WAIT(N, T)                                                                                                 \
    static void old_wait_##N(void) {                                                                                   \
        T *word = (T *)cells;                                                                                          \
        *word = 3;                                                                                                     \
        shmem_barrier_all();                                                                                           \
        shmem_##N##_p(word, (T)(100 + check_me % 20), right);                                                          \
        shmem_##N##_wait(word, 3);                                                                                     \
        CHECK(*word == (T)(100 + left % 20), 52, "shmem_" #N "_wait ended on another value");                          \
        shmem_barrier_all();                                                                                           \
    }

WAIT_TYPES(COMPARED)
WAIT_TYPES(UPDATED)
OLD_WAIT_TYPES(OLD_WAIT)

/* The names without a type are those of long. */
static void untyped(void) {
    long *word = (long *)cells;
    *word = -1;
    shmem_barrier_all();
    shmem_long_p(word, 1L << 40 | check_me, right);
    shmem_wait(word, -1);
    CHECK(*word == (1L << 40 | left), 52, "shmem_wait saw %ld", *word);
    (shmem_wait_until)(word, SHMEM_CMP_EQ, 1L << 40 | left);
    shmem_barrier_all();
}

static void *store_later(void *word) {
    __atomic_store_n((int *)word, 1, __ATOMIC_RELEASE);
    return NULL;
}

/* A word may be updated by a thread of the same PE, which need not call the library. */
static void updated_by_own_thread(void) {
    int *word = (int *)cells;
    *word = 0;
    pthread_t thread;
    pthread_create(&thread, NULL, store_later, word);
    shmem_int_wait_until(word, SHMEM_CMP_EQ, 1);
    pthread_join(thread, NULL);
    shmem_barrier_all();
}

/* Data put before a fence and the flag is there when the wait or the test of the flag ends. */
static void data_comes_first(void) {
    enum { ROUNDS = 300, WORDS = 20 };
    long *data = check_malloc(WORDS * sizeof *data);
    int *flag = (int *)cells, *taken = flag + 1;
    flag[0] = flag[1] = 0;
    shmem_barrier_all();
    for (int i = 1; i <= ROUNDS; i++) {
        long sent[WORDS];
        for (int k = 0; k < WORDS; k++)
            sent[k] = 1000L * i + k;
        if (i > 1)
            shmem_int_wait_until(taken, SHMEM_CMP_EQ, i - 1);
        shmem_long_put(data, sent, WORDS, right);
        shmem_fence();
        shmem_int_p(flag, i, right);
        if (i % 2)
            shmem_int_wait_until(flag, SHMEM_CMP_EQ, i);
        else
            while (!shmem_int_test(flag, SHMEM_CMP_EQ, i))
                sched_yield();
        for (int k = 0; k < WORDS; k++)
            CHECK(data[k] == 1000L * i + k, 50, "round %d: word %d is %ld when its flag came", i, k, data[k]);
        shmem_int_p(taken, i, left);
    }
    shmem_barrier_all();
    shmem_free(data);
}

int main(void) {
    int provided;
    CHECK(shmem_init_thread(SHMEM_THREAD_FUNNELED, &provided) == 0, 76, "shmem_init_thread failed");
    check_start();
    left = (check_me + check_n - 1) % check_n;
    right = (check_me + 1) % check_n;
    cells = shmem_calloc(4, 16);
#define RUN(N, T) compared_##N(), updated_##N();
#define RUN_OLD(N, T) old_wait_##N();
    WAIT_TYPES(RUN)
    OLD_WAIT_TYPES(RUN_OLD)
    untyped();
    updated_by_own_thread();
    data_comes_first();
    shmem_free(cells);
    return check_end();
}
