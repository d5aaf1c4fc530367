/* TCP connections between PEs, without the library. */
#ifndef RUSHMEM_BENCHES_PLAIN_H
#define RUSHMEM_BENCHES_PLAIN_H

#include "timing.h"
#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

/* Connects to the other PE of a pair over the loopback interface, with TCP_NODELAY. All PEs call it
 * together; `port` is a symmetric word. */
static inline int connect_plainly(long *port, int other)
{
    const int on = 1;
    struct sockaddr_in address = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    socklen_t size = sizeof address;
    struct sockaddr *where = (struct sockaddr *)&address;

    int connection = socket(AF_INET, SOCK_STREAM, 0);
    if (shmem_my_pe() < other) {
        const int listener = connection;
        if (bind(listener, where, size) != 0 || listen(listener, 1) != 0 ||
            getsockname(listener, where, &size) != 0)
            give_up("it cannot listen on the loopback interface");
        shmem_long_p(port, address.sin_port, other);
        shmem_barrier_all();
        connection = accept(listener, NULL, NULL);
        close(listener);
    } else {
        shmem_barrier_all();
        address.sin_port = (in_port_t)*port;
        if (connect(connection, where, size) != 0)
            give_up("it cannot connect to the other PE");
    }
    shmem_barrier_all(); /* Every PE has read its word, which the next call overwrites. */
    if (setsockopt(connection, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on) != 0)
        give_up("the plain connection failed");
    return connection;
}

#endif
