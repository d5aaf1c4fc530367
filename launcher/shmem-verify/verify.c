/* shmem-verify: tells whether the library is right on the machine and the network where it runs.
 *
 * It runs programs of crates/shmem-c/tests/programs, which check the standard with values and models,
 * one after the other in one job, and reports for each family of routines what is wrong. Each PE
 * counts its own failures and has its own exit status, so that the verdict does not depend on what is
 * verified.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <getopt.h>
#include <shmem.h>
#include <shmemx.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

#include "performance.h"

#define PROGRAM(family, name, level, quick) int verify_##name(int argc, char **argv);
#include "programs.h"
#undef PROGRAM

struct program {
    const char *family, *name;
    int (*run)(int argc, char **argv);
    int level, is_quick;
};

#define PROGRAM(family, name, level, quick) {family, #name, verify_##name, level, quick},
static const struct program programs[] = {
#include "programs.h"
};
#undef PROGRAM

enum { PROGRAMS = sizeof programs / sizeof *programs, TEXT = 240 };

/* The heap of each PE, unless the user sets its size: the family `heap` fills it. */
static const char HEAP[] = "64m";
static const size_t SMALLEST_HEAP = 32 << 20;
/* The seconds after which a program counts as hanging. Programs take seconds, on a network also some
 * tens of them. */
enum { USUAL_LIMIT = 120 };
/* The rounds of each litmus test on each kind of memory, unless --litmus says another number. */
static const char LITMUS_ROUNDS[] = "2000";

enum state { NOT_ASKED, RIGHT, NOT_THERE };

/* What a PE has found by a program. PE 0 gets it from the others at the end. */
struct finding {
    int state;
    unsigned failures;
    double seconds;
    char first[TEXT];
};

static struct {
    struct finding findings[PROGRAMS];
    char host[TEXT];
    int node_leader; /* whether this PE is the first of its node */
} own;

/* The program that runs. */
static volatile int current;
/* What the signal handler prints: what this PE has found before, and which program hangs. */
static char found_before[4096], hang[TEXT];

/* Called by a check that fails. `text` is null after the first failures of a program. */
void verify_failed(const char *text, const char *file, int line) {
    struct finding *finding = &own.findings[current];
    if (__atomic_fetch_add(&finding->failures, 1, __ATOMIC_RELAXED) > 0 || text == NULL)
        return;
    snprintf(finding->first, TEXT, "%s (%s:%d)", text, file, line);
}

/* Called by a program that finds that this job cannot run it. */
void verify_not_there(const char *why) {
    struct finding *finding = &own.findings[current];
    finding->state = NOT_THERE;
    snprintf(finding->first, TEXT, "%s", why);
}

static void hangs(int number) {
    (void)number;
    ssize_t written = write(STDERR_FILENO, found_before, strlen(found_before));
    written = write(STDERR_FILENO, hang, strlen(hang));
    (void)written;
    _exit(3);
}

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec + 1e-9 * time.tv_nsec;
}

struct options {
    const char *only, *output;
    /* The number of rounds of each litmus test, if these are asked for alone; else null. */
    const char *litmus;
    int quick, hosts, limit, level;
};

static int is_asked(const struct options *options, const struct program *program) {
    if (options->litmus != NULL)
        return program->run == verify_litmus;
    if ((options->quick && !program->is_quick) || program->level > options->level)
        return 0;
    if (options->only == NULL)
        return 1;
    char list[1024], wanted[64];
    snprintf(list, sizeof list, ",%s,", options->only);
    snprintf(wanted, sizeof wanted, ",%s,", program->family);
    return strstr(list, wanted) != NULL;
}

/* Returns the first name of `only` that is no family, in a static buffer, or null. */
static const char *unknown_family(const char *only) {
    static char list[1024];
    snprintf(list, sizeof list, "%s", only);
    for (char *name = strtok(list, ","); name != NULL; name = strtok(NULL, ",")) {
        int is_known = 0;
        for (int i = 0; i < PROGRAMS; i++)
            is_known |= strcmp(programs[i].family, name) == 0;
        if (!is_known)
            return name;
    }
    return NULL;
}

