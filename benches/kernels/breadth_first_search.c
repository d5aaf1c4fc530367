/* Breadth-first search of a random graph whose vertices are spread over all PEs. A PE that follows
 * an edge claims the vertex at its end by a compare-and-swap of the vertex's parent, and appends it
 * to the queue of the vertex's PE by a fetch-and-increment and a put. A barrier ends each level.
 *
 * The edges are computed by a function, so PE 0 can search the graph alone for the verification.
 */
#include "kernel.h"

enum { VERTICES = 1 << 15, /* of a PE */ DEGREE = 16 };

static long *parents;   /* symmetric: the parent of each vertex of this PE, -1 if not reached */
static long *queues[2]; /* symmetric: this PE's vertices of the current and of the next level */
static long tails[2];   /* symmetric: the number of vertices in each queue */
static long vertices;   /* of a PE */

/* Returns the vertex at the end of an edge. */
static long end_of(long vertex, int edge, int n_pes)
{
    unsigned long mixed = ((unsigned long)vertex * DEGREE + edge + 1) * 0x9e3779b97f4a7c15ul;
    mixed = (mixed ^ (mixed >> 31)) * 0xbf58476d1ce4e5b9ul;
    return (long)((mixed ^ (mixed >> 29)) % (unsigned long)(vertices * n_pes));
}

static void follow_edges(long vertex, int next, int n_pes)
{
    for (int edge = 0; edge < DEGREE; edge++) {
        const long end = end_of(vertex, edge, n_pes);
        const int pe = (int)(end / vertices);
        long *const parent = parents + end % vertices;
        if (shmem_long_atomic_compare_swap(parent, -1, vertex, pe) == -1) {
            const long slot = shmem_long_atomic_fetch_inc(tails + next, pe);
            shmem_long_p(queues[next] + slot, end, pe);
        }
    }
}

/* Searches from vertex 0. */
static void search(int me, int n_pes)
{
    static long own, total;
    if (me == 0) {
        parents[0] = 0;
        queues[0][0] = 0;
        tails[0] = 1;
    }
    shmem_barrier_all();
    for (int level = 0;; level++) {
        const int now = level % 2;
        own = tails[now];
        sum_of_all(&total, &own, 1);
        if (total == 0)
            return;
        for (long i = 0; i < own; i++)
            follow_edges(queues[now][i], 1 - now, n_pes);
        tails[now] = 0;
        shmem_barrier_all();
    }
}

/* Returns the number of vertices that can be reached from vertex 0. */
static long search_alone(int n_pes)
{
    char *const seen = calloc(vertices * n_pes, 1);
    long *const queue = malloc(vertices * n_pes * sizeof *queue);
    if (seen == NULL || queue == NULL)
        give_up("there is no memory");
    long tail = 1;
    queue[0] = 0;
    seen[0] = 1;
    for (long head = 0; head < tail; head++) {
        for (int edge = 0; edge < DEGREE; edge++) {
            const long end = end_of(queue[head], edge, n_pes);
            if (!seen[end])
                queue[tail++] = end;
            seen[end] = 1;
        }
    }
    free(seen);
    free(queue);
    return tail;
}

/* Checks that each parent has an edge to its vertex. Returns the number of vertices of this PE that
 * have a parent. */
static long check_parents(int me, int n_pes)
{
    long reached = 0;
    for (long i = 0; i < vertices; i++) {
        const long vertex = me * vertices + i;
        int is_end = vertex == 0 || parents[i] == -1;
        for (int edge = 0; !is_end && edge < DEGREE; edge++)
            is_end = end_of(parents[i], edge, n_pes) == vertex;
        if (!is_end)
            give_up("a parent has no edge to its vertex");
        reached += parents[i] != -1;
    }
    return reached;
}

int main(int argc, char **argv)
{
    shmem_init();
    const int me = shmem_my_pe();
    const int n_pes = shmem_n_pes();
    vertices = share_of(VERTICES, argc, argv);
    parents = symmetric(vertices * sizeof *parents);
    queues[0] = symmetric(vertices * sizeof *parents);
    queues[1] = symmetric(vertices * sizeof *parents);
    memset(parents, 0xff, vertices * sizeof *parents);
    shmem_barrier_all();

    const double start = now();
    search(me, n_pes);
    const double time = now() - start;

    static long own, total;
    own = check_parents(me, n_pes);
    sum_of_all(&total, &own, 1);
    if (me == 0 && total != search_alone(n_pes))
        give_up("not all vertices were reached");
    report_kernel(time);
    shmem_finalize();
    return 0;
}
