/* Calls one routine COUNT times, to count its instructions under callgrind.
 *
 *     counts ROUTINE COUNT    as a job of one PE, without a launcher, or of two
 *
 * In a job of one, the PE is its own target: the code is the same as for any PE of the node. In a
 * job of two, PE 0 calls and PE 1 is the target; each call is completed before the next one.
 */
#include <shmem.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* PE 0 makes the calls. In a job of one, they need no quiet. */
#define CALL(call) \
    for (long i = 0; i < count && shmem_my_pe() == 0; i++) { \
        call; \
        if (pe > 0) \
            shmem_quiet(); \
    }

int main(int argc, char **argv)
{
    if (argc != 3) {
        fprintf(stderr, "usage: counts ROUTINE COUNT\n");
        return 2;
    }
    const char *routine = argv[1];
    const long count = atol(argv[2]);
    long local = 0;
    volatile long sink = 0;
    shmem_init();
    const int pe = shmem_n_pes() - 1;
    long *word = shmem_calloc(1, sizeof *word);
    long *source = shmem_calloc(1, sizeof *source);
    if (strcmp(routine, "shmem_long_p") == 0) {
        CALL(shmem_long_p(word, i, pe));
    } else if (strcmp(routine, "shmem_long_g") == 0) {
        CALL(sink = shmem_long_g(word, pe));
    } else if (strcmp(routine, "shmem_long_atomic_fetch_add") == 0) {
        CALL(sink = shmem_long_atomic_fetch_add(word, 1, pe));
    } else if (strcmp(routine, "shmem_long_atomic_compare_swap") == 0) {
        CALL(sink = shmem_long_atomic_compare_swap(word, i, i + 1, pe));
    } else if (strcmp(routine, "shmem_putmem") == 0) {
        CALL(shmem_putmem(word, &local, sizeof local, pe));
    } else if (strcmp(routine, "shmem_getmem") == 0) {
        CALL(shmem_getmem(&local, word, sizeof local, pe));
    } else if (strcmp(routine, "shmem_barrier_all") == 0) {
        CALL(shmem_barrier_all());
    } else if (strcmp(routine, "shmem_long_sum_reduce") == 0) {
        CALL(shmem_long_sum_reduce(SHMEM_TEAM_WORLD, word, source, 1));
    } else if (strcmp(routine, "shmem_long_broadcast") == 0) {
        CALL(shmem_long_broadcast(SHMEM_TEAM_WORLD, word, source, 1, 0));
    } else if (strcmp(routine, "shmem_long_fcollect") == 0) {
        CALL(shmem_long_fcollect(SHMEM_TEAM_WORLD, word, source, 1));
    } else if (strcmp(routine, "shmem_long_wait_until") == 0) {
        CALL(shmem_long_wait_until(word, SHMEM_CMP_EQ, 0));
    } else if (strcmp(routine, "shmem_team_my_pe") == 0) {
        CALL(sink = shmem_team_my_pe(SHMEM_TEAM_WORLD));
    } else if (strcmp(routine, "shmem_set_lock") == 0) {
        CALL(shmem_set_lock(word); shmem_clear_lock(word));
    } else {
        fprintf(stderr, "counts: it knows no routine %s\n", routine);
        shmem_global_exit(2);
    }
    (void)sink;
    shmem_free(source);
    shmem_free(word);
    shmem_finalize();
    return 0;
}
