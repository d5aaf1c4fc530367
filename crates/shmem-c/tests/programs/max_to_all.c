/* The seven maximum reductions over active sets: one call for three elements has the same result as
 * three calls for one element, with two pairs of work arrays alternately. On all PEs and on strided
 * sets. */
#include "check.h"
#include "types.h"
#include <mpp/shmem.h>

enum { COUNT = 3, WORK = COUNT / 2 + 1 + _SHMEM_REDUCE_MIN_WRKDATA_SIZE };

static long sync_whole[_SHMEM_REDUCE_SYNC_SIZE], sync_one[_SHMEM_REDUCE_SYNC_SIZE], sync_two[_SHMEM_REDUCE_SYNC_SIZE];
static unsigned char *memory;

#define GIVEN(T, pe, i) ((T)((pe) * ((i) == 1 ? -1 : 1) + 10 * (i)))

#define MAX(N, T)                                                                                                      \
    static void max_##N(int start, int log_stride, int size) {                                                         \
        static T work_whole[WORK], work_one[WORK], work_two[WORK];                                                     \
        T *source = (T *)memory, *whole = source + COUNT, *parts = whole + COUNT;                                      \
        int last = start + ((size - 1) << log_stride);                                                                 \
        for (int i = 0; i < COUNT; i++)                                                                                \
            source[i] = GIVEN(T, check_me, i), whole[i] = parts[i] = (T)-99;                                           \
        shmem_barrier_all();                                                                                           \
        if (check_me >= start && check_me <= last && (check_me - start) % (1 << log_stride) == 0) {                    \
            shmem_##N##_max_to_all(whole, source, COUNT, start, log_stride, size, work_whole, sync_whole);             \
            shmem_##N##_max_to_all(&parts[0], &source[0], 1, start, log_stride, size, work_one, sync_one);             \
            shmem_##N##_max_to_all(&parts[1], &source[1], 1, start, log_stride, size, work_two, sync_two);             \
            shmem_##N##_max_to_all(&parts[2], &source[2], 1, start, log_stride, size, work_one, sync_one);             \
            for (int i = 0; i < COUNT; i++) {                                                                          \
                CHECK(whole[i] == GIVEN(T, i == 1 ? start : last, i), 86, #N "_max_to_all (%d, %d, %d): element %d",   \
                      start, log_stride, size, i);                                                                     \
                CHECK(parts[i] == whole[i], 86, #N "_max_to_all in three calls: element %d differs", i);               \
            }                                                                                                          \
        } else {                                                                                                       \
            CHECK(whole[0] == (T)-99 && parts[2] == (T)-99, 62, #N "_max_to_all wrote on a PE outside");               \
        }                                                                                                              \
        shmem_barrier_all();                                                                                           \
    }

SET_ORDER_TYPES(MAX)

static void on(int start, int log_stride, int size) {
#define RUN(N, T) max_##N(start, log_stride, size);
    SET_ORDER_TYPES(RUN)
    for (int i = 0; i < _SHMEM_REDUCE_SYNC_SIZE; i++)
        CHECK(sync_whole[i] == _SHMEM_SYNC_VALUE && sync_one[i] == _SHMEM_SYNC_VALUE && sync_two[i] == _SHMEM_SYNC_VALUE, 62,
              "pSync was left changed");
}

int main(void) {
    start_pes(0);
    check_start();
    memory = shmemalign(16, 3 * COUNT * 16);
    for (int i = 0; i < _SHMEM_REDUCE_SYNC_SIZE; i++)
        sync_whole[i] = sync_one[i] = sync_two[i] = _SHMEM_SYNC_VALUE;
    on(0, 0, check_n);
    on(0, 1, (check_n + 1) / 2);
    if (check_n > 1) {
        on(1, 1, check_n / 2);
        on(1, 0, check_n - 1);
        on(1, 2, (check_n + 2) / 4);
    }
    return check_verdict(check_agree());
}
