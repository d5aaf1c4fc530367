/* Mistakes with registered buffers, and limits that are reached. argv[1] names one. */
#include <fcntl.h>
#include <pthread.h>
#include <shmemx.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

enum { BYTES = 24000 };

static void *register_by_thread(void *bytes) {
    return shmemx_buffer_register(bytes, BYTES, 0);
}

/* Opens files until the limit is reached. */
static void open_all(void) {
    struct rlimit limit;
    getrlimit(RLIMIT_NOFILE, &limit);
    limit.rlim_cur = 200;
    setrlimit(RLIMIT_NOFILE, &limit);
    while (open("/dev/null", O_RDONLY) >= 0)
        ;
}

int main(int argc, char **argv) {
    const char *how = argc > 1 ? argv[1] : "";
    shmem_init();
    int me = shmem_my_pe(), right = (me + 1) % shmem_n_pes();
    char *pages = mmap(NULL, 2 * BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    memset(pages, 1, 2 * BYTES);
    long options = strstr(how, "pinned") ? SHMEMX_BUFFER_PINNED : 0;
    size_t nbytes = strcmp(how, "sizes") == 0 ? BYTES + 8 * (size_t)me : BYTES;
    char *use = shmemx_buffer_register(pages, nbytes, options);
    if (!use)
        shmem_global_exit(2);

    if (strcmp(how, "beyond") == 0 || strcmp(how, "beyond_pinned") == 0)
        shmem_putmem(use + BYTES - 8, &me, 16, right);
    if (strcmp(how, "beyond_at_pe") == 0)
        shmem_putmem(use, &me, 4, shmem_n_pes());
    if (strcmp(how, "free_pinned") == 0)
        shmem_free(use);
    if (strcmp(how, "free") == 0)
        shmem_free(pages);
    if (strcmp(how, "realloc_pinned") == 0)
        shmem_realloc(use, 10);
    if (strcmp(how, "others") == 0)
        shmemx_buffer_unregister(me == 1 ? pages + 8 : pages);
    if (strcmp(how, "malloc_meanwhile") == 0) {
        if (me == 1)
            shmem_malloc(64);
        else
            shmemx_buffer_register(pages + BYTES, 8, 0);
    }
    if (strcmp(how, "no_end") == 0)
        printf("refused %d\n", !shmemx_buffer_register(pages + BYTES, SIZE_MAX - (size_t)(pages + BYTES), 0));
    if (strcmp(how, "option") == 0) {
        long unknown = me == 2 ? SHMEMX_BUFFER_PINNED << 1 : 0;
        printf("refused %d\n", !shmemx_buffer_register(pages + BYTES, BYTES, unknown));
    }
    if (strcmp(how, "options") == 0)
        shmemx_buffer_register(pages + BYTES, BYTES, me == 0 ? SHMEMX_BUFFER_PINNED : 0);
    if (strncmp(how, "protected", 9) == 0) {
        /* Two buffers in one run, to which the program denies itself all access. */
        pages[0] = (char)me;
        int is_right = shmemx_buffer_register(pages + BYTES, BYTES - 8, 0) != NULL;
        mprotect(pages, 2 * BYTES, PROT_NONE);
        if (strcmp(how, "protected_fork") == 0) {
            pid_t child = fork();
            if (child == 0)
                _exit(0);
            int status = -1;
            waitpid(child, &status, 0);
            is_right &= status == 0;
            mprotect(pages, 2 * BYTES, PROT_READ | PROT_WRITE);
        }
        if (strcmp(how, "protected_unregister") == 0)
            is_right &= !shmemx_buffer_unregister(pages) && !shmemx_buffer_unregister(pages + BYTES);
        if (strcmp(how, "protected_init") == 0) {
            shmem_finalize();
            shmem_init();
        }
        printf("kept %d\n", is_right && pages[0] == me && pages[2 * BYTES - 9] == 1);
    }
    if (strcmp(how, "lost_in_part") == 0) {
        char *own = mmap(NULL, 3 * BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        shmemx_buffer_register(own, BYTES, 0);
        shmemx_buffer_register(own + BYTES, BYTES, 0);
        munmap(own, 4096);
        int is_refused = !shmemx_buffer_register(own + 2 * BYTES, BYTES, 0);
        shmemx_buffer_unregister(own);
        int is_moved = shmemx_buffer_register(own + 2 * BYTES, BYTES, 0) != NULL;
        printf("refused %d, moved %d\n", is_refused, is_moved);
    }
    if (strcmp(how, "lost") == 0) {
        /* On PE 0, two buffers are in one run, which it unmaps. The others still put to the first one. */
        shmemx_heap_info_t before, after;
        shmemx_heap_info(&before);
        char *second = me == 0 ? pages + BYTES
                               : mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        shmemx_buffer_register(second, BYTES, 0);
        if (me == 0)
            munmap(pages, 2 * BYTES);
        shmemx_buffer_unregister(second);

        char *blocks[] = {shmem_calloc(BYTES, 1), shmem_calloc(2 * BYTES, 1), shmem_calloc(4 * BYTES, 1)};
        int is_kept = 1;
        if (me != 0) {
            memset(pages, 7, BYTES);
            shmem_putmem(pages, pages, BYTES, 0);
        }
        shmem_barrier_all();
        for (int i = 0; i < 3; i++) {
            for (int j = 0; j < BYTES << i; j++)
                is_kept &= blocks[i][j] == 0;
            shmem_free(blocks[i]);
        }
        shmemx_buffer_unregister(pages);
        shmemx_heap_info(&after);
        printf("kept %d, freed %d\n", is_kept, after.used < before.used);
    }
    if (strcmp(how, "descriptors") == 0) {
        open_all();
        shmem_barrier_all();
        int is_refused = !shmemx_buffer_register(pages + BYTES, BYTES, 0);
        shmem_int_p((int *)pages, me, right);
        shmem_barrier_all();
        int is_right = *(int *)pages == (me + shmem_n_pes() - 1) % shmem_n_pes();
        printf("refused %d, got %d, ended %d\n", is_refused, is_right, !shmemx_buffer_unregister(pages));
    }
    if (strcmp(how, "descriptors_at_init") == 0) {
        shmem_finalize();
        open_all();
        shmem_init();
    }
    if (strcmp(how, "held_lock") == 0) {
        long *lock = (long *)pages;
        memset(pages, 0, sizeof *lock);
        shmem_barrier_all();
        if (me == 1)
            shmem_set_lock(lock);
        int is_refused = !shmemx_buffer_register(pages + BYTES, BYTES, 0);
        if (me == 1)
            shmem_clear_lock(lock);
        int is_moved = shmemx_buffer_register(pages + BYTES, BYTES, 0) != NULL;
        shmem_set_lock(lock);
        shmem_clear_lock(lock);
        printf("refused %d, moved %d\n", is_refused, is_moved);
    }
    if (strcmp(how, "held_lock_at_end") == 0) {
        memset(pages, 0, 16);
        shmem_barrier_all();
        shmem_set_lock((long *)(pages + 8));
        shmem_clear_lock((long *)(pages + 8));
        shmem_barrier_all();
        if (me == 2)
            shmem_set_lock((long *)(pages + 8));
        shmemx_buffer_unregister(pages);
    }
    if (strcmp(how, "beside_stack") == 0) {
        /* One mapping: a stack of a thread, and behind it memory for a buffer. */
        const size_t stack_bytes = 1 << 19;
        char *stack =
            mmap(NULL, stack_bytes + BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        pthread_attr_t with_stack;
        pthread_attr_init(&with_stack);
        pthread_attr_setstack(&with_stack, stack, stack_bytes);
        char *const places[] = {stack + stack_bytes, stack + stack_bytes / 2};
        for (int i = 0; i < 2; i++) {
            pthread_t thread;
            void *registered = NULL;
            pthread_create(&thread, &with_stack, register_by_thread, places[i]);
            pthread_join(thread, &registered);
            printf("%s %d\n", i ? "stack" : "beside", registered != NULL);
        }
    }
    if (strcmp(how, "reallocated") == 0) {
        char *own = malloc(20 * BYTES), *block = shmem_malloc(80 * BYTES);
        shmemx_buffer_register(own, 20 * BYTES, 0);
        char *after = shmem_malloc(80 * BYTES);
        memset(block, 1, 80 * BYTES), memset(after, 1, 80 * BYTES), memset(own, 2, 20 * BYTES);
        char *larger = realloc(own, 60 * BYTES);
        int is_kept = larger[20 * BYTES - 1] == 2;
        memset(larger, 3, 60 * BYTES);
        for (int i = 0; i < 80 * BYTES; i++)
            is_kept &= block[i] == 1 && after[i] == 1;
        printf("kept %d\n", is_kept);
    }
    if (strcmp(how, "unmapped") == 0) {
        munmap(pages, 2 * BYTES);
        shmem_barrier_all();
        printf("unregistered %d\n", shmemx_buffer_unregister(pages));
    }
    if (strcmp(how, "unmapped_and_mapped") == 0) {
        munmap(pages, 2 * BYTES);
        char *again = mmap(pages, 2 * BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
        memset(again, 7, 2 * BYTES);
    }
    if (strcmp(how, "one_page_unmapped") == 0) {
        /* Two buffers in one run of pages, of which one is unmapped. The other one stays. */
        shmemx_buffer_register(pages + BYTES, BYTES, 0);
        munmap(pages, 4096);
        shmemx_buffer_unregister(pages);
        shmem_int_p((int *)(pages + 2 * BYTES - 4), me, right);
        shmem_barrier_all();
        printf("got %d\n", *(int *)(pages + 2 * BYTES - 4) == (me + shmem_n_pes() - 1) % shmem_n_pes());
    }
    shmem_finalize();
    if (strcmp(how, "unmapped_and_mapped") == 0)
        printf("kept %d\n", pages[0] == 7 && pages[BYTES - 1] == 7);
    return 0;
}
