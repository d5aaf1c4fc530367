/* Syncs and reductions of teams whose members are distributed over nodes in any way, at lengths at
 * which algorithms change. */
#include "check.h"
#include <shmemx.h>

enum { MAX = 300000 };

static long *source, *dest, *words;

static long given(int member, int i, int turn) { return (long)(check_mix((uint64_t)i * 64 + turn) % 1000) * (member + 1); }

static void reduce(shmem_team_t team, int nelems, int turn) {
    int n = shmem_team_n_pes(team), me = shmem_team_my_pe(team);
    int in_place = turn % 2;
    long *from = in_place ? dest : source;
    for (int i = 0; i < nelems; i++) {
        dest[i] = -1;
        from[i] = given(me, i, turn);
    }
    dest[nelems] = -7;
    shmem_team_sync(team);
    CHECK(shmem_long_sum_reduce(team, dest, from, nelems) == 0, 53, "a reduction of %d failed", nelems);
    for (int i = 0; i < nelems; i++) {
        long sum = (long)n * (n + 1) / 2 * given(0, i, turn);
        CHECK(dest[i] == sum, 53, "%d elements of %d PEs, turn %d: element %d is %ld, not %ld", nelems, n, turn, i, dest[i], sum);
        CHECK(in_place || source[i] == given(me, i, turn), 53, "source[%d] has changed", i);
    }
    CHECK(dest[nelems] == -7, 53, "%d elements of %d PEs: what follows was written", nelems, n);
    shmem_team_sync(team);
}

/* No member returns from a sync before all have entered it. */
static void syncs(shmem_team_t team) {
    int n = shmem_team_n_pes(team), me = shmem_team_my_pe(team);
    int right = shmem_team_translate_pe(team, (me + 1) % n, SHMEM_TEAM_WORLD);
    for (int turn = 1; turn <= 40; turn++) {
        shmem_long_p(&words[turn % 2], turn * 100 + me, right);
        shmem_quiet();
        shmem_team_sync(team);
        long expected = turn * 100 + (me + n - 1) % n;
        CHECK(words[turn % 2] == expected, 42, "turn %d of %d PEs: %ld, not %ld", turn, n, words[turn % 2], expected);
    }
    shmem_team_sync(team);
}

static void use(shmem_team_t team) {
    static const int sizes[] = {1, 2, 100, 1024, 1025, 9000, 40000, MAX};
    if (team == SHMEM_TEAM_INVALID || team == SHMEM_TEAM_NULL)
        return;
    syncs(team);
    for (int turn = 0; turn < 16; turn++)
        reduce(team, sizes[turn / 2], turn);
    for (int turn = 0; turn < 50; turn++)
        reduce(team, turn % 5 ? 1 : 10, turn);
}

static void split(int color, int key) {
    shmem_team_t team = SHMEM_TEAM_INVALID;
    shmemx_team_split_color(SHMEM_TEAM_WORLD, color, key, &team);
    use(team);
    shmemx_team_destroy(&team);
}

int main(void) {
    check_begin();
    source = check_malloc((MAX + 1) * sizeof(long));
    dest = check_malloc((MAX + 1) * sizeof(long));
    words = shmem_calloc(2, sizeof(long));
    use(SHMEM_TEAM_WORLD);
    /* In reverse order, and so that neighbors are mostly on different nodes. */
    split(0, -check_me);
    split(0, (int)(check_mix(check_me) % 1000));
    /* Several teams at once. */
    split(check_me % 2, check_me);
    split(check_me / 3, -check_me);
    /* The deprecated forms on all PEs, and on the first ones. */
    static long psync[SHMEM_REDUCE_SYNC_SIZE], pwrk[SHMEM_REDUCE_MIN_WRKDATA_SIZE + 10];
    for (int turn = 0; turn < 20; turn++) {
        int size = turn % 3 ? check_n : (check_n + 1) / 2, nelems = turn % 4 ? 1 : 20;
        for (int i = 0; i < nelems; i++)
            source[i] = check_me * 10 + turn + i;
        if (check_me < size)
            shmem_long_max_to_all(dest, source, nelems, 0, 0, size, pwrk, psync);
        for (int i = 0; check_me < size && i < nelems; i++)
            CHECK(dest[i] == (size - 1) * 10 + turn + i, 53, "turn %d: element %d is %ld", turn, i, dest[i]);
        shmem_barrier_all();
    }
    shmem_free(words);
    shmem_free(dest);
    shmem_free(source);
    return check_end();
}
