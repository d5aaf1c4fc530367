/* The sum of 1.5 on all PEs, as a number of 16 bits. */
#include <shmem.h>
#include <shmemx.h>
#include <stdio.h>

static uint16_t source = 0x3e00, dest; /* 1.5 */

int main(void) {
    shmem_init();
    shmemx_float16_sum_reduce(SHMEM_TEAM_WORLD, &dest, &source, 1);
    if (shmem_my_pe() == 0)
        printf("%#x\n", dest); /* 6 */
    shmem_finalize();
    return 0;
}

/* Prints on 4 PEs, in any order:
   0x4600 */
