/* The table of times in the record of shmem-verify. */
#ifndef VERIFY_PERFORMANCE_H
#define VERIFY_PERFORMANCE_H

#include <stdint.h>
#include <stdio.h>

/* What was measured between PE 0 and `peer`, or, of a collective, by all PEs. */
struct timing {
    const char *operation;
    uint64_t nbytes; /* 0: the operation has no size */
    int peer;        /* -1: all PEs */
    double nanoseconds; /* median time of one operation; 0: not measured */
};

enum { TIMINGS = 10 };

/* Measures the job. All PEs call it, of which there are at least two. Only the rows of PE 0 are
 * filled. Returns -1, on all PEs, if the symmetric heap has no room for the buffers. */
int measure_job(struct timing rows[TIMINGS]);

/* Prints the rows as a table. */
void print_timings(const struct timing rows[TIMINGS]);

/* Writes the rows as an array of JSON. */
void write_timings(FILE *to, const struct timing rows[TIMINGS]);

#endif
