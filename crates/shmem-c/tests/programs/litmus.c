/* Litmus tests under stress: store buffering and message passing between pairs of PEs, with every
 * ordering of the standard. */
#include "check.h"

/* If each PE has a processor and stores to the other's memory, many rounds find rare orders. With
 * more PEs, or over a network, a round takes long, so there are fewer. */
enum { ROUNDS = 1500, FEW_PES = 2, ROUNDS_OF_FEW = 5000 };

static int peer;
static long rounds;
static long *x, *y, *turn;

/* Lets both PEs of a pair start a round together. A barrier would order more than the test
 * allows. */
static void together(long round) {
    shmem_long_atomic_set(turn, round, peer);
    while (!shmem_long_test(turn, SHMEM_CMP_GE, round))
        sched_yield();
}

/* Store buffering: each PE writes its word on the other PE, calls quiet and reads the other's word.
 * At least one must read the new value. */
static void store_buffering(int by_amo) {
    long *seen = check_malloc(rounds * sizeof *seen);
    memset(x, 0, rounds * sizeof *x);
    *turn = 0;
    shmem_barrier_all();
    int low = check_me < peer;
    for (long i = 0; i < rounds; i++) {
        together(i + 1);
        /* x is on the lower PE of the pair, y on the higher one; each PE writes the word on its
         * peer. */
        long *write = low ? &y[i] : &x[i], *read = low ? &x[i] : &y[i];
        if (by_amo) {
            shmem_long_atomic_set(write, 1, peer);
            shmem_quiet();
            seen[i] = shmem_long_atomic_fetch(read, check_me);
        } else {
            shmem_long_p(write, 1, peer);
            shmem_quiet();
            seen[i] = shmem_long_g(read, check_me);
        }
    }
    shmem_barrier_all();
    if (peer != check_me) {
        long *theirs = malloc(rounds * sizeof *theirs);
        shmem_long_get(theirs, seen, rounds, peer);
        long both_old = 0;
        for (long i = 0; i < rounds; i++)
            both_old += !seen[i] && !theirs[i];
        CHECK(both_old == 0, 40, "store buffering %s quiet: both read the old value %ld times", by_amo ? "AMO" : "put", both_old);
        free(theirs);
    }
    memset(y, 0, rounds * sizeof *y);
    shmem_barrier_all();
    shmem_free(seen);
}

enum passing { PUT_FENCE_P, NBI_FENCE_AMO, P_QUIET_P, STORE_FENCE_P, PUT_SIGNAL, AMO_FENCE_SIGNAL, PASSINGS };

/* Message passing: the lower PE writes two words, then a flag. If the higher PE reads the flag, it
 * must read the words. */
static void message_passing(enum passing how) {
    uint64_t *signal = shmem_calloc(1, sizeof *signal);
    *turn = 0;
    x[0] = x[1] = 0;
    shmem_barrier_all();
    long stale = 0;
    for (long i = 1; i <= rounds; i++) {
        if (check_me <= peer) {
            long pair[2] = {i, -i}, *there = shmem_ptr(x, peer);
            switch (how) {
            case PUT_FENCE_P:
                shmem_long_put(x, pair, 2, peer);
                shmem_fence();
                shmem_long_p(y, i, peer);
                break;
            case NBI_FENCE_AMO:
                shmem_long_put_nbi(x, pair, 2, peer);
                shmem_fence();
                shmem_long_atomic_set(y, i, peer);
                shmem_quiet();
                break;
            case P_QUIET_P:
                shmem_long_p(&x[0], i, peer), shmem_long_p(&x[1], -i, peer);
                shmem_quiet();
                shmem_long_p(y, i, peer);
                break;
            case STORE_FENCE_P:
                if (there)
                    ((volatile long *)there)[0] = i, ((volatile long *)there)[1] = -i;
                else
                    shmem_long_put(x, pair, 2, peer);
                shmem_fence();
                shmem_long_p(y, i, peer);
                break;
            case PUT_SIGNAL:
                shmem_long_put_signal(x, pair, 2, signal, (uint64_t)i, SHMEM_SIGNAL_SET, peer);
                break;
            case AMO_FENCE_SIGNAL:
                shmem_long_atomic_set(&x[0], i, peer), shmem_long_atomic_set(&x[1], -i, peer);
                shmem_fence();
                shmem_signal_set(signal, (uint64_t)i, peer);
                break;
            case PASSINGS:
                break;
            }
        }
        if (check_me >= peer) {
            if (how == PUT_SIGNAL || how == AMO_FENCE_SIGNAL)
                shmem_signal_wait_until(signal, SHMEM_CMP_EQ, (uint64_t)i);
            else if (i % 2)
                shmem_long_wait_until(y, SHMEM_CMP_EQ, i);
            else
                while (!shmem_long_test(y, SHMEM_CMP_EQ, i))
                    sched_yield();
            stale += x[0] != i || x[1] != -i;
            shmem_long_p(turn, i, peer);
        }
        if (check_me <= peer)
            shmem_long_wait_until(turn, SHMEM_CMP_EQ, i);
    }
    CHECK(stale == 0, how == PUT_SIGNAL ? 44 : 39, "message passing, way %d: %ld of %ld messages came late", how, stale, rounds);
    shmem_barrier_all();
    y[0] = 0;
    shmem_barrier_all();
    shmem_free(signal);
}

int main(void) {
    check_begin();
    peer = (check_me ^ 1) < check_n ? check_me ^ 1 : check_me;
    x = shmem_calloc(ROUNDS_OF_FEW, sizeof *x);
    y = shmem_calloc(ROUNDS_OF_FEW, sizeof *y);
    rounds = check_n <= FEW_PES && shmem_ptr(x, peer) ? ROUNDS_OF_FEW : ROUNDS;
    turn = shmem_calloc(1, sizeof *turn);
    for (int by_amo = 0; by_amo < 2; by_amo++)
        store_buffering(by_amo);
    for (int how = 0; how < PASSINGS; how++)
        message_passing((enum passing)how);
    shmem_free(turn);
    shmem_free(y);
    shmem_free(x);
    return check_end();
}
