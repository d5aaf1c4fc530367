/* Small extensions: those with another name in the standard behave like it, the others as their
 * vendor documents. */
#include "members.h"
#include <pthread.h>
#include <shmemx.h>
#include <unistd.h>

static int right, left;

static void signals(void) {
    uint64_t *word = check_malloc(2 * sizeof *word);
    word[0] = word[1] = 0;
    shmem_barrier_all();
    shmemx_signal_set(&word[0], 7, right);
    shmem_signal_wait_until(&word[0], SHMEM_CMP_EQ, 7);
    shmemx_ctx_signal_set(SHMEM_CTX_DEFAULT, &word[1], 1, right);
    shmem_signal_wait_until(&word[1], SHMEM_CMP_NE, 0);
    shmem_barrier_all();
    shmemx_signal_add(&word[0], 3, right);
    shmemx_ctx_signal_add(SHMEM_CTX_DEFAULT, &word[0], 5, right);
    shmem_signal_wait_until(&word[0], SHMEM_CMP_EQ, 15);
    shmem_barrier_all();
    shmem_free(word);
}

/* Points 29 and 30, under the other names. */
static void blocks(void) {
    enum { COUNT = 30 };
    int *array = check_malloc(COUNT * sizeof *array), own[COUNT], back[COUNT];
    for (int i = 0; i < COUNT; i++)
        array[i] = -1, own[i] = check_me * 100 + i, back[i] = -1;
    shmem_barrier_all();
    /* Three blocks of two elements, with stride 5 at the destination and 4 at the source. */
    shmemx_int_ibput(array, own, 5, 4, 2, 3, right);
    shmem_quiet();
    shmem_barrier_all();
    for (int i = 0; i < 15; i++) {
        int due = i % 5 < 2 ? left * 100 + i / 5 * 4 + i % 5 : -1;
        CHECK(array[i] == due, 29, "ibput: place %d holds %d, not %d", i, array[i], due);
    }
    shmemx_ctx_int_ibget(SHMEM_CTX_DEFAULT, back, array, 2, 5, 2, 3, right);
    for (int i = 0; i < 6; i++)
        CHECK(back[i] == check_me * 100 + i / 2 * 4 + i % 2, 29, "ibget: place %d holds %d", i, back[i]);
    shmem_barrier_all();
    shmemx_ibput32(array, own, 5, 4, 2, 3, check_me);
    shmemx_ctx_ibget64(SHMEM_CTX_DEFAULT, back, array, 1, 1, 1, 2, check_me);
    CHECK(memcmp(back, array, 16) == 0, 29, "ibget64");
    shmem_barrier_all();
    shmem_free(array);
}

