/* Times the operations of an OpenSHMEM library between PEs that share no memory and, for comparison, a plain socket.
 *
 * It runs on two PEs of one machine that communicate only by TCP over the loopback interface: the caller sets the
 * variables for that, and the program checks it. PE i runs on the i-th processor that the job may use. PE 0 works while PE 1
 * waits in the library, which some implementations need. The program prints one line `name nanoseconds` for each row, except
 * rows whose names end in another unit: rate_million_per_s and bulk_gb_per_s. It calls only routines of OpenSHMEM 1.4.
 *
 * The floor rows show the time that the kernel itself takes, with a TCP connection between the same two processes and
 * TCP_NODELAY. Both ends poll for small messages. Large messages form a stream with one answer at its end, which is read and
 * written by calls that sleep.
 */
#define _GNU_SOURCE
#include "plain.h"

enum {
    LARGE = 1 << 20,           /* bytes of the large transfers */
    WORDS = LARGE / 8,         /* words that the small puts walk through */
    ENOUGH = 50 * 1000 * 1000, /* nanoseconds that a loop must last to be believed */
    ROUNDS = 2000,             /* of a ping-pong: both PEs must know the number */
    BLOCKS = 200,              /* LARGE bytes each, that the plain socket carries */
};

static long *block;    /* symmetric: LARGE bytes */
static long *flag;     /* symmetric: the flag of the ping-pong */
static long *local;    /* LARGE bytes of ordinary memory */
static int connection; /* the plain socket to the other PE */

static void put8_quiet(long count)
{
    for (long i = 0; i < count; i++) {
        shmem_putmem(block, local, 8, 1);
        shmem_quiet();
    }
}

static void get8(long count)
{
    for (long i = 0; i < count; i++)
        shmem_getmem(local, block, 8, 1);
}

static void put8_nbi(long count)
{
    for (long i = 0; i < count; i++)
        shmem_putmem_nbi(block + i % WORDS, local + i % WORDS, 8, 1);
    shmem_quiet();
}

static void put_large_quiet(long count)
{
    for (long i = 0; i < count; i++) {
        shmem_putmem(block, local, LARGE, 1);
        shmem_quiet();
    }
}

static void pingpong(int me, long count)
{
    for (long round = 1; round <= count; round++) {
        if (me == 0)
            shmem_long_p(flag, round, 1);
        shmem_long_wait_until(flag, SHMEM_CMP_EQ, round);
        if (me == 1)
            shmem_long_p(flag, round, 0);
    }
}

/* Bytes that have left through the loopback interface, whoever sent them. */
static double carried(void)
{
    double bytes;
    FILE *counter = fopen("/sys/class/net/lo/statistics/tx_bytes", "r");
    if (counter == NULL || fscanf(counter, "%lf", &bytes) != 1)
        give_up("it cannot read the counter of the loopback interface");
    fclose(counter);
    return bytes;
}

/* A path through memory would be fast and wrong here. */
static void check_the_path(void)
{
    const int puts = 16;
    const double before = carried();
    put_large_quiet(puts);
    if (carried() - before < (double)puts * LARGE)
        give_up("its puts do not go through the loopback interface");
}

static void floor_round_trip(int me, long count)
{
    for (long round = 0; round < count; round++) {
        move_all(me == 0 ? send_some : recv, connection, local, 8, MSG_DONTWAIT);
        move_all(me == 0 ? recv : send_some, connection, local, 8, MSG_DONTWAIT);
    }
}

static void floor_large(int me, long count)
{
    for (long i = 0; i < count; i++)
        move_all(me == 0 ? send_some : recv, connection, local, LARGE, 0);
    move_all(me == 0 ? recv : send_some, connection, local, 1, 0);
}

int main(void)
{
    shmem_init();
    const int me = one_of_two();

    block = symmetric(LARGE);
    char *words = symmetric(2 * LINE);
    flag = (long *)words;
    long *done = (long *)(words + LINE);
    local = aligned_alloc(4096, LARGE);
    if (local == NULL)
        give_up("there is no memory left");
    memset(local, 1, LARGE);
    shmem_barrier_all();

    if (me == 0) {
        check_the_path();
        report("put8_quiet", each(put8_quiet, ENOUGH));
        report("get8", each(get8, ENOUGH));
        report("rate_million_per_s", 1e3 / each(put8_nbi, ENOUGH));
        report("put_large_quiet", each(put_large_quiet, ENOUGH));
        shmem_long_p(done, 1, 1);
        shmem_quiet();
    } else {
        shmem_long_wait_until(done, SHMEM_CMP_EQ, 1);
    }
    const double round = each_round(pingpong, ROUNDS);
    connection = connect_plainly(flag, 1 - me);
    const double floor_round = each_round(floor_round_trip, ROUNDS);
    const double large = each_round(floor_large, BLOCKS);
    if (me == 0) {
        report("pingpong", round);
        report("floor_round_trip", floor_round);
        report("floor_large", large);
        report("bulk_gb_per_s", LARGE / large);
    }

    close(connection);
    free(local);
    shmem_free(words);
    shmem_free(block);
    shmem_finalize();
    return 0;
}
