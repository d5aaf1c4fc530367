/* Operations of all kinds that make system calls: memory, contexts, teams, large and small transfers, waits, collectives.
 *
 *     exchange interrupted     a signal each millisecond, after which interrupted system calls are not restarted
 *     exchange stopped         PE 1 is stopped for 3 s
 */
#include "../../../../crates/shmem-c/tests/programs/check.h"
#include <signal.h>
#include <sys/time.h>
#include <unistd.h>

enum { LARGE = 1 << 20 };

static void nothing(int signal) { (void)signal; }

static void interrupt_always(void) {
    struct sigaction action = {.sa_handler = nothing};
    struct itimerval millisecond = {{0, 1000}, {0, 1000}};
    sigaction(SIGALRM, &action, NULL);
    setitimer(ITIMER_REAL, &millisecond, NULL);
}

static void stop(void) {
    pid_t parent = getpid();
    if (fork() == 0) {
        sleep(3);
        kill(parent, SIGCONT);
        _exit(0);
    }
    raise(SIGSTOP);
}

/* Ends the job with one message if a call has reported a failure by its result. */
static void need(int holds, const char *what) {
    if (holds)
        return;
    fprintf(stderr, "PE %d: %s failed\n", check_me, what);
    shmem_global_exit(3);
}

int main(int argc, char **argv) {
    const char *trouble = argc > 1 ? argv[1] : "";
    int turns = *trouble ? 100 : 3;
    if (strcmp(trouble, "interrupted") == 0)
        interrupt_always();
    check_begin();
    unsigned char *block = shmem_malloc(LARGE), *local = malloc(LARGE);
    long *words = shmem_calloc(8, sizeof *words);
    need(block && words && local, "an allocation");
    int right = (check_me + 1) % check_n, left = (check_me + check_n - 1) % check_n;
    shmem_ctx_t ctx;
    shmem_team_t team;
    need(shmem_ctx_create(SHMEM_CTX_PRIVATE, &ctx) == 0, "shmem_ctx_create");
    for (int turn = 1; turn <= turns; turn++) {
        if (turn == 2 && check_me == 1 && strcmp(trouble, "stopped") == 0)
            stop();
        memset(local, turn + check_me, LARGE);
        shmem_ctx_putmem_nbi(ctx, block, local, LARGE, right);
        shmem_ctx_quiet(ctx);
        shmem_long_atomic_add(&words[0], turn, right);
        shmem_long_wait_until(&words[0], SHMEM_CMP_GE, turn * (turn + 1) / 2);
        CHECK(block[0] == (unsigned char)(turn + left) && block[LARGE - 1] == block[0], 40, "turn %d: %d came", turn, block[0]);
        shmem_barrier_all();
        shmem_getmem(local, block, LARGE, right);
        CHECK(local[LARGE / 2] == (unsigned char)(turn + check_me), 40, "turn %d: got %d", turn, local[LARGE / 2]);
        shmem_barrier_all();
    }
    need(shmem_team_split_strided(SHMEM_TEAM_WORLD, check_n - 1, -1, check_n, NULL, 0, &team) == 0, "shmem_team_split_strided");
    words[2] = check_me;
    CHECK(shmem_long_sum_reduce(team, &words[3], &words[2], 1) == 0, 53, "no reduction");
    CHECK(words[3] == check_n * (check_n - 1) / 2, 53, "the sum is %ld", words[3]);
    shmem_team_destroy(team);
    shmem_ctx_destroy(ctx);
    free(local);
    return check_end();
}
