/* Collectives of the first PEs. They use teams if the header has them (OpenSHMEM 1.5), otherwise
 * active sets. Some always use active sets, so that they can be compared between all libraries.
 *
 * Calls in a row use two targets alternately, so that none writes into a buffer that another member
 * still needs. If calls are timed one by one, the members synchronize before each.
 */
#define _GNU_SOURCE
#include "perf.h"
#include <sched.h>
#include <shmem.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#if defined(__has_include)
#if __has_include(<shmemx.h>)
#include <shmemx.h>
#endif
#endif

#if SHMEM_MAJOR_VERSION > 1 || SHMEM_MINOR_VERSION >= 5
#define HAS_TEAMS 1
#endif

static int size;          /* number of members; PEs from this number on take no part */
static uint64_t half;     /* bytes of each of the two targets */
static unsigned turn;     /* which target is next: 0 or 1 */
static uint64_t place;    /* offset of the next data in each target and in the source */
static long n_cpus;

/* For active sets: synchronization words and work areas, two of each, which alternate as well. */
enum { MOST_SYNC = 1024 };

static long sync_words[SHMEM_BARRIER_SYNC_SIZE];
static long psync[2][MOST_SYNC];
static long *work; /* symmetric: two areas for reductions */
static uint64_t work_words;

int allocate_collectives(uint64_t nbytes)
{
    if (SHMEM_REDUCE_SYNC_SIZE > MOST_SYNC || SHMEM_BCAST_SYNC_SIZE > MOST_SYNC || SHMEM_COLLECT_SYNC_SIZE > MOST_SYNC ||
        SHMEM_ALLTOALL_SYNC_SIZE > MOST_SYNC)
        return -1;
    half = nbytes;
    n_cpus = sysconf(_SC_NPROCESSORS_ONLN);
    work_words = nbytes / 16 + 1;
    if (work_words < SHMEM_REDUCE_MIN_WRKDATA_SIZE)
        work_words = SHMEM_REDUCE_MIN_WRKDATA_SIZE;
    work = shmem_align(4096, 2 * work_words * sizeof *work);
    for (int i = 0; i < SHMEM_BARRIER_SYNC_SIZE; i++)
        sync_words[i] = SHMEM_SYNC_VALUE;
    for (int i = 0; i < MOST_SYNC; i++)
        psync[0][i] = psync[1][i] = SHMEM_SYNC_VALUE;
    shmem_barrier_all();
    return work == NULL ? -1 : 0;
}

char *last_result(int before)
{
    return heap_target + (turn == (unsigned)before ? half : 0);
}

/* Returns the offset of the next data, with room for a block of each member. */
static uint64_t next_block(const struct perf_task *task)
{
    const struct perf_task all = { .nbytes = (uint64_t)size * task->nbytes, .off_cache = task->off_cache };
    return next_place(&all, place);
}

#define SET 0, 0, size, psync[turn]
#define TO_ALL(ROUTINE, to, from, n)                                                                                    \
    ROUTINE((long *)(to), (long *)(from), (n) / 8, 0, 0, size, work + turn * work_words, psync[turn])

#ifdef HAS_TEAMS
/* Set by prepare_collective: SHMEM_TEAM_WORLD is a variable in some libraries. */
static shmem_team_t team;

int prepare_collective(const struct perf_task *task)
{
    if (size > 0 && size < shmem_n_pes() && team != SHMEM_TEAM_INVALID)
        shmem_team_destroy(team);
    size = task->team_size;
    place = 0;
    team = SHMEM_TEAM_WORLD;
    if (size == shmem_n_pes())
        return 0;
    const int status = shmem_team_split_strided(SHMEM_TEAM_WORLD, 0, 1, size, NULL, 0, &team);
    return shmem_my_pe() < size && (status != 0 || team == SHMEM_TEAM_INVALID) ? -1 : 0;
}

static void meet(void)
{
    shmem_team_sync(team);
}

#define BROADCAST(to, from, n) shmem_broadcastmem(team, to, from, n, 0)
#define FCOLLECT(to, from, n) shmem_fcollectmem(team, to, from, n)
#define COLLECT(to, from, n) shmem_collectmem(team, to, from, n)
#define ALLTOALL(to, from, n) shmem_alltoallmem(team, to, from, n)
#define SUM(to, from, n) shmem_long_sum_reduce(team, (long *)(to), (const long *)(from), (n) / 8)
#define MAX(to, from, n) shmem_long_max_reduce(team, (long *)(to), (const long *)(from), (n) / 8)
#else
int prepare_collective(const struct perf_task *task)
{
    size = task->team_size;
    place = 0;
    return 0;
}

