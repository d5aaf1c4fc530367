/* PE 1 enters each broadcast 20 ms after the root, which has returned by then. */
#include "../programs/check.h"
#include <unistd.h>

static long source, dest;

int main(void) {
    check_begin();
    for (int i = 0; i < 5; i++) {
        shmem_barrier_all();
        if (check_me == 1)
            usleep(20000);
        shmem_long_broadcast(SHMEM_TEAM_WORLD, &dest, &source, 1, 0);
    }
    if (check_me == 0)
        printf("PASS\n");
    shmem_finalize();
    return 0;
}
