/* Uses a network in every way, so that the library makes each of its system calls.
 * tests/sites/refused.rs lets one of them fail. */
#include "../programs/check.h"
#include <unistd.h>

enum { NBYTES = 3 << 20, ROUNDS = 20 };

int main(void) {
    check_begin();
    const int to = (check_me + 1) % check_n;
    char *block = shmem_malloc(NBYTES), *local = malloc(NBYTES);
    long *words = shmem_calloc(3, sizeof *words);
    memset(local, check_me + 1, NBYTES);
    shmem_barrier_all();
    /* More than the kernel accepts at once. */
    shmem_putmem_nbi(block, local, NBYTES, to);
    shmem_quiet();
    shmem_barrier_all();
    shmem_getmem(local, block, NBYTES, to);
    CHECK(local[NBYTES - 1] == check_me + 1, 0, "the last byte is %d", local[NBYTES - 1]);
    for (int round = 0; round < ROUNDS; round++) {
        shmem_long_atomic_fetch_add(words, 1, to);
        shmem_long_p(words + 1, round, to);
        shmem_barrier_all();
    }
    /* The service thread has to serve the peer now. */
    usleep(20000);
    shmem_long_atomic_inc(words + 2, to);
    shmem_long_wait_until(words + 2, SHMEM_CMP_GE, 1);
    free(local);
    return check_end();
}
