/* PE 0 writes to PE 2, and then sets a flag of PE 1, which reads from
 * PE 2. A fence does not order operations on two PEs, so PE 0 waits. */
#include <shmem.h>
#include <stdio.h>

static int value, flag;

int main(void) {
    shmem_init();
    int me = shmem_my_pe();
    if (me == 0) {
        shmem_int_p(&value, 17, 2);
        shmem_quiet();  /* value is written */
        shmem_int_atomic_set(&flag, 1, 1);
    }
    if (me == 1) {
        shmem_int_wait_until(&flag, SHMEM_CMP_EQ, 1);
        printf("%d\n", shmem_int_g(&value, 2));
    }
    shmem_finalize();
    return 0;
}

/* Prints on 4 PEs, in any order:
   17 */