static void print_families(FILE *to) {
    for (int i = 0; i < PROGRAMS; i++)
        if (i == 0 || strcmp(programs[i].family, programs[i - 1].family) != 0)
            fprintf(to, "%s%s", i == 0 ? "" : ", ", programs[i].family);
}

static void print_help(void) {
    puts("Verify an OpenSHMEM library where it runs: each family of routines, with values and a model\n\n"
         "Usage: shmem-verify [OPTIONS]\n\n"
         "Start it as any program, for example by: oshrun -n 4 shmem-verify\n\n"
         "Options:\n"
         "      --quick               Run the short programs alone, for about 10 seconds\n"
         "      --only FAMILY,...     Verify these families alone\n"
         "      --litmus[=ROUNDS]     Run the litmus tests of the memory model alone, each so many times (2000),\n"
         "                            and print how often each outcome was seen\n"
         "      --single              Initialize the library by shmem_init, as most programs do, and leave out\n"
         "                            the programs that need SHMEM_THREAD_MULTIPLE\n"
         "      --limit TIME          The time after which a program counts as hanging (120s), such as 30s\n"
         "                            or 5m\n"
         "  -o, --output FILE         Write a record in JSON, and measure the job for it\n"
         "      --hosts               Name the hosts in the record\n"
         "  -h, --help                Print help\n"
         "  -V, --version             Print the version\n");
    fputs("Families: ", stdout);
    print_families(stdout);
    puts("\n\nExit status:\n"
         "  0  Everything that was verified is right\n"
         "  1  Something is wrong, or the record could not be written\n"
         "  2  An option is not valid, or the heap is too small\n"
         "  3  A program did not end");
}

static const char *level_name(int level) {
    return level == SHMEM_THREAD_SINGLE       ? "SHMEM_THREAD_SINGLE"
           : level == SHMEM_THREAD_FUNNELED   ? "SHMEM_THREAD_FUNNELED"
           : level == SHMEM_THREAD_SERIALIZED ? "SHMEM_THREAD_SERIALIZED"
                                              : "SHMEM_THREAD_MULTIPLE";
}

/* Runs a program between an initialization and a finalization of its own. */
static void verify(int i, const struct options *options) {
    const struct program *program = &programs[i];
    struct finding *finding = &own.findings[i];
    current = i;
    snprintf(hang, TEXT, "shmem-verify: %s: this PE is in the program %s for %d s; oshrun --explain-after 30s shmem-verify "
                         "--only %s says who waits for whom\n",
             program->family, program->name, options->limit, program->family);
    alarm(options->limit);

    const double begin = now();
    int provided = -1;
    const int status = shmem_init_thread(options->level, &provided);
    if (status == 0 && provided >= program->level) {
        char *words[] = {"shmem-verify", "--litmus", (char *)options->litmus, NULL};
        finding->state = RIGHT;
        const int is_new_family = i == 0 || strcmp(program->family, programs[i - 1].family) != 0;
        if (is_new_family && shmem_my_pe() == 0)
            fprintf(stderr, "shmem-verify: %s ...\n", program->family);
        program->run(options->litmus != NULL ? 3 : 1, words);
    } else {
        finding->state = NOT_THERE;
        snprintf(finding->first, TEXT, "it needs the thread level %s", level_name(program->level));
    }
    if (status == 0)
        shmem_finalize();
    finding->seconds = now() - begin;
    alarm(0);

    const size_t length = strlen(found_before);
    if (finding->failures > 0)
        snprintf(found_before + length, sizeof found_before - length, "shmem-verify: %s: %u checks of %s failed on this PE, first %s\n",
                 program->family, finding->failures, program->name, finding->first);
}

/* What all PEs have found by a program. */
struct sum {
    int is_there, is_asked;
    unsigned failures, pes, first_pe;
    double seconds;
    char first[TEXT];
};

