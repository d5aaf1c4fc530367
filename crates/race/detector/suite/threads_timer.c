/* A thread waits until another one writes an eventfd, or for a timer, which orders nothing.
 * PEs: 2 */
#include "suite.h"
#include <sys/eventfd.h>
#include <sys/timerfd.h>
#include <unistd.h>

static long x[8], from;
static int event;
static void *body(void *argument) {
    uint64_t one = 1;
    shmem_long_get(&from, x, 1, 1); /* RACE */
    return write(event, &one, sizeof one) == sizeof one ? argument : NULL;
}

static void run(int me, int n) {
    (void)me, (void)n;
    pthread_t thread;
    if (me == 0) {
        uint64_t count;
        struct itimerspec soon = {.it_value.tv_nsec = 300000000};
        event = eventfd(0, 0);
        int timer = timerfd_create(CLOCK_MONOTONIC, 0);
        timerfd_settime(timer, 0, &soon, NULL);
        pthread_create(&thread, NULL, body, NULL);
        if (read(IF_CLEAN(event, timer), &count, sizeof count) == sizeof count)
            used = from; /* RACE */
        pthread_join(thread, NULL);
    }
}
