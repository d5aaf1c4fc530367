/* More pairs of an active set and a pSync than a PE can have teams, each of which is used again
 * later. With an argument, at SHMEM_THREAD_MULTIPLE and by two threads at once. Every use has its
 * own memory for data. */
#include <pthread.h>

#include "check.h"

enum { PAIRS = 5000, USES = PAIRS + PAIRS / 2, TURNS = 200 };

struct set {
    int start, log_stride, size;
};
#define SET s.start, s.log_stride, s.size

static struct set *sets;
static int n_sets;
static long syncs[PAIRS][SHMEM_SYNC_SIZE], sync_of_thread[2][SHMEM_SYNC_SIZE];
static int given[USES], work[SHMEM_REDUCE_MIN_WRKDATA_SIZE + 1];
static int *results; /* check_n for each use */

static int world_of(struct set s, int i) { return s.start + (i << s.log_stride); }

/* The sets of two PEs and more; on one PE itself. */
static void find_sets(void) {
    int least = check_n > 1 ? 2 : 1;
    sets = malloc(32 * sizeof *sets * (size_t)check_n * (size_t)check_n);
    for (int start = 0; start < check_n; start++)
        for (int log_stride = 0; log_stride < 31 && 1 << log_stride <= check_n; log_stride++)
            for (int size = least; start + ((size - 1) << log_stride) < check_n; size++)
                sets[n_sets++] = (struct set){start, log_stride, size};
}

static int value(int use, int pe) { return 1000 * use + pe; }

static void use_pair(int pair, int use) {
    struct set s = sets[pair % n_sets];
    int *got = &results[use * check_n], *from = &given[use], root = use % s.size;
    long *sync = syncs[pair];
    int distance = check_me - s.start, me = distance >> s.log_stride;
    if (distance < 0 || distance != me << s.log_stride || me >= s.size)
        return;
    *from = value(use, check_me);
    switch (use % 4) {
    case 0:
        shmem_int_max_to_all(got, from, 1, SET, work, sync);
        CHECK(*got == value(use, world_of(s, s.size - 1)), 62, "use %d on (%d, %d, %d): the maximum is %d", use, SET, *got);
        break;
    case 1:
        shmem_broadcast32(got, from, 1, root, SET, sync);
        CHECK(me == root || *got == value(use, world_of(s, root)), 62, "use %d on (%d, %d, %d): %d came", use, SET, *got);
        break;
    case 2:
        shmem_barrier(SET, sync);
        break;
    default:
        shmem_collect32(got, from, 1, SET, sync);
        for (int i = 0; i < s.size; i++)
            CHECK(got[i] == value(use, world_of(s, i)), 62, "use %d on (%d, %d, %d): %d from %d", use, SET, got[i], i);
    }
}

/* Two threads of each PE, each with a pSync of its own, on the same active set. */
static void *reduce_by_thread(void *argument) {
    long thread = (long *)argument - sync_of_thread[0] > 0;
    int *got = &results[2 * thread], *from = &given[2 * thread];
    for (int turn = 0; turn < TURNS; turn++) {
        int due = 0;
        for (int pe = 0; pe < check_n; pe++)
            due += turn * (pe + 1) + (int)thread;
        *from = turn * (check_me + 1) + (int)thread;
        shmem_int_sum_to_all(got, from, 1, 0, 0, check_n, &work[thread], (long *)argument);
        CHECK(*got == due, 62, "turn %d of thread %ld: the sum is %d", turn, thread, *got);
    }
    return NULL;
}

static void two_threads(void) {
    pthread_t threads[2];
    for (int i = 0; i < 2; i++)
        pthread_create(&threads[i], NULL, reduce_by_thread, sync_of_thread[i]);
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
}

int main(int argc, char **argv) {
    (void)argv;
    int provided;
    shmem_init_thread(argc > 1 ? SHMEM_THREAD_MULTIPLE : SHMEM_THREAD_SINGLE, &provided);
    check_start();
    find_sets();
    for (int i = 0; i < PAIRS; i++)
        for (int k = 0; k < SHMEM_SYNC_SIZE; k++)
            syncs[i][k] = sync_of_thread[i % 2][k] = SHMEM_SYNC_VALUE;
    results = check_malloc(USES * sizeof(int) * (size_t)check_n);
    for (int pair = 0, use = 0; pair < PAIRS; pair++) {
        use_pair(pair, use++);
        if (pair % 2)
            use_pair(pair / 2, use++);
    }
    shmem_barrier_all();
    if (argc > 1)
        two_threads();
    shmem_free(results);
    free(sets);
    return check_end();
}
