/* PE 1 comes to an end in the way that argv[1] names while the others are in a barrier. */
#include <shmem.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void end(const char *how) {
    volatile int *volatile nowhere = NULL;
    if (!strcmp(how, "segv"))
        *nowhere = 1;
    else if (!strcmp(how, "abort"))
        abort();
    else if (!strcmp(how, "kill"))
        kill(getpid(), SIGKILL);
    else if (!strncmp(how, "exit", 4))
        exit(atoi(how + 4));
    else if (!strncmp(how, "_exit", 5))
        _exit(atoi(how + 5));
    else if (!strncmp(how, "global_exit", 11))
        printf("last words"), shmem_global_exit(atoi(how + 11));
    else
        fprintf(stderr, "unknown way %s\n", how), exit(99);
}

int main(int argc, char **argv) {
    const char *how = argc > 1 ? argv[1] : "";
    if (!strcmp(how, "never_init") && getenv("SHMEM_LOCAL_ID") && atoi(getenv("SHMEM_LOCAL_ID")) == 1)
        return 0;
    shmem_init();
    if (!strncmp(how, "finalize", 8)) {
        int status = shmem_my_pe() == 1 ? atoi(how + 8) : 0;
        shmem_finalize();
        return status;
    }
    if (shmem_my_pe() == 0)
        printf("n_pes %d\n", shmem_n_pes()), fflush(stdout);
    shmem_barrier_all();
    if (shmem_my_pe() == 1)
        end(how);
    shmem_barrier_all();
    puts("a barrier ended that one PE never reached");
    shmem_finalize();
    return 98;
}