static void meet(void)
{
    shmem_sync(0, 0, size, sync_words);
}

#define BROADCAST(to, from, n) shmem_broadcast64(to, from, (n) / 8, 0, SET)
#define FCOLLECT(to, from, n) shmem_fcollect64(to, from, (n) / 8, SET)
#define COLLECT(to, from, n) shmem_collect64(to, from, (n) / 8, SET)
#define ALLTOALL(to, from, n) shmem_alltoall64(to, from, (n) / 8, SET)
#define SUM(to, from, n) TO_ALL(shmem_long_sum_to_all, to, from, n)
#define MAX(to, from, n) TO_ALL(shmem_long_max_to_all, to, from, n)
#endif

/* Defines the loop of a collective. PEs that are not members return at once. */
#define LOOP(NAME, CALL)                                                                                                \
    static void NAME##_run(const struct perf_task *task, uint64_t samples, uint64_t batch, uint64_t *times)             \
    {                                                                                                                   \
        const uint64_t n = task->nbytes;                                                                                \
        (void)n;                                                                                                        \
        if (shmem_my_pe() >= size)                                                                                      \
            return;                                                                                                     \
        place = next_block(task);                                                                                       \
        for (uint64_t sample = 0; sample < samples; sample++) {                                                         \
            if (batch == 1)                                                                                             \
                meet();                                                                                                 \
            const uint64_t start = now();                                                                               \
            for (uint64_t i = 0; i < batch; i++) {                                                                      \
                char *const to = heap_target + (turn ? half : 0) + place;                                               \
                char *const from = heap_source + place;                                                                 \
                (void)to, (void)from;                                                                                   \
                CALL;                                                                                                   \
                turn = !turn;                                                                                           \
                place = next_block(task);                                                                               \
            }                                                                                                           \
            times[sample] = now() - start;                                                                              \
        }                                                                                                               \
        /* Afterwards, all members have returned, so the targets can be used again. */                                 \
        meet();                                                                                                         \
    }

LOOP(barrier, shmem_barrier_all())
LOOP(sync, meet())
LOOP(sum, SUM(to, from, n))
LOOP(max, MAX(to, from, n))
LOOP(broadcast, BROADCAST(to, from, n))
LOOP(fcollect, FCOLLECT(to, from, n))
LOOP(collect, COLLECT(to, from, n))
LOOP(alltoall, ALLTOALL(to, from, n))
LOOP(max_to_all, TO_ALL(shmem_long_max_to_all, to, from, n))
LOOP(broadcast64, (shmem_broadcast64(to, from, n / 8, 0, SET), shmem_barrier_all()))
LOOP(fcollect64, (shmem_fcollect64(to, from, n / 8, SET), shmem_barrier_all()))
LOOP(malloc, shmem_free(shmem_malloc(64)))

/* Acquires and releases a lock that all members want, in the order that the library chooses. */
static void take_turn(void)
{
    static long lock;
    shmem_set_lock(&lock);
    if (size > n_cpus)
        sched_yield(); /* so that others request the lock while it is held */
    shmem_clear_lock(&lock);
}
LOOP(lock, take_turn())
#if SHMEM_MAJOR_VERSION > 1 || SHMEM_MINOR_VERSION >= 6
LOOP(inscan, shmem_long_sum_inscan(team, (long *)to, (const long *)from, n / 8))
LOOP(exscan, shmem_long_sum_exscan(team, (long *)to, (const long *)from, n / 8))
#endif
#ifdef HAS_TEAMS
static void split(void)
{
    shmem_team_t made = SHMEM_TEAM_INVALID;
    if (shmem_team_split_strided(team, 0, 1, size, NULL, 0, &made) == 0)
        shmem_team_destroy(made);
}
LOOP(split, split())
#endif

#ifdef SHMEMX_REQ_NULL
static uint64_t turns_beside; /* iterations of perf_compute during a reduction */

static void sum_nb(char *to, const char *from, uint64_t n)
{
    shmemx_req_t request = SHMEMX_REQ_NULL;
    shmemx_long_sum_reduce_nb(team, (long *)to, (const long *)from, n / 8, &request);
    perf_compute(turns_beside);
    shmemx_req_wait(&request);
}
LOOP(sum_nb, sum_nb(to, from, n))

