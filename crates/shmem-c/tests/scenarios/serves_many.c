/* A process that serves meetings without being a PE: `serves_many JOBS N` makes a unique id for each
 * of JOBS jobs, one after the other, and starts its N PEs, which are `serves_many RANK N PE` with the
 * id in TEST_ID.
 *
 * While a job runs, the process still has its soft limit of descriptors, a descriptor that it opens
 * is below that limit, so that select(2) works, and a program that it starts has the limit, too.
 * After all jobs, no descriptor of a meeting is open.
 */
#include "../programs/check.h"

#include <dirent.h>
#include <shmemx.h>
#include <sys/resource.h>
#include <sys/select.h>
#include <sys/wait.h>
#include <unistd.h>

static int be_pe(int rank, int n) {
    shmemx_uniqueid_t id;
    strncpy(id.text, getenv("TEST_ID"), sizeof id.text);
    shmemx_init_attr_t attr = SHMEMX_INIT_ATTR_INITIALIZER;
    if (shmemx_set_attr_uniqueid_args(rank, n, &id, &attr) != 0)
        return 90;
    if (shmemx_init_attr(SHMEMX_INIT_WITH_UNIQUEID, &attr) != 0)
        return 91;
    shmem_barrier_all();
    shmem_finalize();
    return 0;
}

static int n_open(void) {
    int n = 0;
    DIR *all = opendir("/proc/self/fd");
    while (readdir(all))
        n++;
    closedir(all);
    return n;
}

/* Does what a program may do at any time, and returns what is wrong then. */
static const char *use_descriptors(rlim_t soft) {
    struct rlimit limit;
    getrlimit(RLIMIT_NOFILE, &limit);
    int ends[2];
    if (pipe(ends) != 0)
        return "there is no descriptor for a pipe";
    if (ends[1] >= FD_SETSIZE || (rlim_t)ends[1] >= soft)
        return "a pipe has a high number";
    fd_set set;
    FD_ZERO(&set);
    FD_SET(ends[1], &set);
    if (select(ends[1] + 1, NULL, &set, NULL, NULL) != 1)
        return "select does not report room";
    close(ends[0]);
    close(ends[1]);
    return NULL;
}

/* Returns true if a program that is started now has this soft limit. Connections may be accepted at
 * this moment, so it is asked again. */
static int inherits(rlim_t soft) {
    char command[64];
    snprintf(command, sizeof command, "test $(ulimit -Sn) = %ld", (long)soft);
    for (int i = 0; i < 10; i++)
        if (system(command) == 0)
            return 1;
    return 0;
}

int main(int argc, char **argv) {
    if (argc == 4)
        return be_pe(atoi(argv[1]), atoi(argv[2]));
    int jobs = atoi(argv[1]), n = atoi(argv[2]), before = n_open(), after;
    struct rlimit limit;
    getrlimit(RLIMIT_NOFILE, &limit);
    for (int job = 0; job < jobs; job++) {
        shmemx_uniqueid_t id;
        if (shmemx_get_uniqueid(&id) != 0)
            return 93;
        setenv("TEST_ID", id.text, 1);
        for (int rank = 0; rank < n; rank++) {
            char text[20];
            snprintf(text, sizeof text, "%d", rank);
            if (fork() == 0) {
                execl(argv[0], argv[0], text, argv[2], "PE", NULL);
                _exit(99);
            }
        }
        int left = n, status;
        while (left > 0) {
            pid_t ended = waitpid(-1, &status, WNOHANG);
            if (ended > 0 && status != 0)
                return 94;
            left -= ended > 0;
            const char *wrong = use_descriptors(limit.rlim_cur);
            if (wrong) {
                fprintf(stderr, "%s while %d PEs run\n", wrong, left);
                return 95;
            }
            usleep(1000);
        }
        if (!inherits(limit.rlim_cur)) {
            fprintf(stderr, "a program has another soft limit than %ld\n", (long)limit.rlim_cur);
            return 96;
        }
    }
    /* The thread of the last meeting ends after its PEs. */
    for (int i = 0; i < 10000 && (after = n_open()) > before; i++)
        usleep(1000);
    if (after > before) {
        fprintf(stderr, "%d descriptors are open, %d were\n", after, before);
        return 97;
    }
    printf("PASS\n");
    return 0;
}
