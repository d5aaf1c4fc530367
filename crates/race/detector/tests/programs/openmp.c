/* Threads of OpenMP get into a word and store to it, ordered by each means of OpenMP that no program of the suite has. PEs: 1 */
#include <omp.h>
#include <shmem.h>
#include <stdlib.h>

#define N 6

static long x;
static volatile long word, of_row[N], of_point[N][N];

static void get(volatile long *to) {
    shmem_long_get((long *)to, &x, 1, 0);
}

static void nest_locks(void) {
    omp_nest_lock_t lock;
    omp_init_nest_lock(&lock);
#pragma omp parallel num_threads(3)
    {
        omp_set_nest_lock(&lock);
        omp_set_nest_lock(&lock);
        get(&word);
        word += 1;
        omp_unset_nest_lock(&lock);
        omp_unset_nest_lock(&lock);
        while (!omp_test_nest_lock(&lock))
            ;
        get(&word);
        omp_unset_nest_lock(&lock);
    }
    omp_destroy_nest_lock(&lock);
}

static void dependences(void) {
    static long d __attribute__((unused)), e __attribute__((unused));
#pragma omp parallel num_threads(3)
#pragma omp single
    {
#pragma omp task depend(out : d)
        get(&word);
#pragma omp task depend(in : d) depend(out : e)
        word += 1;
#pragma omp task depend(in : e)
        get(&word);
#pragma omp task depend(inout : d) depend(inout : e)
        get(&word);
#pragma omp taskwait depend(in : d)
        word = 2;
#pragma omp task depend(mutexinoutset : d)
        get(&word);
#pragma omp task depend(mutexinoutset : d)
        get(&word);
#pragma omp task if (0) depend(inout : d)
        get(&word);
        word = 3;
        omp_depend_t object;
#pragma omp depobj(object) depend(inout : d)
#pragma omp task depend(depobj : object)
        get(&word);
#pragma omp task depend(depobj : object)
        word = 4;
#pragma omp depobj(object) destroy
    }
    word = 5;
}

static void iterations(void) {
#pragma omp parallel for num_threads(3) schedule(static, 1) ordered(1)
    for (long i = 0; i < N; i++) {
#pragma omp ordered depend(sink : i - 1)
        get(&word);
        word += 1;
#pragma omp ordered depend(source)
    }
    word = 0;
#pragma omp parallel for num_threads(3) schedule(static, 1) ordered(2)
    for (long i = 0; i < N; i++)
        for (long j = 0; j < N; j++) {
#pragma omp ordered depend(sink : i - 1, j) depend(sink : i, j - 1)
            if (i > 0)
                get(&of_point[i - 1][j]);
            get(&of_point[i][j]);
            of_point[i][j] = 1;
#pragma omp ordered depend(source)
        }
    of_point[0][0] = 0;
}

static void loops_of_tasks(void) {
#pragma omp parallel num_threads(3)
#pragma omp single
    {
        get(&word);
        get(&of_row[0]);
#pragma omp taskloop grainsize(1)
        for (int i = 0; i < N; i++) {
            get(&of_row[i]);
            if (word < 0)
                abort();
        }
        for (int i = 0; i < N; i++)
            of_row[i] = 1;
        word = 1;
#pragma omp taskloop grainsize(1) nogroup
        for (unsigned long i = 0; i < N; i++)
            get(&of_row[i]);
#pragma omp taskwait
        of_row[0] = 1;
        long sum = 0;
#pragma omp taskloop grainsize(1) reduction(+ : sum)
        for (int i = 0; i < N; i++) {
            get(&of_row[i]);
            sum += i;
        }
        if (sum != N * (N - 1) / 2)
            shmem_global_exit(2);
        of_row[1] = 1;
    }
}

static void events(void) {
#pragma omp parallel num_threads(3)
#pragma omp single
    {
        omp_event_handle_t event;
#pragma omp task detach(event)
        {
            get(&word);
            omp_fulfill_event(event);
        }
#pragma omp taskwait
        word = 1;
    }
}

static void reductions(void) {
    long sum = 0;
#pragma omp parallel num_threads(3) reduction(task, + : sum)
    {
#pragma omp single
        for (int i = 0; i < N; i++) {
#pragma omp task in_reduction(+ : sum)
            {
                get(&of_row[i]);
                sum += i;
            }
        }
    }
    if (sum != N * (N - 1) / 2)
        shmem_global_exit(3);
    for (int i = 0; i < N; i++)
        of_row[i] = 1;
}

static void critical_sections_of_two_teams(void) {
    omp_set_max_active_levels(2);
#pragma omp parallel num_threads(2)
#pragma omp parallel num_threads(2)
    {
#pragma omp critical
        {
            get(&word);
            word += 1;
        }
    }
}

static void flushes(void) {
    int is_set = 0;
#pragma omp parallel num_threads(2)
    if (omp_get_thread_num() == 0) {
        get(&word);
#pragma omp flush
#pragma omp atomic write
        is_set = 1;
    } else {
        for (int sees = 0; !sees;) {
#pragma omp atomic read
            sees = is_set;
        }
#pragma omp flush
        word = 1;
    }
}

static void ordered_atomics(void) {
    int is_set = 0;
#pragma omp parallel num_threads(2)
    if (omp_get_thread_num() == 0) {
        get(&word);
#pragma omp atomic write release
        is_set = 1;
    } else {
        for (int sees = 0; !sees;) {
#pragma omp atomic read acquire
            sees = is_set;
        }
        word = 1;
    }
}

int main(void) {
    int provided;
    shmem_init_thread(SHMEM_THREAD_MULTIPLE, &provided);
    flushes();
    ordered_atomics();
    nest_locks();
    dependences();
    iterations();
    loops_of_tasks();
    events();
    reductions();
    critical_sections_of_two_teams();
    shmem_finalize();
    return 0;
}
