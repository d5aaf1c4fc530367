/* split_2d compared with a model, for every xrange up to more than the parent's size, from WORLD
 * and from a reversed team. */
#include "members.h"

static int smaller(int a, int b) { return a < b ? a : b; }

/* Configurations and masks that differ between the resulting teams, but not within one. */
static void split(struct members parent, const char *whose, int xrange, int configured) {
    char what[100];
    int n = parent.size, me = members_me(parent), columns = smaller(xrange, n), x = me % columns, y = me / columns;
    shmem_team_config_t x_config = {.num_contexts = y + 1}, y_config = {.num_contexts = 2 * x};
    long x_mask = configured && y % 2 == 0 ? SHMEM_TEAM_NUM_CONTEXTS : 0;
    long y_mask = configured && x == 0 ? SHMEM_TEAM_NUM_CONTEXTS : 0;
    shmem_team_t x_team = SHMEM_TEAM_WORLD, y_team = SHMEM_TEAM_WORLD;
    int status = shmem_team_split_2d(parent.team, xrange, x_mask ? &x_config : NULL, x_mask, &x_team,
                                     configured ? &y_config : NULL, y_mask, &y_team);
    CHECK(status == 0, 7, "%s, xrange %d gave %d", whose, xrange, status);
    struct members row = members_strided(parent, y * columns, 1, smaller(columns, n - y * columns));
    struct members column = members_strided(parent, x, columns, (n - x + columns - 1) / columns);
    row.team = x_team;
    column.team = y_team;
    snprintf(what, sizeof what, "%s, xrange %d, x team of y = %d", whose, xrange, y);
    members_check(row, 7, what);
    snprintf(what, sizeof what, "%s, xrange %d, y team of x = %d", whose, xrange, x);
    members_check(column, 7, what);
    CHECK(shmem_team_my_pe(x_team) == x && shmem_team_my_pe(y_team) == y, 8, "xrange %d: PE %d is (%d, %d), not (%d, %d)",
          xrange, me, shmem_team_my_pe(x_team), shmem_team_my_pe(y_team), x, y);
    members_source[0] = (x == 0) + (y == 0);
    members_source[1] = 0;
    CHECK(shmem_int_sum_reduce(parent.team, members_dest, members_source, 1) == 0, 53, "a sum over the parent");
    CHECK(members_dest[0] == (n + columns - 1) / columns + columns, 8, "xrange %d: %d teams", xrange, members_dest[0]);
    shmem_team_sync(parent.team);
    shmem_team_destroy(x_team);
    shmem_team_destroy(y_team);
    members_free(row);
    members_free(column);
}

static void invalid_parent(void) {
    shmem_team_t x_team = SHMEM_TEAM_WORLD, y_team = SHMEM_TEAM_WORLD;
    if (check_me == 0) {
        int status = shmem_team_split_2d(SHMEM_TEAM_INVALID, 3, NULL, 0, &x_team, NULL, 0, &y_team);
        CHECK(status != 0, 5, "INVALID parent gave 0");
        CHECK(x_team == SHMEM_TEAM_INVALID && y_team == SHMEM_TEAM_INVALID, 5, "INVALID parent gave a handle");
    }
}

/* Three dimensions by two splits; the intermediate team is destroyed before its children. */
static void three_dimensions(void) {
    int xdim = check_n % 3 == 0 ? 3 : 2, ydim = 2;
    shmem_team_t x_team, yz_team, y_team, z_team;
    CHECK(shmem_team_split_2d(SHMEM_TEAM_WORLD, xdim, NULL, 0, &x_team, NULL, 0, &yz_team) == 0, 9, "first split");
    CHECK(shmem_team_split_2d(yz_team, ydim, NULL, 0, &y_team, NULL, 0, &z_team) == 0, 9, "second split");
    shmem_team_destroy(yz_team);
    int x = shmem_team_my_pe(x_team), y = shmem_team_my_pe(y_team), z = shmem_team_my_pe(z_team);
    CHECK(x + xdim * (y + ydim * z) == check_me, 9, "PE %d is at (%d, %d, %d)", check_me, x, y, z);
    CHECK(shmem_team_sync(x_team) == 0 && shmem_team_sync(y_team) == 0 && shmem_team_sync(z_team) == 0, 9, "sync of a child");
    shmem_team_destroy(z_team);
    shmem_team_destroy(y_team);
    shmem_team_destroy(x_team);
}

int main(void) {
    check_begin();
    members_begin();
    struct members world = members_world(), reversed = members_split(world, check_n - 1, -1, check_n);
    for (int xrange = 1; xrange <= check_n + 2; xrange++) {
        split(world, "WORLD", xrange, xrange % 2);
        split(reversed, "reversed", xrange, xrange % 2 == 0);
    }
    split(world, "WORLD", 1 << 30, 1);
    split(world, "WORLD", 0x7fffffff, 0);
    members_destroy(reversed);
    invalid_parent();
    three_dimensions();
    members_free(world);
    members_end();
    return check_end();
}
