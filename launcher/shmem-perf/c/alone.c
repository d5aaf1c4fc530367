/* Operations in which only the PE that issues them takes part, and their floors where PEs share
 * memory: plain loads, stores and copies.
 *
 * It calls only routines of OpenSHMEM 1.4, and of 1.5 where the header has them. Each operation of
 * the library has two loops. One uses the default context and times nothing but the calls. The
 * other also selects the context and, with --off-cache, the data.
 */
#define _GNU_SOURCE
#include "perf.h"
#include <pthread.h>
#include <shmem.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The parameters of one thread. */
struct lane {
    int peer;
    int n_contexts;
    const shmem_ctx_t *contexts;
    char *target; /* symmetric */
    char *local;
    uint64_t nbytes, window, compute;
    const struct perf_task *task;
};

typedef void loop(const struct lane *, uint64_t samples, uint64_t batch, uint64_t *times);

static shmem_ctx_t contexts[MOST_LANES];
static int n_contexts;
static int are_shared; /* whether threads share contexts */
static volatile long sink; /* receives fetched values */
static long *lock;         /* symmetric */
static uint64_t n_issued;  /* operations of each thread since the buffers were filled */
static __thread uint64_t place; /* offset of the next data in the buffers, for --off-cache */
static volatile long *is_ended; /* symmetric: 1 stops a target that computes */

static inline void complete(const struct lane *lane)
{
    for (int i = 0; i < lane->n_contexts; i++)
        shmem_ctx_quiet(lane->contexts[i]);
}

/* Defines a loop of an operation: EACH precedes each CALL, and COMPLETE ends a window. */
#define LOOP(NAME, EACH, CALL, COMPLETE)                                                                                \
    static void NAME(const struct lane *lane, uint64_t samples, uint64_t batch, uint64_t *times)                        \
    {                                                                                                                   \
        const int peer = lane->peer;                                                                                    \
        char *target = lane->target, *local = lane->local;                                                              \
        const uint64_t nbytes = lane->nbytes, window = lane->window;                                                    \
        int turn = 0;                                                                                                   \
        shmem_ctx_t ctx = SHMEM_CTX_DEFAULT;                                                                            \
        (void)peer, (void)local, (void)nbytes, (void)target, (void)turn, (void)ctx;                                     \
        for (uint64_t sample = 0; sample < samples; sample++) {                                                         \
            const uint64_t start = now();                                                                               \
            for (uint64_t i = 0; i < batch; i++) {                                                                      \
                for (uint64_t j = 0; j < window; j++) {                                                                 \
                    EACH;                                                                                               \
                    CALL;                                                                                               \
                }                                                                                                       \
                COMPLETE;                                                                                               \
            }                                                                                                           \
            times[sample] = now() - start;                                                                              \
        }                                                                                                               \
    }

/* Selects the next context and, with --off-cache, the next data in the buffers. */
#define NEXT                                                                                                            \
    ctx = lane->contexts[turn];                                                                                         \
    turn = turn + 1 == lane->n_contexts ? 0 : turn + 1;                                                                 \
    if (lane->task->off_cache) {                                                                                        \
        target = lane->target + place;                                                                                  \
        local = lane->local + place;                                                                                    \
        place = next_place(lane->task, place);                                                                          \
    }

/* Defines the two loops of an operation, and NAME_run: CALL and COMPLETE use the default context,
 * WITH the context `ctx`, and COMPLETE_ALL all contexts of the thread. */
