/* Data, a fence and a flag, for every way to send the data and every way to send the flag. The
 * receiver reads the flag in its memory and calls no routine until it is set, so that only the
 * library's own threads or the network can make progress. argv[1] is the number of rounds. */
#include "../programs/check.h"

enum { FEW = 8, MANY = 20000, PUTS = 30 };

/* The ways to send the data. */
enum data { P, PUT, PUT_LARGE, PUT_NBI, PUTS_NBI, PUT_NBI_LARGE, IPUT, AMO, SIGNAL, DATA };
/* Each way to send the flag. */
enum flag { FLAG_P, FLAG_PUT_NBI, FLAG_AMO, FLAG_SIGNAL, FLAGS };

static int flag_static, ack, beside, data_static[MANY];
static int from[MANY];

static int words_of(enum data way) {
    return way == PUT_LARGE || way == PUT_NBI_LARGE ? MANY : way == PUTS_NBI ? PUTS : way == P || way == AMO ? 1 : FEW;
}

static void send_data(enum data way, int *to, int value, uint64_t *signal, int pe) {
    int n = words_of(way);
    for (int i = 0; i < n; i++)
        from[i] = value + i;
    switch (way) {
    case P:
        shmem_int_p(to, value, pe);
        break;
    case PUT:
    case PUT_LARGE:
        shmem_int_put(to, from, n, pe);
        break;
    case PUT_NBI:
    case PUT_NBI_LARGE:
        shmem_int_put_nbi(to, from, n, pe);
        break;
    case PUTS_NBI:
        for (int i = 0; i < n; i++)
            shmem_int_put_nbi(to + i, from + i, 1, pe);
        break;
    case IPUT:
        shmem_int_iput(to, from, 1, 1, n, pe);
        break;
    case AMO:
        shmem_int_atomic_set(to, value, pe);
        break;
    case SIGNAL:
        shmem_int_put_signal_nbi(to, from, n, signal, 1, SHMEM_SIGNAL_SET, pe);
        break;
    case DATA:
        break;
    }
}

static void send_flag(enum flag way, int *flag, uint64_t *signal, int value, int pe) {
    static int source;
    switch (way) {
    case FLAG_P:
        shmem_int_p(flag, value, pe);
        break;
    case FLAG_PUT_NBI:
        source = value;
        shmem_int_put_nbi(flag, &source, 1, pe);
        break;
    case FLAG_AMO:
        shmem_int_atomic_set(flag, value, pe);
        break;
    case FLAG_SIGNAL:
        shmem_int_put_signal(&beside, &value, 1, signal, value, SHMEM_SIGNAL_SET, pe);
        break;
    case FLAGS:
        break;
    }
}

static void spin(const int *word, int value) {
    while (__atomic_load_n(word, __ATOMIC_ACQUIRE) != value)
        sched_yield();
}

int main(int argc, char **argv) {
    int rounds = argc > 1 ? atoi(argv[1]) : 100;
    check_begin();
    int right = (check_me + 1) % check_n, left = (check_me + check_n - 1) % check_n;
    int *data_heap = check_malloc(MANY * sizeof *data_heap), *flag_heap = shmem_calloc(1, sizeof *flag_heap);
    uint64_t *signal = shmem_calloc(2, sizeof *signal);
    shmem_barrier_all();
    for (int round = 1; round <= rounds; round++) {
        enum data data = (enum data)(round % DATA);
        enum flag flag = (enum flag)(round / DATA % FLAGS);
        int *to = round & 1 ? data_heap : data_static, *at = round & 2 ? flag_heap : &flag_static;
        int value = round * 3;
        send_data(data, to, value + check_me, signal, right);
        shmem_fence();
        send_flag(flag, at, signal + 1, value, right);
        if (flag == FLAG_SIGNAL)
            while (__atomic_load_n(&signal[1], __ATOMIC_ACQUIRE) != (uint64_t)value)
                sched_yield();
        else
            spin(at, value);
        int n = words_of(data), wrong = 0;
        while (wrong < n && to[wrong] == value + left + wrong)
            wrong++;
        CHECK(wrong == n, 39, "round %d: data of way %d, flag of way %d: word %d is %d, not %d", round, data, flag, wrong, to[wrong],
              value + left + wrong);
        /* The left neighbor may overwrite them now. */
        shmem_quiet();
        shmem_int_p(&ack, round, left);
        spin(&ack, round);
    }
    shmem_free(signal);
    shmem_free(flag_heap);
    shmem_free(data_heap);
    return check_end();
}
