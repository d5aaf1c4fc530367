/* A mixture of experts, as in models of language: each PE has some experts, and each token goes to two of them. The tokens
 * are dispatched by an all-to-all of blocks of any sizes; what an expert has made of a block goes back by a put with a
 * signal, so a PE takes its results in the order in which they come. The last layer, from memory of malloc. */
#include "check.h"

#include <shmemx.h>

enum { EXPERTS = 3, TOKENS = 40, CHOICES = 2, COPIES = CHOICES * TOKENS, WIDTH = 12, LAYERS = 24, MAX_PES = 64 };

/* A token on its way to an expert. */
struct copy {
    int expert;
    /* Its place among the copies that its PE sends, which is that of its result there. */
    int place;
    float x[WIDTH];
};

static struct copy outbox[COPIES], *inbox;
static float made[MAX_PES * COPIES][WIDTH], results[COPIES][WIDTH];
/* For each PE, the last layer whose results have come from it. */
static uint64_t returned[MAX_PES];

/* The gate that chooses experts: very uneven, so that some get no token and others most of them. */
static int chosen(int layer, int pe, int token, int choice) {
    unsigned hash = (unsigned)(layer * 7919 + pe * 104729 + token * 1299709) * 2654435761u >> 8;
    int n_experts = EXPERTS * check_n;
    int first = layer % 3 == 0 ? layer % n_experts : (int)(hash % n_experts * (hash >> 12 & 1));
    return (first + choice) % n_experts;
}

static float feature(int layer, int pe, int token, int i) { return (float)(layer + 3 * pe + token % 17 + i); }

/* What an expert makes of a feature. All numbers are small integers, so results are exact. */
static float apply(int expert, float x) { return (float)(expert % 8 + 1) * x + (float)expert; }

/* Writes the copies of all tokens to the outbox, those for PE 0 first. */
static void route(int layer, size_t *offsets, size_t *sizes) {
    int place = 0;
    for (int pe = 0; pe < check_n; pe++) {
        offsets[pe] = place * sizeof *outbox;
        for (int token = 0; token < TOKENS; token++)
            for (int choice = 0; choice < CHOICES; choice++) {
                int expert = chosen(layer, check_me, token, choice);
                if (expert / EXPERTS != pe)
                    continue;
                struct copy *copy = &outbox[place];
                copy->expert = expert;
                copy->place = place++;
                for (int i = 0; i < WIDTH; i++)
                    copy->x[i] = feature(layer, check_me, token, i);
            }
        sizes[pe] = place * sizeof *outbox - offsets[pe];
    }
}

/* Lets the experts of this PE work on the block that came from each PE, and sends the results back. */
static void work(int layer, const size_t *sizes) {
    for (int k = 1; k <= check_n; k++) {
        int pe = (check_me + k) % check_n;
        const struct copy *block = inbox + pe * COPIES;
        size_t n = sizes[pe] / sizeof *block;
        CHECK(sizes[pe] == n * sizeof *block, 0, "%zu bytes from PE %d", sizes[pe], pe);
        if (n == 0)
            continue;

        float(*made_here)[WIDTH] = made + pe * COPIES;
        for (size_t j = 0; j < n; j++) {
            CHECK(block[j].expert / EXPERTS == check_me && block[j].place == block[0].place + (int)j, 0,
                  "layer %d: copy %zu of PE %d is for expert %d, place %d", layer, j, pe, block[j].expert,
                  block[j].place);
            for (int i = 0; i < WIDTH; i++)
                made_here[j][i] = apply(block[j].expert, block[j].x[i]);
        }
        shmem_float_put_signal_nbi(results[block[0].place], made_here[0], n * WIDTH, &returned[check_me],
                                   (uint64_t)layer, SHMEM_SIGNAL_SET, pe);
    }
}

/* Takes the results in the order in which they come, and checks them against the tokens. */
static void combine(int layer, const size_t *offsets, const size_t *sizes) {
    int status[MAX_PES];
    size_t n_open = 0;
    for (int pe = 0; pe < check_n; pe++) {
        status[pe] = sizes[pe] == 0;
        n_open += sizes[pe] != 0;
    }

    for (; n_open > 0; n_open--) {
        size_t pe;
        while (shmemx_uint64_wait_until_any_timed(returned, check_n, status, SHMEM_CMP_EQ, (uint64_t)layer, &pe, 1e-3) ==
               SHMEMX_TIMED_OUT)
            ;
        status[pe] = 1;

        size_t first = offsets[pe] / sizeof *outbox, end = first + sizes[pe] / sizeof *outbox;
        for (size_t place = first; place < end; place++)
            for (int i = 0; i < WIDTH; i++) {
                float expected = apply(outbox[place].expert, outbox[place].x[i]);
                CHECK(results[place][i] == expected, 0, "layer %d: feature %d at place %zu is %g, not %g", layer, i,
                      place, results[place][i], expected);
            }
    }
}

static void layer(int number) {
    size_t s_offsets[MAX_PES] = {0}, s_sizes[MAX_PES] = {0}, d_offsets[MAX_PES] = {0}, d_sizes[MAX_PES];
    route(number, s_offsets, s_sizes);
    for (int pe = 0; pe < check_n; pe++)
        d_offsets[pe] = pe * COPIES * sizeof *inbox;

    shmemx_team_alltoallvmem(SHMEM_TEAM_WORLD, inbox, d_offsets, d_sizes, outbox, s_offsets, s_sizes);
    work(number, d_sizes);
    combine(number, s_offsets, s_sizes);

    /* The next layer overwrites what this PE has made. */
    shmem_quiet();
}

int main(void) {
    check_begin();
    if (check_n <= MAX_PES) {
        size_t nbytes = check_n * COPIES * sizeof *inbox;
        inbox = shmem_malloc(nbytes);
        int number = 1;
        for (; number < LAYERS; number++)
            layer(number);
        shmem_free(inbox);

        inbox = malloc(nbytes);
        shmemx_buffer_register(inbox, nbytes, 0);
        layer(number);
        shmemx_buffer_unregister(inbox);
        free(inbox);
    }
    return check_end();
}
