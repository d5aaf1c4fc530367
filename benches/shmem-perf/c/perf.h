/* What the C half of shmem-perf, which calls the library that is measured, gives to the Rust
 * half, which calls no library.
 *
 * The Rust half declares the same types in src/library.rs. No type of <shmem.h> may appear here.
 */
#ifndef SHMEM_PERF_H
#define SHMEM_PERF_H

#include <stddef.h>
#include <stdint.h>
#include <time.h>

enum {
    CONTROL_BYTES = 256 * 1024, /* what a PE can post at once */
    STATIC_BYTES = 4 << 20,     /* of the static target */
    MOST_LANES = 64,            /* contexts or threads of a PE */
};

/* Who takes part in an operation. */
enum kind {
    ALONE = 0,         /* the PE that issues it */
    ROUND_TRIP = 1,    /* that PE, and its peer, which answers */
    COLLECTIVE = 2,    /* the members of a team: the first PEs */
    PLAIN = 3,         /* the PE that issues it, with loads and stores on memory of its peer */
    PLAIN_ROUND_TRIP = 4,
};

/* What an operation moves, for those that check it. */
enum moves {
    NOTHING = 0,
    PUTS, IPUTS, GETS, IGETS, P, G,
    ADDS, XORS, ANDS, ORS, REPLACES, /* AMOs */
    BROADCASTS, COLLECTS, ALLTOALLS, SUMS, TAKES_MOST, INSCANS, EXSCANS,
};

/* One measurement at one size. */
struct perf_task {
    int32_t operation; /* its place in the table */
    int32_t peer;
    int32_t team_size;
    int32_t threads;
    int32_t contexts; /* of the whole PE; 0 is the default context */
    int32_t is_static; /* whether the target is a static variable */
    int32_t target_computes; /* whether the target's PE computes meanwhile and calls nothing */
    uint64_t nbytes;
    uint64_t window;  /* operations before each completion */
    uint64_t compute; /* turns of the loop of perf_compute between issue and completion */
    /* bytes through which buffers move, so that none is in the cache; 0: they do not move */
    uint64_t off_cache;
};

struct perf_operation {
    const char *name;
    int32_t kind;
    /* bytes; most is 0 where there is no limit; both are 0 where there is no size */
    uint32_t least, most;
    int32_t blocks_by_member; /* whether its buffers hold a block for each member */
    /* whether a member may leave before the others have entered, so that calls in a row overlap */
    int32_t is_rooted;
    int32_t overlaps;         /* whether it can compute between issue and completion */
    int32_t moves;            /* enum moves */
    /* Times `samples` times `batch` windows; nanoseconds go to `times`, for each thread after
     * those of the one before. */
    void (*run)(const struct perf_task *, uint64_t samples, uint64_t batch, uint64_t *times);
    /* The peer's part: of round trips the answers, otherwise to compute if it shall, until the
     * PE that issues ends it. */
    void (*follow)(const struct perf_task *);
    void (*end)(const struct perf_task *);
};

/* All that the Rust half calls. */
struct perf_library {
    /* Joins the job; the nanoseconds that it took, or -1 if the library does not let several
     * threads call it. */
    int64_t (*init)(int32_t several_threads);
    /* The thread level that the library provides. */
    const char *(*thread_level)(void);
    /* Allocates targets of `nbytes`, on all PEs; 0, or -1 if there is no room. */
    int32_t (*allocate)(uint64_t nbytes);
    /* Symmetric memory of zeros, as long as the job, on all PEs; null if there is no room. */
    void *(*reserve)(uint64_t nbytes);
    void (*finalize)(void);
    void (*exit_all)(int32_t status);
    int32_t (*my_pe)(void);
    int32_t (*n_pes)(void);
    /* Writes the name of the library into 256 bytes. */
    void (*name)(char *name);
    void (*version)(int32_t *major, int32_t *minor);
    /* How PEs reach each other, a colon, and the reason; null if the library does not say. */
    const char *(*path)(void);
    void (*barrier)(void);
    /* Lays bytes where the others can read them after a barrier. */
    void (*post)(const void *bytes, uint64_t nbytes);
    void (*read)(int32_t pe, void *bytes, uint64_t nbytes);
    /* Whether loads and stores reach the memory of that PE. */
    int32_t (*maps)(int32_t pe);
    int32_t (*operation)(int32_t index, struct perf_operation *);
    /* Makes the contexts and the team of a task, on all PEs, in place of those before; 0, or -1
     * if the library refuses. */
    int32_t (*prepare)(const struct perf_task *);
    /* Fills the buffers of a task before it is measured, on all PEs. */
    void (*fill)(const struct perf_task *);
    /* The first byte that was not moved as it should, or -1; for the PE that issues, the one
     * that receives, or both. */
    int64_t (*verify)(const struct perf_task *, int32_t issues, int32_t receives);
    void (*compute)(uint64_t turns);
    void (*read_clock)(uint64_t n, uint64_t *nanoseconds);
    /* Moves the calling thread to the index-th CPU that it may use; 0, or -1 if there are fewer. */
    int32_t (*bind)(int32_t index);
};

int shmem_perf_main(int argc, char **argv, const struct perf_library *);

/* The other C files. */

extern const struct perf_operation alone_operations[], round_trip_operations[], collective_operations[];
extern const int n_alone_operations, n_round_trip_operations, n_collective_operations;

int allocate_buffers(uint64_t nbytes);
int allocate_alone(void);
int allocate_round_trips(void);
int allocate_collectives(uint64_t nbytes);
int prepare_alone(const struct perf_task *);
void destroy_contexts(void);
int prepare_collective(const struct perf_task *);
void perf_fill(const struct perf_operation *, const struct perf_task *);
int64_t perf_verify(const struct perf_operation *, const struct perf_task *, int32_t issues, int32_t receives);
void forget_issued(void);
uint64_t issued(void);  /* operations of each thread since then */
uint64_t fetched(void); /* what was fetched last */
/* of collectives: the target of the last call, or of the one before */
char *last_result(int before);

extern char *heap_target;  /* symmetric: twice the bytes */
extern char *heap_source;  /* symmetric */
extern char *local_source; /* ordinary memory */
extern char static_target[STATIC_BYTES];

static inline char *target_of(const struct perf_task *task)
{
    return task->is_static ? static_target : heap_target;
}

/* Where the next transfer begins in a buffer, if this one begins at `at`. */
static inline uint64_t next_place(const struct perf_task *task, uint64_t at)
{
    const uint64_t next = at + (task->nbytes + 63) / 64 * 64;
    return next + task->nbytes <= task->off_cache ? next : 0;
}

static inline uint64_t now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
}

/* The compiler may neither keep memory in registers across this nor know what `value` holds
 * after it. */
#define UNKNOWN(value) __asm__ volatile("" : "+r"(value) : : "memory")

static inline void perf_compute(uint64_t turns)
{
    for (uint64_t turn = 0; turn < turns; turn++)
        UNKNOWN(turn);
}

#endif
