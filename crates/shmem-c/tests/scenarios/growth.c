/* Creating and destroying contexts and teams leaves nothing: neither memory nor descriptors grow.
 *
 *     growth COUNT     of each
 */
#include "../programs/check.h"
#include <dirent.h>

/* The private memory of the process. Pages of code and of the node's memory do not count, since
 * they are mapped at their first use. Pages are counted one by one, because the sums of
 * /proc/self/status are updated late. */
struct held {
    long kilobytes, descriptors;
};

static struct held held(void) {
    struct held now = {-1, 0};
    char line[256];
    FILE *pages = fopen("/proc/self/smaps_rollup", "r");
    while (pages && fgets(line, sizeof line, pages))
        if (sscanf(line, "Anonymous: %ld", &now.kilobytes) == 1)
            break;
    if (pages)
        fclose(pages);
    CHECK(now.kilobytes > 0, 0, "no size is known");
    DIR *dir = opendir("/proc/self/fd");
    while (dir && readdir(dir))
        now.descriptors++;
    if (dir)
        closedir(dir);
    return now;
}

static long *word, *sums;

/* Teams work in slots that other teams have used before. */
static void use(shmem_team_t team, long turn) {
    int n = shmem_team_n_pes(team);
    sums[0] = turn + shmem_team_my_pe(team), sums[1] = -1;
    shmem_team_sync(team);
    CHECK(shmem_long_sum_reduce(team, &sums[1], &sums[0], 1) == 0, 53, "turn %ld: no reduction", turn);
    CHECK(sums[1] == turn * n + (long)n * (n - 1) / 2, 13, "turn %ld: the sum of a team of %d is %ld", turn, n, sums[1]);
}

/* Parts of the team, destroyed before it and after it. */
static void rows_and_columns(long turn, shmem_team_t *team) {
    shmem_team_t row, column;
    int range = 1 + (int)(turn % check_n);
    CHECK(shmem_team_split_2d(*team, range, NULL, 0, &row, NULL, 0, &column) == 0, 5, "turn %ld: no rows", turn);
    if (turn % 16 == 0)
        shmem_team_destroy(*team), *team = SHMEM_TEAM_INVALID;
    use(row, turn);
    shmem_team_destroy(row);
    use(column, turn);
    shmem_team_destroy(column);
}

/* Does not count against the maximum number of teams. */
static void splits_that_fail(long turn, shmem_team_t parent) {
    shmem_team_t team = SHMEM_TEAM_WORLD;
    int status = shmem_team_split_strided(parent, 0, 1, check_n + 1, NULL, 0, &team);
    CHECK(status != 0 && team == SHMEM_TEAM_INVALID, 6, "turn %ld: a team of more PEs than there are", turn);
    status = shmem_team_split_2d(parent, 0, NULL, 0, &team, NULL, 0, &team);
    CHECK(status != 0 && team == SHMEM_TEAM_INVALID, 6, "turn %ld: a team in rows of no PEs", turn);
}

/* A context of the world, one of a team, and the team itself; all are used. */
static void come_and_go(long turn) {
    static const long options[] = {0, SHMEM_CTX_SERIALIZED, SHMEM_CTX_PRIVATE, SHMEM_CTX_NOSTORE};
    shmem_team_t team;
    shmem_ctx_t ctx, of_team;
    int right = (check_me + 1) % check_n;
    CHECK(shmem_ctx_create(options[turn % 4], &ctx) == 0, 20, "turn %ld: no context", turn);
    CHECK(shmem_team_split_strided(SHMEM_TEAM_WORLD, check_n - 1, -1, check_n, NULL, 0, &team) == 0, 1, "turn %ld: no team", turn);
    CHECK(shmem_team_create_ctx(team, 0, &of_team) == 0, 20, "turn %ld: no context of a team", turn);
    shmem_ctx_long_atomic_inc(ctx, word, right);
    shmem_ctx_long_atomic_inc(of_team, word, check_n - 1 - right);
    splits_that_fail(turn, team);
    if (turn % 2)
        shmem_ctx_destroy(of_team);
    else
        use(team, turn);
    if (turn % 8 == 0)
        rows_and_columns(turn, &team);
    shmem_team_destroy(team); /* Point 13: with the contexts that it still has. */
    shmem_ctx_destroy(ctx);
}

/* As many teams can be created as before. */
static void many_at_once(void) {
    enum { TEAMS = 200 };
    shmem_team_t teams[TEAMS];
    int made = 0;
    while (made < TEAMS && !shmem_team_split_strided(SHMEM_TEAM_WORLD, 0, 1, check_n, NULL, 0, &teams[made]))
        made++;
    CHECK(made == TEAMS, 13, "%d teams at once, and no more", made);
    for (int i = 0; i < made; i++)
        use(teams[i], i);
    while (made > 0)
        shmem_team_destroy(teams[--made]);
}

/* A network connects a PE to another at the first operation, and back at the first acknowledgment,
 * which may come many operations later. Here both come before the memory is measured. */
static void connect_all(void) {
    for (int pe = 0; pe < check_n; pe++)
        shmem_long_atomic_inc(word, pe);
    shmem_quiet();
    shmem_barrier_all();
    CHECK(*word == check_n, 23, "%ld of %d increments came", *word, check_n);
    shmem_barrier_all();
    *word = 0;
    shmem_barrier_all();
}

int main(int argc, char **argv) {
    long count = argc > 1 ? atol(argv[1]) : 1000;
    check_begin();
    word = shmem_calloc(1, sizeof *word);
    sums = shmem_calloc(2, sizeof *sums);
    connect_all();
    struct held before = {0, 0};
    for (long turn = 0; turn < count; turn++) {
        if (turn == count / 10) {
            shmem_barrier_all();
            before = held();
        }
        come_and_go(turn);
    }
    shmem_barrier_all();
    struct held after = held();
    CHECK(*word == 2 * count, 23, "%ld of %ld increments came", *word, 2 * count);
    CHECK(after.kilobytes - before.kilobytes < 256, 13, "%ld KiB became %ld", before.kilobytes, after.kilobytes);
    CHECK(after.descriptors <= before.descriptors, 13, "%ld descriptors became %ld", before.descriptors, after.descriptors);
    many_at_once();
    shmem_free(sums);
    shmem_free(word);
    return check_end();
}
