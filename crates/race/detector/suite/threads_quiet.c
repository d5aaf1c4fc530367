/* A put is completed by the quiet of another thread, or by none, before a sync.
 * PEs: 2 */
#include "suite.h"

static long x[8], from;
static void *body(void *argument) {
    ORDER(shmem_quiet());
    return argument;
}

static void run(int me, int n) {
    (void)me, (void)n;
    pthread_t thread;
    if (me == 0) {
        shmem_long_put(x, &from, 1, 1); /* RACE */
        pthread_create(&thread, NULL, body, NULL);
        pthread_join(thread, NULL);
    }
    shmem_sync_all();
    if (me == 1)
        used = x[0]; /* RACE */
}
