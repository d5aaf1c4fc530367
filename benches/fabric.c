/* Times an OpenSHMEM library over libfabric and, for comparison (the floor), libfabric itself with the same provider.
 *
 * It runs on two PEs that share no memory: the caller sets the variables for that, and SHMEM_OFI_PROVIDER and perhaps
 * SHMEM_OFI_DOMAIN, which the floor uses too. PE i runs on the i-th processor that the job may use. PE 0 works; PE 1 waits in
 * the library, or polls the queue of the floor. Runs of the library and of the floor alternate. Each line is `name nanoseconds`, the median of RUNS runs,
 * with the quartiles in brackets. A write of the floor is complete when it is delivered (FI_DELIVERY_COMPLETE), as after
 * shmem_quiet. Both read from ordinary memory and write to symmetric memory. Compile with -lfabric.
 */
#define _GNU_SOURCE
#include "timing.h"
#include <rdma/fabric.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_rma.h>

enum {
    LARGE = 1 << 20,           /* bytes of the large transfers */
    ENOUGH = 20 * 1000 * 1000, /* nanoseconds that a loop must last to be believed */
    RUNS = 15,
    STREAM = 64,               /* writes of the floor that are in flight at once */
    NAME = 512, /* bytes of an endpoint's name */
};

struct contact {
    char name[NAME];
    uint64_t base;
    uint64_t key;
};

static char *block; /* symmetric: LARGE bytes */
static char *local; /* LARGE bytes of ordinary memory */
static char *window; /* symmetric: LARGE bytes that the floor writes to, and the word that ends it */
static struct fid_ep *endpoint;
static struct fid_cq *queue;
static fi_addr_t there;
static struct contact *contacts; /* symmetric: own and the other's */
static void *descriptor;

static void must(int code, const char *what)
{
    if (code < 0)
        give_up(what);
}

static void open_the_floor(void)
{
    const char *provider = getenv("SHMEM_OFI_PROVIDER"), *name = getenv("SHMEM_OFI_DOMAIN");
    struct fi_info *hints = fi_allocinfo(), *info;
    struct fid_fabric *fabric;
    struct fid_domain *domain;
    struct fid_av *table;
    struct fid_mr *region, *source;
    hints->caps = FI_MSG | FI_RMA;
    hints->mode = FI_CONTEXT | FI_CONTEXT2;
    hints->ep_attr->type = FI_EP_RDM;
    hints->tx_attr->op_flags = FI_DELIVERY_COMPLETE;
    hints->domain_attr->threading = FI_THREAD_SAFE;
    hints->domain_attr->control_progress = FI_PROGRESS_MANUAL;
    hints->domain_attr->data_progress = FI_PROGRESS_MANUAL;
    hints->domain_attr->mr_mode = FI_MR_LOCAL | FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY;
    if (provider != NULL)
        hints->fabric_attr->prov_name = strdup(provider);
    if (name != NULL)
        hints->domain_attr->name = strdup(name);
    must(fi_getinfo(FI_VERSION(1, 11), NULL, NULL, 0, hints, &info), "the floor has no provider");
    /* Loopback, where there are several, as ours. */
    for (struct fi_info *other = info; other != NULL; other = other->next)
        if (strcmp(other->domain_attr->name, "lo") == 0 &&
            strcmp(other->fabric_attr->prov_name, info->fabric_attr->prov_name) == 0) {
            info = other;
            break;
        }
    must(fi_fabric(info->fabric_attr, &fabric, NULL), "the floor's fabric");
    must(fi_domain(fabric, info, &domain, NULL), "the floor's domain");
    struct fi_cq_attr cq = { .format = FI_CQ_FORMAT_CONTEXT, .size = 256, .wait_obj = FI_WAIT_NONE };
    struct fi_av_attr av = { .type = FI_AV_TABLE };
    must(fi_cq_open(domain, &cq, &queue, NULL), "the floor's queue");
    must(fi_av_open(domain, &av, &table, NULL), "the floor's table");
    must(fi_endpoint(domain, info, &endpoint, NULL), "the floor's endpoint");
    must(fi_ep_bind(endpoint, &queue->fid, FI_TRANSMIT | FI_RECV), "the floor's queue");
    must(fi_ep_bind(endpoint, &table->fid, 0), "the floor's table");
    must(fi_enable(endpoint), "the floor's endpoint");
    const uint64_t all = FI_REMOTE_READ | FI_REMOTE_WRITE | FI_READ | FI_WRITE;
    must(fi_mr_reg(domain, window, LARGE + LINE, all, 0, 1, 0, &region, NULL), "the floor's memory");
    must(fi_mr_reg(domain, local, LARGE, all, 0, 2, 0, &source, NULL), "the floor's memory");
    descriptor = fi_mr_desc(source);

    const int me = shmem_my_pe();
    struct contact own = { .key = fi_mr_key(region) };
    size_t size = NAME;
    must(fi_getname(&endpoint->fid, own.name, &size), "the floor's name");
    own.base = info->domain_attr->mr_mode & FI_MR_VIRT_ADDR ? (uint64_t)window : 0;
    shmem_putmem(&contacts[me], &own, sizeof own, !me);
    contacts[me] = own;
    shmem_barrier_all();
    if (fi_av_insert(table, contacts[!me].name, 1, &there, 0, NULL) != 1)
        give_up("the floor's address");
}

/* Waits for one completion. */
static void complete(void)
{
    struct fi_cq_entry entry;
    ssize_t got;
    while ((got = fi_cq_read(queue, &entry, 1)) == -FI_EAGAIN)
        ;
    if (got != 1)
        give_up("the floor failed");
}

