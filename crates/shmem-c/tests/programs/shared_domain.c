/* The contexts of SHMEM_TEAM_SHARED and of all teams that are split from it, in whatever way, are
 * one atomicity domain: no increments are lost. */
#include "check.h"
#include <shmemx.h>

enum { N = 3000 };

static long counter, finished, made, all_made;

/* Members of SHMEM_TEAM_SHARED increment the counter of the last member: those with an odd number
 * by a context of `team`, the others at the same time by a context of SHMEM_TEAM_SHARED. */
static void increment(shmem_team_t team, const char *what) {
    const shmem_team_t shared = SHMEM_TEAM_SHARED;
    int me = shmem_team_my_pe(shared), n_shared = shmem_team_n_pes(shared), last = n_shared - 1;
    shmem_ctx_t of_shared = SHMEM_CTX_INVALID, of_team = SHMEM_CTX_INVALID;
    int status = shmem_team_create_ctx(shared, 0, &of_shared) || shmem_team_create_ctx(team, 0, &of_team);
    CHECK(status == 0, 20, "%s: there is no context", what);
    int last_of_team = shmem_team_translate_pe(shared, last, team);
    CHECK(last_of_team >= 0, 0, "%s: PE %d of SHMEM_TEAM_SHARED is not a member", what, last);
    counter = finished = made = 0;
    shmem_barrier_all();
    if (me % 2 == 1) {
        for (; made < N; made++)
            shmem_ctx_long_atomic_inc(of_team, &counter, last_of_team);
        shmem_ctx_quiet(of_team);
        for (int other = 0; other < n_shared; other += 2)
            shmem_atomic_inc(&finished, shmem_team_translate_pe(shared, other, SHMEM_TEAM_WORLD));
    } else {
        for (; made < N || shmem_atomic_fetch(&finished, check_me) < n_shared / 2; made++)
            shmem_ctx_long_atomic_inc(of_shared, &counter, last);
        shmem_ctx_quiet(of_shared);
    }
    shmem_barrier_all();
    shmem_long_sum_reduce(shared, &all_made, &made, 1);
    if (me == last)
        CHECK(counter == all_made, 35, "%s: %ld of %ld increments", what, counter, all_made);
    shmem_barrier_all();
    shmem_ctx_destroy(of_team);
    shmem_ctx_destroy(of_shared);
}

/* The same, and the team is destroyed. */
static void of(shmem_team_t team, const char *what) {
    increment(team, what);
    shmem_team_destroy(team);
}

int main(void) {
    check_begin();
    const shmem_team_t shared = SHMEM_TEAM_SHARED;
    int me = shmem_team_my_pe(shared), n_shared = shmem_team_n_pes(shared);
    shmem_team_t team, other, third;

    CHECK(shmem_team_split_strided(shared, n_shared - 1, -1, n_shared, NULL, 0, &team) == 0, 0, "a strided split");
    CHECK(shmem_team_split_strided(team, 0, 1, n_shared, NULL, 0, &other) == 0, 0, "a split of a split");
    increment(team, "a strided split");
    /* The parent has been destroyed. */
    shmem_team_destroy(team);
    of(other, "a split of a split");
    CHECK(shmem_team_split_2d(shared, n_shared, NULL, 0, &team, NULL, 0, &other) == 0, 0, "a split in two dimensions");
    of(team, "a row");
    shmem_team_destroy(other);
    CHECK(shmem_team_split_2d(shared, 1, NULL, 0, &other, NULL, 0, &team) == 0, 0, "a split in two dimensions");
    of(team, "a column");
    shmem_team_destroy(other);
    shmemx_team_split_strided(shared, 0, 1, n_shared, &team);
    of(team, "Cray's strided split");
    shmemx_team_split_2d(shared, n_shared, 1, &team, &other);
    of(team, "a row of Cray's");
    shmemx_team_destroy(&other);
    shmemx_team_split_3d(shared, 1, 1, n_shared, &other, &third, &team);
    of(team, "the third axis of Cray's");
    shmemx_team_destroy(&other);
    shmemx_team_destroy(&third);
    shmemx_team_split(shared, 0, -me, &team);
    of(team, "Cray's split by color");
    return check_end();
}
