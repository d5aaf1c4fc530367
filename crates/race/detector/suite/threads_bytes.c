/* A thread stores bytes one by one while another PE gets the first of each eight.
 * PEs: 2 */
#include "suite.h"

static char x[64];

static void *fill(void *argument) {
    (void)argument;
    for (int i = 0; i < 64; i++)
        x[i] = 1; /* RACE */
    return 0;
}

static void run(int me, int n) {
    (void)n;
    int got;
    if (me == 1) {
        pthread_t thread;
        pthread_create(&thread, 0, fill, 0);
        pthread_join(thread, 0);
    }
    ORDER(shmem_barrier_all());
    if (me == 0)
        shmem_getmem(&got, x + 8, 4, 1); /* RACE */
}
