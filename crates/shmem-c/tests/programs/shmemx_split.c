/* Cray's splits by grid and by color: positions without a PE, PEs without a position, unused
 * colors, equal keys, any order. The teams work like others. */
#include "members.h"
#include <shmemx.h>

static int min(int a, int b) { return a < b ? a : b; }

/* The PEs of `parent` along one axis of a grid: from `first` in steps of `step`, at most `range` of them. */
static struct members axis(struct members parent, long first, long step, int range) {
    long size = 0;
    while (size < range && first + size * step < parent.size)
        size++;
    return members_strided(parent, (int)first, (int)step, (int)size);
}

static void checked(struct members m, const char *what) {
    members_check(m, 0, what);
    if (m.team != SHMEM_TEAM_NULL)
        shmemx_team_destroy(&m.team);
    members_free(m);
}

static void grid(struct members parent, int x, int y, int z) {
    int me = members_me(parent);
    if (me < 0)
        return;
    char what[100];
    snprintf(what, sizeof what, "%d PEs in a grid of %d, %d and %d", parent.size, x, y, z);
    shmem_team_t teams[3] = {SHMEM_TEAM_WORLD, SHMEM_TEAM_WORLD, SHMEM_TEAM_WORLD};
    int dimensions = z ? 3 : 2;
    if (z)
        shmemx_team_split_3d(parent.team, x, y, z, &teams[0], &teams[1], &teams[2]);
    else
        shmemx_team_split_2d(parent.team, x, y, &teams[0], &teams[1]);
    const int ranges[3] = {x, y, z};
    long step = 1;
    for (int i = 0; i < dimensions; i++) {
        if (me >= (long)x * y * (z ? z : 1)) {
            CHECK(teams[i] == SHMEM_TEAM_NULL, 0, "%s: PE %d is beyond it", what, me);
            continue;
        }
        struct members m = axis(parent, me - me / step % ranges[i] * step, step, ranges[i]);
        m.team = teams[i];
        checked(m, what);
        step *= ranges[i];
    }
}

static void grids(struct members parent) {
    int n = parent.size;
    for (int x = 1; x <= 4; x++)
        for (int y = 1; y <= 4; y++) {
            grid(parent, x, y, 0);
            grid(parent, x, y, (n + x * y - 1) / (x * y));
            grid(parent, x, y, min(2, n));
        }
    grid(parent, n, n, 0);
    grid(parent, 1 << 20, 1 << 20, 1 << 20);
    /* A grid without positions. */
    shmem_team_t x = SHMEM_TEAM_WORLD, y = SHMEM_TEAM_WORLD;
    if (members_me(parent) >= 0) {
        shmemx_team_split_2d(parent.team, 0, 3, &x, &y);
        CHECK(x == SHMEM_TEAM_NULL && y == SHMEM_TEAM_NULL, 0, "a grid without places");
    }
}

/* A color, or a key, of member i of the n members of the parent. */
typedef int choice(int i, int n);

static int everybody(int i, int n) { return (void)i, (void)n, 0; }
static int thirds(int i, int n) { return (void)n, i % 3; }
static int one_each(int i, int n) { return (void)n, 1000 - i; }
static int some_undefined(int i, int n) { return (void)n, i % 4 == 1 ? SHMEM_COLOR_UNDEFINED : 1 << 30; }
static int nobody(int i, int n) { return (void)i, (void)n, SHMEM_COLOR_UNDEFINED; }
static int mixed(int i, int n) { return (int)(check_mix((uint64_t)(n * 100 + i)) % 2); }

static int equal(int i, int n) { return (void)i, (void)n, 7; }
static int backwards(int i, int n) { return (void)n, -i; }
static int pairs(int i, int n) { return (void)n, i / 2 % 2 ? -5 : 5; }
static int random_key(int i, int n) { return (int)check_mix((uint64_t)(n * 1000 + i)); }

