/* The header and the library from C++: linkage, constants, handles, one routine of each kind. */
#include "check.h"
#include <complex>
#include <shmemx.h>
#include <vector>

static void reductions() {
    auto *given = static_cast<std::complex<double> *>(check_malloc(2 * sizeof(std::complex<double>)));
    auto *numbers = static_cast<long double *>(check_malloc(2 * sizeof(long double)));
    numbers[0] = check_me + 0.5L;
    shmem_barrier_all();
    CHECK(shmem_longdouble_max_reduce(SHMEM_TEAM_WORLD, &numbers[1], &numbers[0], 1) == 0, 59, "longdouble_max_reduce failed");
    CHECK(numbers[1] == check_n - 0.5L, 59, "the maximum is %Lf", numbers[1]);
    given[0] = std::complex<double>(1, check_me);
    shmem_barrier_all();
    CHECK(shmem_broadcastmem(SHMEM_TEAM_WORLD, &given[1], &given[0], sizeof given[0], check_n - 1) == 0, 55, "broadcast failed");
    CHECK(given[1] == std::complex<double>(1, check_n - 1), 55, "another number came");
    shmem_free(numbers);
    shmem_free(given);
}

int main() {
    check_begin();
    const int right = (check_me + 1) % check_n, left = (check_me + check_n - 1) % check_n;
    auto *cells = static_cast<long *>(shmem_calloc(4, sizeof(long)));
    shmem_ctx_t ctx = SHMEM_CTX_INVALID;
    CHECK(shmem_ctx_create(SHMEM_CTX_SERIALIZED | SHMEM_CTX_NOSTORE, &ctx) == 0, 20, "no context can be had");
    shmem_team_config_t config = {};
    config.num_contexts = 1;
    shmem_team_t team = SHMEM_TEAM_INVALID;
    CHECK(shmem_team_split_strided(SHMEM_TEAM_WORLD, check_n - 1, -1, check_n, &config, SHMEM_TEAM_NUM_CONTEXTS, &team) == 0, 2,
          "no team can be had");
    CHECK(shmem_team_my_pe(team) == check_n - 1 - check_me, 2, "PE %d of a reversed team", shmem_team_my_pe(team));
    const std::vector<long> sent = {check_me, -check_me};
    shmem_ctx_long_put(ctx, &cells[0], sent.data(), sent.size(), right);
    shmem_ctx_quiet(ctx);
    shmem_long_atomic_add(&cells[2], 5, right);
    shmem_long_p(&cells[3], 1, right);
    shmem_long_wait_until(&cells[3], SHMEM_CMP_EQ, 1);
    shmem_barrier_all();
    CHECK(cells[0] == left && cells[1] == -left && cells[2] == 5, 82, "what came is %ld, %ld, %ld", cells[0], cells[1], cells[2]);
    CHECK(shmem_long_g(&cells[0], right) == check_me, 31, "g");
    reductions();
    CHECK(shmem_team_sync(team) == 0, 53, "team_sync failed");
    shmem_team_destroy(team);
    shmem_ctx_destroy(ctx);
    shmem_free(cells);
    return check_end();
}
