/* start_pes: its argument is ignored, repeated calls have no effect, and the end of the program
 * finalizes. */
#include "check.h"
#include <unistd.h>

int main(void) {
    start_pes(4711);
    check_start();
    start_pes(0);
    start_pes(-1);
    CHECK(_my_pe() == check_me && _num_pes() == check_n, 74, "_my_pe is %d, _num_pes %d", _my_pe(), _num_pes());
    int answer = 0;
    shmem_query_initialized(&answer);
    CHECK(answer != 0, 73, "not initialized after start_pes");
    long *word = shmalloc(sizeof *word);
    *word = -1;
    shmem_barrier_all();
    shmem_long_p(word, check_me, (check_me + 1) % check_n);
    shmem_barrier_all();
    CHECK(*word == (check_me + check_n - 1) % check_n, 74, "what came is %ld", *word);
    int total = check_agree();
    check_verdict(total);
    /* The other PEs have reached the end of main by now. They must be reachable until the last PE ends. */
    if (check_me == check_n - 1) {
        usleep(50000);
        for (long i = 0; i < 1000; i++) {
            shmem_long_p(word, i, 0);
            shmem_quiet();
            CHECK(shmem_long_g(word, 0) == i, 74, "PE 0 is gone at turn %ld", i);
        }
    }
    return total != 0;
}