static void colors(struct members parent, choice *color, choice *key, const char *what) {
    int me = members_me(parent), n = parent.size;
    if (me < 0)
        return;
    int mine = color(me, n);
    struct members m = members_new(n);
    m.size = 0;
    for (int i = 0; i < n; i++) {
        if (mine == SHMEM_COLOR_UNDEFINED || color(i, n) != mine)
            continue;
        int at = m.size++;
        for (; at > 0; at--) {
            int before = shmem_team_translate_pe(SHMEM_TEAM_WORLD, m.world[at - 1], parent.team);
            if (key(before, n) <= key(i, n))
                break;
            m.world[at] = m.world[at - 1];
        }
        m.world[at] = parent.world[i];
    }
    m.team = SHMEM_TEAM_WORLD;
    (color == thirds ? shmemx_team_split_color : shmemx_team_split)(parent.team, mine, key(me, n), &m.team);
    if (mine == SHMEM_COLOR_UNDEFINED) {
        CHECK(m.team == SHMEM_TEAM_NULL, 0, "%s: no color, but a team", what);
        members_free(m);
        return;
    }
    members_check(m, 0, what);

    /* A context of such a team, a split of it by the standard's routine, and one by color. */
    shmem_ctx_t ctx;
    if (shmem_team_create_ctx(m.team, 0, &ctx) == 0) {
        int index = members_me(m), next = (index + 1) % m.size;
        shmem_ctx_int_p(ctx, &members_source[1], check_me, next);
        shmem_ctx_quiet(ctx);
        shmem_team_sync(m.team);
        int due = m.world[(index + m.size - 1) % m.size];
        CHECK(members_source[1] == due, 0, "%s: PE %d put on a context, not %d", what, members_source[1], due);
        shmem_team_sync(m.team);
        shmem_ctx_destroy(ctx);
    }
    struct members half = members_split(m, m.size - 1, -1, (m.size + 1) / 2);
    members_check(half, 0, what);
    members_destroy(half);
    struct members row = members_new(0);
    members_free(row);
    row = axis(m, members_me(m) / 2 * 2, 1, 2);
    shmem_team_t column;
    CHECK(shmem_team_split_2d(m.team, 2, NULL, 0, &row.team, NULL, 0, &column) == 0, 0, "%s: 2-D", what);
    members_check(row, 0, what);
    members_destroy(row);
    shmem_team_destroy(column);
    checked(m, what);
}

static void all_colors(struct members parent) {
    colors(parent, everybody, equal, "one color, equal keys");
    colors(parent, everybody, backwards, "one color backwards");
    colors(parent, everybody, random_key, "one color at random");
    colors(parent, thirds, equal, "three colors");
    colors(parent, thirds, pairs, "three colors, few keys");
    colors(parent, one_each, equal, "a color each");
    colors(parent, some_undefined, backwards, "some undefined");
    colors(parent, nobody, equal, "all undefined");
    for (int turn = 0; turn < 20; turn++)
        colors(parent, mixed, random_key, "colors at random");
}

int main(void) {
    check_begin();
    members_begin();
    struct shapes shapes = shapes_begin();
    grids(shapes.world);
    grids(shapes.reversed);
    grids(shapes.odd);
    all_colors(shapes.world);
    all_colors(shapes.reversed);
    all_colors(shapes.odd);

    /* A parent whose members have no common stride. */
    struct members listed = members_new(check_n);
    for (int i = 0; i < check_n; i++)
        listed.world[i] = i < (check_n + 1) / 2 ? 2 * i : 2 * (check_n - 1 - i) + 1;
    int key = check_me % 2 ? 2 * check_n - check_me : check_me;
    shmemx_team_split(SHMEM_TEAM_WORLD, 0, key, &listed.team);
    members_check(listed, 0, "listed");
    grids(listed);
    all_colors(listed);
    shmemx_team_destroy(&listed.team);
    members_free(listed);

    CHECK(shmemx_team_mype(SHMEM_TEAM_WORLD) == check_me && shmemx_team_npes(SHMEM_TEAM_WORLD) == check_n, 0, "old names");
    CHECK(shmemx_team_translate_pe(shapes.reversed.team, 0, SHMEM_TEAM_WORLD) == check_n - 1, 0, "translation");
    shmem_barrier_all();
    shapes_end(shapes);
    members_end();
    return check_end();
}
