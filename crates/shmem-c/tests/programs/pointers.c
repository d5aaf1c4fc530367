/* Pointers in symmetric memory: blocks have the same address on all PEs, so a PE can follow
 * pointers of another one.
 *
 * Arguments: `static` if variables must have the same address on all PEs, too; `differ` if the
 * heaps must not. The PE of the variable TAKE_ON maps memory at the addresses of the variable TAKE
 * before the library is initialized.
 */
#define _GNU_SOURCE
#include "check.h"
#include <sys/mman.h>

static long variable;

/* A node of a list that leads through all PEs several times. */
struct node {
    long value;
    struct node *next;
};

enum { ROUNDS = 5, VERTICES = 200, DEGREE = 3 };

static void take(void) {
    const char *on = getenv("TAKE_ON"), *rank = getenv("SHMEM_LOCAL_ID"), *list = getenv("TAKE");
    if (!on || !rank || !list || strcmp(on, rank) != 0)
        return;
    char *copy = strdup(list);
    for (char *word = strtok(copy, ","); word; word = strtok(NULL, ",")) {
        void *at = (void *)strtoul(word, NULL, 0);
        if (mmap(at, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0) != at)
            perror("mmap");
    }
    free(copy);
}

/* Whether `address` is the same on all PEs. */
static int is_same(void *address) {
    static long own, all[256];
    own = (long)address;
    shmem_barrier_all();
    if (shmem_long_fcollect(SHMEM_TEAM_WORLD, all, &own, 1) != 0)
        CHECK(0, 0, "fcollect failed");
    for (int pe = 0; pe < check_n; pe++)
        if (all[pe] != own)
            return 0;
    return 1;
}

static void list(void) {
    struct node *nodes = check_malloc(ROUNDS * sizeof *nodes);
    for (int i = 0; i < ROUNDS; i++) {
        nodes[i].value = i * check_n + check_me;
        /* The next node is on the next PE; its address is that of an element of this PE's own
         * array. */
        nodes[i].next = check_me + 1 < check_n ? &nodes[i] : i + 1 < ROUNDS ? &nodes[i + 1] : NULL;
    }
    shmem_barrier_all();
    long expected = 0;
    for (struct node *at = nodes, copy; at; at = copy.next, expected++) {
        shmem_getmem(&copy, at, sizeof copy, (int)(expected % check_n));
        CHECK(copy.value == expected, 0, "node %ld has the value %ld", expected, copy.value);
    }
    CHECK(expected == (long)ROUNDS * check_n, 0, "the list has %ld nodes", expected);
    shmem_barrier_all();
    shmem_free(nodes);
}

/* A breadth-first search. The graph is stored as compressed rows with pointers to the neighbors of
 * each vertex. Vertex v is on PE v mod n, and has edges to v+1, 2v and 7v. */
static void search(void) {
    int rows = (VERTICES + check_n - 1) / check_n;
    int *neighbors = check_malloc(rows * DEGREE * sizeof *neighbors);
    int **row = check_malloc((rows + 1) * sizeof *row);
    for (int i = 0; i < rows; i++) {
        int v = i * check_n + check_me;
        row[i] = &neighbors[i * DEGREE];
        row[i][0] = (v + 1) % VERTICES;
        row[i][1] = 2 * v % VERTICES;
        row[i][2] = 7 * v % VERTICES;
    }
    row[rows] = &neighbors[rows * DEGREE];
    shmem_barrier_all();
    int depth[VERTICES], queue[VERTICES], head = 0, tail = 0, here[DEGREE];
    memset(depth, -1, sizeof depth);
    depth[queue[tail++] = check_me % VERTICES] = 0;
    while (head < tail) {
        int v = queue[head++], pe = v % check_n, *ends[2];
        shmem_getmem(ends, &row[v / check_n], sizeof ends, pe);
        CHECK(ends[1] - ends[0] == DEGREE, 0, "vertex %d has %ld neighbors", v, (long)(ends[1] - ends[0]));
        shmem_getmem(here, ends[0], sizeof here, pe);
        for (int k = 0; k < DEGREE; k++)
            if (depth[here[k]] < 0)
                depth[queue[tail++] = here[k]] = depth[v] + 1;
    }
    CHECK(tail == VERTICES, 0, "%d vertices were found", tail);
    CHECK(depth[(check_me + 1) % VERTICES] == 1, 0, "the next vertex is %d steps away", depth[(check_me + 1) % VERTICES]);
    shmem_barrier_all();
    shmem_free(row);
    shmem_free(neighbors);
}

int main(int argc, char **argv) {
    take();
    void *before = NULL;
    for (int i = 0; i < 2; i++) {
        shmem_init();
        if (i == 0)
            check_start();
        void *block = check_malloc(12345), *aligned = shmem_align(1 << 16, 100);
        if (argc > 1 && strcmp(argv[1], "differ") == 0) {
            CHECK(!is_same(block), 0, "the heaps begin at the same address");
        } else {
            CHECK(is_same(block) && is_same(aligned), 0, "blocks have different addresses");
            list();
            search();
        }
        if (argc > 1 && strcmp(argv[1], "static") == 0)
            CHECK(is_same(&variable), 0, "a static variable has different addresses");
        CHECK(i == 0 || block == before, 0, "the heap moved");
        before = block;
        if (check_me == 0)
            printf("the block is at %p\n", block);
        shmem_free(aligned);
        shmem_free(block);
        if (i == 0)
            shmem_finalize();
    }
    return check_end();
}
