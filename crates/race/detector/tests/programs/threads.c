/* A thread gets into a word, and another one stores to it, ordered by each routine of POSIX and C for threads. PEs: 1 */
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <shmem.h>
#include <stdatomic.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <threads.h>
#include <unistd.h>

static long x;
static volatile long word;
static volatile int is_done;

static void get(void) {
    shmem_long_get((long *)&word, &x, 1, 0);
}

static struct timespec later(clockid_t clock) {
    struct timespec time;
    clock_gettime(clock, &time);
    time.tv_sec += 60;
    return time;
}

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_rwlock_t rwlock = PTHREAD_RWLOCK_INITIALIZER;
static pthread_spinlock_t spinlock;
static mtx_t mtx;
static sem_t semaphore;
static pthread_cond_t condition = PTHREAD_COND_INITIALIZER;
static cnd_t cnd;
static pthread_barrier_t barrier;

/* A routine that tries to take a lock, and returns 0 if it has. */
#define TAKES(name, call)                                              \
    static int name(void) {                                            \
        struct timespec time = later(CLOCK_REALTIME);                  \
        struct timespec monotonic_time = later(CLOCK_MONOTONIC);       \
        (void)time, (void)monotonic_time;                              \
        return call;                                                   \
    }
TAKES(lock, pthread_mutex_lock(&mutex))
TAKES(trylock, pthread_mutex_trylock(&mutex))
TAKES(timedlock, pthread_mutex_timedlock(&mutex, &time))
TAKES(clocklock, pthread_mutex_clocklock(&mutex, CLOCK_MONOTONIC, &monotonic_time))
TAKES(rdlock, pthread_rwlock_rdlock(&rwlock))
TAKES(tryrdlock, pthread_rwlock_tryrdlock(&rwlock))
TAKES(timedrdlock, pthread_rwlock_timedrdlock(&rwlock, &time))
TAKES(clockrdlock, pthread_rwlock_clockrdlock(&rwlock, CLOCK_MONOTONIC, &monotonic_time))
TAKES(wrlock, pthread_rwlock_wrlock(&rwlock))
TAKES(trywrlock, pthread_rwlock_trywrlock(&rwlock))
TAKES(timedwrlock, pthread_rwlock_timedwrlock(&rwlock, &time))
TAKES(clockwrlock, pthread_rwlock_clockwrlock(&rwlock, CLOCK_MONOTONIC, &monotonic_time))
TAKES(spin_lock, pthread_spin_lock(&spinlock))
TAKES(spin_trylock, pthread_spin_trylock(&spinlock))
TAKES(c_lock, mtx_lock(&mtx))
TAKES(c_trylock, mtx_trylock(&mtx))
TAKES(c_timedlock, mtx_timedlock(&mtx, &time))
TAKES(wait_post, sem_wait(&semaphore))
TAKES(trywait_post, sem_trywait(&semaphore))
TAKES(timedwait_post, sem_timedwait(&semaphore, &time))
TAKES(clockwait_post, sem_clockwait(&semaphore, CLOCK_MONOTONIC, &monotonic_time))
static void give(void) { pthread_mutex_unlock(&mutex); }
static void give_rwlock(void) { pthread_rwlock_unlock(&rwlock); }
static void give_spinlock(void) { pthread_spin_unlock(&spinlock); }
static void give_mtx(void) { mtx_unlock(&mtx); }
static void post(void) { sem_post(&semaphore); }

static const struct lock {
    int (*take)(void);
    void (*give)(void);
} locks[] = {
    {lock, give}, {trylock, give}, {timedlock, give}, {clocklock, give},
    {rdlock, give_rwlock}, {tryrdlock, give_rwlock}, {timedrdlock, give_rwlock}, {clockrdlock, give_rwlock},
    {wrlock, give_rwlock}, {trywrlock, give_rwlock}, {timedwrlock, give_rwlock}, {clockwrlock, give_rwlock},
    {spin_lock, give_spinlock}, {spin_trylock, give_spinlock},
    {c_lock, give_mtx}, {c_trylock, give_mtx}, {c_timedlock, give_mtx},
    {wait_post, post}, {trywait_post, post}, {timedwait_post, post}, {clockwait_post, post},
};

static void take(const struct lock *lock) {
    while (lock->take() != 0)
        sched_yield();
}

static void *with_lock(void *argument) {
    const struct lock *lock = argument;
    /* The thread that gets takes the write lock, and the other one the read lock. */
    if (lock->give == give_rwlock)
        pthread_rwlock_wrlock(&rwlock);
    else
        take(lock);
    get();
    is_done = 1;
    lock->give();
    return NULL;
}

