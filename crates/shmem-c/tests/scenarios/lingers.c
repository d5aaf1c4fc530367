/* Every PE goes on for a while after its last finalize, then initializes again. The closed network
 * must report nothing. */
#include <unistd.h>

#include "../programs/check.h"

int main(void) {
    check_begin();
    long *word = shmem_calloc(check_n, sizeof *word);
    for (int pe = 0; pe < check_n; pe++)
        shmem_long_p(word + check_me, check_me + 1, pe);
    shmem_barrier_all();
    for (int pe = 0; pe < check_n; pe++)
        CHECK(word[pe] == pe + 1, 72, "PE %d put %ld", pe, word[pe]);
    shmem_finalize();
    /* Longer than a PE waits for its launcher to report a lost peer. */
    sleep(2);
    shmem_init();
    return check_end();
}
