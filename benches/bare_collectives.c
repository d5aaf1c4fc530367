/* Collectives of 1 MiB over all PEs without the library: the same work over memory or plain sockets.
 * The floors of shmem-perf are only those of two PEs, and of one transfer.
 *
 * `bare_max_large nanoseconds` is a max-reduction. If PEs share memory, that is the memory traffic
 * that the reduction cannot avoid: in each PE's vectors, every PE copies its share of the source to
 * the destination. Otherwise a power of two of PEs reduce over plain sockets: they exchange and
 * combine halves, then halves of these, and so on, and send the results back in the reverse order.
 * Other numbers of PEs print nothing.
 *
 * Two PEs that share no memory also print `bare_broadcast64_large`, a broadcast on an active set
 * over the socket, which the receiver answers by one word; and `bare_broadcast_large`, that on a
 * team, where the root also copies its source to its destination.
 *
 * It calls only routines of OpenSHMEM 1.4, so any library can build it unchanged.
 */
#define _GNU_SOURCE
#include "plain.h"
#include <poll.h>

enum { LARGE = 128 * 1024, MOST_ROUNDS = 8 };

static long *source, *dest;
static long landed[LARGE / 2];
static int connections[MOST_ROUNDS]; /* the plain socket to the partner of each round */
static size_t at_a_time = LARGE * sizeof(long);

static void copies(int me, long count)
{
    const int n = shmem_n_pes(), share = LARGE / n, first = me * share;
    for (long i = 0; i < count; i++) {
        for (int pe = 0; pe < n; pe++) {
            long *from = shmem_ptr(source, pe), *to = shmem_ptr(dest, pe);
            memcpy(to + first, from + first, share * sizeof *to);
        }
    }
}

/* Sends `n_out` words and receives `n_in` words. While neither direction progresses, it yields the
 * CPU 20 times, and then sleeps in poll: a partner that runs on the same CPU needs it. */
static void exchange_plainly(int connection, long *from, int n_out, long *to, int n_in)
{
    char *out = (char *)from, *in = (char *)to;
    size_t unsent = n_out * sizeof *from, missing = n_in * sizeof *to;
    int idle = 0;
    while (unsent + missing > 0) {
        const ssize_t sent =
            unsent == 0 ? 0 : send(connection, out, unsent < at_a_time ? unsent : at_a_time, MSG_DONTWAIT | MSG_NOSIGNAL);
        if (sent > 0) {
            out += sent;
            unsent -= sent;
        }
        const ssize_t received =
            missing == 0 ? 0 : recv(connection, in, missing < at_a_time ? missing : at_a_time, MSG_DONTWAIT);
        if (received > 0) {
            in += received;
            missing -= received;
        }
        if (sent > 0 || received > 0) {
            idle = 0;
        } else if (idle++ < 20) {
            sched_yield();
        } else {
            struct pollfd wanted = { .fd = connection, .events = (missing ? POLLIN : 0) | (unsent ? POLLOUT : 0) };
            poll(&wanted, 1, 10);
        }
    }
}

static void plain_reductions(int me, long count)
{
    for (long i = 0; i < count; i++) {
        /* Halve the part for which this PE is responsible, and combine it with the partner's. */
        int first = 0, length = LARGE, round = 0;
        const long *own = source;
        for (int bit = 1; bit < shmem_n_pes(); bit *= 2, own = dest) {
            length /= 2;
            const int given = me & bit ? first : first + length;
            first += me & bit ? length : 0;
            exchange_plainly(connections[round++], (long *)own + given, length, landed, length);
            for (int k = 0; k < length; k++)
                dest[first + k] = own[first + k] > landed[k] ? own[first + k] : landed[k];
        }
        /* Exchange the results with the same partners in the reverse order. */
        while (round-- > 0) {
            const int upper = me >> round & 1, other = upper ? first - length : first + length;
            exchange_plainly(connections[round], dest + first, length, dest + other, length);
            first = upper ? other : first;
            length *= 2;
        }
    }
}

/* Broadcasts from PE 0, which also copies its source to its destination if it is `on_team`. */
static void plain_broadcasts(int me, long count, int on_team)
{
    for (long i = 0; i < count; i++) {
        if (me == 0) {
            exchange_plainly(connections[0], source, LARGE, NULL, 0);
            if (on_team)
                memcpy(dest, source, LARGE * sizeof *dest);
            exchange_plainly(connections[0], NULL, 0, landed, 1);
        } else {
            exchange_plainly(connections[0], NULL, 0, dest, LARGE);
            exchange_plainly(connections[0], dest, 1, NULL, 0);
        }
    }
}

static void plain_broadcasts_on_set(int me, long count)
{
    plain_broadcasts(me, count, 0);
}

static void plain_broadcasts_on_team(int me, long count)
{
    plain_broadcasts(me, count, 1);
}

static void connect_all(int me, int n)
{
    int round = 0;
    for (int bit = 1; bit < n; bit *= 2)
        connections[round++] = connect_plainly(dest, me ^ bit);
    if (n <= sysconf(_SC_NPROCESSORS_ONLN))
        at_a_time = 256 * 1024; /* so that data stay in a cache until they are received */
}

/* Returns the mean time of one of `count` rounds. All PEs call it. */
static double each_round(void (*rounds)(int me, long count), long count)
{
    shmem_barrier_all();
    const double start = now();
    rounds(shmem_my_pe(), count);
    const double lasted = now() - start;
    shmem_barrier_all();
    return lasted / count;
}

/* Prints the time of a round, after a warm-up. All PEs call it. */
static void time_of(const char *name, void (*rounds)(int me, long count), long count)
{
    each_round(rounds, count / 10 + 1);
    const double round = each_round(rounds, count);
    if (shmem_my_pe() == 0)
        report(name, round);
}

int main(void)
{
    shmem_init();
    const int me = shmem_my_pe(), n = shmem_n_pes();
    if (n <= sysconf(_SC_NPROCESSORS_ONLN))
        run_on_processor(me);
    source = symmetric(LARGE * sizeof *source);
    dest = symmetric(LARGE * sizeof *dest);
    for (int i = 0; i < LARGE; i++)
        source[i] = i + me;
    shmem_barrier_all(); /* No PE still clears memory that others write. */
    const int maps_all = shmem_ptr(dest, n - 1) != NULL && shmem_ptr(dest, 0) != NULL;
    const long count = maps_all && n == 2 ? 400 : 20;
    if (maps_all) {
        time_of("bare_max_large", copies, count);
    } else if ((n & (n - 1)) == 0) {
        connect_all(me, n);
        time_of("bare_max_large", plain_reductions, count);
        for (int i = 0; i < LARGE; i++)
            if (dest[i] != i + n - 1)
                give_up("a plain maximum is wrong");
        if (n == 2) {
            at_a_time = LARGE * sizeof(long);
            time_of("bare_broadcast64_large", plain_broadcasts_on_set, count);
            time_of("bare_broadcast_large", plain_broadcasts_on_team, count);
            for (int i = 0; i < LARGE; i++)
                if (dest[i] != i)
                    give_up("a plain broadcast is wrong");
        }
    }
    shmem_free(dest);
    shmem_free(source);
    shmem_finalize();
    return 0;
}
