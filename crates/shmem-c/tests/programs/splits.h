/* Random splits of groups, each with a model of the resulting team. */
#ifndef SPLITS_H
#define SPLITS_H

#include "groups.h"

/* Ends the use of a group. Its memory is used again by the next group. */
static inline void group_leave(struct group *g) {
    for (int i = 0; i < RING; i++) {
        CHECK(g->used <= i || memcmp(g->ring[i], g->due[i], ring_bytes()) == 0, 54, "destination %d changed at last", i);
        memset(g->ring[i], EMPTY, ring_bytes());
        memset(g->due[i], EMPTY, ring_bytes());
    }
    g->used = RING;
    g->turn = 0;
    shmem_team_destroy(g->m.team);
    members_free(g->m);
    g->m = members_new(0);
}

/* A part of a team, in either direction, by all of the team. */
static inline struct members split_strided(struct members parent, uint64_t bits) {
    int n = parent.size, size = 1 + (int)(bits % (uint64_t)n);
    int most = size > 1 ? (n - 1) / (size - 1) : 1, stride = 1 + (int)((bits >> 16) % (uint64_t)most);
    int span = (size - 1) * stride, first = (int)((bits >> 32) % (uint64_t)(n - span));
    return bits >> 48 & 1 ? members_split(parent, first + span, -stride, size) : members_split(parent, first, stride, size);
}

/* The row and the column of this PE, by all of the team. */
static inline void split_2d(struct members parent, uint64_t bits, struct members *row, struct members *column) {
    int n = parent.size, range = 1 + (int)(bits % (uint64_t)n), me = members_me(parent), x = me % range, y = me / range;
    *row = members_new((n - y * range < range ? n - y * range : range));
    *column = members_new((n - x + range - 1) / range);
    for (int i = 0; i < row->size; i++)
        row->world[i] = parent.world[y * range + i];
    for (int i = 0; i < column->size; i++)
        column->world[i] = parent.world[x + i * range];
    int status = shmem_team_split_2d(parent.team, range, NULL, 0, &row->team, NULL, 0, &column->team);
    CHECK(status == 0, 5, "a split of %d into rows of %d gave %d", n, range, status);
}

/* Team `id` of a row of groups becomes a part of an earlier one, and sometimes the next one another part. Members of the
 * parent must call; others may. */
static inline void group_split(struct group *groups, int id, int n_teams, uint64_t bits) {
    int parent = (int)((bits >> 8) % (uint64_t)id), is_pair = id + 1 < n_teams && bits % 4 == 0;
    group_leave(&groups[id]);
    if (is_pair)
        group_leave(&groups[id + 1]);
    struct members from = groups[parent].m;
    if (members_me(from) >= 0) {
        if (is_pair)
            split_2d(from, bits >> 16, &groups[id].m, &groups[id + 1].m);
        else
            groups[id].m = split_strided(from, bits >> 16);
    }
    for (int i = id; i <= id + is_pair; i++)
        if (group_has_me(&groups[i]))
            group_sync(&groups[i]);
}

#endif
