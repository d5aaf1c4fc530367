/* A model of teams: the PEs of WORLD that are the members of a team, in order, and checks of a
 * handle against it. */
#ifndef MEMBERS_H
#define MEMBERS_H

#include "check.h"

struct members {
    shmem_team_t team;
    int size; /* number of members, also if this PE is none */
    int *world; /* world[i] is the number in WORLD of member i */
};

static int *members_dest, *members_source;

/* Allocates the symmetric memory of the checks. Called once, after initialization. */
static inline void members_begin(void) {
    members_dest = (int *)check_malloc((check_n + 1) * sizeof(int));
    members_source = (int *)check_malloc(2 * sizeof(int));
}

static inline void members_end(void) {
    shmem_free(members_source);
    shmem_free(members_dest);
}

static inline struct members members_new(int size) {
    struct members m;
    m.team = SHMEM_TEAM_INVALID;
    m.size = size;
    m.world = (int *)malloc((size ? size : 1) * sizeof(int));
    return m;
}

static inline struct members members_world(void) {
    struct members m = members_new(check_n);
    m.team = SHMEM_TEAM_WORLD;
    for (int i = 0; i < check_n; i++)
        m.world[i] = i;
    return m;
}

static inline void members_free(struct members m) { free(m.world); }

/* The index of this PE in the team, or -1. */
static inline int members_me(struct members m) {
    for (int i = 0; i < m.size; i++)
        if (m.world[i] == check_me)
            return i;
    return -1;
}

/* The model of split_strided: PE i of the new team is PE start + i * stride of the parent. */
static inline struct members members_strided(struct members parent, int start, int stride, int size) {
    struct members m = members_new(size);
    for (int i = 0; i < size; i++)
        m.world[i] = parent.world[start + i * stride];
    return m;
}

/* Splits the team from its parent. All PEs of the parent call it. */
static inline struct members members_split(struct members parent, int start, int stride, int size) {
    struct members m = members_strided(parent, start, stride, size);
    int status = shmem_team_split_strided(parent.team, start, stride, size, NULL, 0, &m.team);
    CHECK(status == 0, 1, "a split into (%d, %d, %d) gave %d", start, stride, size, status);
    return m;
}

static inline void members_destroy(struct members m) {
    shmem_team_destroy(m.team);
    members_free(m);
}

/* Three teams on which most collectives are tested: all PEs, all in reverse order, and the odd
 * ones. */
struct shapes {
    struct members world, reversed, odd;
};

static inline struct shapes shapes_begin(void) {
    struct shapes s;
    s.world = members_world();
    s.reversed = members_split(s.world, check_n - 1, -1, check_n);
    s.odd = members_split(s.world, check_n > 1, 2, check_n > 1 ? check_n / 2 : 1);
    return s;
}

static inline void shapes_end(struct shapes s) {
    members_destroy(s.odd);
    members_destroy(s.reversed);
    members_free(s.world);
}

/* Checks the handle of a team: INVALID on other PEs; on members, its numbers and the order of
 * members in a collect. */
static inline void members_check(struct members m, int point, const char *what) {
    int me = members_me(m);
    if (me < 0) {
        CHECK(m.team == SHMEM_TEAM_INVALID, point, "%s: a PE outside holds a handle", what);
        CHECK(shmem_team_my_pe(m.team) == -1 && shmem_team_n_pes(m.team) == -1, 12, "%s: INVALID answers", what);
        return;
    }
    CHECK(m.team != SHMEM_TEAM_INVALID, point, "%s: a member holds INVALID", what);
    if (m.team == SHMEM_TEAM_INVALID)
        return;
    CHECK(shmem_team_my_pe(m.team) == me, point, "%s: my_pe is %d, not %d", what, shmem_team_my_pe(m.team), me);
    CHECK(shmem_team_n_pes(m.team) == m.size, point, "%s: n_pes is %d, not %d", what, shmem_team_n_pes(m.team), m.size);
    for (int i = 0; i < m.size; i++)
        CHECK(shmem_team_translate_pe(m.team, i, SHMEM_TEAM_WORLD) == m.world[i], 12, "%s: PE %d is %d of WORLD, not %d",
              what, i, shmem_team_translate_pe(m.team, i, SHMEM_TEAM_WORLD), m.world[i]);
    for (int pe = 0; pe < check_n; pe++) {
        int index = -1;
        for (int i = 0; i < m.size; i++)
            if (m.world[i] == pe)
                index = i;
        CHECK(shmem_team_translate_pe(SHMEM_TEAM_WORLD, pe, m.team) == index, 12, "%s: PE %d of WORLD is %d, not %d", what,
              pe, shmem_team_translate_pe(SHMEM_TEAM_WORLD, pe, m.team), index);
    }
    members_source[0] = check_me;
    for (int i = 0; i < m.size; i++)
        members_dest[i] = -1;
    CHECK(shmem_team_sync(m.team) == 0, 53, "%s: team_sync failed", what);
    CHECK(shmem_int_fcollect(m.team, members_dest, members_source, 1) == 0, 53, "%s: fcollect failed", what);
    for (int i = 0; i < m.size; i++)
        CHECK(members_dest[i] == m.world[i], 9, "%s: fcollect put PE %d at place %d", what, members_dest[i], i);
    CHECK(shmem_team_sync(m.team) == 0, 53, "%s: team_sync failed", what);
}

#endif
