/* Splits of splits, ten deep, with collectives at each depth, destroyed in several orders.
 *
 *     splits_deep [SEED]     other splits
 */
#include "splits.h"

enum { DEPTH = 10, LEVELS = DEPTH + 1 };

static struct group levels[LEVELS]; /* the first is the world */
static struct buffers buffers;
static uint64_t seed = 1;
static int turn;

/* The same on all PEs. */
static uint64_t draw(void) { return check_mix(seed * 1000033 + (uint64_t)turn++); }

static void use(int level) {
    uint64_t bits = draw() & ~(uint64_t)0xff;
    if (!group_has_me(&levels[level]))
        return;
    group_step(&buffers, &levels[level], level, bits + COLLECT);
    group_step(&buffers, &levels[level], level, check_mix(bits) / 256 * 256 + REDUCE);
}

/* All members of the parent, or all but one, in either direction, or by a split in two dimensions
 * one axis of which has all. */
static struct members deeper(struct members parent, uint64_t bits, int two_dimensional) {
    struct members all, one;
    if (two_dimensional) {
        int size = parent.size;
        if (bits % 2)
            split_2d(parent, (uint64_t)size - 1, &all, &one);
        else
            split_2d(parent, 0, &one, &all);
        CHECK(all.size == size && one.size == 1, 7, "axes of %d and %d of %d PEs", all.size, one.size, size);
        members_check(one, 8, "a team of one");
        members_destroy(one);
        return all;
    }
    int size = parent.size - (parent.size > 1 && bits % 4 == 0), first = bits >> 8 & 1 ? parent.size - size : 0;
    return bits % 3 ? members_split(parent, first + size - 1, -1, size) : members_split(parent, first, 1, size);
}

/* Splits a level from the one above; runs collectives on it and on a level above. */
static void descend(int two_dimensional) {
    for (int level = 1; level < LEVELS; level++) {
        uint64_t bits = draw();
        group_leave(&levels[level]);
        if (group_has_me(&levels[level - 1]))
            levels[level].m = deeper(levels[level - 1].m, bits, two_dimensional);
        if (group_has_me(&levels[level]))
            group_sync(&levels[level]);
        use(level);
        use((int)(draw() % (uint64_t)level));
    }
}

/* Whatever level is destroyed, the others still work. */
static void destroy(const int order[DEPTH]) {
    for (int i = 0; i < DEPTH; i++) {
        group_leave(&levels[order[i]]);
        for (int level = 1; level < LEVELS; level += 3)
            use(level);
        use(0);
    }
}

int main(int argc, char **argv) {
    static const int orders[][DEPTH] = {
        {1, 2, 3, 4, 5, 6, 7, 8, 9, 10}, {10, 9, 8, 7, 6, 5, 4, 3, 2, 1}, {5, 10, 1, 7, 3, 9, 2, 8, 4, 6}};
    if (argc > 1)
        seed = strtoull(argv[1], NULL, 10);
    check_begin();
    members_begin();
    buffers = buffers_new((uint64_t)check_me);
    for (int level = 0; level < LEVELS; level++)
        levels[level] = group_new();
    members_free(levels[0].m);
    levels[0].m = members_world();
    shmem_barrier_all();
    for (int i = 0; i < 6; i++) {
        descend(i % 2);
        destroy(orders[i / 2]);
    }
    levels[0].m.team = SHMEM_TEAM_INVALID; /* The world must not be destroyed. */
    for (int level = 0; level < LEVELS; level++)
        group_free(levels[level]);
    buffers_free(buffers);
    members_end();
    return check_end();
}
