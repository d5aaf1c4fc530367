/* PE 1 ends as argv[1] says while the others are in a barrier, or all PEs end. With the prefix
 * "late_", PE 1 first waits until the others are there. */
#include <shmem.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <unistd.h>

static void finalize_first(void) {
    if (shmem_my_pe() == 0)
        shmem_finalize();
}

static void never(void) { printf("an exit handler\n"); }

static void crash(void) {
    volatile int *volatile nowhere = NULL;
    *nowhere = 1;
}

/* The compiler does not know the depth, so it keeps each frame. */
static int overflow(volatile int depth) {
    volatile char frame[4096];
    frame[0] = (char)depth;
    return depth < 1 << 30 ? overflow(depth + 1) + frame[0] : 0;
}

static void end(const char *how) {
    if (!strcmp(how, "overflow"))
        exit(overflow(0));
    if (!strcmp(how, "segv"))
        crash();
    else if (!strcmp(how, "abort"))
        abort();
    else if (!strcmp(how, "kill"))
        kill(getpid(), SIGKILL);
    else if (!strcmp(how, "traced")) {
        /* The launcher traces this process then, which stops at each signal. */
        ptrace(PTRACE_TRACEME, 0, NULL, NULL);
        raise(SIGURG);
        raise(SIGUSR2);
    }
    else if (!strncmp(how, "exit", 4))
        exit(atoi(how + 4));
    else if (!strncmp(how, "_exit", 5))
        _exit(atoi(how + 5));
    else if (!strncmp(how, "global_exit", 11))
        atexit(never), printf("last words"), shmem_global_exit(atoi(how + 11));
    else
        fprintf(stderr, "unknown way %s\n", how), exit(99);
}

/* Ways in which all PEs end. Returns the status of the program, or -1 for other ways. */
static int together(const char *how) {
    int me = shmem_my_pe();
    if (!strcmp(how, "all_exit0")) {
        printf("result of PE %d\n", me);
        return 0;
    }
    if (!strcmp(how, "init_twice")) {
        shmem_init();
        shmem_finalize();
        exit(0);
    }
    if (!strcmp(how, "late_exit0")) {
        printf("result of PE %d\n", me);
        sleep(me == 1 ? 2 : 0);
        exit(0);
    }
    if (strncmp(how, "refused", 7))
        return -1;
    how += 8;
    shmem_malloc((size_t)1 << 20);
    int *memory = shmem_malloc((size_t)1 << 40);
    if (!strcmp(how, "write"))
        memory[me] = 1;
    else if (!strcmp(how, "put"))
        shmem_int_p(&memory[2], 1, 0);
    else if (!strcmp(how, "exit4") && !memory)
        exit(4);
    else if (!strcmp(how, "crash") && me == 0)
        atexit(crash);
    shmem_finalize();
    return !strcmp(how, "noticed5") ? 5 : 0;
}

int main(int argc, char **argv) {
    const char *how = argc > 1 ? argv[1] : "";
    if (!strcmp(how, "never_init") && getenv("SHMEM_LOCAL_ID") && atoi(getenv("SHMEM_LOCAL_ID")) == 1)
        return 0;
    /* Exit handlers run in reverse order: the library's own comes before this one. */
    if (!strcmp(how, "handler_finalizes"))
        atexit(shmem_finalize);
    if (!strcmp(how, "handler_finalizes_first"))
        atexit(finalize_first);
    shmem_init();
    if (!strncmp(how, "handler_finalizes", 17))
        return 0;
    if (!strncmp(how, "finalize", 8)) {
        int status = shmem_my_pe() == 1 ? atoi(how + 8) : 0;
        shmem_finalize();
        return status;
    }
    if (shmem_my_pe() == 0)
        printf("n_pes %d\n", shmem_n_pes()), fflush(stdout);
    shmem_barrier_all();
    int status = together(how);
    if (status >= 0)
        return status;
    const int is_late = !strncmp(how, "late_", 5);
    if (shmem_my_pe() == 1) {
        sleep(is_late ? 1 : 0);
        end(how + (is_late ? 5 : 0));
    }
    shmem_barrier_all();
    puts("a barrier ended that one PE never reached");
    shmem_finalize();
    return 98;
}
