/* Many PEs as a grid: barriers, splits, sums along rows and columns, and a get from a distant
 * PE. */
#include "../programs/check.h"

static int numbers[2], sums[2], here;

int main(void) {
    check_begin();
    int width = 1;
    while (width * width < check_n)
        width++;
    int x = check_me % width, y = check_me / width;
    here = check_mix(check_me);
    shmem_barrier_all();
    int far = check_n - 1 - check_me;
    CHECK(shmem_int_g(&here, far) == (int)check_mix(far), 0, "the static variable of PE %d is another", far);
    shmem_team_t row, column;
    CHECK(shmem_team_split_2d(SHMEM_TEAM_WORLD, width, NULL, 0, &row, NULL, 0, &column) == 0, 8, "the split failed");
    CHECK(shmem_team_my_pe(row) == x && shmem_team_my_pe(column) == y, 8, "PE %d is at (%d, %d)", check_me,
          shmem_team_my_pe(row), shmem_team_my_pe(column));
    numbers[0] = x;
    numbers[1] = y;
    int in_row = shmem_team_n_pes(row), in_column = shmem_team_n_pes(column);
    shmem_int_sum_reduce(row, &sums[0], &numbers[0], 1);
    shmem_int_sum_reduce(column, &sums[1], &numbers[1], 1);
    CHECK(sums[0] == in_row * (in_row - 1) / 2, 0, "the sum along the row is %d", sums[0]);
    CHECK(sums[1] == in_column * (in_column - 1) / 2, 0, "the sum along the column is %d", sums[1]);
    return check_end();
}
