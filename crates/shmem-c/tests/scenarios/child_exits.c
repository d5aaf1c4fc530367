/* start_pes finalizes when the program exits, and tells some launchers, but not when a child
 * exits. */
#include "../programs/check.h"
#include <sys/wait.h>
#include <unistd.h>

int main(void) {
    start_pes(0);
    check_start();
    fflush(stdout);
    const pid_t child = fork();
    if (child == 0)
        exit(3);
    int status = 0;
    waitpid(child, &status, 0);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 3, 74, "the child ended with %x", status);
    static long word;
    shmem_long_p(&word, check_me, (check_me + 1) % check_n);
    shmem_barrier_all();
    CHECK(word == (check_me + check_n - 1) % check_n, 74, "what came is %ld", word);
    return check_verdict(check_agree());
}
