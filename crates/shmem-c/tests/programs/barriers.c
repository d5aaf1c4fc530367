/* A thousand barriers. Puts before each are complete after it. */
#include "check.h"

int main(int argc, char **argv) {
    int turns = argc > 1 ? atoi(argv[1]) : 1000;
    check_begin();
    int right = (check_me + 1) % check_n, left = (check_me + check_n - 1) % check_n;
    /* Two words alternate: a faster neighbor may write the next one while this one is read. */
    int *words = shmem_calloc(2, sizeof *words);
    for (int turn = 1; turn <= turns; turn++) {
        shmem_int_p(&words[turn % 2], turn * 100 + check_me, right);
        shmem_barrier_all();
        CHECK(words[turn % 2] == turn * 100 + left, 42, "turn %d: the word is %d", turn, words[turn % 2]);
    }
    for (int turn = 1; turn <= turns; turn++)
        shmem_sync_all();
    shmem_free(words);
    return check_end();
}
