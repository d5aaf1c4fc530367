/* What ends a program that start_pes began, by argv[1]: all PEs exit with status 3, or PE 1 alone
 * does, after the others have come to their end, or while they are within a collective or
 * compute. */
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
    if (!strcmp(how, "all_fail"))
        return 3;
    if (!strcmp(how, "late") && me == 1)
        usleep(200000);
    if (me == 1)
        exit(3);
    if (!strcmp(how, "late"))
        return 0;
    if (!strcmp(how, "computing"))
        for (;;)
            pause();
    shmem_barrier_all();
    puts("a barrier ended that one PE never reached");
    return 98;
}