static void by_lock(const struct lock *lock) {
    is_done = 0;
    pthread_t thread;
    pthread_create(&thread, NULL, with_lock, (void *)lock);
    for (int sees = 0; !sees;) {
        take(lock);
        sees = is_done;
        if (sees)
            word = 1;
        lock->give();
    }
    pthread_join(thread, NULL);
}

/* Conditions. */
static int wait_condition(void) { return pthread_cond_wait(&condition, &mutex); }
TAKES(timedwait, pthread_cond_timedwait(&condition, &mutex, &time))
TAKES(clockwait, pthread_cond_clockwait(&condition, &mutex, CLOCK_MONOTONIC, &monotonic_time))

static void *signals(void *argument) {
    usleep(10000);
    pthread_mutex_lock(&mutex);
    get();
    is_done = 1;
    pthread_cond_signal(&condition);
    pthread_mutex_unlock(&mutex);
    return argument;
}

static void by_condition(int (*wait)(void)) {
    is_done = 0;
    pthread_t thread;
    pthread_mutex_lock(&mutex);
    pthread_create(&thread, NULL, signals, NULL);
    while (!is_done)
        wait();
    word = 1;
    pthread_mutex_unlock(&mutex);
    pthread_join(thread, NULL);
}

static int c_signals(void *argument) {
    (void)argument;
    usleep(10000);
    mtx_lock(&mtx);
    get();
    is_done = 1;
    cnd_signal(&cnd);
    mtx_unlock(&mtx);
    return 7;
}

static void by_condition_of_c(int is_timed) {
    is_done = 0;
    thrd_t thread;
    struct timespec time = later(CLOCK_REALTIME);
    mtx_lock(&mtx);
    thrd_create(&thread, c_signals, NULL);
    while (!is_done) {
        if (is_timed)
            cnd_timedwait(&cnd, &mtx, &time);
        else
            cnd_wait(&cnd, &mtx);
    }
    word = 1;
    mtx_unlock(&mtx);
    int result;
    thrd_join(thread, &result);
    if (result != 7)
        shmem_global_exit(2);
}

/* Initialization, once. */
static pthread_once_t once = PTHREAD_ONCE_INIT;
static once_flag once_of_c = ONCE_FLAG_INIT;
static pthread_once_t inner = PTHREAD_ONCE_INIT;
static void inner_function(void) { get(); }
static void nested(void) {
    pthread_once(&inner, inner_function);
    usleep(10000);
    get();
}
static void *with_once(void *argument) {
    pthread_once(&once, nested);
    return argument;
}
static void *with_once_of_c(void *argument) {
    call_once(&once_of_c, get);
    return argument;
}

/* The end of a thread. */
static void *returns(void *argument) {
    usleep(10000);
    get();
    return argument;
}
static void *exits(void *argument) {
    returns(NULL);
    pthread_exit(argument);
}
static int exits_c(void *argument) {
    (void)argument;
    returns(NULL);
    thrd_exit(3);
}
static void *waits_for_ever(void *argument) {
    get();
    is_done = 1;
    pause();
    return argument;
}
static void unlocks(void *argument) {
    get();
    pthread_mutex_unlock(argument);
}
static void *waits_until_canceled(void *argument) {
    pthread_mutex_lock(&mutex);
    pthread_cleanup_push(unlocks, &mutex);
    is_done = 1;
    for (;;)
        pthread_cond_wait(&condition, &mutex);
    pthread_cleanup_pop(1);
    return argument;
}

static int joined(pthread_t thread) { return pthread_join(thread, NULL); }
static int tryjoined(pthread_t thread) { return pthread_tryjoin_np(thread, NULL); }
static int timedjoined(pthread_t thread) {
    struct timespec time = later(CLOCK_REALTIME);
    return pthread_timedjoin_np(thread, NULL, &time);
}
static int clockjoined(pthread_t thread) {
    struct timespec time = later(CLOCK_MONOTONIC);
    return pthread_clockjoin_np(thread, NULL, CLOCK_MONOTONIC, &time);
}

static void by_end(void *(*function)(void *), int (*join)(pthread_t)) {
    pthread_t thread;
    pthread_create(&thread, NULL, function, NULL);
    while (join(thread) != 0)
        usleep(1000);
    word = 1;
}

static void by_cancellation(void *(*function)(void *)) {
    is_done = 0;
    pthread_t thread;
    pthread_create(&thread, NULL, function, NULL);
    while (!is_done)
        usleep(1000);
    pthread_mutex_lock(&mutex);
    word = 1;
    pthread_mutex_unlock(&mutex);
    pthread_cancel(thread);
    pthread_join(thread, NULL);
    word = 2;
}