static void add(struct sum *sum, const struct finding *finding, int pe) {
    sum->is_asked |= finding->state != NOT_ASKED;
    sum->is_there |= finding->state == RIGHT;
    sum->seconds = finding->seconds > sum->seconds ? finding->seconds : sum->seconds;
    const int is_first = finding->state == NOT_THERE ? sum->first[0] == 0 : finding->failures > 0 && sum->failures == 0;
    if (is_first) {
        snprintf(sum->first, TEXT, "%s", finding->first);
        sum->first_pe = pe;
    }
    sum->failures += finding->failures;
    sum->pes += finding->failures > 0;
}

static const char *verdict(const struct sum *sum) {
    return !sum->is_there ? "not there" : sum->failures > 0 ? "wrong" : "right";
}

static void write_text(FILE *to, const char *text) {
    putc('"', to);
    for (; *text; text++) {
        if (*text == '"' || *text == '\\')
            putc('\\', to);
        if ((unsigned char)*text < ' ')
            fprintf(to, "\\u%04x", *text);
        else
            putc(*text, to);
    }
    putc('"', to);
}

/* The library, the machine and the path between the PEs. */
struct place {
    char library[SHMEM_MAX_NAME_LEN + 1];
    int major, minor;
    struct utsname system;
    const char *path, *pmix;
};

/* Returns what PE 0 knows of the job. The library is initialized. */
static struct place place_of_job(void) {
    struct place place = {.library = ""};
    shmem_info_get_name(place.library);
    shmem_info_get_version(&place.major, &place.minor);
    uname(&place.system);
    place.path = shmemx_transport() ? shmemx_transport() : "";
    /* Launchers that have PMIx tell its version. */
    place.pmix = getenv("PMIX_VERSION");
    return place;
}

/* Writes a member of the record; null without a text. */
static void write_member(FILE *to, const char *name, const char *text) {
    fprintf(to, ",\n  \"%s\": ", name);
    if (text == NULL)
        fprintf(to, "null");
    else
        write_text(to, text);
}

/* Writes the members of the record that describe the job. */
static void write_job(FILE *to, const struct options *options, int is_right, int n, int nodes) {
    const struct place place = place_of_job();
    fprintf(to, "{\n  \"verdict\": \"%s\"", is_right ? "right" : "wrong");
    write_member(to, "program", "shmem-verify " VERSION);
    write_member(to, "library", place.library);
    fprintf(to, ",\n  \"standard\": \"%d.%d\"", place.major, place.minor);
    write_member(to, "kernel", place.system.release);
    write_member(to, "machine", place.system.machine);
    write_member(to, "pmix", place.pmix);
    fprintf(to, ",\n  \"pes\": %d,\n  \"nodes\": %d", n, nodes);
    write_member(to, "transport", place.path);
    write_member(to, "level", level_name(options->level));
    fprintf(to, ",\n  \"quick\": %s,\n  \"settings\": {", options->quick ? "true" : "false");
    const char *separator = "";
    static const char *const prefixes[] = {"SHMEM_", "UCX_", "FI_"};
    for (char **entry = environ; *entry != NULL; entry++) {
        const char *value = strchr(*entry, '=');
        int is_setting = 0;
        for (int i = 0; i < 3; i++)
            is_setting |= strncmp(*entry, prefixes[i], strlen(prefixes[i])) == 0;
        /* Secrets, addresses of hosts and what launchers set are left out. */
        static const char *const kept_back[] = {"SECRET", "HOST", "ADDR", "SERVER", "RENDEZVOUS", "_RANK", "_ID"};
        for (int i = 0; i < 7; i++) {
            const char *found = strstr(*entry, kept_back[i]);
            is_setting &= found == NULL || found > value;
        }
        if (value == NULL || !is_setting)
            continue;
        char variable[TEXT];
        snprintf(variable, sizeof variable, "%.*s", (int)(value - *entry), *entry);
        fprintf(to, "%s\n    ", separator);
        write_text(to, variable);
        fprintf(to, ": ");
        write_text(to, value + 1);
        separator = ",";
    }
    fprintf(to, "\n  }");
    if (options->hosts) {
        fprintf(to, ",\n  \"hosts\": [");
        for (int pe = 0; pe < n; pe++) {
            char host[TEXT];
            shmem_getmem(host, own.host, TEXT, pe);
            fprintf(to, pe == 0 ? "" : ", ");
            write_text(to, host);
        }
        fprintf(to, "]");
    }
}

