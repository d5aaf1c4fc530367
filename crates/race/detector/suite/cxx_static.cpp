/* A thread gets into a word when it initializes a static variable, and another one stores to the word, after that or at any
 * time.
 * PEs: 2 */
#include "suite.h"
#include <thread>

static long x[8], to;

static long initial() {
    shmem_long_get(&to, x, 1, 1); /* RACE */
    return 1;
}

static long value() {
    static const long value = initial();
    return value;
}

static void run(int me, int) {
    if (me != 0)
        return;
    std::thread thread(value);
    ORDER(value());
    to = 2; /* RACE */
    thread.join();
}
