/* Waits and tests on sets: all, any and some, with one value or a vector, with and without a status mask, twelve types. */
#include "check.h"
#include "types.h"

enum { WORDS = 7 };

static unsigned char *cells;
static int left, right;
static const int none_of_seven[WORDS] = {1, 1, 1, 1, 1, 1, 1};

/* Checks that `indices` has `found` different words, exactly those that `due` marks. */
static void named(const char *call, const size_t *indices, size_t found, const int *due) {
    int times[WORDS] = {0};
    size_t expected = 0;
    for (size_t i = 0; i < found && i < WORDS; i++)
        if (indices[i] < WORDS)
            times[indices[i]]++;
        else
            CHECK(0, 49, "%s named word %zu", call, indices[i]);
    for (int i = 0; i < WORDS; i++) {
        expected += due[i];
        CHECK(times[i] == due[i], 49, "%s named word %d %d times", call, i, times[i]);
    }
    CHECK(found == expected, 49, "%s gave %zu words, not %zu", call, found, expected);
}

/* Repeated calls must return each word that `due` marks, and no other. */
#define FAIR(call, due)                                                                                                \
    do {                                                                                                               \
        int met[WORDS] = {0};                                                                                          \
        for (int turn = 0; turn < 1000; turn++) {                                                                      \
            size_t at = call;                                                                                          \
            if (at < WORDS)                                                                                            \
                met[at] = 1;                                                                                           \
            else                                                                                                       \
                CHECK(0, 48, "%s gave %zu", #call, at);                                                                \
        }                                                                                                              \
        CHECK(memcmp(met, due, sizeof met) == 0, 49, "%s never named a word that is satisfied, or one that is not",    \
              #call);                                                                                                  \
    } while (0)

/* The words are 0, 10, 20 ... and do not change; the expected results are known for each call. */
#define STILL(N, T)                                                                                                    \
    static void still_##N(void) {                                                                                      \
        T *words = (T *)cells;                                                                                         \
        T vector[WORDS];                                                                                               \
        size_t indices[WORDS];                                                                                         \
        for (int i = 0; i < WORDS; i++)                                                                                \
            words[i] = (T)(10 * i), vector[i] = (T)(i % 2 ? 10 * i : 10 * i + 1);                                      \
        const int above[WORDS] = {0, 0, 0, 1, 1, 1, 1}, odd[WORDS] = {0, 1, 0, 1, 0, 1, 0};                            \
        const int skip_low[WORDS] = {1, 1, 1, 0, 0, 0, 0}, skip_even[WORDS] = {2, 0, 3, 0, -1, 0, 1};                  \
        const int skip_five[WORDS] = {0, 0, 0, 0, 0, 1, 0}, above_but_five[WORDS] = {0, 0, 0, 1, 1, 0, 1};             \
        const int odd_but_five[WORDS] = {0, 1, 0, 1, 0, 0, 0};                                                         \
        shmem_##N##_wait_until_all(words, WORDS, NULL, SHMEM_CMP_LE, 60);                                              \
        shmem_##N##_wait_until_all(words, WORDS, skip_low, SHMEM_CMP_GE, 30);                                          \
        shmem_##N##_wait_until_all_vector(words, WORDS, NULL, SHMEM_CMP_LE, vector);                                   \
        shmem_##N##_wait_until_all_vector(words, WORDS, skip_even, SHMEM_CMP_EQ, vector);                              \
        CHECK(shmem_##N##_test_all(words, WORDS, NULL, SHMEM_CMP_LE, 60) == 1, 48, #N "_test_all: all hold");          \
        CHECK(shmem_##N##_test_all(words, WORDS, NULL, SHMEM_CMP_GE, 30) == 0, 48, #N "_test_all: three do not");      \
        CHECK(shmem_##N##_test_all(words, WORDS, skip_low, SHMEM_CMP_GE, 30) == 1, 47, #N "_test_all, masked");        \
        CHECK(shmem_##N##_test_all_vector(words, WORDS, NULL, SHMEM_CMP_EQ, vector) == 0, 51, #N "_test_all_vector");  \
        CHECK(shmem_##N##_test_all_vector(words, WORDS, skip_even, SHMEM_CMP_EQ, vector) == 1, 51,                     \
              #N "_test_all_vector, masked");                                                                          \
        FAIR(shmem_##N##_wait_until_any(words, WORDS, NULL, SHMEM_CMP_GT, 20), above);                                 \
        FAIR(shmem_##N##_test_any(words, WORDS, NULL, SHMEM_CMP_GT, 20), above);                                       \
        FAIR(shmem_##N##_wait_until_any(words, WORDS, skip_five, SHMEM_CMP_GT, 20), above_but_five);                   \
        FAIR(shmem_##N##_test_any(words, WORDS, skip_five, SHMEM_CMP_GT, 20), above_but_five);                         \
        FAIR(shmem_##N##_wait_until_any_vector(words, WORDS, NULL, SHMEM_CMP_EQ, vector), odd);                        \
        FAIR(shmem_##N##_test_any_vector(words, WORDS, NULL, SHMEM_CMP_EQ, vector), odd);                              \
        FAIR(shmem_##N##_wait_until_any_vector(words, WORDS, skip_five, SHMEM_CMP_EQ, vector), odd_but_five);          \
        FAIR(shmem_##N##_test_any_vector(words, WORDS, skip_five, SHMEM_CMP_EQ, vector), odd_but_five);                \
        CHECK(shmem_##N##_test_any(words, WORDS, NULL, SHMEM_CMP_EQ, 5) == SIZE_MAX, 48, #N "_test_any: none holds");  \
        CHECK(shmem_##N##_test_any(words, WORDS, skip_low, SHMEM_CMP_LT, 30) == SIZE_MAX, 47, #N "_test_any, masked"); \
        CHECK(shmem_##N##_test_some(words, WORDS, indices, NULL, SHMEM_CMP_EQ, 5) == 0, 48, #N "_test_some: none");    \
        named(#N "_test_some", indices, shmem_##N##_test_some(words, WORDS, indices, NULL, SHMEM_CMP_GT, 20), above);  \
        named(#N "_test_some", indices, shmem_##N##_test_some(words, WORDS, indices, skip_five, SHMEM_CMP_GT, 20),     \
              above_but_five);                                                                                         \
        named(#N "_test_some_vector", indices,                                                                         \
              shmem_##N##_test_some_vector(words, WORDS, indices, NULL, SHMEM_CMP_EQ, vector), odd);                   \
        named(#N "_test_some_vector", indices,                                                                         \
              shmem_##N##_test_some_vector(words, WORDS, indices, skip_five, SHMEM_CMP_EQ, vector), odd_but_five);     \
        named(#N "_wait_until_some", indices,                                                                          \
              shmem_##N##_wait_until_some(words, WORDS, indices, NULL, SHMEM_CMP_GT, 20), above);                      \
        named(#N "_wait_until_some", indices,                                                                          \
              shmem_##N##_wait_until_some(words, WORDS, indices, skip_five, SHMEM_CMP_GT, 20), above_but_five);        \
        named(#N "_wait_until_some_vector", indices,                                                                   \
              shmem_##N##_wait_until_some_vector(words, WORDS, indices, NULL, SHMEM_CMP_EQ, vector), odd);             \
        named(#N "_wait_until_some_vector", indices,                                                                   \
              shmem_##N##_wait_until_some_vector(words, WORDS, indices, skip_five, SHMEM_CMP_EQ, vector),              \
              odd_but_five);                                                                                           \
    }

/* Sets of no words, by length and by mask; null pointers beside length 0. */
#define EMPTY_SET(N, T, w, n, status, v, how)                                                                          \
    do {                                                                                                               \
        size_t indices[WORDS];                                                                                         \
        shmem_##N##_wait_until_all(w, n, status, SHMEM_CMP_EQ, 5);                                                     \
        shmem_##N##_wait_until_all_vector(w, n, status, SHMEM_CMP_EQ, v);                                              \
        CHECK(shmem_##N##_wait_until_any(w, n, status, SHMEM_CMP_EQ, 5) == SIZE_MAX, 48, #N "_wait_until_any " how);   \
        CHECK(shmem_##N##_wait_until_any_vector(w, n, status, SHMEM_CMP_EQ, v) == SIZE_MAX, 48,                        \
              #N "_wait_until_any_vector " how);                                                                       \
        CHECK(shmem_##N##_wait_until_some(w, n, indices, status, SHMEM_CMP_EQ, 5) == 0, 48,                            \
              #N "_wait_until_some " how);                                                                             \
        CHECK(shmem_##N##_wait_until_some_vector(w, n, indices, status, SHMEM_CMP_EQ, v) == 0, 48,                     \
              #N "_wait_until_some_vector " how);                                                                      \
        CHECK(shmem_##N##_test_all(w, n, status, SHMEM_CMP_EQ, 5) == 1, 48, #N "_test_all " how);                      \
        CHECK(shmem_##N##_test_all_vector(w, n, status, SHMEM_CMP_EQ, v) == 1, 48, #N "_test_all_vector " how);        \
        CHECK(shmem_##N##_test_any(w, n, status, SHMEM_CMP_EQ, 5) == SIZE_MAX, 48, #N "_test_any " how);               \
        CHECK(shmem_##N##_test_any_vector(w, n, status, SHMEM_CMP_EQ, v) == SIZE_MAX, 48, #N "_test_any_vector " how); \
        CHECK(shmem_##N##_test_some(w, n, indices, status, SHMEM_CMP_EQ, 5) == 0, 48, #N "_test_some " how);           \
        CHECK(shmem_##N##_test_some_vector(w, n, indices, status, SHMEM_CMP_EQ, v) == 0, 48,                           \
              #N "_test_some_vector " how);                                                                            \
    } while (0)
#define EMPTY(N, T)                                                                                                    \
    static void empty_##N(void) {                                                                                      \
        T *words = (T *)cells;                                                                                         \
        T vector[WORDS] = {0};                                                                                         \
        EMPTY_SET(N, T, words, 0, NULL, vector, "of no words");                                                        \
        EMPTY_SET(N, T, NULL, 0, NULL, NULL, "of no words at a null pointer");                                         \
        EMPTY_SET(N, T, words, WORDS, none_of_seven, vector, "of words that are all masked");                          \
    }

/* The left neighbor sets this PE's words one by one, in a different order on each PE, while `call` waits for them. */
#define SEND(N, T, call)                                                                                               \
    do {                                                                                                               \
        memset(cells, 0, WORDS * sizeof(T));                                                                           \
        shmem_barrier_all();                                                                                           \
        for (int i = 0; i < WORDS; i++) {                                                                              \
            int at = (3 * i + check_me) % WORDS;                                                                       \
            if (i % 2)                                                                                                 \
                shmem_##N##_atomic_set(&words[at], (T)(at + 1), right);                                                \
            else                                                                                                       \
                shmem_##N##_p(&words[at], (T)(at + 1), right);                                                         \
        }                                                                                                              \
        call;                                                                                                          \
        shmem_barrier_all();                                                                                           \
    } while (0)

/* Repeats `call` until it has returned all words. Each time, it sets `found` and `indices`. */
#define COLLECT(call)                                                                                                  \
    for (size_t due = WORDS; due > 0; due -= found) {                                                                  \
        size_t indices[WORDS] = {0};                                                                                   \
        found = 0;                                                                                                     \
        call;                                                                                                          \
        CHECK(found >= 1 && found <= due, 49, "%s gave %zu of %zu words", #call, found, due);                          \
        if (found < 1 || found > due)                                                                                  \
            break;                                                                                                     \
        for (size_t i = 0; i < found; i++) {                                                                           \
            CHECK(indices[i] < WORDS && !status[indices[i]] && words[indices[i]] != 0, 49, "%s named word %zu",        \
                  #call, indices[i]);                                                                                  \
            if (indices[i] < WORDS)                                                                                    \
                status[indices[i]] = 1;                                                                                \
        }                                                                                                              \
    }

#define FILLED(N, T)                                                                                                   \
    static void filled_##N(void) {                                                                                     \
        T *words = (T *)cells;                                                                                         \
        T vector[WORDS];                                                                                               \
        size_t found;                                                                                                  \
        for (int i = 0; i < WORDS; i++)                                                                                \
            vector[i] = (T)(i + 1);                                                                                    \
        SEND(N, T, shmem_##N##_wait_until_all(words, WORDS, NULL, SHMEM_CMP_NE, 0);                                    \
             CHECK(shmem_##N##_test_all_vector(words, WORDS, NULL, SHMEM_CMP_EQ, vector) == 1, 50,                     \
                   #N ": wait_until_all ended early"));                                                                \
        SEND(N, T, shmem_##N##_wait_until_all_vector(words, WORDS, NULL, SHMEM_CMP_EQ, vector);                        \
             CHECK(words[WORDS - 1] == WORDS, 51, #N ": wait_until_all_vector ended early"));                          \
        SEND(N, T, while (!shmem_##N##_test_all(words, WORDS, NULL, SHMEM_CMP_GT, 0)) sched_yield());                           \
        SEND(N, T, int status[WORDS] = {0}; COLLECT(                                                                   \
            indices[0] = shmem_##N##_wait_until_any(words, WORDS, status, SHMEM_CMP_GT, 0); found = 1));               \
        SEND(N, T, int status[WORDS] = {0}; COLLECT(                                                                   \
            indices[0] = shmem_##N##_wait_until_any_vector(words, WORDS, status, SHMEM_CMP_EQ, vector); found = 1));   \
        SEND(N, T, int status[WORDS] = {0}; COLLECT(                                                                   \
            found = shmem_##N##_wait_until_some(words, WORDS, indices, status, SHMEM_CMP_NE, 0)));                     \
        SEND(N, T, int status[WORDS] = {0}; COLLECT(                                                                   \
            found = shmem_##N##_wait_until_some_vector(words, WORDS, indices, status, SHMEM_CMP_GE, vector)));         \
        SEND(N, T, int status[WORDS] = {0}; COLLECT(                                                                   \
            do indices[0] = shmem_##N##_test_any(words, WORDS, status, SHMEM_CMP_NE, 0);                               \
            while (indices[0] == SIZE_MAX && !sched_yield()); found = 1));                                                               \
        SEND(N, T, int status[WORDS] = {0}; COLLECT(                                                                   \
            do indices[0] = shmem_##N##_test_any_vector(words, WORDS, status, SHMEM_CMP_EQ, vector);                   \
            while (indices[0] == SIZE_MAX && !sched_yield()); found = 1));                                                               \
        SEND(N, T, int status[WORDS] = {0}; COLLECT(                                                                   \
            do found = shmem_##N##_test_some(words, WORDS, indices, status, SHMEM_CMP_GE, 1); while (!found && !sched_yield())));        \
        SEND(N, T, int status[WORDS] = {0}; COLLECT(                                                                   \
            do found = shmem_##N##_test_some_vector(words, WORDS, indices, status, SHMEM_CMP_EQ, vector);              \
            while (!found && !sched_yield())));                                                                                          \
    }

AMO_TYPES(STILL)
AMO_TYPES(EMPTY)
AMO_TYPES(FILLED)

int main(void) {
    check_begin();
    left = (check_me + check_n - 1) % check_n;
    right = (check_me + 1) % check_n;
    cells = shmem_calloc(WORDS + 1, 16);
#define RUN(N, T) still_##N(), empty_##N(), filled_##N();
    AMO_TYPES(RUN)
    shmem_free(cells);
    return check_end();
}
