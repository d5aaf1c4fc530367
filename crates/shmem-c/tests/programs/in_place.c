/* Collectives whose source is their destination. The standard allows this only for reductions; here
 * it works for all. The last PE is late, so that peers write to it before it has called. */
#include <unistd.h>

#include "check.h"

enum { COUNT = 5, TURNS = 4, SLOW = 2000 /* microseconds */ };

static long syncs[SHMEM_SYNC_SIZE];
static int *both; /* symmetric: 2 * COUNT words for each PE */

static int value(int turn, int pe, int i) { return 10000 * (turn + 1) + 100 * pe + i; }

/* Fills the words that this PE contributes. */
static void prepare(int turn, int words) {
    for (int i = 0; i < words; i++)
        both[i] = value(turn, check_me, i);
    shmem_barrier_all();
    if (check_me == check_n - 1)
        usleep(SLOW);
}

/* Checks `count` words from index `at` on: they are those that `pe` contributed from `from` on. */
static void expect(const char *call, int turn, int at, int pe, int from, int count) {
    for (int i = 0; i < count; i++)
        CHECK(both[at + i] == value(turn, pe, from + i), 0, "%s in place: word %d is %d", call, at + i, both[at + i]);
}

static void broadcast(int set, int turn) {
    int root = turn % check_n;
    prepare(turn, COUNT);
    if (set)
        shmem_broadcast32(both, both, COUNT, root, 0, 0, check_n, syncs);
    else
        shmem_int_broadcast(SHMEM_TEAM_WORLD, both, both, COUNT, root);
    expect("broadcast", turn, 0, root, 0, COUNT);
    shmem_barrier_all();
}

static void fcollect(int set, int turn) {
    prepare(turn, COUNT);
    if (set)
        shmem_fcollect32(both, both, COUNT, 0, 0, check_n, syncs);
    else
        shmem_int_fcollect(SHMEM_TEAM_WORLD, both, both, COUNT);
    for (int pe = 0; pe < check_n; pe++)
        expect("fcollect", turn, pe * COUNT, pe, 0, COUNT);
    shmem_barrier_all();
}

/* The last PE contributes nothing, each other PE one word more than the one before. */
static void collect(int set, int turn) {
    prepare(turn, COUNT + check_n);
    size_t words = check_me < check_n - 1 ? (size_t)(COUNT + check_me) : 0;
    if (set)
        shmem_collect32(both, both, words, 0, 0, check_n, syncs);
    else
        shmem_int_collect(SHMEM_TEAM_WORLD, both, both, words);
    for (int pe = 0, at = 0; pe < check_n - 1; at += COUNT + pe, pe++)
        expect("collect", turn, at, pe, 0, COUNT + pe);
    shmem_barrier_all();
}

static void alltoall(int set, int turn) {
    prepare(turn, COUNT * check_n);
    if (set)
        shmem_alltoall32(both, both, COUNT, 0, 0, check_n, syncs);
    else
        shmem_int_alltoall(SHMEM_TEAM_WORLD, both, both, COUNT);
    for (int pe = 0; pe < check_n; pe++)
        expect("alltoall", turn, pe * COUNT, pe, check_me * COUNT, COUNT);
    shmem_barrier_all();
}

static void alltoalls(int set, int turn) {
    prepare(turn, 2 * COUNT * check_n);
    if (set)
        shmem_alltoalls32(both, both, 2, 1, COUNT, 0, 0, check_n, syncs);
    else
        shmem_int_alltoalls(SHMEM_TEAM_WORLD, both, both, 2, 1, COUNT);
    for (int pe = 0; pe < check_n; pe++)
        for (int i = 0; i < COUNT; i++)
            expect("alltoalls", turn, 2 * (pe * COUNT + i), pe, check_me * COUNT + i, 1);
    shmem_barrier_all();
}

int main(void) {
    check_begin();
    for (int k = 0; k < SHMEM_SYNC_SIZE; k++)
        syncs[k] = SHMEM_SYNC_VALUE;
    both = check_malloc(sizeof *both * (size_t)(2 * COUNT * check_n + check_n * check_n));
    for (int turn = 0; turn < TURNS; turn++)
        for (int set = 0; set < 2; set++) {
            broadcast(set, turn);
            fcollect(set, turn);
            collect(set, turn);
            alltoall(set, turn);
            alltoalls(set, turn);
        }
    shmem_free(both);
    return check_end();
}