static int ends[2];
static void *writes(void *argument) {
    get();
    uint64_t one = 1;
    return write(ends[1], &one, sizeof one) == sizeof one ? argument : NULL;
}
static void by_reading(void) {
    pthread_t thread;
    uint64_t one;
    pthread_create(&thread, NULL, writes, NULL);
    if (read(ends[0], &one, sizeof one) == sizeof one)
        word = 1;
    pthread_join(thread, NULL);
}

static void *sends(void *argument) {
    get();
    return send(ends[1], "", 1, 0) == 1 ? argument : NULL;
}
static void by_receiving(void) {
    pthread_t thread;
    char byte;
    pthread_create(&thread, NULL, sends, NULL);
    if (recv(ends[0], &byte, 1, 0) == 1)
        word = 1;
    pthread_join(thread, NULL);
}

/* Relaxed atomic operations with fences, and a count that two threads release and one acquires. */
static atomic_int flag, count;
static void *raises(void *argument) {
    get();
    atomic_thread_fence(memory_order_release);
    atomic_store_explicit(&flag, 1, memory_order_relaxed);
    return argument;
}
static void by_fences(void) {
    pthread_t thread;
    pthread_create(&thread, NULL, raises, NULL);
    while (!atomic_load_explicit(&flag, memory_order_relaxed))
        ;
    atomic_thread_fence(memory_order_acquire);
    word = 1;
    pthread_join(thread, NULL);
}
static void *counts(void *argument) {
    long own;
    shmem_long_get(&own, (long *)&word, 1, 0);
    atomic_fetch_sub_explicit(&count, 1, memory_order_release);
    return argument;
}
static void by_counting(void) {
    pthread_t threads[2];
    count = 2;
    for (int i = 0; i < 2; i++)
        pthread_create(&threads[i], NULL, counts, NULL);
    while (atomic_load_explicit(&count, memory_order_relaxed) != 0)
        ;
    atomic_thread_fence(memory_order_acquire);
    word = 1;
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
}

static void *before_init(void *argument) {
    sem_wait(&semaphore);
    get();
    return argument;
}

static void *at_barrier(void *argument) {
    get();
    pthread_barrier_wait(&barrier);
    return argument;
}

int main(void) {
    int provided;
    pthread_t early, thread;
    sem_init(&semaphore, 0, 0);
    pthread_create(&early, NULL, before_init, NULL);
    shmem_init_thread(SHMEM_THREAD_MULTIPLE, &provided);
    sem_post(&semaphore);
    pthread_join(early, NULL);
    word = 1;

    sem_post(&semaphore);
    pthread_spin_init(&spinlock, 0);
    mtx_init(&mtx, mtx_timed);
    cnd_init(&cnd);
    for (size_t i = 0; i < sizeof locks / sizeof *locks; i++)
        by_lock(&locks[i]);
    by_condition(wait_condition);
    by_condition(timedwait);
    by_condition(clockwait);
    by_condition_of_c(0);
    by_condition_of_c(1);

    pthread_barrier_init(&barrier, NULL, 2);
    pthread_create(&thread, NULL, at_barrier, NULL);
    pthread_barrier_wait(&barrier);
    word = 1;
    pthread_join(thread, NULL);

    pthread_create(&thread, NULL, with_once, NULL);
    pthread_once(&once, nested);
    word = 1;
    pthread_join(thread, NULL);
    pthread_create(&thread, NULL, with_once_of_c, NULL);
    call_once(&once_of_c, get);
    word = 1;
    pthread_join(thread, NULL);

    by_end(returns, joined);
    by_end(returns, tryjoined);
    by_end(returns, timedjoined);
    by_end(returns, clockjoined);
    by_end(exits, joined);
    thrd_t of_c;
    int result;
    thrd_create(&of_c, exits_c, NULL);
    thrd_join(of_c, &result);
    word = result;
    by_cancellation(waits_until_canceled);
    is_done = 0;
    pthread_create(&thread, NULL, waits_for_ever, NULL);
    while (!is_done)
        usleep(1000);
    pthread_cancel(thread);
    pthread_join(thread, NULL);
    word = 1;

    if (pipe(ends) != 0)
        shmem_global_exit(4);
    by_reading();
    ends[0] = ends[1] = eventfd(0, 0);
    by_reading();
    if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends) != 0)
        shmem_global_exit(5);
    by_reading();
    by_receiving();
    by_fences();
    by_counting();

    shmem_finalize();
    return result == 3 ? 0 : 3;
}
