/* A thread publishes what it got, and another one adds to the same word in relaxed order, which does not hide it.
 * PEs: 2 */
#include "suite.h"

static long x[8], from;
static atomic_int count;
static void *gets(void *argument) {
    shmem_long_get(&from, x, 1, 1); /* RACE */
    atomic_store_explicit(&count, 1, IF_CLEAN(memory_order_release, memory_order_relaxed));
    return argument;
}
static void *adds(void *argument) {
    while (atomic_load_explicit(&count, memory_order_relaxed) == 0) {
    }
    atomic_fetch_add_explicit(&count, 1, memory_order_relaxed);
    return argument;
}

static void run(int me, int n) {
    (void)me, (void)n;
    pthread_t threads[2];
    if (me == 0) {
        pthread_create(&threads[0], NULL, gets, NULL);
        pthread_create(&threads[1], NULL, adds, NULL);
        while (atomic_load_explicit(&count, memory_order_acquire) < 2) {
        }
        used = from; /* RACE */
        pthread_join(threads[0], NULL);
        pthread_join(threads[1], NULL);
    }
}
