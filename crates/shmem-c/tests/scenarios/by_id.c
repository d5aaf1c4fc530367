/* A job whose processes join by a unique id. `by_id N HOW` makes the id, starts the other
 * processes, and is PE 0 itself.
 *
 * The other processes are `by_id RANK N HOW`, with the id in TEST_ID. HOW names the failure, or
 * "ok". Processes of odd ranks start in the network namespace TEST_NETNS, if it is set.
 */
#include "../programs/check.h"

#include <shmemx.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

static long in_data = 7;
static long in_bss[3];

static shmemx_uniqueid_t id;

static int is(const char *how, const char *word) { return strncmp(how, word, strlen(word)) == 0; }

/* Initializes with this rank, or with a wrong one if HOW requests that. */
static void join(int rank, int n, const char *how) {
    shmemx_init_attr_t attr = SHMEMX_INIT_ATTR_INITIALIZER;
    if ((is(how, "late") || is(how, "second") || is(how, "count")) && rank == n - 1)
        usleep(700 * 1000);
    if (is(how, "second") && rank == n - 1)
        rank = n - 2;
    if (is(how, "count") && rank == n - 1)
        n++;
    if (is(how, "threads"))
        attr.requested = SHMEM_THREAD_MULTIPLE;
    if (is(how, "flags"))
        shmemx_init_attr(8, &attr);
    if (is(how, "level"))
        attr.requested = 77;
    if (is(how, "rank"))
        rank = n;
    if (shmemx_set_attr_uniqueid_args(rank, n, &id, &attr) != 0)
        exit(90);
    if (shmemx_init_attr(SHMEMX_INIT_WITH_UNIQUEID, &attr) != 0)
        exit(91);
    if (attr.provided != attr.requested)
        exit(92);
}

/* Accesses static data and the heap of the next PE, also by pointers if the PEs share memory. */
static void use(int n) {
    int me = shmem_my_pe(), next = (me + 1) % n, before = (me + n - 1) % n;
    CHECK(shmem_n_pes() == n, 0, "there are %d PEs", shmem_n_pes());
    long *heap = (long *)check_malloc(sizeof(long));
    CHECK(in_data == 7, 0, "a static variable is %ld", in_data);
    shmem_barrier_all();
    shmem_long_p(&in_data, me + 100, next);
    shmem_long_p(&in_bss[2], me + 200, next);
    shmem_long_p(heap, me + 300, next);
    shmem_barrier_all();
    CHECK(in_data == before + 100 && in_bss[2] == before + 200 && *heap == before + 300, 0, "puts of PE %d", before);
    if (getenv("TEST_SHARED"))
        CHECK(shmem_ptr(&in_bss, next) && shmem_ptr(heap, next), 0, "PE %d shares no memory", next);
    shmem_barrier_all();
    in_data = 7;
    shmem_free(heap);
}

static void fail(int rank, const char *how) {
    if (!is(how, "dies") && !is(how, "exits") && !is(how, "global") && !is(how, "driver-dies"))
        return;
    shmem_barrier_all();
    if (!is(how, "driver") && rank == atoi(strchr(how, '-') + 1)) {
        if (is(how, "dies"))
            raise(SIGKILL);
        if (is(how, "exits"))
            exit(3);
        shmem_global_exit(7);
    }
    for (;;)
        shmem_barrier_all();
}

static int run(int rank, int n, const char *how) {
    join(rank, n, how);
    check_start();
    use(n);
    fail(rank, how);
    if (is(how, "again") || is(how, "another")) {
        shmem_finalize();
        if (is(how, "another"))
            shmemx_get_uniqueid(&id);
        join(rank, n, how);
        use(n);
    }
    return check_end();
}

static void start(const char *self, int rank, int n, const char *how) {
    char rank_text[20], n_text[20], *netns = getenv("TEST_NETNS");
    snprintf(rank_text, sizeof rank_text, "%d", rank);
    snprintf(n_text, sizeof n_text, "%d", n);
    if (fork() != 0)
        return;
    setenv("TEST_ID", is(how, "garbage") ? "no id" : id.text, 1);
    if (is(how, "secret") && rank == n - 1) {
        char *text = getenv("TEST_ID");
        text[12] = text[12] == 'A' ? 'B' : 'A';
    }
    if (is(how, "forks"))
        _exit(run(rank, n, how));
    if (netns && rank % 2)
        execlp("ip", "ip", "netns", "exec", netns, self, rank_text, n_text, how, NULL);
    else
        execl(self, self, rank_text, n_text, how, NULL);
    _exit(99);
}

int main(int argc, char **argv) {
    if (argc == 4) {
        strncpy(id.text, getenv("TEST_ID"), sizeof id.text);
        return run(atoi(argv[1]), atoi(argv[2]), argv[3]);
    }
    int n = atoi(argv[1]);
    const char *how = argv[2];
    if (shmemx_get_uniqueid(&id) != 0)
        return 93;
    if (is(how, "stale")) {
        /* The process that made the id is gone. */
        setenv("TEST_ID", id.text, 1);
        execl(argv[0], argv[0], "1", "2", "ok", NULL);
    }
    int is_driver = is(how, "driver");
    for (int rank = is_driver ? 0 : 1; rank < n - is(how, "absent"); rank++)
        start(argv[0], rank, n, how);
    if (is(how, "driver-dies")) {
        usleep(500 * 1000);
        return 5;
    }
    int status = is_driver ? 0 : run(0, n, how), worst = 0;
    while (wait(&status) > 0)
        if (status != 0)
            worst = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    return worst;
}
