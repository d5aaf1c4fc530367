/* The buffers of the operations: sources, and symmetric targets. */
#include "perf.h"
#include <shmem.h>
#include <stdlib.h>
#include <string.h>

char *heap_target, *heap_source, *local_source;
char static_target[STATIC_BYTES];

int allocate_buffers(uint64_t nbytes)
{
    heap_target = shmem_align(4096, 2 * nbytes);
    heap_source = shmem_align(4096, nbytes);
    local_source = aligned_alloc(4096, (nbytes + 4095) / 4096 * 4096);
    if (heap_target == NULL || heap_source == NULL || local_source == NULL)
        return -1;
    memset(heap_target, 0, 2 * nbytes);
    memset(heap_source, 1, nbytes);
    memset(local_source, 1, nbytes);
    memset(static_target, 0, sizeof static_target);
    return 0;
}
