/* A short job, or with "forever" one that runs until it is ended from outside. Each PE prints its
 * process number once the PEs are connected. */
#include "../programs/check.h"
#include <unistd.h>

int main(int argc, char **argv) {
    int forever = argc > 1 && strcmp(argv[1], "forever") == 0;
    check_begin();
    long *word = shmem_calloc(1, sizeof *word);
    shmem_long_atomic_inc(word, (check_me + 1) % check_n);
    shmem_barrier_all();
    printf("pe %d pid %d\n", check_me, (int)getpid());
    fflush(stdout);
    for (int turn = 0; turn < 10 || forever; turn++) {
        shmem_long_atomic_inc(word, (check_me + turn) % check_n);
        shmem_barrier_all();
    }
    CHECK(*word == 11, 35, "%ld turns", *word);
    shmem_free(word);
    return check_end();
}
