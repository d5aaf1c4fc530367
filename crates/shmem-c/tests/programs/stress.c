/* Threads, contexts, PEs and locks under stress. Every thread has its own random sequence, and
 * every PE replays all sequences as the model.
 *
 *     stress [SEED]     other sequences
 */
#include "check.h"
#include <pthread.h>

enum { THREADS = 3, TURNS = 120, LOCKS = 4, TALLIES = 4 };

/* The data that a lock protects, on one PE. Every change reads and writes all of them. */
struct guarded {
    long count, sum;
};

static long *locks;
static struct guarded *guarded;
static long *tallies; /* changed by AMOs alone */
static long *boxes;   /* one word for each thread of each PE, which writes it and reads it back */
static shmem_ctx_t serialized, of_team;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static uint64_t seed = 1;

enum action { SET_LOCK, TEST_LOCK, TWO_LOCKS, PRIVATE, DEFAULT, SERIALIZED, TEAM, OWN, BOX, ACTIONS };

/* A random operation of a thread. */
struct turn {
    enum action action;
    int pe, lock, other, tally;
    long value;
};

static struct turn draw(int pe, int thread, int number) {
    uint64_t bits = check_mix(seed * 1000003 + ((uint64_t)pe * THREADS + thread) * TURNS + number);
    struct turn turn = {.action = (enum action)(bits % ACTIONS),
                        .pe = (int)(bits >> 8) % check_n,
                        .lock = (int)(bits >> 32) % (LOCKS - 1),
                        .tally = (int)(bits >> 36) % TALLIES,
                        .value = (long)(bits >> 40 & 0xffff) + 1};
    if (turn.pe < 0)
        turn.pe += check_n;
    if (turn.lock < 0)
        turn.lock += LOCKS - 1;
    if (turn.tally < 0)
        turn.tally += TALLIES;
    turn.other = turn.lock + 1;
    return turn;
}

static int home(int lock) { return lock % check_n; }

/* Not atomic: only the lock excludes others. clear_lock completes the default context; other
 * contexts are completed here (point 71). */
static void change(int lock, long value, shmem_ctx_t own) {
    shmem_ctx_t ctx = value % 2 ? own : SHMEM_CTX_DEFAULT;
    struct guarded now, next;
    shmem_ctx_getmem(ctx, &now, &guarded[lock], sizeof now, home(lock));
    next.count = now.count + 1;
    next.sum = now.sum + value * next.count;
    if (ctx == own)
        shmem_ctx_putmem_nbi(ctx, &guarded[lock], &next, sizeof next, home(lock));
    else
        shmem_putmem(&guarded[lock], &next, sizeof next, home(lock));
    if (value % 5 == 0)
        sched_yield();
    if (ctx != SHMEM_CTX_DEFAULT)
        shmem_ctx_quiet(ctx);
    else if (check_n % 2)
        shmem_quiet();
}

static void take_turn(struct turn turn, shmem_ctx_t own, int box) {
    shmem_ctx_t ctx = turn.value % 3 ? own : SHMEM_CTX_DEFAULT, fresh;
    switch (turn.action) {
    case SET_LOCK:
        shmem_set_lock(&locks[turn.lock]);
        change(turn.lock, turn.value, own);
        shmem_clear_lock(&locks[turn.lock]);
        break;
    case TEST_LOCK:
        while (shmem_test_lock(&locks[turn.lock]))
            sched_yield();
        change(turn.lock, turn.value, own);
        shmem_clear_lock(&locks[turn.lock]);
        break;
    case TWO_LOCKS:
        shmem_set_lock(&locks[turn.lock]);
        shmem_set_lock(&locks[turn.other]);
        change(turn.other, turn.value, own);
        change(turn.lock, turn.value, own);
        shmem_clear_lock(&locks[turn.other]);
        shmem_clear_lock(&locks[turn.lock]);
        break;
    case PRIVATE:
        shmem_ctx_long_atomic_add(own, &tallies[turn.tally], turn.value, turn.pe);
        break;
    case DEFAULT:
        shmem_long_atomic_fetch_add(&tallies[turn.tally], turn.value, turn.pe);
        break;
    case SERIALIZED:
        pthread_mutex_lock(&mutex);
        shmem_ctx_long_atomic_add(serialized, &tallies[turn.tally], turn.value, turn.pe);
        pthread_mutex_unlock(&mutex);
        break;
    case TEAM:
        shmem_ctx_long_atomic_fetch_add(of_team, &tallies[turn.tally], turn.value, check_n - 1 - turn.pe);
        break;
    case OWN:
        if (shmem_ctx_create(turn.value % 2 ? SHMEM_CTX_PRIVATE : 0, &fresh))
            fresh = SHMEM_CTX_DEFAULT;
        shmem_ctx_long_atomic_add(fresh, &tallies[turn.tally], turn.value, turn.pe);
        if (fresh != SHMEM_CTX_DEFAULT)
            shmem_ctx_destroy(fresh);
        break;
    case BOX: {
        long back = 0;
        shmem_ctx_long_put_nbi(ctx, &boxes[box], &turn.value, 1, turn.pe);
        shmem_ctx_quiet(ctx);
        shmem_ctx_long_get(ctx, &back, &boxes[box], 1, turn.pe);
        CHECK(back == turn.value, 40, "box %d on PE %d holds %ld, not %ld", box, turn.pe, back, turn.value);
        break;
    }
    case ACTIONS:
        break;
    }
}