/* Writes the last member: the findings of shmem-info's doctor on the node of PE 0: the versions of libraries and drivers,
 * the NICs, and which transports are usable. It writes JSON, without names and addresses of hosts.
 * The member is null if shmem-info is not beside this program. */
static void write_doctor(FILE *to) {
    char program[4096];
    const ssize_t length = readlink("/proc/self/exe", program, sizeof program - 1);
    program[length > 0 ? length : 0] = 0;
    char *slash = strrchr(program, '/');
    fprintf(to, ",\n  \"doctor\": ");
    FILE *from = NULL;
    if (slash != NULL && (size_t)(slash - program) + sizeof "/shmem-info" <= sizeof program) {
        strcpy(slash, "/shmem-info");
        /* A variable, so that the shell takes the path as it is. */
        setenv("SHMEM_VERIFY_DOCTOR", program, 1);
        from = popen("exec \"$SHMEM_VERIFY_DOCTOR\" --doctor --json 2>/dev/null", "r");
        unsetenv("SHMEM_VERIFY_DOCTOR");
    }
    char line[4096];
    int is_first = 1;
    while (from != NULL && fgets(line, sizeof line, from) != NULL) {
        fputs(line, to);
        is_first = 0;
    }
    if (from != NULL)
        pclose(from);
    if (is_first)
        fputs("null\n", to);
    fputs("}\n", to);
}

static void write_programs(FILE *to, const struct sum *sums) {
    const char *separator = "";
    fprintf(to, ",\n  \"programs\": [");
    for (int i = 0; i < PROGRAMS; i++) {
        if (!sums[i].is_asked)
            continue;
        fprintf(to, "%s\n    {\"family\": \"%s\", \"program\": \"%s\", \"verdict\": \"%s\", \"seconds\": %.2f", separator,
                programs[i].family, programs[i].name, verdict(&sums[i]), sums[i].seconds);
        if (sums[i].failures > 0)
            fprintf(to, ", \"failures\": %u, \"pes\": %u, \"pe\": %u", sums[i].failures, sums[i].pes, sums[i].first_pe);
        if (sums[i].first[0]) {
            fprintf(to, ", \"first\": ");
            write_text(to, sums[i].first);
        }
        fprintf(to, "}");
        separator = ",";
    }
    fprintf(to, "\n  ]");
}

/* Returns the text of the record, or null. `timings` is null if the job was not measured. */
static char *record_text(const struct options *options, const struct sum *sums, const struct timing *timings, int is_right,
                         int n, int nodes, size_t *nbytes) {
    char *text = NULL;
    FILE *to = open_memstream(&text, nbytes);
    if (to == NULL)
        return NULL;
    write_job(to, options, is_right, n, nodes);
    write_programs(to, sums);
    fputs(",\n  \"performance\": ", to);
    if (timings != NULL)
        write_timings(to, timings);
    else
        fputs("null", to);
    write_doctor(to);
    fclose(to);
    return text;
}

/* Writes the record to a file beside the given one, and renames it: of two runs in one directory, the
 * last one's record remains, and it is complete. A device or a pipe is written to directly. */
static int write_record(const char *output, const char *text, size_t nbytes) {
    struct stat found;
    const int is_file = stat(output, &found) != 0 || S_ISREG(found.st_mode);
    char beside[4096];
    snprintf(beside, sizeof beside, "%s.%ld", output, (long)getpid());
    const char *path = is_file ? beside : output;
    FILE *to = fopen(path, "w");
    int is_written = to != NULL && text != NULL && fwrite(text, 1, nbytes, to) == nbytes && fflush(to) == 0;
    if (to != NULL)
        is_written &= fclose(to) == 0;
    is_written = is_written && (!is_file || rename(beside, output) == 0);
    if (!is_written) {
        fprintf(stderr, "shmem-verify: the record %s could not be written: %s\n", output, strerror(errno));
        if (is_file)
            unlink(beside);
    }
    return is_written;
}

