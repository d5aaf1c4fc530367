/* Two threads use one array of a get, with a spin lock or without.
 * PEs: 2 */
#include "suite.h"

static long x[8], to;
static pthread_spinlock_t lock;
static void *body(void *argument) {
    ORDER(pthread_spin_lock(&lock));
    shmem_long_get(&to, x, 1, 1); /* RACE */
    ORDER(pthread_spin_unlock(&lock));
    return argument;
}

static void run(int me, int n) {
    (void)me, (void)n;
    pthread_t thread;
    if (me == 0) {
        pthread_spin_init(&lock, PTHREAD_PROCESS_PRIVATE);
        pthread_create(&thread, NULL, body, NULL);
        ORDER(pthread_spin_lock(&lock));
        used = to; /* RACE */
        ORDER(pthread_spin_unlock(&lock));
        pthread_join(thread, NULL);
    }
}
