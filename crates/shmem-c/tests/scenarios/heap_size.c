/* The size of the heap: argv[1] bytes can be allocated, argv[2] cannot. 0 omits a check. */
#include "../programs/check.h"

int main(int argc, char **argv) {
    check_begin();
    size_t possible = argc > 1 ? strtoull(argv[1], NULL, 0) : 0, impossible = argc > 2 ? strtoull(argv[2], NULL, 0) : 0;
    if (possible) {
        unsigned char *block = shmem_malloc(possible);
        CHECK(block != NULL, 69, "%zu bytes cannot be had", possible);
        if (block) {
            shmem_putmem(&block[possible - 1], "x", 1, (check_me + 1) % check_n);
            shmem_barrier_all();
            CHECK(block[possible - 1] == 'x', 69, "the last of %zu bytes is not there", possible);
            shmem_free(block);
        }
    }
    CHECK(!impossible || shmem_malloc(impossible) == NULL, 69, "%zu bytes can be had", impossible);
    shmem_barrier_all();
    shmem_finalize();
    return check_verdict(check_failures);
}
