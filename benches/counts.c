/* Calls one routine COUNT times on the PE itself, for counting instructions under callgrind.
 *
 *     counts ROUTINE COUNT      as a job of one PE, without a launcher
 *
 * The path to PE 0 of a job of one is the same as to any PE of the same node.
 */
#include <shmem.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int main(int argc, char **argv)
{
    if (argc != 3) {
        fprintf(stderr, "usage: counts ROUTINE COUNT\n");
        return 2;
    }
    const char *routine = argv[1];
    const long count = atol(argv[2]);

    shmem_init();
    long *word = shmem_calloc(1, sizeof *word);
    volatile long sink;
    if (strcmp(routine, "shmem_long_p") == 0) {
        for (long i = 0; i < count; i++)
            shmem_long_p(word, i, 0);
    } else if (strcmp(routine, "shmem_long_g") == 0) {
        for (long i = 0; i < count; i++)
            sink = shmem_long_g(word, 0);
    } else if (strcmp(routine, "shmem_long_atomic_fetch_add") == 0) {
        for (long i = 0; i < count; i++)
            sink = shmem_long_atomic_fetch_add(word, 1, 0);
    } else {
        fprintf(stderr, "counts: it knows no routine %s\n", routine);
        return 2;
    }
    (void)sink;
    shmem_free(word);
    shmem_finalize();
    return 0;
}
