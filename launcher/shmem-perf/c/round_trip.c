/* Operations in which two PEs answer each other. The leader times them and decides when they end;
 * the other PE follows.
 *
 * It calls only routines of OpenSHMEM 1.4, and of 1.5 where the header has them.
 */
#define _GNU_SOURCE
#include "perf.h"
#include <sched.h>
#include <shmem.h>
#include <string.h>

enum { END = -1 };

static long *flag;        /* symmetric: the number of the round, or END */
static uint64_t *signals; /* symmetric: the same, for put_signal */
static long turn;         /* the number of the last round that this PE has led */
static uint64_t place;    /* offset of the next data in its buffers */

int allocate_round_trips(void)
{
    char *words = shmem_align(4096, 4096);
    if (words == NULL)
        return -1;
    memset(words, 0, 4096);
    flag = (long *)words;
    signals = (uint64_t *)(words + 256);
    return 0;
}

static void forget(void)
{
    *(volatile long *)flag = 0;
    *(volatile uint64_t *)signals = 0;
    turn = 0;
    place = 0;
}

/* Defines NAME_run, the leader's loop: in each round SEND sends, and AWAIT waits for the answer. */
#define LEAD(NAME, SEND, AWAIT)                                                                                         \
    static void NAME##_run(const struct perf_task *task, uint64_t samples, uint64_t batch, uint64_t *times)             \
    {                                                                                                                   \
        for (uint64_t sample = 0; sample < samples; sample++) {                                                         \
            const uint64_t start = now();                                                                               \
            for (uint64_t i = 0; i < batch; i++) {                                                                      \
                turn++;                                                                                                 \
                SEND;                                                                                                   \
                AWAIT;                                                                                                  \
            }                                                                                                           \
            times[sample] = now() - start;                                                                              \
        }                                                                                                               \
    }

static void put_and_flag(const struct perf_task *task, long value)
{
    shmem_putmem(target_of(task) + place, local_source + place, task->nbytes, task->peer);
    place = next_place(task, place);
    shmem_fence();
    shmem_long_p(flag, value, task->peer);
}

LEAD(p, shmem_long_p(flag, turn, task->peer), shmem_long_wait_until(flag, SHMEM_CMP_EQ, turn))
LEAD(put_flag, put_and_flag(task, turn), shmem_long_wait_until(flag, SHMEM_CMP_EQ, turn))

static void p_end(const struct perf_task *task)
{
    if (task->peer != shmem_my_pe())
        shmem_long_p(flag, END, task->peer);
    shmem_quiet();
    forget();
}

static void p_follow(const struct perf_task *task)
{
    for (long seen = 0;;) {
        shmem_long_wait_until(flag, SHMEM_CMP_NE, seen);
        seen = *(volatile long *)flag;
        if (seen == END)
            break;
        shmem_long_p(flag, seen, task->peer);
    }
    forget();
}

static void put_flag_follow(const struct perf_task *task)
{
    for (long seen = 0;;) {
        shmem_long_wait_until(flag, SHMEM_CMP_NE, seen);
        seen = *(volatile long *)flag;
        if (seen == END)
            break;
        put_and_flag(task, seen);
    }
    forget();
}

#if SHMEM_MAJOR_VERSION > 1 || SHMEM_MINOR_VERSION >= 5
static void put_signal(const struct perf_task *task, uint64_t value)
{
    shmem_putmem_signal(target_of(task) + place, local_source + place, task->nbytes, signals, value, SHMEM_SIGNAL_SET, task->peer);
    place = next_place(task, place);
}

LEAD(put_signal, put_signal(task, (uint64_t)turn), shmem_signal_wait_until(signals, SHMEM_CMP_EQ, (uint64_t)turn))

static void put_signal_end(const struct perf_task *task)
{
    if (task->peer != shmem_my_pe())
        put_signal(task, (uint64_t)END);
    shmem_quiet();
    forget();
}

static void put_signal_follow(const struct perf_task *task)
{
    for (uint64_t seen = 0;;) {
        seen = shmem_signal_wait_until(signals, SHMEM_CMP_NE, seen);
        if (seen == (uint64_t)END)
            break;
        put_signal(task, seen);
    }
    forget();
}
#endif

/* Waits by plain loads until the flag differs from `seen`, and returns it. A long wait yields the
 * CPU. */
static long await_plainly(long seen)
{
    for (long polls = 1;; polls++) {
        const long value = __atomic_load_n(flag, __ATOMIC_ACQUIRE);
        if (value != seen)
            return value;
        if (polls % 10000 == 0)
            sched_yield();
    }
}

#define THERE(task) ((long *)shmem_ptr(flag, (task)->peer))

LEAD(line, __atomic_store_n(THERE(task), turn, __ATOMIC_RELEASE), await_plainly(turn - 1))

static void line_end(const struct perf_task *task)
{
    if (task->peer != shmem_my_pe())
        __atomic_store_n(THERE(task), END, __ATOMIC_RELEASE);
    forget();
}

static void line_follow(const struct perf_task *task)
{
    long *there = THERE(task);
    for (long seen = 0; (seen = await_plainly(seen)) != END;)
        __atomic_store_n(there, seen, __ATOMIC_RELEASE);
    forget();
}

const struct perf_operation round_trip_operations[] = {
    { .name = "p round trip", .kind = ROUND_TRIP, .least = 8, .most = 8, .run = p_run, .follow = p_follow, .end = p_end },
    { .name = "put_fence_p round trip", .kind = ROUND_TRIP, .moves = PUTS, .least = 1, .run = put_flag_run, .follow = put_flag_follow,
      .end = p_end },
#if SHMEM_MAJOR_VERSION > 1 || SHMEM_MINOR_VERSION >= 5
    { .name = "put_signal round trip", .kind = ROUND_TRIP, .moves = PUTS, .least = 1, .run = put_signal_run, .follow = put_signal_follow,
      .end = put_signal_end },
#endif
    { .name = "cache line round trip", .kind = PLAIN_ROUND_TRIP, .least = 8, .most = 8, .run = line_run, .follow = line_follow,
      .end = line_end },
};
const int n_round_trip_operations = sizeof round_trip_operations / sizeof *round_trip_operations;
