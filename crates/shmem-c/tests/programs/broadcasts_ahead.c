/* Broadcasts on an active set with two pSyncs and two destinations alternately and no barrier
 * between the calls, as SGI's manual allows. A slow PE receives the data of each round,
 * however fast the root is. With an argument, at SHMEM_THREAD_MULTIPLE. */
#include <unistd.h>

#include "check.h"

enum { ROUNDS = 16, WORDS = 64, SLOW = 3000 /* microseconds */ };

static long syncs[2][SHMEM_SYNC_SIZE], source[WORDS], dest[2][WORDS];

/* PE `slow` is late in every round. If `rotating`, each member is the root in turn. */
static void broadcasts(int slow, int rotating) {
    for (int round = 0; round < ROUNDS; round++) {
        long *got = dest[round % 2];
        int root = rotating ? round % check_n : (slow + 1) % check_n;
        for (int i = 0; i < WORDS; i++)
            source[i] = 1000 * round + i;
        shmem_broadcast64(got, source, WORDS, root, 0, 0, check_n, syncs[round % 2]);
        if (check_me == slow)
            usleep(SLOW);
        for (int i = 0; i < WORDS && check_me != root; i++)
            CHECK(got[i] == 1000 * round + i, 63, "round %d: word %d is %ld", round, i, got[i]);
    }
    shmem_barrier_all();
}

int main(int argc, char **argv) {
    (void)argv;
    int provided;
    shmem_init_thread(argc > 1 ? SHMEM_THREAD_MULTIPLE : SHMEM_THREAD_SINGLE, &provided);
    check_start();
    for (int k = 0; k < SHMEM_SYNC_SIZE; k++)
        syncs[0][k] = syncs[1][k] = SHMEM_SYNC_VALUE;
    shmem_barrier_all();
    for (int slow = 0; slow < check_n; slow++) {
        broadcasts(slow, 0);
        broadcasts(slow, 1);
    }
    return check_end();
}