#define LOOPS(NAME, CALL, WITH, COMPLETE, COMPLETE_ALL)                                                                 \
    LOOP(NAME##_by_default, (void)0, CALL, COMPLETE)                                                                    \
    LOOP(NAME##_by_contexts, NEXT, WITH, COMPLETE_ALL)                                                                  \
    static void NAME##_run(const struct perf_task *task, uint64_t samples, uint64_t batch, uint64_t *times)             \
    {                                                                                                                   \
        run_lanes(task, NAME##_by_default, NAME##_by_contexts, samples, batch, times);                                  \
    }

/* Operations that are complete when they return, operations that a quiet completes, and operations
 * between whose issue and completion the PE can compute. */
#define COMPLETES(NAME, CALL, WITH) LOOPS(NAME, CALL, WITH, (void)0, (void)0)
#define NEEDS_QUIET(NAME, CALL, WITH) LOOPS(NAME, CALL, WITH, shmem_quiet(), complete(lane))
#define MAY_OVERLAP(NAME, CALL, WITH)                                                                                   \
    LOOPS(NAME, CALL, WITH, (perf_compute(lane->compute), shmem_quiet()), (perf_compute(lane->compute), complete(lane)))

struct thread {
    pthread_t id;
    pthread_barrier_t *start;
    struct lane lane;
    loop *loop;
    uint64_t samples, batch;
    uint64_t *times;
};

static void *run_thread(void *of)
{
    struct thread *thread = of;
    pthread_barrier_wait(thread->start);
    thread->loop(&thread->lane, thread->samples, thread->batch, thread->times);
    return NULL;
}

static void give_up(const char *why)
{
    fprintf(stderr, "shmem-perf: PE %d: %s\n", shmem_my_pe(), why);
    shmem_global_exit(1);
    exit(1);
}

/* Runs the loop on each thread of the task, with the thread's share of the contexts. */
static void run_lanes(const struct perf_task *task, loop *by_default, loop *by_contexts, uint64_t samples, uint64_t batch,
                      uint64_t *times)
{
    const int n = task->threads;
    const shmem_ctx_t default_context = SHMEM_CTX_DEFAULT;
    pthread_barrier_t start;
    struct thread threads[MOST_LANES];
    for (int i = 0; i < n; i++) {
        const int share = n_contexts / n, extra = n_contexts % n;
        const int first = are_shared ? i % (n_contexts ? n_contexts : 1) : i * share + (i < extra ? i : extra);
        struct lane lane = {
            .peer = task->peer,
            .n_contexts = are_shared ? 1 : share + (i < extra),
            .contexts = contexts + first,
            /* Small targets of different threads are in different cache lines. */
            .target = target_of(task) + (task->nbytes <= 128 && !task->is_static ? 128 * i : 0),
            .local = local_source,
            .nbytes = task->nbytes,
            .window = task->window,
            .compute = task->compute,
            .task = task,
        };
        if (n_contexts == 0 && task->off_cache)
            lane.n_contexts = 1, lane.contexts = &default_context;
        threads[i] = (struct thread){
            .start = &start,
            .lane = lane,
            .loop = lane.n_contexts > 0 ? by_contexts : by_default,
            .samples = samples,
            .batch = batch,
            .times = times + i * samples,
        };
    }
    n_issued += samples * batch * task->window;
    place = next_place(task, place);
    if (n == 1) {
        threads[0].loop(&threads[0].lane, samples, batch, times);
        return;
    }
    pthread_barrier_init(&start, NULL, n);
    for (int i = 0; i < n; i++)
        if (pthread_create(&threads[i].id, NULL, run_thread, &threads[i]) != 0)
            give_up("it cannot start a thread");
    for (int i = 0; i < n; i++)
        pthread_join(threads[i].id, NULL);
    pthread_barrier_destroy(&start);
}

void forget_issued(void)
{
    n_issued = place = 0;
}

uint64_t issued(void)
{
    return n_issued;
}

uint64_t fetched(void)
{
    return (uint64_t)sink;
}

int allocate_alone(void)
{
    char *const words = shmem_align(128, 256);
    if (words == NULL)
        return -1;
    memset(words, 0, 256);
    lock = (long *)words;
    is_ended = (long *)(words + 128);
    return 0;
}

/* The target's part: if the task says so, computes without calling the library until `end`. */
static void compute_until_ended(const struct perf_task *task)
{
    while (task->target_computes && !*is_ended)
        perf_compute(100);
    *is_ended = 0;
}

static void end(const struct perf_task *task)
{
    if (!task->target_computes || task->peer == shmem_my_pe())
        return;
    shmem_long_p((long *)is_ended, 1, task->peer);
    shmem_quiet();
}

void destroy_contexts(void)
{
    while (n_contexts > 0)
        shmem_ctx_destroy(contexts[--n_contexts]);
}

int prepare_alone(const struct perf_task *task)
{
    destroy_contexts();
    are_shared = task->contexts > 0 && task->contexts < task->threads;
    const long options = task->threads == 1 ? SHMEM_CTX_PRIVATE : are_shared ? 0 : SHMEM_CTX_SERIALIZED;
    while (n_contexts < task->contexts && n_contexts < MOST_LANES) {
        if (shmem_ctx_create(options, &contexts[n_contexts]) != 0)
            return -1;
        n_contexts++;
    }
    return 0;
}

#define WORD ((long *)target)

NEEDS_QUIET(put, shmem_putmem(target, local, nbytes, peer), shmem_ctx_putmem(ctx, target, local, nbytes, peer))
MAY_OVERLAP(put_nbi, shmem_putmem_nbi(target, local, nbytes, peer), shmem_ctx_putmem_nbi(ctx, target, local, nbytes, peer))
COMPLETES(get, shmem_getmem(local, target, nbytes, peer), shmem_ctx_getmem(ctx, local, target, nbytes, peer))
MAY_OVERLAP(get_nbi, shmem_getmem_nbi(local, target, nbytes, peer), shmem_ctx_getmem_nbi(ctx, local, target, nbytes, peer))
NEEDS_QUIET(iput, shmem_iput64(target, local, 2, 1, nbytes / 8, peer),
            shmem_ctx_iput64(ctx, target, local, 2, 1, nbytes / 8, peer))
COMPLETES(iget, shmem_iget64(local, target, 1, 2, nbytes / 8, peer),
          shmem_ctx_iget64(ctx, local, target, 1, 2, nbytes / 8, peer))
NEEDS_QUIET(p, shmem_long_p(WORD, (long)j, peer), shmem_ctx_long_p(ctx, WORD, (long)j, peer))
COMPLETES(g, sink = shmem_long_g(WORD, peer), sink = shmem_ctx_long_g(ctx, WORD, peer))

COMPLETES(fetch, sink = shmem_long_atomic_fetch(WORD, peer), sink = shmem_ctx_long_atomic_fetch(ctx, WORD, peer))
NEEDS_QUIET(set, shmem_long_atomic_set(WORD, 1, peer), shmem_ctx_long_atomic_set(ctx, WORD, 1, peer))
NEEDS_QUIET(add, shmem_long_atomic_add(WORD, 1, peer), shmem_ctx_long_atomic_add(ctx, WORD, 1, peer))
COMPLETES(fetch_add, sink = shmem_long_atomic_fetch_add(WORD, 1, peer),
          sink = shmem_ctx_long_atomic_fetch_add(ctx, WORD, 1, peer))
NEEDS_QUIET(inc, shmem_long_atomic_inc(WORD, peer), shmem_ctx_long_atomic_inc(ctx, WORD, peer))
COMPLETES(fetch_inc, sink = shmem_long_atomic_fetch_inc(WORD, peer), sink = shmem_ctx_long_atomic_fetch_inc(ctx, WORD, peer))
COMPLETES(swap, sink = shmem_long_atomic_swap(WORD, 1, peer), sink = shmem_ctx_long_atomic_swap(ctx, WORD, 1, peer))
COMPLETES(compare_swap, sink = shmem_long_atomic_compare_swap(WORD, 0, 1, peer),
          sink = shmem_ctx_long_atomic_compare_swap(ctx, WORD, 0, 1, peer))

#define UNSIGNED ((unsigned long *)target)
NEEDS_QUIET(and, shmem_ulong_atomic_and(UNSIGNED, 1, peer), shmem_ctx_ulong_atomic_and(ctx, UNSIGNED, 1, peer))
NEEDS_QUIET(or, shmem_ulong_atomic_or(UNSIGNED, 1, peer), shmem_ctx_ulong_atomic_or(ctx, UNSIGNED, 1, peer))
NEEDS_QUIET(xor, shmem_ulong_atomic_xor(UNSIGNED, 1, peer), shmem_ctx_ulong_atomic_xor(ctx, UNSIGNED, 1, peer))
COMPLETES(fetch_and, sink = (long)shmem_ulong_atomic_fetch_and(UNSIGNED, 1, peer),
          sink = (long)shmem_ctx_ulong_atomic_fetch_and(ctx, UNSIGNED, 1, peer))
COMPLETES(fetch_or, sink = (long)shmem_ulong_atomic_fetch_or(UNSIGNED, 1, peer),
          sink = (long)shmem_ctx_ulong_atomic_fetch_or(ctx, UNSIGNED, 1, peer))
COMPLETES(fetch_xor, sink = (long)shmem_ulong_atomic_fetch_xor(UNSIGNED, 1, peer),
          sink = (long)shmem_ctx_ulong_atomic_fetch_xor(ctx, UNSIGNED, 1, peer))
#if SHMEM_MAJOR_VERSION > 1 || SHMEM_MINOR_VERSION >= 5
NEEDS_QUIET(fetch_add_nbi, shmem_long_atomic_fetch_add_nbi((long *)local, WORD, 1, peer),
            shmem_ctx_long_atomic_fetch_add_nbi(ctx, (long *)local, WORD, 1, peer))
#endif
COMPLETES(quiet, shmem_quiet(), shmem_ctx_quiet(ctx))
COMPLETES(fence, shmem_fence(), shmem_ctx_fence(ctx))
COMPLETES(lock, (shmem_set_lock(lock), shmem_clear_lock(lock)), ((void)ctx, shmem_set_lock(lock), shmem_clear_lock(lock)))

/* Floors: loads, stores, atomics and copies through the pointer that shmem_ptr returns. */
#define PLAIN_STEPS(STATEMENT, NEXT_STEP)                                                                               \
    for (uint64_t i = 0; i < batch * window; i++) {                                                                     \
        size_t nbytes = task->nbytes;                                                                                   \
        UNKNOWN(nbytes);                                                                                                \
        STATEMENT;                                                                                                      \
        NEXT_STEP;                                                                                                      \
    }
#define PLAIN_LOOP(NAME, STATEMENT)                                                                                     \
    static void NAME##_run(const struct perf_task *task, uint64_t samples, uint64_t batch, uint64_t *times)             \
    {                                                                                                                   \
        char *const to = shmem_ptr(heap_target, task->peer);                                                            \
        char *there = to, *local = local_source;                                                                        \
        const uint64_t window = task->window;                                                                           \
        (void)local;                                                                                                    \
        for (uint64_t sample = 0; sample < samples; sample++) {                                                         \
            const uint64_t start = now();                                                                               \
            if (task->off_cache)                                                                                        \
                PLAIN_STEPS(STATEMENT, (place = next_place(task, place), there = to + place,                            \
                                        local = local_source + place))                                                  \
            else                                                                                                        \
                PLAIN_STEPS(STATEMENT, (void)0)                                                                         \
            times[sample] = now() - start;                                                                              \
        }                                                                                                               \
    }

PLAIN_LOOP(store, *(volatile long *)there = (long)i)
PLAIN_LOOP(load, sink = *(volatile long *)there)
/* The result is not stored in `sink`, since the next atomic would wait for the store. */
PLAIN_LOOP(cpu_fetch_add, long old = __atomic_fetch_add((long *)there, 1, __ATOMIC_SEQ_CST); UNKNOWN(old))
PLAIN_LOOP(memcpy_to, memcpy(there, local, nbytes))
PLAIN_LOOP(memcpy_from, memcpy(local, there, nbytes))

#define BY_ONE(NAME, MOVES) .name = #NAME, .kind = ALONE, .run = NAME##_run, .follow = compute_until_ended, .end = end, .moves = MOVES
#define ANY_SIZE(NAME, MOVES, OVERLAPS) { BY_ONE(NAME, MOVES), .least = 1, .overlaps = OVERLAPS }
#define WORDS(NAME, MOVES) { BY_ONE(NAME, MOVES), .least = 8 }
#define EIGHT(NAME, MOVES) { BY_ONE(NAME, MOVES), .least = 8, .most = 8 }
#define NO_SIZE(NAME) { BY_ONE(NAME, NOTHING) }

const struct perf_operation alone_operations[] = {
    ANY_SIZE(put, PUTS, 0), ANY_SIZE(put_nbi, PUTS, 1), ANY_SIZE(get, GETS, 0), ANY_SIZE(get_nbi, GETS, 1), WORDS(iput, IPUTS),
    WORDS(iget, IGETS), EIGHT(p, P), EIGHT(g, G), EIGHT(fetch, G), EIGHT(set, REPLACES), EIGHT(add, ADDS), EIGHT(fetch_add, ADDS),
    EIGHT(inc, ADDS), EIGHT(fetch_inc, ADDS), EIGHT(swap, REPLACES), EIGHT(compare_swap, REPLACES), EIGHT(and, ANDS), EIGHT(or, ORS),
    EIGHT(xor, XORS), EIGHT(fetch_and, ANDS), EIGHT(fetch_or, ORS), EIGHT(fetch_xor, XORS),
#if SHMEM_MAJOR_VERSION > 1 || SHMEM_MINOR_VERSION >= 5
    EIGHT(fetch_add_nbi, ADDS),
#endif
    NO_SIZE(quiet), NO_SIZE(fence), NO_SIZE(lock),
    { .name = "store", .kind = PLAIN, .least = 8, .most = 8, .run = store_run },
    { .name = "load", .kind = PLAIN, .least = 8, .most = 8, .run = load_run },
    { .name = "CPU fetch_add", .kind = PLAIN, .least = 8, .most = 8, .run = cpu_fetch_add_run },
    { .name = "memcpy to peer", .kind = PLAIN, .least = 1, .run = memcpy_to_run },
    { .name = "memcpy from peer", .kind = PLAIN, .least = 1, .run = memcpy_from_run },
};
const int n_alone_operations = sizeof alone_operations / sizeof *alone_operations;
