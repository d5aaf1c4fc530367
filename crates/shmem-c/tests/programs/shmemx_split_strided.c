/* Point 85: Cray's strided split must be called only by the members, and may be called by other
 * PEs. Members are numbered in the order of WORLD. */
#include "members.h"
#include <pthread.h>
#include <shmemx.h>

static int ascending(const void *a, const void *b) { return *(const int *)a - *(const int *)b; }

/* The model: the triplet's PEs in the order of WORLD. */
static struct members model(struct members parent, int start, int stride, int size) {
    struct members m = members_strided(parent, start, stride, size);
    qsort(m.world, (size_t)size, sizeof *m.world, ascending);
    return m;
}

static void used_and_destroyed(struct members m, const char *what) {
    members_check(m, 85, what);
    if (members_me(m) < 0)
        return;
    shmemx_team_destroy(&m.team);
    CHECK(m.team == SHMEM_TEAM_NULL, 85, "%s: destroying left a handle", what);
}

/* Of the other PEs, those whose number is a multiple of three call, too. */
static void split(struct members parent, const char *whose, int start, int stride, int size) {
    char what[100];
    snprintf(what, sizeof what, "%s(%d, %d, %d)", whose, start, stride, size);
    struct members m = model(parent, start, stride, size);
    m.team = SHMEM_TEAM_NULL;
    if (members_me(m) >= 0 || (members_me(parent) >= 0 && check_me % 3 == 0)) {
        m.team = SHMEM_TEAM_WORLD;
        shmemx_team_split_strided(parent.team, start, stride, size, &m.team);
        CHECK((m.team == SHMEM_TEAM_NULL) == (members_me(m) < 0), 85, "%s: who is a member", what);
    }
    used_and_destroyed(m, what);
    members_free(m);
}

static void splits_of(struct members parent, const char *whose) {
    for (int start = 0; start < parent.size; start++)
        for (int stride = 1; stride <= 3; stride++)
            for (int size = 1; start + (size - 1) * stride < parent.size; size += 1 + size / 2)
                split(parent, whose, start, stride, size);
    split(parent, whose, parent.size / 2, 0, 1);
    split(parent, whose, parent.size - 1, -7, 1);
}

/* The last PE only waits for a word, which the team sends after it has been used. */
static void others_are_busy(void) {
    if (check_n < 2)
        return;
    long *word = check_malloc(sizeof *word);
    *word = 0;
    shmem_barrier_all();
    if (check_me == check_n - 1) {
        shmem_long_wait_until(word, SHMEM_CMP_EQ, check_n - 1);
    } else {
        struct members m = model(members_world(), 0, 1, check_n - 1);
        shmemx_team_split_strided(SHMEM_TEAM_WORLD, 0, 1, check_n - 1, &m.team);
        used_and_destroyed(m, "the others are busy");
        shmem_long_atomic_inc(word, check_n - 1);
        members_free(m);
    }
    shmem_barrier_all();
    shmem_free(word);
}

/* Every PE forms a team with its left and one with its right neighbor, and none waits for the end
 * of the chain. */
static void chain(void) {
    struct members world = members_world();
    for (int first = check_me - 1; first <= check_me; first++)
        if (first >= 0 && first + 1 < check_n) {
            struct members m = model(world, first, 1, 2);
            shmemx_team_split_strided(SHMEM_TEAM_WORLD, first, 1, 2, &m.team);
            used_and_destroyed(m, "a pair of a chain");
            members_free(m);
        }
    members_free(world);
}

/* Odd and even PEs split at the same time, many times, without communication between both. */
static void disjoint(void) {
    struct members world = members_world();
    int start = check_me % 2, size = (check_n - start + 1) / 2;
    for (int turn = 0; turn < 200; turn++) {
        shmem_team_t team;
        shmemx_team_split_strided(SHMEM_TEAM_WORLD, start, 2, size, &team);
        CHECK(shmemx_team_my_pe(team) == check_me / 2 && shmemx_team_n_pes(team) == size, 85, "turn %d", turn);
        if (turn % 50 == 0)
            shmem_team_sync(team);
        shmemx_team_destroy(&team);
    }
    members_free(world);
}

static void *whole(void *team) {
    for (int turn = 0; turn < 50; turn++) {
        shmemx_team_split_strided(SHMEM_TEAM_WORLD, 0, 1, check_n, team);
        shmem_team_sync(*(shmem_team_t *)team);
        shmemx_team_destroy(team);
    }
    return NULL;
}

static void *all_but_one(void *team) {
    if (check_me < check_n - 1)
        for (int turn = 0; turn < 50; turn++) {
            shmemx_team_split_strided(SHMEM_TEAM_WORLD, 0, 1, check_n - 1, team);
            shmem_team_sync(*(shmem_team_t *)team);
            shmemx_team_destroy(team);
        }
    return NULL;
}

/* Two threads of each PE split overlapping teams at the same time. */
static void threads(void) {
    int provided;
    shmem_query_thread(&provided);
    if (provided != SHMEM_THREAD_MULTIPLE)
        return;
    pthread_t a, b;
    shmem_team_t teams[2];
    CHECK(pthread_create(&a, NULL, whole, &teams[0]) == 0, 77, "no thread can be had");
    CHECK(pthread_create(&b, NULL, all_but_one, &teams[1]) == 0, 77, "no thread can be had");
    pthread_join(a, NULL);
    pthread_join(b, NULL);
}

int main(void) {
    int provided;
    CHECK(shmemx_init_thread(SHMEM_THREAD_MULTIPLE, &provided) == 0, 85, "shmemx_init_thread");
    int level = -1;
    shmemx_query_thread(&level);
    CHECK(level == provided, 85, "shmemx_query_thread gave %d, not %d", level, provided);
    check_start();
    members_begin();
    struct shapes shapes = shapes_begin();
    splits_of(shapes.world, "world");
    shmem_barrier_all();
    splits_of(shapes.reversed, "reversed");
    shmem_barrier_all();
    splits_of(shapes.odd, "odd");

    struct members node = members_new(shmem_team_n_pes(SHMEM_TEAM_NODE));
    node.team = SHMEM_TEAM_NODE;
    for (int i = 0; i < node.size; i++)
        node.world[i] = shmem_team_translate_pe(SHMEM_TEAM_NODE, i, SHMEM_TEAM_WORLD);
    CHECK(node.size == check_n, 85, "SHMEM_TEAM_NODE has %d PEs: all are on this machine", node.size);
    CHECK(SHMEMX_TEAM_NODE == SHMEM_TEAM_NODE, 85, "two names, two teams");
    members_check(node, 85, "NODE");
    splits_of(node, "node");

    others_are_busy();
    chain();
    disjoint();
    shmem_barrier_all();
    threads();
    shmem_barrier_all();
    members_free(node);
    shapes_end(shapes);
    members_end();
    return check_end();
}
