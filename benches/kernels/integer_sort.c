/* Ranks integer keys as the kernel IS of the NAS Parallel Benchmarks does: each iteration counts
 * the keys of each bucket, assigns consecutive buckets to PEs, sends the keys to their PEs, and
 * ranks them there. It is written from the description in NAS report RNR-94-007.
 *
 * `cargo xtask bench-races` runs this program because it loads and stores private and symmetric
 * memory at random addresses, and has few long puts, and collectives.
 */
#include "kernel.h"

enum {
    KEYS = 1 << 20, /* of a PE */
    LARGEST = 1 << 17,
    BUCKETS = 1 << 9,
    KEYS_OF_A_BUCKET = LARGEST / BUCKETS,
    ITERATIONS = 10,
    MOST_PES = 64
};

static int keys[KEYS];
static int sorted[KEYS];               /* by bucket, the source of the puts */
static int received[2 * KEYS];         /* symmetric, as all static data */
static long counts[BUCKETS];           /* of this PE */
static long all_counts[BUCKETS];       /* of all PEs */
static long starts[MOST_PES];          /* index in `received` of the first key from each PE */
static long arriving[MOST_PES];        /* number of keys from each PE */
static long sending[MOST_PES];         /* number of keys to each PE */
static int ranks[LARGEST];
static int first_bucket[MOST_PES + 1]; /* of each PE */

static void make_keys(int me)
{
    unsigned long state = 314159265ul + 271828183ul * (unsigned long)me;
    for (int i = 0; i < KEYS; i++) {
        unsigned long sum = 0;
        for (int part = 0; part < 4; part++) {
            state = state * 6364136223846793005ul + 1442695040888963407ul;
            sum += state >> 47; /* 17 bits */
        }
        keys[i] = (int)(sum / 4);
    }
}

static void count(void)
{
    memset(counts, 0, sizeof counts);
    for (int i = 0; i < KEYS; i++)
        counts[keys[i] / KEYS_OF_A_BUCKET]++;
}

static void sort_by_bucket(void)
{
    static long next[BUCKETS];
    for (long bucket = 0, start = 0; bucket < BUCKETS; start += counts[bucket++])
        next[bucket] = start;
    for (int i = 0; i < KEYS; i++)
        sorted[next[keys[i] / KEYS_OF_A_BUCKET]++] = keys[i];
}

/* Assigns consecutive buckets to each PE, with about the same number of keys. */
static void share_out(int n_pes)
{
    const double part = (double)KEYS;
    long before = 0;
    int pe = 0;
    first_bucket[0] = 0;
    for (int bucket = 0; bucket < BUCKETS; bucket++) {
        while (pe + 1 < n_pes && (double)before >= part * (pe + 1))
            first_bucket[++pe] = bucket;
        before += all_counts[bucket];
    }
    while (pe < n_pes)
        first_bucket[++pe] = BUCKETS;
}

/* Sends all keys to the PEs of their buckets. Returns the number of keys that this PE receives. */
static long exchange(int me, int n_pes)
{
    for (int pe = 0; pe < n_pes; pe++) {
        sending[pe] = 0;
        for (int bucket = first_bucket[pe]; bucket < first_bucket[pe + 1]; bucket++)
            sending[pe] += counts[bucket];
    }
    static long sync[SHMEM_ALLTOALL_SYNC_SIZE];
    for (int i = 0; i < SHMEM_ALLTOALL_SYNC_SIZE; i++)
        sync[i] = SHMEM_SYNC_VALUE;
    shmem_barrier_all(); /* All PEs have initialized `sync`. */
    shmem_alltoall64(arriving, sending, 1, 0, 0, n_pes, sync);
    long total = 0;
    for (int pe = 0; pe < n_pes; total += arriving[pe++])
        starts[pe] = total;
    if (total > 2 * KEYS)
        give_up("more keys arrive than there is room for");
    shmem_barrier_all(); /* All PEs have computed where the keys of each PE begin. */
    long from = 0;
    for (int pe = 0; pe < n_pes; from += sending[pe++])
        shmem_int_put(received + shmem_long_g(starts + me, pe), sorted + from, sending[pe], pe);
    shmem_barrier_all(); /* All keys have arrived. */
    return total;
}

/* Computes the rank of each received key among those of this PE. */
static void rank_received(long arrived)
{
    memset(ranks, 0, sizeof ranks);
    for (long i = 0; i < arrived; i++)
        ranks[received[i]]++;
    for (int key = 1; key < LARGEST; key++)
        ranks[key] += ranks[key - 1];
}

int main(void)
{
    shmem_init();
    const int me = shmem_my_pe();
    const int n_pes = shmem_n_pes();
    if (n_pes > MOST_PES)
        give_up("it takes 64 PEs at most");
    make_keys(me);
    shmem_barrier_all();

    long arrived = 0;
    const double start = now();
    for (int iteration = 0; iteration < ITERATIONS; iteration++) {
        keys[iteration] = iteration;
        keys[iteration + ITERATIONS] = LARGEST - 1 - iteration;
        count();
        sort_by_bucket();
        sum_of_all(all_counts, counts, BUCKETS);
        share_out(n_pes);
        arrived = exchange(me, n_pes);
        rank_received(arrived);
    }
    const double time = now() - start;

    const int low = first_bucket[me] * KEYS_OF_A_BUCKET;
    const int end = first_bucket[me + 1] * KEYS_OF_A_BUCKET;
    for (long i = 0; i < arrived; i++)
        if (received[i] < low || received[i] >= end)
            give_up("a key is on the wrong PE");
    static long total, own;
    own = ranks[LARGEST - 1];
    sum_of_all(&total, &own, 1);
    if (own != arrived || total != (long)KEYS * n_pes)
        give_up("the ranks are wrong");
    report_kernel(time);
    shmem_finalize();
    return 0;
}