static void floor_move(int write, size_t bytes, uint64_t offset)
{
    const struct contact *peer = &contacts[!shmem_my_pe()];
    static struct fi_context2 context;
    struct fi_cq_entry entry;
    ssize_t code;
    while ((code = write ? fi_write(endpoint, local, bytes, descriptor, there, peer->base + offset,
                                    peer->key, &context)
                         : fi_read(endpoint, local, bytes, descriptor, there, peer->base + offset,
                                   peer->key, &context)) == -FI_EAGAIN)
        (void)fi_cq_read(queue, &entry, 0);
    must((int)code, "the floor failed");
    complete();
}

/* Writes as fast as the queue takes them, and waits for all in the end. */
static void floor_stream8(long count)
{
    const struct contact *peer = &contacts[!shmem_my_pe()];
    static struct fi_context2 contexts[STREAM];
    struct fi_cq_entry entries[STREAM];
    long started = 0, ended = 0;
    while (ended < count) {
        ssize_t code = -FI_EAGAIN;
        if (started < count && started - ended < STREAM)
            code = fi_write(endpoint, local, 8, descriptor, there, peer->base, peer->key,
                            &contexts[started % STREAM]);
        if (code == 0) {
            started++;
            continue;
        }
        if (code != -FI_EAGAIN)
            give_up("the floor failed");
        const ssize_t got = fi_cq_read(queue, entries, STREAM);
        if (got > 0)
            ended += got;
        else if (got != -FI_EAGAIN)
            give_up("the floor failed");
    }
}

static void floor_write8(long count)
{
    while (count-- > 0)
        floor_move(1, 8, 0);
}

static void floor_read8(long count)
{
    while (count-- > 0)
        floor_move(0, 8, 0);
}

static void floor_write_large(long count)
{
    while (count-- > 0)
        floor_move(1, LARGE, 0);
}

static void floor_read_large(long count)
{
    while (count-- > 0)
        floor_move(0, LARGE, 0);
}

static void put8_quiet(long count)
{
    while (count-- > 0) {
        shmem_putmem(block, local, 8, 1);
        shmem_quiet();
    }
}

static void put8_nbi(long count)
{
    while (count-- > 0)
        shmem_putmem_nbi(block, local, 8, 1);
    shmem_quiet();
}

static void get8(long count)
{
    while (count-- > 0)
        shmem_getmem(local, block, 8, 1);
}

static void put_large_quiet(long count)
{
    while (count-- > 0) {
        shmem_putmem(block, local, LARGE, 1);
        shmem_quiet();
    }
}

static void get_large(long count)
{
    while (count-- > 0)
        shmem_getmem(local, block, LARGE, 1);
}

static void add8_fetch(long count)
{
    while (count-- > 0)
        (void)shmem_long_atomic_fetch_add((long *)block, 1, 1);
}

static const struct {
    const char *name, *floor_name;
    void (*ours)(long), (*floor)(long);
} ROWS[] = {
    { "put8_quiet", "floor_write8", put8_quiet, floor_write8 },
    { "put8_nbi", "floor_stream8", put8_nbi, floor_stream8 },
    { "get8", "floor_read8", get8, floor_read8 },
    { "put_large_quiet", "floor_write_large", put_large_quiet, floor_write_large },
    { "get_large", "floor_read_large", get_large, floor_read_large },
    { "fetch_add", "floor_read8_again", add8_fetch, floor_read8 },
};
enum { N_ROWS = sizeof ROWS / sizeof *ROWS };

static int ascending(const void *a, const void *b)
{
    const double left = *(const double *)a, right = *(const double *)b;
    return (left > right) - (left < right);
}

static void report_runs(const char *name, double *runs)
{
    qsort(runs, RUNS, sizeof *runs, ascending);
    printf("%s %.1f [%.1f %.1f]\n", name, runs[RUNS / 2], runs[RUNS / 4], runs[RUNS - 1 - RUNS / 4]);
    fflush(stdout);
}

int main(void)
{
    shmem_init();
    const int me = one_of_two();
    block = symmetric(LARGE);
    contacts = symmetric(2 * sizeof *contacts);
    local = aligned_alloc(4096, LARGE);
    window = symmetric(LARGE + LINE);
    if (local == NULL)
        give_up("there is no memory left");
    memset(local, 1, LARGE);
    shmem_barrier_all();
    open_the_floor();
    shmem_barrier_all();

    volatile long *turn = (volatile long *)(window + LARGE);
    static double ours[N_ROWS][RUNS], floors[N_ROWS][RUNS];
    for (long run = 0; run < RUNS; run++)
        for (int row = 0; row < N_ROWS; row++) {
            if (me == 0)
                ours[row][run] = each(ROWS[row].ours, ENOUGH);
            shmem_barrier_all();
            if (me == 0) {
                floors[row][run] = each(ROWS[row].floor, ENOUGH);
                *(long *)local = run * N_ROWS + row + 1;
                floor_move(1, 8, LARGE);
            } else {
                struct fi_cq_entry entry;
                while (*turn != run * N_ROWS + row + 1)
                    (void)fi_cq_read(queue, &entry, 1);
            }
            shmem_barrier_all();
        }
    for (int row = 0; me == 0 && row < N_ROWS; row++) {
        report_runs(ROWS[row].name, ours[row]);
        report_runs(ROWS[row].floor_name, floors[row]);
    }
    shmem_finalize();
    return 0;
}
