/* Constants of the program are symmetric: they can be the source of each routine that reads the
 * memory of another PE. */
#include "check.h"
#include <shmemx.h>

enum { LONG = 20000, MOST_PES = 64 };

#define EIGHT(x) x, (x) + 1, (x) + 2, (x) + 3, (x) + 4, (x) + 5, (x) + 6, (x) + 7
#define MANY(x) EIGHT(x), EIGHT((x) + 8), EIGHT((x) + 16), EIGHT((x) + 24)

static const long one = 1;
/* As many as an alltoalls of two elements with a stride of two reads. */
static const long values[MOST_PES * 4] = {MANY(0),   MANY(32),  MANY(64),  MANY(96),
                                          MANY(128), MANY(160), MANY(192), MANY(224)};
/* Long enough for the algorithms of long vectors. All but the first element are 0. */
static const int vector[LONG] = {7};

static long dest[MOST_PES * 4];
static int long_dest[LONG];
static long fetched;

static void reads(int pe) {
    long got[8] = {0};
    shmem_long_get(got, values + 3, 8, pe);
    CHECK(memcmp(got, values + 3, sizeof got) == 0, 0, "get differs");
    CHECK(shmem_long_g(&one, pe) == 1, 0, "g differs");
    shmem_long_iget(got, values, 1, 5, 4, pe);
    CHECK(got[0] == 0 && got[3] == 15, 0, "iget differs");
    shmem_getmem_nbi(got, &one, sizeof one, pe);
    CHECK(shmem_long_atomic_fetch(values + 9, pe) == 9, 0, "atomic_fetch differs");
    shmem_long_atomic_fetch_nbi(&fetched, values + 11, pe);
    shmem_quiet();
    CHECK(got[0] == 1 && fetched == 11, 0, "get_nbi or atomic_fetch_nbi differs");
}

static void collectives(void) {
    int n = check_n;
    shmem_long_sum_reduce(SHMEM_TEAM_WORLD, dest, values, 5);
    CHECK(dest[1] == n && dest[4] == 4 * n, 0, "sum_reduce differs");
    shmem_barrier_all();
    shmem_int_sum_reduce(SHMEM_TEAM_WORLD, long_dest, vector, LONG);
    CHECK(long_dest[0] == 7 * n && long_dest[LONG - 1] == 0, 0, "a long sum_reduce differs");
    shmem_barrier_all();
    shmem_int_sum_inscan(SHMEM_TEAM_WORLD, long_dest, vector, LONG);
    CHECK(long_dest[0] == 7 * (check_me + 1), 0, "sum_inscan differs");
    shmem_barrier_all();
    shmem_int_broadcast(SHMEM_TEAM_WORLD, long_dest, vector, LONG, n - 1);
    CHECK(long_dest[0] == 7, 0, "a long broadcast differs");
    shmem_long_broadcast(SHMEM_TEAM_WORLD, dest, values + 2, 2, 0);
    CHECK(dest[0] == 2 && dest[1] == 3, 0, "broadcast differs");
    shmem_barrier_all();
    shmem_long_fcollect(SHMEM_TEAM_WORLD, dest, values, 3);
    CHECK(dest[3 * n - 1] == 2 && dest[3 * n - 3] == 0, 0, "fcollect differs");
    shmem_barrier_all();
    shmem_long_collect(SHMEM_TEAM_WORLD, dest, values, 2);
    CHECK(dest[2 * n - 1] == 1, 0, "collect differs");
    shmem_barrier_all();
    shmem_long_alltoall(SHMEM_TEAM_WORLD, dest, values, 2);
    CHECK(dest[2 * n - 1] == 2 * check_me + 1, 0, "alltoall differs");
    shmem_barrier_all();
    shmem_long_alltoalls(SHMEM_TEAM_WORLD, dest, values, 1, 2, 2);
    CHECK(dest[2 * n - 1] == 4 * check_me + 2, 0, "alltoalls differs");
    shmem_barrier_all();
}

int main(void) {
    check_begin();
    for (int pe = 0; pe < check_n; pe++)
        reads(pe);
    collectives();
    return check_end();
}