/* Prints a line for each family, and below it what is wrong or not there. */
static void print_families_found(const struct sum *sums) {
    for (int i = 0; i < PROGRAMS;) {
        const int begin = i;
        int asked = 0, wrong = 0, there = 0;
        double seconds = 0;
        for (; i < PROGRAMS && strcmp(programs[i].family, programs[begin].family) == 0; i++) {
            asked += sums[i].is_asked;
            there += sums[i].is_there;
            wrong += sums[i].failures > 0;
            seconds += sums[i].seconds;
        }
        if (asked == 0)
            continue;
        printf("%-12s %-9s %5.1f s\n", programs[begin].family, wrong ? "wrong" : there ? "right" : "not there", seconds);
        for (int j = begin; j < i; j++) {
            if (sums[j].failures > 0)
                printf("    %s: %u checks failed on %u PEs, first on PE %u: %s\n", programs[j].name, sums[j].failures,
                       sums[j].pes, sums[j].first_pe, sums[j].first);
            else if (sums[j].is_asked && !sums[j].is_there)
                printf("    %s: not there: %s\n", programs[j].name, sums[j].first);
        }
    }
}

/* Measures the job for a record. All PEs call it. Returns null, on all PEs, if there is no record,
 * no peer or no room in the heap. */
static const struct timing *measured(const struct options *options) {
    static struct timing rows[TIMINGS];
    if (options->output == NULL || shmem_n_pes() == 1)
        return NULL;
    snprintf(hang, TEXT, "shmem-verify: this PE measures for the record since %d s\n", options->limit);
    alarm(options->limit);
    const int status = measure_job(rows);
    alarm(0);
    return status == 0 ? rows : NULL;
}

/* PE 0 prints and writes what all PEs have found. Returns 0 if it is all right. */
static int report(const struct options *options) {
    shmem_init();
    const int me = shmem_my_pe(), n = shmem_n_pes();
    own.node_leader = shmem_team_my_pe(SHMEM_TEAM_SHARED) == 0;
    gethostname(own.host, TEXT - 1);
    shmem_barrier_all();
    const struct timing *timings = measured(options);
    int is_right = 1;
    for (int i = 0; i < PROGRAMS; i++)
        is_right &= own.findings[i].failures == 0;
    if (me == 0) {
        static struct sum sums[PROGRAMS];
        int nodes = 0;
        for (int pe = 0; pe < n; pe++) {
            nodes += shmem_int_g(&own.node_leader, pe);
            for (int i = 0; i < PROGRAMS; i++) {
                struct finding finding;
                shmem_getmem(&finding, &own.findings[i], sizeof finding, pe);
                finding.first[TEXT - 1] = 0;
                add(&sums[i], &finding, pe);
            }
        }
        const struct place place = place_of_job();
        printf("%s, OpenSHMEM %d.%d, on Linux %s, %s\n", place.library, place.major, place.minor, place.system.release,
               place.system.machine);
        printf("%d PEs on %d node%s, %s\n\n", n, nodes, nodes == 1 ? "" : "s", place.path);
        print_families_found(sums);
        if (timings != NULL)
            print_timings(timings);
        for (int i = 0; i < PROGRAMS; i++)
            is_right &= sums[i].failures == 0;
        puts(is_right ? "Everything that was verified is right." : "Something is wrong.");
        if (n == 1)
            puts("One PE verifies little: start several, on several nodes.");
        if (options->output != NULL) {
            size_t nbytes = 0;
            char *text = record_text(options, sums, timings, is_right, n, nodes, &nbytes);
            is_right &= write_record(options->output, text, nbytes);
            free(text);
        }
        fflush(stdout);
    }
    shmem_finalize();
    return is_right ? 0 : 1;
}

/* Prints a message on PE 0, and returns the exit status 2. */
static int refuse(const char *message, const char *what) {
    shmem_init();
    if (shmem_my_pe() == 0) {
        fprintf(stderr, "shmem-verify: %s %s; the families are ", message, what);
        print_families(stderr);
        fputs("; --help has the options\n", stderr);
    }
    shmem_finalize();
    return 2;
}

