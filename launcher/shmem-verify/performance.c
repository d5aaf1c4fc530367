/* Times a few operations of the job, for the record: who reads that the library is right on a
 * cluster also wants to know whether it is as fast as its network.
 *
 * The loops are those of shmem-perf, so that both programs measure the same. This table is smaller:
 * it has one repetition, and says nothing about the noise of the machine.
 */
#define _GNU_SOURCE
#include "performance.h"
#include <shmem.h>
#include <stdlib.h>
#include <string.h>

#include "perf.h"

enum { LARGE = 1 << 20, MOST_SAMPLES = 51 };

/* An operation of shmem-perf, and how often it runs. `batch` is large for short operations, so that
 * the clock does not count. */
struct row {
    const char *operation;
    uint64_t nbytes, window, samples, batch;
};

static const struct row table[TIMINGS] = {
    {"put", 8, 1, 51, 100},
    {"get", 8, 1, 51, 100},
    {"fetch_add", 8, 1, 51, 100},
    {"put_nbi", 8, 64, 51, 10},
    {"put_signal round trip", 8, 1, 51, 50},
    {"put_nbi", LARGE, 8, 21, 1},
    {"get_nbi", LARGE, 8, 21, 1},
    {"barrier_all", 0, 1, 51, 20},
    {"sum_reduce", 8, 1, 51, 20},
    {"sum_reduce", LARGE / 16, 1, 21, 1},
};

static const struct perf_operation *operation_in(const struct perf_operation *operations, int n, const char *name) {
    for (int i = 0; i < n; i++)
        if (strcmp(operations[i].name, name) == 0)
            return &operations[i];
    return NULL;
}

static const struct perf_operation *operation_named(const char *name) {
    const struct perf_operation *found = operation_in(alone_operations, n_alone_operations, name);
    if (found == NULL)
        found = operation_in(round_trip_operations, n_round_trip_operations, name);
    if (found == NULL)
        found = operation_in(collective_operations, n_collective_operations, name);
    return found;
}

/* Returns the first PE whose memory this PE cannot map, since the network is of interest, or PE 1. */
static int peer_of_interest(void) {
    for (int pe = 0; pe < shmem_n_pes(); pe++)
        if (shmem_ptr(heap_target, pe) == NULL)
            return pe;
    return 1;
}

static int by_size(const void *one, const void *other) {
    const uint64_t a = *(const uint64_t *)one, b = *(const uint64_t *)other;
    return (a > b) - (a < b);
}

/* Runs the part of this PE in an operation. Returns the median nanoseconds of one operation on PE 0,
 * and 0 on the others. */
static double median_time(const struct row *row, const struct perf_operation *operation, const struct perf_task *task, int peer) {
    uint64_t times[MOST_SAMPLES] = {0};
    const int me = shmem_my_pe();

    if (me == 0 || operation->kind == COLLECTIVE) {
        /* The first operation may connect to the peer. */
        operation->run(task, 1, 1, times);
        operation->run(task, row->samples, row->batch, times);
        if (operation->end != NULL)
            operation->end(task);
    } else if (me == peer && operation->follow != NULL) {
        operation->follow(task);
    }

    qsort(times, row->samples, sizeof *times, by_size);
    return me == 0 ? (double)times[row->samples / 2] / (double)(row->batch * row->window) : 0;
}

int measure_job(struct timing rows[TIMINGS]) {
    /* Each PE has as much memory left as the others, so all of them succeed or fail. */
    if (allocate_buffers(LARGE) != 0 || allocate_alone() != 0 || allocate_round_trips() != 0 || allocate_collectives(LARGE) != 0)
        return -1;
    shmem_barrier_all();

    /* PE 0 decides, since only it issues operations. */
    static int peer;
    peer = peer_of_interest();
    shmem_barrier_all();
    peer = shmem_int_g(&peer, 0);

    for (int i = 0; i < TIMINGS; i++) {
        const struct perf_operation *operation = operation_named(table[i].operation);
        const struct perf_task task = {
            .peer = shmem_my_pe() == 0 ? peer : 0,
            .team_size = shmem_n_pes(),
            .threads = 1,
            .nbytes = table[i].nbytes,
            .window = table[i].window,
        };
        rows[i] = (struct timing){table[i].operation, table[i].nbytes, peer, 0};
        if (operation == NULL || prepare_alone(&task) != 0 || prepare_collective(&task) != 0)
            continue;

        rows[i].peer = operation->kind == COLLECTIVE ? -1 : peer;
        rows[i].nanoseconds = median_time(&table[i], operation, &task, peer);
        shmem_barrier_all();
    }
    destroy_contexts();
    return 0;
}

/* Returns the megabytes that an operation moves in a second. */
static double rate(const struct timing *row) {
    return row->nanoseconds > 0 ? 1e3 * (double)row->nbytes / row->nanoseconds : 0;
}

void print_timings(const struct timing rows[TIMINGS]) {
    puts("\nMedian times, with whatever else ran on these nodes; shmem-perf measures them better:");
    for (int i = 0; i < TIMINGS; i++) {
        char size[32] = "", speed[32] = "";
        if (rows[i].nbytes > 0)
            snprintf(size, sizeof size, "%llu B", (unsigned long long)rows[i].nbytes);
        if (rows[i].nbytes == LARGE)
            snprintf(speed, sizeof speed, "%10.0f MB/s", rate(&rows[i]));
        printf("%-22s %9s %11.3f us%s\n", rows[i].operation, size, rows[i].nanoseconds / 1e3, speed);
    }
    puts("");
}

void write_timings(FILE *to, const struct timing rows[TIMINGS]) {
    const char *separator = "";
    fputs("[", to);
    for (int i = 0; i < TIMINGS; i++) {
        fprintf(to, "%s\n    {\"operation\": \"%s\", \"bytes\": %llu, \"nanoseconds\": %.1f", separator, rows[i].operation,
                (unsigned long long)rows[i].nbytes, rows[i].nanoseconds);
        if (rows[i].peer >= 0)
            fprintf(to, ", \"pe\": 0, \"peer\": %d", rows[i].peer);
        fputs("}", to);
        separator = ",";
    }
    fputs("\n  ]", to);
}
