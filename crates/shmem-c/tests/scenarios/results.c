/* Two collectives with one dest, between which nothing tells a PE that the others have left the
 * first. argv[1] names a pair, or "none" for correct uses. The test finds the calls of a pair by
 * the two comments with its name. */
#include <shmemx.h>
#include <stdio.h>
#include <string.h>

enum { WORDS = 48 };

static const char *how;
static long source[WORDS], dest[4 * WORDS], other[4 * WORDS], work[WORDS], flag;
static long sync_a[SHMEM_REDUCE_SYNC_SIZE], sync_b[SHMEM_BCAST_SYNC_SIZE];

static int is(const char *name) { return strcmp(how, name) == 0; }

static void pairs(int me, int n) {
    const shmem_team_t world = SHMEM_TEAM_WORLD;
    if (is("old_routines")) {
        shmem_long_sum_to_all(dest, source, WORDS, 0, 0, n, work, sync_a); /* old_routines */
        shmem_broadcast64(dest, source, WORDS, 1, 0, 0, n, sync_b);        /* old_routines */
    } else if (is("another_root")) {
        shmem_long_broadcast(world, dest, source, WORDS, 0); /* another_root */
        shmem_long_broadcast(world, dest, source, WORDS, 2); /* another_root */
    } else if (is("a_part")) {
        shmem_long_sum_inscan(world, dest, source, WORDS); /* a_part */
        shmem_long_fcollect(world, &dest[5], source, 1);   /* a_part */
    } else if (is("columns")) {
        shmem_long_alltoalls(world, dest, source, 2, 1, 2);      /* columns */
        shmem_long_alltoalls(world, &dest[2], source, 2, 1, 2);  /* columns */
    } else if (is("a_quiet_between")) {
        shmem_long_max_reduce(world, dest, source, WORDS); /* a_quiet_between */
        shmem_long_put_nbi(other, source, 1, (me + 1) % n);
        shmem_quiet();
        shmem_long_alltoall(world, dest, source, 2); /* a_quiet_between */
    } else if (is("root_receives_nothing")) {
        shmem_long_collect(world, dest, source, 2); /* root_receives_nothing */
        shmem_long_broadcast(world, other, source, WORDS, 0);
        shmem_long_broadcast(world, dest, source, WORDS, 0); /* root_receives_nothing */
    } else if (is("exscan")) {
        shmem_long_fcollect(world, dest, source, 4);       /* exscan */
        shmem_long_sum_exscan(world, dest, source, WORDS); /* exscan */
    } else if (is("unequal_blocks")) {
        const size_t sizes[] = {8, 16, 8}, places[] = {0, 40, 80};
        shmemx_team_alltoallvmem(world, dest, places, NULL, source, places, sizes); /* unequal_blocks */
        shmem_long_broadcast(world, dest, source, WORDS, 0);                        /* unequal_blocks */
    } else if (is("the_same_root")) {
        shmem_long_broadcast(world, dest, source, WORDS, 0); /* the_same_root */
        shmem_long_broadcast(world, dest, source, WORDS, 0); /* the_same_root */
    } else if (is("the_same_again")) {
        shmem_long_alltoall(world, dest, source, 2); /* the_same_again */
        shmem_long_alltoall(world, dest, source, 2); /* the_same_again */
    } else if (is("short_collects")) {
        shmem_long_collect(world, dest, source, 2); /* short_collects */
        shmem_long_collect(world, dest, source, 2); /* short_collects */
    } else if (is("team")) {
        shmem_team_t pair;
        shmem_team_split_strided(world, 0, 1, 2, NULL, 0, &pair);
        shmem_long_min_reduce(world, dest, source, WORDS); /* team */
        if (me < 2)
            shmem_long_broadcast(pair, dest, source, WORDS, 0); /* team */
    }
}

