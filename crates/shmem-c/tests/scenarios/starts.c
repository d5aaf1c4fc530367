/* A start in which one PE has a mishap: argv[1] is its kind, argv[2] the PE, argv[3] a number of microseconds or a
 * setting, argv[4] the value of that setting. */
#include "../programs/check.h"
#include <unistd.h>

static void begin_mishap(char **argv) {
    const char *kind = argv[1], *detail = argv[3];
    if (strcmp(kind, "late") == 0)
        usleep(atoi(detail));
    else if (strcmp(kind, "exits") == 0)
        exit(3);
    else if (strcmp(kind, "is_killed") == 0)
        ualarm(atoi(detail), 0); /* By SIGALRM, wherever the PE is then. */
    else if (strcmp(kind, "differs") == 0)
        setenv(detail, argv[4], 1);
}

int main(int argc, char **argv) {
    const char *own = getenv("SHMEM_LOCAL_ID");
    if (argc > 3 && own && atoi(own) == atoi(argv[2]))
        begin_mishap(argv);

    check_begin();
    static long sum, pe;
    pe = check_me;
    shmem_long_sum_reduce(SHMEM_TEAM_WORLD, &sum, &pe, 1);
    CHECK(sum == (long)check_n * (check_n - 1) / 2, 1, "the sum of the numbers of PEs is %ld", sum);
    shmem_barrier_all();
    shmem_finalize();
    return check_verdict(check_failures);
}
