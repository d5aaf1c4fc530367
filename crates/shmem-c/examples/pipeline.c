/* A pipeline: each PE takes blocks from the PE before it, works on them, and passes them on. Each PE
 * has some slots, so that a block is sent while the next one is computed.
 *
 *     oshcc pipeline.c -o pipeline && oshrun -n 4 ./pipeline
 */
#include <shmem.h>
#include <stdio.h>
#include <stdlib.h>

enum { BLOCKS = 200, LENGTH = 1000, SLOTS = 3 };

static uint64_t inbox[SLOTS][LENGTH], outbox[SLOTS][LENGTH];
/* For each slot, the number of the last block that has arrived here, and of the last one that the
 * next PE has taken out of its inbox. Blocks are numbered from 1 on. */
static uint64_t arrived[SLOTS], taken[SLOTS];

/* What the PE `pe` makes of a value. */
static uint64_t work(uint64_t value, int pe) { return 3 * value + pe; }

int main(void) {
    shmem_init();
    int me = shmem_my_pe(), n = shmem_n_pes();
    int before = me - 1, after = me + 1;
    long wrong = 0;

    /* A PE without contexts to spare uses the default one, and waits for all slots at once. */
    shmem_ctx_t contexts[SLOTS];
    for (int slot = 0; slot < SLOTS; slot++)
        if (shmem_ctx_create(SHMEM_CTX_SERIALIZED, &contexts[slot]) != 0)
            contexts[slot] = SHMEM_CTX_DEFAULT;

    for (uint64_t block = 1; block <= BLOCKS; block++) {
        int slot = block % SLOTS;

        /* The block that was in this slot of the outbox has left it. */
        shmem_ctx_quiet(contexts[slot]);

        if (before >= 0)
            shmem_signal_wait_until(&arrived[slot], SHMEM_CMP_GE, block);
        for (int i = 0; i < LENGTH; i++)
            outbox[slot][i] = work(before >= 0 ? inbox[slot][i] : block + i, me);
        if (before >= 0)
            shmem_signal_set(&taken[slot], block, before);

        if (after < n) {
            if (block > SLOTS)
                shmem_signal_wait_until(&taken[slot], SHMEM_CMP_GE, block - SLOTS);
            shmem_ctx_uint64_put_signal_nbi(contexts[slot], inbox[slot], outbox[slot], LENGTH,
                                            &arrived[slot], block, SHMEM_SIGNAL_SET, after);
        } else {
            for (int i = 0; i < LENGTH; i++) {
                uint64_t right = block + i;
                for (int pe = 0; pe < n; pe++)
                    right = work(right, pe);
                wrong += outbox[slot][i] != right;
            }
        }
    }

    for (int slot = 0; slot < SLOTS; slot++)
        if (contexts[slot] != SHMEM_CTX_DEFAULT)
            shmem_ctx_destroy(contexts[slot]);
    if (after == n)
        printf("%d PEs passed %d blocks on; %ld values are wrong\n", n, BLOCKS, wrong);
    shmem_finalize();
    return wrong == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
