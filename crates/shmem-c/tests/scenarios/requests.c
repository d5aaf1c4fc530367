/* The mistake with a request of a non-blocking collective that argv[1] names. */
#include <shmemx.h>
#include <stdlib.h>
#include <string.h>

#include "../programs/check.h"

static long source = 1, dest;

int main(int argc, char **argv) {
    const char *how = argc > 1 ? argv[1] : "";
    long local = 0;
    shmemx_req_t request = SHMEMX_REQ_NULL, copy;
    shmem_init();
    check_start();
    const int is_first = shmem_my_pe() == 0, is_dead = strcmp(how, "death") == 0 && shmem_my_pe() == 1;
    if (is_dead)
        exit(3);
    /* A non-blocking collective meets a blocking one. */
    if (!is_first && strcmp(how, "reduce") == 0)
        shmem_long_sum_reduce(SHMEM_TEAM_WORLD, &dest, &source, 1);
    if (!is_first && strcmp(how, "barrier") == 0)
        shmem_barrier_all();
    long *to = strcmp(how, "private") == 0 && is_first ? &local : &dest;
    shmemx_long_sum_reduce_nb(SHMEM_TEAM_WORLD, to, &source, 1, &request);
    copy = request;
    if (strcmp(how, "forgotten") != 0 || !is_first)
        shmemx_req_wait(&request);
    if (strcmp(how, "copy") == 0 && is_first)
        shmemx_req_wait(&copy);
    CHECK(strcmp(how, "forgotten") == 0 || *to == shmem_n_pes(), 1, "%ld", *to);
    return check_end();
}
