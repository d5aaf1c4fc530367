/* A program that has called start_pes ends as argv[1] says: all PEs exit with status 3, or only PE
 * 1 does, when the others are at their end or call shmem_finalize, or while they are in a
 * collective or compute. "again" does so in a second use of the library. */
#include <shmem.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int main(int argc, char **argv) {
    const char *how = argc > 1 ? argv[1] : "";
    start_pes(0);
    int me = shmem_my_pe();
    if (me == 0)
        printf("n_pes %d\n", shmem_n_pes()), fflush(stdout);
    shmem_barrier_all();
    if (!strcmp(how, "again")) {
        shmem_finalize();
        start_pes(0);
    }
    if (!strcmp(how, "all_fail"))
        return 3;
    if (!strcmp(how, "late") && me == 1)
        usleep(200000);
    if (me == 1)
        exit(3);
    if (!strcmp(how, "late"))
        return 0;
    if (!strcmp(how, "finalize")) {
        shmem_finalize();
        return 0;
    }
    if (!strcmp(how, "computing"))
        for (;;)
            pause();
    shmem_barrier_all();
    puts("a barrier ended that one PE never reached");
    return 98;
}