static void collectives(void) {
    long *sums = check_malloc(4 * sizeof *sums);
    sums[0] = check_me + 1;
    shmem_barrier_all();
    CHECK(shmemx_long_sum_inscan(SHMEM_TEAM_WORLD, &sums[1], &sums[0], 1) == 0, 61, "inscan failed");
    CHECK(shmemx_long_sum_exscan(SHMEM_TEAM_WORLD, &sums[2], &sums[0], 1) == 0, 61, "exscan failed");
    CHECK(sums[2] == (long)check_me * (check_me + 1) / 2 && sums[1] == sums[2] + check_me + 1, 61, "%ld, %ld", sums[2], sums[1]);

#define BITWISE(NAME, T)                                                                                               \
    do {                                                                                                               \
        T *x = check_malloc(4 * sizeof *x), all = (T)-1, any = 0, odd = 0;                                             \
        for (int pe = 0; pe < check_n; pe++) {                                                                         \
            T value = (T) ~((T)1 << pe % 14);                                                                          \
            all = (T)(all & value), any = (T)(any | value), odd = (T)(odd ^ value);                                    \
        }                                                                                                              \
        x[0] = (T) ~((T)1 << check_me % 14);                                                                           \
        shmem_barrier_all();                                                                                           \
        shmem_##NAME##_and_reduce(SHMEM_TEAM_WORLD, &x[1], &x[0], 1);                                                  \
        shmem_##NAME##_or_reduce(SHMEM_TEAM_WORLD, &x[2], &x[0], 1);                                                   \
        shmem_##NAME##_xor_reduce(SHMEM_TEAM_WORLD, &x[3], &x[0], 1);                                                  \
        CHECK(x[1] == all && x[2] == any && x[3] == odd, 59, #NAME ": bitwise reductions");                            \
        shmem_barrier_all();                                                                                           \
        shmem_free(x);                                                                                                 \
    } while (0)
    BITWISE(short, short);
    BITWISE(int, int);
    BITWISE(long, long);
    BITWISE(longlong, long long);
    shmem_free(sums);
}

/* Reductions over the PEs of the same parity, with small numbers, so that no product overflows. */
static void team_reductions(void) {
    shmem_team_t team;
    int first = check_me % 2, size = (check_n - first + 1) / 2;
    shmemx_team_split_strided(SHMEM_TEAM_WORLD, first, 2, size, &team);
    static long psync[SHMEM_REDUCE_SYNC_SIZE];
#define NUMBER(pe) (1 + (pe) % 3)
#define TEAM_ARITHMETIC(NAME, T)                                                                                       \
    do {                                                                                                               \
        static T x[5], work[SHMEM_REDUCE_MIN_WRKDATA_SIZE];                                                            \
        T most = 0, least = 100, sum = 0, product = 1;                                                                 \
        for (int pe = first; pe < check_n; pe += 2) {                                                                  \
            T value = NUMBER(pe);                                                                                      \
            most = value > most ? value : most, least = value < least ? value : least;                                 \
            sum = (T)(sum + value), product = (T)(product * value);                                                    \
        }                                                                                                              \
        x[0] = NUMBER(check_me);                                                                                       \
        shmem_barrier_all();                                                                                           \
        shmemx_team_##NAME##_max_to_all(team, &x[1], x, 1, work, psync);                                               \
        shmemx_team_##NAME##_min_to_all(team, &x[2], x, 1, work, psync);                                               \
        shmemx_team_##NAME##_sum_to_all(team, &x[3], x, 1, work, psync);                                               \
        shmemx_team_##NAME##_prod_to_all(team, &x[4], x, 1, work, psync);                                              \
        CHECK(x[1] == most && x[2] == least && x[3] == sum && x[4] == product, 59, #NAME ": reductions of a team");   \
        shmem_barrier_all();                                                                                           \
    } while (0)
#define TEAM_BITWISE(NAME, T)                                                                                          \
    do {                                                                                                               \
        static T x[4], work[SHMEM_REDUCE_MIN_WRKDATA_SIZE];                                                            \
        T all = (T)-1, any = 0, odd = 0;                                                                               \
        for (int pe = first; pe < check_n; pe += 2)                                                                    \
            all = (T)(all & NUMBER(pe)), any = (T)(any | NUMBER(pe)), odd = (T)(odd ^ NUMBER(pe));                     \
        x[0] = NUMBER(check_me);                                                                                       \
        shmem_barrier_all();                                                                                           \
        shmemx_team_##NAME##_and_to_all(team, &x[1], x, 1, work, psync);                                               \
        shmemx_team_##NAME##_or_to_all(team, &x[2], x, 1, work, psync);                                                \
        shmemx_team_##NAME##_xor_to_all(team, &x[3], x, 1, work, psync);                                               \
        CHECK(x[1] == all && x[2] == any && x[3] == odd, 59, #NAME ": bitwise reductions of a team");                  \
        shmem_barrier_all();                                                                                           \
        TEAM_ARITHMETIC(NAME, T);                                                                                      \
    } while (0)
    if (check_n > 20)
        return;
    TEAM_BITWISE(short, short);
    TEAM_BITWISE(int, int);
    TEAM_BITWISE(long, long);
    TEAM_BITWISE(longlong, long long);
    TEAM_ARITHMETIC(float, float);
    TEAM_ARITHMETIC(double, double);
    TEAM_ARITHMETIC(longdouble, long double);
    shmemx_team_destroy(&team);
}

/* The program registers a function by which all of its threads have the same number, so they may
 * use one private context. */
static uint64_t one_thread(void) {
    return 7;
}

static void *use(void *ctx) {
    static int word;
    shmem_ctx_int_p(*(shmem_ctx_t *)ctx, &word, 1, right);
    shmem_ctx_quiet(*(shmem_ctx_t *)ctx);
    return NULL;
}

static void threads_of_the_program(void) {
    pthread_t other;
    shmem_ctx_t ctx;
    if (shmem_ctx_create(SHMEM_CTX_PRIVATE, &ctx) != 0)
        return;
    CHECK(pthread_create(&other, NULL, use, &ctx) == 0, 22, "no thread can be had");
    pthread_join(other, NULL);
    shmem_ctx_destroy(ctx);
    shmem_barrier_all();
}

static void atomics(void) {
#define ATOMICS(NAME, T)                                                                                               \
    do {                                                                                                               \
        T *x = check_malloc(3 * sizeof *x), bit = (T)((T)1 << check_me), every = (T)(((T)1 << check_n) - 1);           \
        x[0] = 0, x[1] = (T)-1, x[2] = 0;                                                                              \
        shmem_barrier_all();                                                                                           \
        shmem_##NAME##_atomic_or(&x[0], bit, 0);                                                                       \
        shmem_ctx_##NAME##_atomic_and(SHMEM_CTX_DEFAULT, &x[1], (T)~bit, 0);                                           \
        CHECK((shmem_##NAME##_atomic_fetch_xor(&x[2], bit, 0) & bit) == 0, 35, #NAME ": fetch_xor");                   \
        shmem_barrier_all();                                                                                           \
        if (check_me == 0)                                                                                             \
            CHECK(x[0] == every && x[1] == (T)~every && x[2] == every, 35, #NAME ": bitwise atomics");                 \
        shmem_barrier_all();                                                                                           \
        CHECK(shmem_ctx_##NAME##_atomic_fetch_and(SHMEM_CTX_DEFAULT, &x[0], (T)~bit, 0) & bit, 35, #NAME ": fetch_and"); \
        CHECK((shmem_##NAME##_atomic_fetch_or(&x[1], bit, 0) & bit) == 0, 35, #NAME ": fetch_or");                     \
        shmem_##NAME##_atomic_xor(&x[2], bit, 0);                                                                      \
        shmem_barrier_all();                                                                                           \
        if (check_me == 0)                                                                                             \
            CHECK(x[0] == 0 && x[1] == (T)-1 && x[2] == 0, 35, #NAME ": bitwise atomics, again");                      \
        shmem_barrier_all();                                                                                           \
        shmem_free(x);                                                                                                 \
    } while (0)
    if (check_n > 30)
        return;
    ATOMICS(int, int);
    ATOMICS(long, long);
    ATOMICS(longlong, long long);
}

/* Tests of completion become true, and then the data are complete. */
static void completion(void) {
    enum { COUNT = 100000 };
    int *dest = check_malloc(COUNT * sizeof *dest), *data = malloc(COUNT * sizeof *data);
    int *flag = check_malloc(sizeof *flag);
    *flag = 0;
    shmem_ctx_t ctx = SHMEM_CTX_DEFAULT;
    int own = shmem_ctx_create(0, &ctx) == 0;
    shmem_barrier_all();
    for (int turn = 1; turn <= 20; turn++) {
        for (int i = 0; i < COUNT; i++)
            data[i] = turn * 1000 + check_me;
        shmem_ctx_int_put_nbi(ctx, dest, data, COUNT, right);
        while (!shmemx_ctx_quiet_test(ctx))
            ;
        CHECK(shmem_int_g(&dest[COUNT - 1], right) == turn * 1000 + check_me, 40, "turn %d: quiet_test said too much", turn);
        CHECK(shmemx_quiet_test(), 40, "nothing was issued on the default context");
        shmem_barrier_all();
        shmem_ctx_int_put_nbi(ctx, dest, data, COUNT, right);
        shmemx_local_complete();
        memset(data, 0, COUNT * sizeof *data);
        while (!shmemx_ctx_fence_test(ctx))
            ;
        shmem_ctx_int_p(ctx, flag, turn, right);
        shmem_int_wait_until(flag, SHMEM_CMP_EQ, turn);
        CHECK(dest[0] == turn * 1000 + left && dest[COUNT - 1] == dest[0], 39, "turn %d: fence_test said too much", turn);
        shmem_barrier_all();
    }
    while (!shmemx_fence_test())
        ;
    if (own)
        shmem_ctx_destroy(ctx);
    shmem_free(flag);
    shmem_free(dest);
    free(data);
}

/* The last PE waits for the others' words before it calls: with a barrier in the call, they would
 * wait for it. */
static void no_barrier(void) {
    long *words = check_malloc(2 * sizeof *words);
    words[0] = words[1] = 0;
    shmem_barrier_all();
    if (check_me == check_n - 1)
        shmem_long_wait_until(&words[0], SHMEM_CMP_EQ, check_n - 1);
    void *block = shmem_malloc_with_hints(100, SHMEMX_MALLOC_NO_BARRIER | SHMEM_MALLOC_SIGNAL_REMOTE);
    CHECK(block, 65, "no block");
    if (check_me != check_n - 1)
        shmem_long_atomic_inc(&words[0], check_n - 1);
    shmem_barrier_all();
    memset(block, check_me, 100);
    shmem_free(block);
    shmem_free(words);
}

static void heap_is_described(void) {
    shmemx_heap_info_t before, with, after;
    shmemx_heap_info(&before);
    CHECK(before.used < before.total && before.largest_free <= before.total - before.used, 65,
          "%zu of %zu bytes are used, the largest free block has %zu", before.used, before.total, before.largest_free);
    void *block = shmem_malloc(1000), *all;
    shmemx_heap_info(&with);
    CHECK(with.used == before.used + 1000 && with.total == before.total, 65, "%zu bytes are used", with.used);
    all = shmem_malloc(with.largest_free);
    CHECK(all, 65, "no room for the largest free block, of %zu bytes", with.largest_free);
    shmem_free(all);
    shmem_free(block);
    shmemx_heap_info(&after);
    CHECK(memcmp(&before, &after, sizeof after) == 0, 65, "%zu bytes are used at the end", after.used);
}

static void time_goes_on(void) {
    double before = shmemx_wtime();
    usleep(2000);
    double after = shmemx_wtime();
    CHECK(after - before >= 0.0019, 0, "2 ms of sleep took %g s", after - before);
}

static void transport_is_named(void) {
    const char *path = shmemx_transport();
    CHECK(strstr(path, ": "), 0, "%s", path);
    CHECK(path == shmemx_transport(), 0, "it moves");
}

int main(void) {
    int level;
    shmemx_register_gettid(one_thread);
    CHECK(shmemx_init_thread(SHMEM_THREAD_SERIALIZED, &level) == 0, 76, "shmemx_init_thread failed");
    check_start();
    transport_is_named();
    right = (check_me + 1) % check_n, left = (check_me + check_n - 1) % check_n;
    signals();
    blocks();
    collectives();
    team_reductions();
    threads_of_the_program();
    atomics();
    completion();
    no_barrier();
    heap_is_described();
    time_goes_on();
    return check_end();
}