static void *work(void *argument) {
    int thread = *(int *)argument;
    shmem_ctx_t own;
    CHECK(shmem_ctx_create(SHMEM_CTX_PRIVATE, &own) == 0, 22, "thread %d: no private context", thread);
    for (int number = 0; number < TURNS; number++)
        take_turn(draw(check_me, thread, number), own, check_me * THREADS + thread);
    shmem_ctx_destroy(own);
    return NULL;
}

/* The expected values on this PE after all sequences. Sums of protected words depend on the order,
 * counts do not. */
static void judge(void) {
    long tally[TALLIES] = {0}, counts[LOCKS] = {0};
    long *box = calloc((size_t)check_n * THREADS, sizeof *box);
    for (int pe = 0; pe < check_n; pe++)
        for (int thread = 0; thread < THREADS; thread++)
            for (int number = 0; number < TURNS; number++) {
                struct turn turn = draw(pe, thread, number);
                if (turn.action <= TWO_LOCKS)
                    counts[turn.lock]++;
                if (turn.action == TWO_LOCKS)
                    counts[turn.other]++;
                if (turn.action > TWO_LOCKS && turn.action < BOX && turn.pe == check_me)
                    tally[turn.tally] += turn.value;
                if (turn.action == BOX && turn.pe == check_me)
                    box[pe * THREADS + thread] = turn.value;
            }
    for (int i = 0; i < TALLIES; i++) {
        long now = shmem_long_g(&tallies[i], check_me);
        CHECK(now == tally[i], 35, "tally %d is %ld, not %ld", i, now, tally[i]);
    }
    for (int i = 0; i < LOCKS; i++) {
        long now = shmem_long_g(&guarded[i].count, check_me), sum = shmem_long_g(&guarded[i].sum, check_me);
        long due = home(i) == check_me ? counts[i] : 0;
        CHECK(now == due, 70, "lock %d protected %ld changes of %ld", i, now, due);
        CHECK((sum != 0) == (due != 0), 70, "lock %d: the sum is %ld", i, sum);
        if (check_me == 0) {
            CHECK(shmem_test_lock(&locks[i]) == 0, 70, "lock %d is not free at the end", i);
            shmem_clear_lock(&locks[i]);
        }
    }
    for (int i = 0; i < check_n * THREADS; i++) {
        long now = shmem_long_g(&boxes[i], check_me);
        CHECK(now == box[i], 40, "box %d is %ld, not %ld", i, now, box[i]);
    }
    free(box);
}

int main(int argc, char **argv) {
    int provided = -1, numbers[THREADS];
    pthread_t threads[THREADS];
    if (argc > 1)
        seed = strtoull(argv[1], NULL, 10);
    CHECK(shmem_init_thread(SHMEM_THREAD_MULTIPLE, &provided) == 0 && provided == SHMEM_THREAD_MULTIPLE, 76, "%d", provided);
    check_start();
    locks = shmem_calloc(LOCKS, sizeof *locks);
    guarded = shmem_calloc(LOCKS, sizeof *guarded);
    tallies = shmem_calloc(TALLIES, sizeof *tallies);
    boxes = shmem_calloc((size_t)check_n * THREADS, sizeof *boxes);
    shmem_team_t reversed;
    CHECK(shmem_team_split_strided(SHMEM_TEAM_WORLD, check_n - 1, -1, check_n, NULL, 0, &reversed) == 0, 2, "no team");
    CHECK(shmem_ctx_create(SHMEM_CTX_SERIALIZED, &serialized) == 0, 22, "no serialized context");
    CHECK(shmem_team_create_ctx(reversed, 0, &of_team) == 0, 20, "no context of a team");
    shmem_barrier_all();
    for (int i = 0; i < THREADS; i++) {
        numbers[i] = i;
        CHECK(pthread_create(&threads[i], NULL, work, &numbers[i]) == 0, 77, "no thread can be had");
    }
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    shmem_ctx_quiet(serialized);
    shmem_ctx_quiet(of_team);
    shmem_barrier_all();
    judge();
    shmem_ctx_destroy(serialized);
    shmem_team_destroy(reversed); /* and its context with it (point 13) */
    shmem_free(boxes);
    shmem_free(tallies);
    shmem_free(guarded);
    shmem_free(locks);
    return check_end();
}
