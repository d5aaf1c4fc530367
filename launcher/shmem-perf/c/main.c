/* The functions that the Rust half calls, except for the operations that are measured: start,
 * memory, and data for other PEs.
 *
 * It calls only routines of OpenSHMEM 1.4, and shmemx_transport if the library has it. It times
 * only the clock and the start.
 */
#define _GNU_SOURCE
#include "perf.h"
#include <sched.h>
#include <shmem.h>
#include <stdio.h>
#include <string.h>

static char *control; /* symmetric: what this PE posts for the others */

static int64_t init(int32_t several_threads)
{
    const uint64_t start = now();
    if (several_threads) {
        int provided = SHMEM_THREAD_SINGLE;
        if (shmem_init_thread(SHMEM_THREAD_MULTIPLE, &provided) != 0 || provided != SHMEM_THREAD_MULTIPLE)
            return -1;
    } else {
        shmem_init();
    }
    return (int64_t)(now() - start);
}

static const char *thread_level(void)
{
    int provided = -1;
    shmem_query_thread(&provided);
    return provided == SHMEM_THREAD_SINGLE       ? "single"
           : provided == SHMEM_THREAD_FUNNELED   ? "funneled"
           : provided == SHMEM_THREAD_SERIALIZED ? "serialized"
           : provided == SHMEM_THREAD_MULTIPLE   ? "multiple"
                                                 : "unknown";
}

static int32_t allocate(uint64_t nbytes)
{
    control = shmem_align(4096, CONTROL_BYTES);
    const int is_done = control != NULL && allocate_buffers(nbytes) == 0 && allocate_alone() == 0 &&
                        allocate_round_trips() == 0 && allocate_collectives(nbytes) == 0;
    return is_done ? 0 : -1;
}

static void *reserve(uint64_t nbytes)
{
    void *const memory = shmem_align(4096, nbytes);
    if (memory != NULL)
        memset(memory, 0, nbytes);
    return memory;
}

/* Destroys the contexts first: Open MPI crashes in shmem_finalize if one is left. */
static void leave(void)
{
    destroy_contexts();
    shmem_finalize();
}

static int32_t own_pe(void)
{
    return shmem_my_pe();
}

static int32_t count_pes(void)
{
    return shmem_n_pes();
}

static void name(char *to)
{
    char text[SHMEM_MAX_NAME_LEN + 1] = "";
    shmem_info_get_name(text);
#ifdef OSHMEM_MAJOR_VERSION
    /* Open MPI's own name is only a URL. */
    snprintf(text, sizeof text, "Open MPI %d.%d.%d", OSHMEM_MAJOR_VERSION, OSHMEM_MINOR_VERSION,
             OSHMEM_RELEASE_VERSION);
#endif
    strncpy(to, text, 255);
    to[255] = 0;
}

static void version(int32_t *major, int32_t *minor)
{
    int first, second;
    shmem_info_get_version(&first, &second);
    *major = first;
    *minor = second;
}

/* An extension of Rushmem; null in other libraries. */
extern const char *shmemx_transport(void) __attribute__((weak));

static const char *path(void)
{
    return shmemx_transport ? shmemx_transport() : NULL;
}

static void post(const void *bytes, uint64_t nbytes)
{
    memcpy(control, bytes, nbytes);
}

static void read_control(int32_t pe, void *bytes, uint64_t nbytes)
{
    shmem_getmem(bytes, control, nbytes, pe);
}

static int32_t maps(int32_t pe)
{
    return shmem_ptr(heap_target, pe) != NULL;
}

static int32_t operation(int32_t index, struct perf_operation *found)
{
    if (index < n_alone_operations) {
        *found = alone_operations[index];
        return 0;
    }
    index -= n_alone_operations;
    if (index < n_round_trip_operations) {
        *found = round_trip_operations[index];
        return 0;
    }
    index -= n_round_trip_operations;
    if (index < n_collective_operations) {
        *found = collective_operations[index];
        return 0;
    }
    return -1;
}

static void fill(const struct perf_task *task)
{
    struct perf_operation found;
    if (operation(task->operation, &found) == 0)
        perf_fill(&found, task);
}

static int64_t verify(const struct perf_task *task, int32_t issues, int32_t receives)
{
    struct perf_operation found;
    return operation(task->operation, &found) == 0 ? perf_verify(&found, task, issues, receives) : -1;
}

static int32_t prepare(const struct perf_task *task)
{
    return prepare_alone(task) == 0 && prepare_collective(task) == 0 ? 0 : -1;
}

static void read_clock(uint64_t n, uint64_t *nanoseconds)
{
    for (uint64_t i = 0; i < n; i++)
        nanoseconds[i] = now();
}

static int32_t bind_to(int32_t cpu)
{
    cpu_set_t set;
    CPU_ZERO(&set);
    if (cpu < 0 || cpu >= CPU_SETSIZE)
        return -1;
    CPU_SET(cpu, &set);
    return sched_setaffinity(0, sizeof set, &set);
}

int main(int argc, char **argv)
{
    const struct perf_library library = {
        .init = init,
        .thread_level = thread_level,
        .allocate = allocate,
        .reserve = reserve,
        .finalize = leave,
        .exit_all = shmem_global_exit,
        .my_pe = own_pe,
        .n_pes = count_pes,
        .name = name,
        .version = version,
        .path = path,
        .barrier = shmem_barrier_all,
        .post = post,
        .read = read_control,
        .maps = maps,
        .operation = operation,
        .prepare = prepare,
        .fill = fill,
        .verify = verify,
        .compute = perf_compute,
        .read_clock = read_clock,
        .bind = bind_to,
    };
    return shmem_perf_main(argc, argv, &library);
}