static int by_size(const void *one, const void *other)
{
    const uint64_t a = *(const uint64_t *)one, b = *(const uint64_t *)other;
    return (a > b) - (a < b);
}

static uint64_t median_of(uint64_t *times, size_t n)
{
    qsort(times, n, sizeof *times, by_size);
    return times[n / 2];
}

/* The time of a reduction alone, and the number of iterations of perf_compute that take as long. */
static struct {
    uint64_t nbytes, time, turns;
    int members;
} alone;

static void time_alone(const struct perf_task *task)
{
    enum { TRIES = 9, TURNS = 100000 };
    uint64_t reductions[TRIES] = { 0 }, loops[TRIES];
    sum_nb_run(task, TRIES, 1, reductions);
    for (int i = 0; i < TRIES; i++) {
        const uint64_t start = now();
        perf_compute(TURNS);
        loops[i] = now() - start + 1;
    }
    alone.time = median_of(reductions, TRIES);
    alone.turns = alone.time * TURNS / median_of(loops, TRIES);
    alone.nbytes = task->nbytes;
    alone.members = size;
}

/* Reports the time of a reduction together with that computation, minus the computation's time. */
static void sum_nb_beside_run(const struct perf_task *task, uint64_t samples, uint64_t batch, uint64_t *times)
{
    if (alone.nbytes != task->nbytes || alone.members != size)
        time_alone(task);
    turns_beside = alone.turns;
    sum_nb_run(task, samples, batch, times);
    turns_beside = 0;
    for (uint64_t i = 0; i < samples && shmem_my_pe() < size; i++)
        times[i] = times[i] > batch * alone.time ? times[i] - batch * alone.time : 1;
}
#endif

const struct perf_operation collective_operations[] = {
    { .name = "barrier_all", .kind = COLLECTIVE, .run = barrier_run },
    { .name = "sync", .kind = COLLECTIVE, .run = sync_run },
    { .name = "sum_reduce", .kind = COLLECTIVE, .moves = SUMS, .least = 8, .run = sum_run },
    { .name = "max_reduce", .kind = COLLECTIVE, .moves = TAKES_MOST, .least = 8, .run = max_run },
    { .name = "broadcast", .kind = COLLECTIVE, .moves = BROADCASTS, .least = 8, .is_rooted = 1, .run = broadcast_run },
    { .name = "fcollect", .kind = COLLECTIVE, .moves = COLLECTS, .least = 8, .blocks_by_member = 1, .run = fcollect_run },
    { .name = "collect", .kind = COLLECTIVE, .moves = COLLECTS, .least = 8, .blocks_by_member = 1, .run = collect_run },
    { .name = "alltoall", .kind = COLLECTIVE, .moves = ALLTOALLS, .least = 8, .blocks_by_member = 1, .run = alltoall_run },
    { .name = "max_to_all", .kind = COLLECTIVE, .moves = TAKES_MOST, .least = 8, .run = max_to_all_run },
    { .name = "broadcast64 and barrier_all", .kind = COLLECTIVE, .moves = BROADCASTS, .least = 8, .run = broadcast64_run },
    { .name = "fcollect64 and barrier_all", .kind = COLLECTIVE, .moves = COLLECTS, .least = 8, .blocks_by_member = 1, .run = fcollect64_run },
#if SHMEM_MAJOR_VERSION > 1 || SHMEM_MINOR_VERSION >= 6
    { .name = "sum_inscan", .kind = COLLECTIVE, .moves = INSCANS, .least = 8, .is_rooted = 1, .run = inscan_run },
    { .name = "sum_exscan", .kind = COLLECTIVE, .moves = EXSCANS, .least = 8, .is_rooted = 1, .run = exscan_run },
#endif
#ifdef HAS_TEAMS
    { .name = "team_split_strided and destroy", .kind = COLLECTIVE, .run = split_run },
#endif
#ifdef SHMEMX_REQ_NULL
    { .name = "sum_reduce_nb", .kind = COLLECTIVE, .moves = SUMS, .least = 8, .run = sum_nb_run },
    { .name = "sum_reduce_nb beside computing", .kind = COLLECTIVE, .moves = SUMS, .least = 8, .run = sum_nb_beside_run },
#endif
    { .name = "malloc and free", .kind = COLLECTIVE, .run = malloc_run },
    { .name = "lock in turn", .kind = COLLECTIVE, .run = lock_run },
};
const int n_collective_operations = sizeof collective_operations / sizeof *collective_operations;