/* Synchronizes the PEs in one of several ways. */
static void synchronize(int way, int me, int n) {
    /* One of two arrays in turn. */
    static int turn;
    long *result = &other[turn++ % 2 * WORDS];
    switch (way) {
    case 0: shmem_barrier_all(); break;
    case 1: shmem_sync_all(); break;
    case 2: shmem_team_sync(SHMEM_TEAM_WORLD); break;
    case 3: shmem_long_max_reduce(SHMEM_TEAM_WORLD, result, source, 1); break;
    case 4: shmem_long_alltoall(SHMEM_TEAM_WORLD, result, source, 1); break;
    case 5:
        for (int pe = 0; pe < n; pe++)
            shmem_long_atomic_inc(&flag, pe);
        shmem_long_wait_until(&flag, SHMEM_CMP_EQ, n);
        flag = 0;
        /* No PE increments the flag of the next round before all have cleared it. */
        shmem_sync_all();
        break;
    case 6: shmem_free(shmem_malloc(8)); break;
    }
    (void)me;
}

/* Collects short blocks of all PEs but the last again and again. The first member passes nothing, so
 * it is often the first one that leaves. */
static void collect_of_some(int me, int n) {
    shmem_team_t some;
    shmem_team_split_strided(SHMEM_TEAM_WORLD, 0, 1, n - 1, NULL, 0, &some);
    for (int i = 0; i < 300 && me < n - 1; i++) {
        shmem_long_collect(some, dest, source, me == 0 ? 0 : 5);
        shmem_team_sync(some);
    }
    shmem_barrier_all();
}

/* Uses that must not be reported. */
static void correct(int me, int n) {
    const shmem_team_t world = SHMEM_TEAM_WORLD;
    collect_of_some(me, n);
    for (int way = 0; way < 7; way++) {
        shmem_long_sum_reduce(world, dest, source, WORDS);
        synchronize(way, me, n);
        shmem_long_broadcast(world, dest, source, WORDS, way % n);
        synchronize(way, me, n);
        shmem_long_fcollect(world, dest, source, 2);
        synchronize(way, me, n);
        shmem_long_alltoall(world, dest, source, 2);
        synchronize(way, me, n);
    }
    /* Interleaved columns have no byte in common. */
    for (int column = 0; column < 3; column++)
        shmem_long_alltoalls(world, &dest[column], source, 3, 1, 2);
    shmem_barrier_all();
    /* Two arrays in turn: a PE that calls again knows that all have left the call before the last. */
    for (int i = 0; i < 4; i++)
        shmem_long_fcollect(world, i % 2 ? dest : other, source, 3);
    shmem_barrier_all();
    /* On an active set, two arrays in turn are enough: the root waits for those who lag behind. */
    for (int i = 0; i < 4; i++)
        shmem_broadcast64(i % 2 ? dest : other, source, WORDS, 0, 0, 0, n, i % 2 ? sync_a : sync_b);
    shmem_barrier_all();
    /* A reduction has no result before each PE has contributed. */
    shmem_long_sum_reduce(world, dest, source, 1);
    shmem_long_max_reduce(world, dest, source, 2);
    shmem_long_sum_inscan(world, dest, source, 3);
    shmem_barrier_all();
    /* What is empty overwrites nothing. */
    shmem_long_sum_reduce(world, dest, source, WORDS);
    shmem_long_broadcast(world, dest, source, 0, 0);
    /* Other bytes. */
    shmem_long_broadcast(world, &dest[WORDS], source, WORDS, 0);
    shmem_long_fcollect(world, &dest[2 * WORDS], source, 4);
}

int main(int argc, char **argv) {
    how = argc > 1 ? argv[1] : "none";
    for (int i = 0; i < SHMEM_REDUCE_SYNC_SIZE; i++)
        sync_a[i] = SHMEM_SYNC_VALUE;
    for (int i = 0; i < SHMEM_BCAST_SYNC_SIZE; i++)
        sync_b[i] = SHMEM_SYNC_VALUE;
    shmem_init();
    const int me = shmem_my_pe(), n = shmem_n_pes();
    shmem_barrier_all();
    /* A report is made once, also in a loop. */
    for (int i = 0; i < 2; i++) {
        pairs(me, n);
        shmem_barrier_all();
    }
    if (is("none"))
        correct(me, n);
    shmem_barrier_all();
    if (me == 0)
        printf("n_pes %d\nPASS\n", n);
    shmem_finalize();
    return 0;
}
