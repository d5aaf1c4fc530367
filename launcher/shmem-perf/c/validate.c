/* For --validate: fills the buffers with known words before a measurement, and checks afterwards
 * that the operation has left the right ones.
 *
 * It calls only routines of OpenSHMEM 1.4.
 */
#include "perf.h"
#include <shmem.h>
#include <string.h>

enum { ABSENT = 0xee, LANE = 128 };

/* The word with index `place` in a buffer that `pe` has filled. The sum of the words of all PEs
 * does not overflow. */
static uint64_t word_of(int pe, uint64_t place)
{
    return (uint64_t)(pe + 1) * 1000003u + place * 7919u;
}

static void fill_words(char *to, int pe, uint64_t nbytes)
{
    for (uint64_t offset = 0; offset < nbytes; offset += 8) {
        const uint64_t word = word_of(pe, offset / 8);
        memcpy(to + offset, &word, nbytes - offset < 8 ? nbytes - offset : 8);
    }
}

static int is_collective(const struct perf_operation *operation)
{
    return operation->kind == COLLECTIVE;
}

static int is_amo(const struct perf_operation *operation)
{
    return operation->moves >= ADDS && operation->moves <= REPLACES;
}

static int reads(const struct perf_operation *operation)
{
    return operation->moves == GETS || operation->moves == IGETS || operation->moves == G;
}

void perf_fill(const struct perf_operation *operation, const struct perf_task *task)
{
    const int me = shmem_my_pe();
    char *const target = target_of(task);
    forget_issued();
    if (is_collective(operation)) {
        const uint64_t nbytes = task->nbytes * (operation->blocks_by_member ? (uint64_t)task->team_size : 1);
        fill_words(heap_source, me, nbytes);
        memset(last_result(0), ABSENT, nbytes);
        memset(last_result(1), ABSENT, nbytes);
        return;
    }
    const uint64_t lanes = LANE * MOST_LANES;
    const uint64_t nbytes = 2 * task->nbytes > lanes ? 2 * task->nbytes : lanes;
    if (reads(operation)) {
        fill_words(target, me, nbytes);
        memset(local_source, ABSENT, task->nbytes);
    } else {
        memset(target, is_amo(operation) ? 0 : ABSENT, nbytes);
        fill_words(local_source, me, task->nbytes);
    }
    if (operation->moves == ANDS || operation->moves == ORS)
        for (uint64_t offset = 0; offset < lanes; offset += LANE)
            *(uint64_t *)(target + offset) = operation->moves == ANDS ? 3 : 2;
}

/* The expected word with index `place` in the result of a collective. */
static uint64_t collected(const struct perf_operation *operation, const struct perf_task *task, uint64_t place)
{
    const uint64_t in_block = task->nbytes / 8, me = (uint64_t)shmem_my_pe();
    uint64_t sum = 0;
    int n = task->team_size;
    switch (operation->moves) {
    case BROADCASTS:
        return word_of(0, place);
    case COLLECTS:
        return word_of((int)(place / in_block), place % in_block);
    case ALLTOALLS:
        return word_of((int)(place / in_block), me * in_block + place % in_block);
    case TAKES_MOST:
        return word_of(n - 1, place);
    case INSCANS:
        n = (int)me + 1;
        break;
    case EXSCANS:
        n = (int)me;
        break;
    }
    for (int pe = 0; pe < n; pe++)
        sum += word_of(pe, place);
    return sum;
}

/* The expected word at the target of AMOs, or of `p`, after a thread has issued this number. */
static uint64_t left_by(int moves, uint64_t issued, uint64_t window)
{
    switch (moves) {
    case P:
        return window - 1;
    case ADDS:
        return issued;
    case XORS:
        return issued & 1;
    case ORS:
        return 3;
    default:
        return 1;
    }
}

/* The offset of the first word in `nbytes` bytes that differs from the words of `pe`, or -1. `to`
 * is the stride of `found` in words, `from` the stride of the words of `pe`. */
static int64_t first_wrong(const char *found, int pe, uint64_t nbytes, uint64_t to, uint64_t from)
{
    for (uint64_t offset = 0; offset < nbytes; offset += 8) {
        const uint64_t word = word_of(pe, offset / 8 * from);
        if (memcmp(found + offset * to, &word, nbytes - offset < 8 ? nbytes - offset : 8) != 0)
            return (int64_t)offset;
    }
    return -1;
}

static int64_t first_wrong_of_collective(const struct perf_operation *operation, const struct perf_task *task)
{
    const int me = shmem_my_pe();
    const uint64_t nbytes = task->nbytes * (operation->blocks_by_member ? (uint64_t)task->team_size : 1);
    /* A broadcast on an active set does not write the target of the root. */
    if (me >= task->team_size || (operation->moves == BROADCASTS && me == 0))
        return -1;
    for (uint64_t offset = 0; offset < nbytes; offset += 8) {
        const uint64_t word = collected(operation, task, offset / 8);
        if (memcmp(last_result(0) + offset, &word, 8) != 0)
            return (int64_t)offset;
    }
    return -1;
}

int64_t perf_verify(const struct perf_operation *operation, const struct perf_task *task, int32_t issues, int32_t receives)
{
    const int moves = operation->moves, is_alone = operation->kind == ALONE;
    const int n = is_alone && task->nbytes <= LANE && !task->is_static ? task->threads : 1;
    char *const target = target_of(task);
    if (moves == NOTHING)
        return -1;
    if (is_collective(operation))
        return first_wrong_of_collective(operation, task);
    if (moves == PUTS || moves == IPUTS) {
        int64_t wrong = -1;
        for (int lane = 0; receives && wrong < 0 && lane < n; lane++)
            wrong = first_wrong(target + LANE * lane, task->peer, task->nbytes, moves == IPUTS ? 2 : 1, 1);
        return wrong;
    }
    if (!issues)
        return -1;
    /* Several threads fetch into the same memory, which is not checked then. */
    if (moves == GETS || moves == IGETS)
        return task->threads > 1 ? -1 : first_wrong(local_source, task->peer, task->nbytes, 1, moves == IGETS ? 2 : 1);
    if (moves == G)
        return task->threads > 1 || fetched() == word_of(task->peer, 0) ? -1 : 0;
    /* All threads update the same word if the target is static. */
    const uint64_t n_each = issued() * (n == task->threads ? 1 : (uint64_t)task->threads);
    for (int lane = 0; lane < n; lane++) {
        uint64_t found;
        shmem_getmem(&found, target + LANE * lane, 8, task->peer);
        if (found != left_by(moves, n_each, task->window))
            return 0;
    }
    return -1;
}
