/* The interface between the halves of shmem-perf: the C half calls the library under test, and
 * passes a table of functions to the Rust half, which does everything else.
 *
 * The Rust half declares the same types in src/library.rs. No type of <shmem.h> may appear here.
 */
#ifndef SHMEM_PERF_H
#define SHMEM_PERF_H

#include <stddef.h>
#include <stdint.h>
#include <time.h>

enum {
    CONTROL_BYTES = 256 * 1024, /* maximum number of bytes that a PE can post at once */
    STATIC_BYTES = 4 << 20,     /* size of the static target */
    MOST_LANES = 64,            /* maximum number of contexts of a PE, and of threads */
};

/* The PEs that take part in an operation. */
enum kind {
    ALONE = 0,         /* the PE that issues it */
    ROUND_TRIP = 1,    /* the PE that issues it and its peer, which answers */
    COLLECTIVE = 2,    /* the members of a team, which are the first PEs */
    PLAIN = 3,         /* a floor: the PE that issues it loads and stores memory of its peer */
    PLAIN_ROUND_TRIP = 4, /* a floor: a round trip by loads and stores */
};

/* The effect of an operation on memory, which --validate checks. */
enum moves {
    NOTHING = 0,
    PUTS, IPUTS, GETS, IGETS, P, G,
    ADDS, XORS, ANDS, ORS, REPLACES, /* AMOs */
    BROADCASTS, COLLECTS, ALLTOALLS, SUMS, TAKES_MOST, INSCANS, EXSCANS,
};

/* One measurement at one size. */
struct perf_task {
    int32_t operation; /* index in the table of operations */
    int32_t peer;
    int32_t team_size;
    int32_t threads;
    int32_t contexts; /* number of contexts that the PE creates; 0: it uses the default context */
    int32_t is_static; /* whether the target is a static variable */
    int32_t target_computes; /* whether the target PE computes meanwhile and calls no routine */
    uint64_t nbytes;
    uint64_t window;  /* operations before each completion */
    uint64_t compute; /* iterations of the loop of perf_compute between issue and completion */
    /* bytes of memory through which the buffer advances from one operation to the next, so that it
     * is not in the cache; 0: all operations use the same buffer */
    uint64_t off_cache;
};

struct perf_operation {
    const char *name;
    int32_t kind;
    /* the smallest and the largest size in bytes; most is 0 if there is no limit; both are 0 if the
     * operation has no size */
    uint32_t least, most;
    int32_t blocks_by_member; /* whether its buffers hold a block for each member */
    /* whether a member may return before the others have entered, so that calls in a row overlap */
    int32_t is_rooted;
    int32_t overlaps;         /* whether a computation can be done between issue and completion */
    int32_t moves;            /* enum moves */
    /* Runs and times `samples` times `batch` windows. Writes the nanoseconds of each sample to
     * `times`: first those of the first thread, then those of the second one, and so on. */
    void (*run)(const struct perf_task *, uint64_t samples, uint64_t batch, uint64_t *times);
    /* The peer's part: answers round trips, or computes if the task says so, until the PE that
     * issues calls `end`. */
    void (*follow)(const struct perf_task *);
    /* Makes `follow` return on the peer. */
    void (*end)(const struct perf_task *);
};

/* The functions that the Rust half calls. */
struct perf_library {
    /* Initializes the library. Returns the nanoseconds that it took, or -1 if `several_threads` and
     * the library does not provide SHMEM_THREAD_MULTIPLE. */
    int64_t (*init)(int32_t several_threads);
    /* The thread level that the library provides. */
    const char *(*thread_level)(void);
    /* Allocates buffers for transfers of up to `nbytes`. All PEs call it. Returns 0, or -1 if the
     * symmetric heap is too small. */
    int32_t (*allocate)(uint64_t nbytes);
    /* Allocates zeroed symmetric memory, which is not freed. All PEs call it. Returns null if the
     * symmetric heap is too small. */
    void *(*reserve)(uint64_t nbytes);
    void (*finalize)(void);
    void (*exit_all)(int32_t status);
    int32_t (*my_pe)(void);
    int32_t (*n_pes)(void);
    /* Writes the name of the library into 256 bytes. */
    void (*name)(char *name);
    void (*version)(int32_t *major, int32_t *minor);
    /* The path between PEs, a colon, and the reason for its choice; null if the library does not
     * report it. */
    const char *(*path)(void);
    void (*barrier)(void);
    /* Copies bytes to symmetric memory, where other PEs can `read` them after a barrier. */
    void (*post)(const void *bytes, uint64_t nbytes);
    void (*read)(int32_t pe, void *bytes, uint64_t nbytes);
    /* Whether this PE can access the symmetric heap of `pe` by loads and stores. */
    int32_t (*maps)(int32_t pe);
    /* Writes the operation of this index. Returns 0, or -1 if there is none. */
    int32_t (*operation)(int32_t index, struct perf_operation *);
    /* Creates the contexts and the team of a task in place of those before. All PEs call it.
     * Returns 0, or -1 if the library fails. */
    int32_t (*prepare)(const struct perf_task *);
    /* Fills the buffers of a task before it is measured, for `verify`. */
    void (*fill)(const struct perf_task *);
    /* Checks the buffers of this PE, which issues, receives, or both. Returns the offset in bytes
     * of the first wrong word; -1 if all are right or not checked. */
    int64_t (*verify)(const struct perf_task *, int32_t issues, int32_t receives);
    void (*compute)(uint64_t turns);
    void (*read_clock)(uint64_t n, uint64_t *nanoseconds);
    /* Binds the calling thread to a CPU. Returns 0, or -1 if the kernel refuses. */
    int32_t (*bind)(int32_t cpu);
};

int shmem_perf_main(int argc, char **argv, const struct perf_library *);

/* What the C files declare for each other. */

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
uint64_t issued(void);  /* operations that each thread has issued since forget_issued */
uint64_t fetched(void); /* the value that was fetched last */
/* the target of the last call of a collective if `before` is 0, or of the one before it if 1 */
char *last_result(int before);

extern char *heap_target;  /* symmetric: twice the size of the other buffers */
extern char *heap_source;  /* symmetric */
extern char *local_source; /* ordinary memory */
extern char static_target[STATIC_BYTES];

static inline char *target_of(const struct perf_task *task)
{
    return task->is_static ? static_target : heap_target;
}

/* Returns the offset of the next transfer in a buffer after the one at this offset; without
 * --off-cache always 0. */
static inline uint64_t next_place(const struct perf_task *task, uint64_t offset)
{
    const uint64_t next = offset + (task->nbytes + 63) / 64 * 64;
    return next + task->nbytes <= task->off_cache ? next : 0;
}

static inline uint64_t now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
}

/* Keeps the compiler from holding memory in registers across this, and from knowing `value` after
 * it. */
#define UNKNOWN(value) __asm__ volatile("" : "+r"(value) : : "memory")

static inline void perf_compute(uint64_t turns)
{
    for (uint64_t turn = 0; turn < turns; turn++)
        UNKNOWN(turn);
}

#endif
