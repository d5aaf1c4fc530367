/* Finds the number below 100,000 from which the Collatz sequence takes the most steps to 1. At first
 * PE 0 has all numbers; a PE that has none steals half of those of another one.
 *
 *     oshcc work_stealing.c -o work_stealing && oshrun -n 4 ./work_stealing
 */
#include <shmem.h>
#include <stdio.h>
#include <stdlib.h>

enum { LIMIT = 100000, LONGEST_FROM = 77031, LONGEST = 350 };

/* The numbers that this PE has still to examine: `range(first, end)`. */
static uint64_t tasks;

/* The result of all PEs, on PE 0: who holds the lock may access it. */
static struct { long examined, from, steps; } result;
static long lock;

static uint64_t range(uint32_t first, uint32_t end) { return (uint64_t)first << 32 | end; }

/* Takes the first number of this PE, or half of the numbers of another one, and returns them as a
 * range. Returns 0 if that PE has none. */
static uint64_t take(int pe, int me) {
    uint64_t seen = shmem_uint64_atomic_fetch(&tasks, pe);
    for (;;) {
        uint32_t first = seen >> 32, end = (uint32_t)seen;
        if (first == end)
            return 0;
        uint32_t middle = pe == me ? first + 1 : first + (end - first) / 2;
        uint64_t taken = pe == me ? range(first, middle) : range(middle, end);
        uint64_t rest = pe == me ? range(middle, end) : range(first, middle);
        uint64_t found = shmem_uint64_atomic_compare_swap(&tasks, seen, rest, pe);
        if (found == seen)
            return taken;
        seen = found;
    }
}

/* Steals from the other PEs in turn. Returns 0 if none of them has anything. */
static uint64_t steal(int me, int n) {
    for (int i = 1; i < n; i++) {
        uint64_t taken = take((me + i) % n, me);
        if (taken != 0)
            return taken;
    }
    return 0;
}

static long collatz(uint64_t x) {
    long steps = 0;
    for (; x > 1; steps++)
        x = x % 2 == 0 ? x / 2 : 3 * x + 1;
    return steps;
}

int main(void) {
    shmem_init();
    int me = shmem_my_pe(), n = shmem_n_pes();
    long examined = 0, from = 0, steps = 0;

    if (me == 0)
        shmem_uint64_atomic_set(&tasks, range(1, LIMIT), 0);
    shmem_barrier_all();

    for (;;) {
        uint64_t taken = take(me, me);
        if (taken == 0) {
            taken = steal(me, n);
            if (taken == 0)
                break;
            shmem_uint64_atomic_swap(&tasks, taken, me); /* is complete when it returns */
            continue;
        }
        uint32_t number = taken >> 32;
        long its_steps = collatz(number);
        if (its_steps > steps) {
            from = number;
            steps = its_steps;
        }
        examined++;
    }

    shmem_set_lock(&lock);
    shmem_long_p(&result.examined, shmem_long_g(&result.examined, 0) + examined, 0);
    if (steps > shmem_long_g(&result.steps, 0)) {
        shmem_long_p(&result.from, from, 0);
        shmem_long_p(&result.steps, steps, 0);
    }
    shmem_clear_lock(&lock);

    shmem_barrier_all();
    int right = me != 0 || (result.examined == LIMIT - 1 && result.from == LONGEST_FROM &&
                            result.steps == LONGEST);
    if (me == 0)
        printf("%d PEs examined %ld numbers: %ld takes %ld steps\n", n, result.examined,
               result.from, result.steps);
    shmem_finalize();
    return right ? EXIT_SUCCESS : EXIT_FAILURE;
}
