/* PE 0 works for 2 s after shmem_finalize, as a program that writes its results. */
#include "../programs/check.h"

#include <unistd.h>

int main(void) {
    shmem_init();
    check_start();
    int me = shmem_my_pe(), status = check_end();
    if (me == 0)
        sleep(2);
    return status;
}
