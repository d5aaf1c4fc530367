/* Relaxed atomic operations of two threads, with fences that order them or without.
 * PEs: 2 */
#include "suite.h"

static long x[8], from;
static atomic_int ready;
static void *body(void *argument) {
    shmem_long_get(&from, x, 1, 1); /* RACE */
    ORDER(atomic_thread_fence(memory_order_release));
    atomic_fetch_add_explicit(&ready, 1, memory_order_relaxed);
    return argument;
}

static void run(int me, int n) {
    (void)me, (void)n;
    pthread_t thread;
    if (me == 0) {
        pthread_create(&thread, NULL, body, NULL);
        while (atomic_load_explicit(&ready, memory_order_relaxed) == 0) {
        }
        atomic_thread_fence(memory_order_acquire);
        used = from; /* RACE */
        pthread_join(thread, NULL);
    }
}
