/* Prints the frequency of this machine's time stamp counter in kHz. A guest whose processors are interpreted reads the
 * same counter, but cannot measure its frequency on a busy machine: the guest's clock then runs many times too fast, so
 * that a NIC gives up too early. */
#include <stdint.h>
#include <stdio.h>
#include <time.h>

enum { TRIES = 100, MILLISECONDS = 200 };

typedef struct {
    int64_t nanoseconds;
    int64_t ticks;
} reading;

static int64_t nanoseconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC_RAW, &now);
    return now.tv_sec * INT64_C(1000000000) + now.tv_nsec;
}

/* Reads both clocks at one moment: returns the least disturbed one of many attempts. */
static reading now(void)
{
    reading best = {0, 0};
    int64_t shortest = INT64_MAX;
    for (int try = 0; try < TRIES; try++) {
        const int64_t before = nanoseconds();
        const int64_t ticks = (int64_t)__builtin_ia32_rdtsc();
        const int64_t took = nanoseconds() - before;
        if (took < shortest) {
            shortest = took;
            best = (reading){before + took / 2, ticks};
        }
    }
    return best;
}

int main(void)
{
    const reading start = now();
    nanosleep(&(struct timespec){0, MILLISECONDS * 1000000}, NULL);
    const reading end = now();
    printf("%lld\n", (long long)((end.ticks - start.ticks) * 1000000 / (end.nanoseconds - start.nanoseconds)));
    return 0;
}
