/* PE 0 waits for PE 1, which is stopped for a while, once in main and once in an exit handler. */
#include <shmem.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int value = 7;

/* Starts a child process that continues this process some time after each of two stops. */
static void continue_later(void) {
    char name[64], text[512];
    pid_t parent = getpid();
    if (fork())
        return;
    snprintf(name, sizeof name, "/proc/%ld/stat", (long)parent);
    for (int stops = 0; stops < 2 && getppid() == parent; usleep(1000)) {
        FILE *stat = fopen(name, "r");
        if (stat && fgets(text, sizeof text, stat) && strrchr(text, ')')[2] == 'T') {
            usleep(300000);
            kill(parent, SIGCONT);
            stops++;
        }
        if (stat)
            fclose(stat);
    }
    _exit(0);
}

static void wait_for_stopped(void) {
    shmem_barrier_all();
    if (shmem_my_pe() == 1)
        kill(getpid(), SIGSTOP);
    usleep(50000);
    if (shmem_my_pe() == 0 && shmem_int_g(&value, 1) != 7)
        abort();
}

static void at_exit(void) {
    wait_for_stopped();
    if (shmem_my_pe() == 0)
        puts("PASS");
    shmem_finalize();
}

int main(void) {
    continue_later();
    shmem_init();
    if (shmem_my_pe() == 0)
        printf("n_pes %d\n", shmem_n_pes()), fflush(stdout);
    atexit(at_exit);
    wait_for_stopped();
    return 0;
}
