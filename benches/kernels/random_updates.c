/* Updates random words of a table that is spread over all PEs, in the manner of RandomAccess of the
 * HPC Challenge. Each update is an atomic exclusive or of 8 bytes. A second round of the same
 * updates restores the table, which is verified.
 */
#include "kernel.h"

enum { WORDS = 1 << 21, /* of a PE */ UPDATES = 1 << 20 /* of a PE, in each of two rounds */ };

static unsigned long *table; /* symmetric */

static unsigned long next(unsigned long state)
{
    return state * 6364136223846793005ul + 1442695040888963407ul;
}

static void update(long updates, int me, int n_pes)
{
    unsigned long state = 271828183ul * (me + 1);
    for (long i = 0; i < updates; i++) {
        state = next(state);
        const unsigned long word = state >> 20;
        shmem_ulong_atomic_xor(table + word % WORDS, state, word / WORDS % n_pes);
    }
    shmem_barrier_all();
}

int main(int argc, char **argv)
{
    shmem_init();
    const int me = shmem_my_pe();
    const int n_pes = shmem_n_pes();
    const long updates = share_of(UPDATES, argc, argv);
    table = symmetric(WORDS * sizeof *table);
    for (int i = 0; i < WORDS; i++)
        table[i] = i;
    shmem_barrier_all();

    const double start = now();
    update(updates, me, n_pes);
    const double first = now() - start;
    long changed = 0;
    for (int i = 0; i < WORDS; i++)
        changed += table[i] != (unsigned long)i;
    if (changed < updates / 2)
        give_up("updates were lost");
    shmem_barrier_all();
    const double again = now();
    update(updates, me, n_pes);
    const double time = first + now() - again;

    for (int i = 0; i < WORDS; i++)
        if (table[i] != (unsigned long)i)
            give_up("an update was lost");
    report_kernel(time);
    shmem_finalize();
    return 0;
}
