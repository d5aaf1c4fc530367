/* PE 0 uses a buffer again as soon as its puts have left it. */
#include <shmem.h>
#include <shmemx.h>
#include <stdio.h>

static int dest[3][1000];

int main(void) {
    shmem_init();
    int me = shmem_my_pe();
    if (me == 0) {
        int source[1000];
        for (int block = 0; block < 3; block++) {
            source[999] = block + 5;
            shmem_int_put_nbi(dest[block], source, 1000, 1);
            shmemx_flush();
        }
    }
    shmem_barrier_all();
    if (me == 1)
        printf("PE 1: %d %d %d\n", dest[0][999], dest[1][999], dest[2][999]);
    shmem_finalize();
    return 0;
}

/* Prints on 4 PEs, in any order:
   PE 1: 5 6 7 */
