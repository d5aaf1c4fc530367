/* Jobs without a launcher whose processes leave at once behind shmem_finalize:
 * `leaves_at_once N HOW WHO ROUNDS` starts N processes for each of ROUNDS jobs.
 *
 * HOW is "exits" (_exit), "execs", "crashes" (in a destructor) or "dies" (by SIGKILL). WHO is the
 * PE that does so, or "all". The others print to a pipe after the PE has left, and return from
 * main. The processes meet by SHMEM_JOB, or without it by a unique id that PE 0 makes. Processes
 * of odd ranks start in the network namespace TEST_NETNS, if it is set.
 */
#define _GNU_SOURCE
#include "../programs/check.h"

#include <fcntl.h>
#include <sched.h>
#include <shmemx.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

static const char *how;
static int crashes;

static int is(const char *word) { return strcmp(how, word) == 0; }

__attribute__((destructor)) static void destroy(void) {
    if (crashes)
        *(volatile int *)8 = 1;
}

/* Enters the namespace TEST_NETNS. */
static void move_away(void) {
    char file[200];
    snprintf(file, sizeof file, "/run/netns/%s", getenv("TEST_NETNS"));
    int fd = open(file, O_RDONLY | O_CLOEXEC);
    if (fd < 0 || setns(fd, CLONE_NEWNET) != 0)
        _exit(90);
}

/* Initializes as PE `rank`; PE 0 passes the id to the others by the pipe. */
static void join(int rank, int n, const int ids[2]) {
    if (getenv("SHMEM_JOB")) {
        char text[20];
        snprintf(text, sizeof text, "%d", rank);
        setenv("SHMEM_RANK", text, 1);
        snprintf(text, sizeof text, "%d", n);
        setenv("SHMEM_SIZE", text, 1);
        shmem_init();
        return;
    }

    shmemx_uniqueid_t id;
    shmemx_init_attr_t attr = SHMEMX_INIT_ATTR_INITIALIZER;
    if (rank == 0) {
        if (shmemx_get_uniqueid(&id) != 0)
            _exit(91);
        for (int other = 1; other < n; other++)
            if (write(ids[1], &id, sizeof id) != sizeof id)
                _exit(92);
    } else if (read(ids[0], &id, sizeof id) != sizeof id) {
        _exit(92);
    }
    if (shmemx_set_attr_uniqueid_args(rank, n, &id, &attr) != 0)
        _exit(93);
    if (shmemx_init_attr(SHMEMX_INIT_WITH_UNIQUEID, &attr) != 0)
        _exit(94);
}

/* The body of PE `rank`. Returns its status if it does not leave at once. */
static int run(int rank, int n, int leaves, int is_first_round, const int ids[2]) {
    if (getenv("TEST_NETNS") && rank % 2)
        move_away();
    join(rank, n, ids);
    if (shmem_n_pes() != n || shmem_my_pe() != rank)
        _exit(95);
    if (is_first_round && rank == 0) {
        printf("n_pes %d\n", n);
        fflush(stdout);
    }

    static long value;
    shmem_long_p(&value, rank + 1, (rank + 1) % n);
    shmem_barrier_all();
    if (value != (rank + n - 1) % n + 1)
        _exit(96);
    shmem_finalize();

    if (leaves && is("exits"))
        _exit(0);
    if (leaves && is("execs"))
        execlp("true", "true", (char *)NULL);
    if (leaves && is("dies"))
        raise(SIGKILL);
    crashes = leaves;
    return 0;
}

/* Returns the wait status of a PE that leaves at once. */
static int expected(void) { return is("dies") ? SIGKILL : is("crashes") ? SIGSEGV : 0; }

int main(int argc, char **argv) {
    if (argc != 5)
        return 2;
    int n = atoi(argv[1]), rounds = atoi(argv[4]), failed = 0;
    how = argv[2];

    for (int round = 0; round < rounds; round++) {
        int ids[2];
        if (pipe(ids) != 0)
            return 2;

        pid_t pids[64];
        fflush(stdout);
        for (int rank = 0; rank < n; rank++) {
            pids[rank] = fork();
            int leaves = strcmp(argv[3], "all") == 0 || atoi(argv[3]) == rank;
            if (pids[rank] == 0)
                exit(run(rank, n, leaves, round == 0, ids));
        }

        for (int rank = 0; rank < n; rank++) {
            int leaves = strcmp(argv[3], "all") == 0 || atoi(argv[3]) == rank;
            int status;
            waitpid(pids[rank], &status, 0);
            /* Without the bit of a core file. */
            if ((status & ~0x80) != (leaves ? expected() : 0)) {
                printf("FAIL round %d: PE %d ended with %#x\n", round, rank, status);
                failed = 1;
            }
        }
        close(ids[0]);
        close(ids[1]);
    }
    if (!failed)
        printf("PASS\n");
    return failed;
}