/* Returns false, with a message, if the heap is too small for the programs. */
static int heap_is_large_enough(const struct options *options) {
    int provided;
    shmem_init_thread(options->level, &provided);
    shmemx_heap_info_t heap;
    shmemx_heap_info(&heap);
    const int is_large = heap.total >= SMALLEST_HEAP;
    if (!is_large && shmem_my_pe() == 0)
        fprintf(stderr, "shmem-verify: the symmetric heap has %zu bytes, and the programs need 32 MiB: set SHMEM_SYMMETRIC_SIZE=64m\n",
                (size_t)heap.total);
    shmem_finalize();
    return is_large;
}

/* Returns the seconds of a time as oshrun accepts it: a number of seconds (s or no unit), minutes (m)
 * or hours (h). Fractions are rounded up. Returns 0 for another text. */
static int seconds_of(const char *text) {
    char *unit;
    double seconds = strtod(text, &unit);
    if (unit == text)
        return 0;
    if (strcmp(unit, "m") == 0)
        seconds *= 60;
    else if (strcmp(unit, "h") == 0)
        seconds *= 3600;
    else if (unit[0] != '\0' && strcmp(unit, "s") != 0)
        return 0;
    if (!(seconds > 0))
        return 0;

    /* About 30 years, which fit a number of seconds. */
    const int longest = 1000000000;
    if (seconds >= longest)
        return longest;
    const int whole = (int)seconds;
    return whole < seconds ? whole + 1 : whole;
}

static int is_a_number_of_rounds(const char *text) {
    char *end;
    const long rounds = strtol(text, &end, 10);
    return end != text && *end == '\0' && rounds >= 1 && rounds <= 1000000000;
}

int main(int argc, char **argv) {
    const char *limit = NULL;
    struct options options = {.limit = USUAL_LIMIT, .level = SHMEM_THREAD_MULTIPLE};
    enum { QUICK = 1, ONLY, SINGLE, HOSTS, LIMIT, LITMUS };
    static const struct option known[] = {
        {"quick", no_argument, NULL, QUICK},       {"only", required_argument, NULL, ONLY},
        {"hosts", no_argument, NULL, HOSTS},       {"limit", required_argument, NULL, LIMIT},
        {"single", no_argument, NULL, SINGLE},     {"litmus", optional_argument, NULL, LITMUS},
        {"output", required_argument, NULL, 'o'},  {"help", no_argument, NULL, 'h'},
        {"version", no_argument, NULL, 'V'},       {NULL, 0, NULL, 0},
    };
    opterr = 0;
    setenv("SHMEM_SYMMETRIC_SIZE", HEAP, 0);
    for (int option; (option = getopt_long(argc, argv, "o:hV", known, NULL)) != -1;) {
        switch (option) {
        case QUICK: options.quick = 1; break;
        case ONLY: options.only = optarg; break;
        case SINGLE: options.level = SHMEM_THREAD_SINGLE; break;
        case HOSTS: options.hosts = 1; break;
        case LIMIT: limit = optarg; break;
        case LITMUS: options.litmus = optarg != NULL ? optarg : LITMUS_ROUNDS; break;
        case 'o': options.output = optarg; break;
        case 'h': print_help(); return 0;
        case 'V': puts("shmem-verify " VERSION); return 0;
        default: return refuse("not an option:", argv[optind - 1]);
        }
    }
    if (optind < argc)
        return refuse("not an option:", argv[optind]);
    if (limit != NULL && (options.limit = seconds_of(limit)) == 0)
        return refuse("--limit must be a time above 0 such as 30s or 5m, and not", limit);
    if (options.litmus != NULL && !is_a_number_of_rounds(options.litmus))
        return refuse("--litmus must be a number of rounds from 1 to 1000000000, and not", options.litmus);
    const char *unknown = options.only != NULL ? unknown_family(options.only) : NULL;
    if (unknown != NULL)
        return refuse("no family has the name", unknown);
    if (!heap_is_large_enough(&options))
        return 2;

    signal(SIGALRM, hangs);
    for (int i = 0; i < PROGRAMS; i++)
        if (is_asked(&options, &programs[i]))
            verify(i, &options);
    return report(&options);
}
