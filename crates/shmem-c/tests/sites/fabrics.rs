//! Jobs over UCX and libfabric in which a connection is refused, a PE is killed, or a signal is
//! sent. UCX and libfabric have reactions of their own, which must not be those that the user sees.

use std::path::{Path, PathBuf};
use std::process::Command;

use testkit::{Job, Running, compile_text, needs_library, scenario};

fn tmpdir() -> &'static Path {
    Path::new(env!("CARGO_TARGET_TMPDIR"))
}

fn over(transport: &str, job: Job) -> Job {
    job.env("SHMEM_ONNODE", "off")
        .env("SHMEM_TRANSPORT", transport)
}

/// Returns a program that runs its arguments; on PE 0 of a machine the kernel refuses every
/// `connect`.
fn refusing() -> PathBuf {
    let text = r#"
        #include <errno.h>
        #include <linux/filter.h>
        #include <linux/seccomp.h>
        #include <stddef.h>
        #include <stdlib.h>
        #include <string.h>
        #include <sys/prctl.h>
        #include <sys/syscall.h>
        #include <unistd.h>
        int main(int count, char **words) {
            struct sock_filter steps[] = {
                BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
                BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_connect, 0, 1),
                BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ECONNREFUSED),
                BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
            };
            struct sock_fprog program = {sizeof steps / sizeof *steps, steps};
            const char *local = getenv("SHMEM_LOCAL_ID");
            if (local && !strcmp(local, "0") &&
                (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program)))
                return 77;
            execvp(words[1], words + (count > 1));
            return 127;
        }
    "#;

    compile_text("refusing.c", text, tmpdir(), &[])
}

/// The provider of one PE gets an error, and that of the other PE would wait for ever.
fn a_refused_connection_over_libfabric_ends_init() {
    needs_library("libfabric.so.1");
    let job = Job::new(refusing())
        .n(2)
        .arg(scenario!("heap_size.c").display())
        .args([1 << 20, 0]);
    let job = over("ofi", job)
        .env("SHMEM_OFI_PROVIDER", "tcp;ofi_rxm")
        .env("SHMEM_HOST_LIMIT", 1);

    job.run().assert_fails(&[
        "SHMEM_TRANSPORT is ofi, which cannot be used here",
        "the connection from PE 1 on ",
        "to PE 0 on ",
        "is not over after ",
        "(provider tcp;ofi_rxm, from 127.0.0.1:",
        "SHMEM_OFI_PROVIDER",
        "set SHMEM_TRANSPORT to another transport",
    ]);
}

/// A job of two PEs over UCX that does not end by itself.
struct Lingering {
    running: Running,
    /// The process numbers of the PEs, in any order.
    pids: Vec<i32>,
}

impl Lingering {
    fn start() -> Lingering {
        needs_library("libucp.so.0");
        let job = Job::new(scenario!("soak.c")).n(2).arg("forever");
        let mut running = over("ucx", job).start();
        let pids = running.wait_for(|lines| {
            let pids: Vec<i32> = lines.iter().filter_map(|line| pid_of_pe(line)).collect();
            if pids.len() == 2 { Some(pids) } else { None }
        });
        Lingering { running, pids }
    }
}

/// Reads a line such as `pe 1 pid 4711`.
fn pid_of_pe(line: &str) -> Option<i32> {
    let (_, pid) = line.strip_prefix("pe ")?.split_once(" pid ")?;
    pid.parse().ok()
}

/// By default, UCX installs a handler for SIGHUP, which a terminal sends when it is closed.
fn a_hangup_ends_a_job_over_ucx() {
    let Lingering { running, pids } = Lingering::start();
    let sent = Command::new("kill")
        .args(["-s", "HUP", &pids[1].to_string()])
        .status();
    assert!(sent.is_ok_and(|status| status.success()));

    running
        .finish()
        .assert_fails(&["PE ", "was killed by SIGHUP"]);
}

/// By default, UCX creates files for shared memory, which it cannot use between these PEs. They
/// would remain if a PE were killed while UCX creates them.
fn a_job_over_ucx_has_no_files_of_ucxs_shared_memory() {
    let Lingering { running, pids } = Lingering::start();
    for pid in pids {
        let descriptors = std::fs::read_dir(format!("/proc/{pid}/fd"));
        for descriptor in descriptors.expect("a process").flatten() {
            // A descriptor may have been closed since it was listed.
            if let Ok(file) = std::fs::read_link(descriptor.path()) {
                assert!(!file.starts_with("/dev/shm"), "{}", file.display());
            }
        }
    }

    testkit::kill(running.pid());
    assert_eq!(running.finish().code(), 137);
}

/// UCX may abort a process that sends a reply to a peer that has just died. The message must still
/// name the peer. Whether UCX aborts is a matter of chance: without a remedy, in one of five jobs.
fn the_pe_that_died_first_is_named_over_ucx() {
    needs_library("libucp.so.0");
    let text = r#"
        #include <shmem.h>
        #include <signal.h>
        #include <stdlib.h>
        static char to[65536], from[65536];
        int main(int count, char **words) {
            shmem_init();
            for (int round = 0;; round++) {
                for (int pe = 0; pe < shmem_n_pes(); pe++)
                    if (pe != shmem_my_pe())
                        shmem_putmem_nbi(to, from, sizeof to, pe);
                if (round % 3 == 0)
                    shmem_quiet();
                if (round % 50 == 0)
                    shmem_barrier_all();
                if (shmem_my_pe() == 2 && round == atoi(words[count - 1]))
                    raise(SIGKILL);
            }
        }
    "#;
    let streams = compile_text("streams.c", text, tmpdir(), &[]);

    for round in 0..12 {
        let job = over("ucx", Job::new(&streams).n(4).arg(13 * round));
        let outcome = job.env("UCX_TLS", "tcp,self").run();
        assert_eq!(outcome.code(), 137, "{outcome}");

        let message = outcome
            .stderr
            .lines()
            .find(|line| line.starts_with("oshrun: "))
            .unwrap_or_else(|| panic!("no message\n{outcome}"));
        assert!(message.contains("PE 2 "), "{outcome}");
        assert!(message.contains("SIGKILL"), "{outcome}");
        assert!(!outcome.stderr.contains("backtrace"), "{outcome}");
    }
}

/// A PE never sees a word of which only a part has been received, whatever the alignment of the
/// put.
fn words_of_a_long_put_arrive_whole_over_ucx() {
    needs_library("libucp.so.0");
    let text = r#"
        #include <shmem.h>
        #include <stdint.h>
        #include <stdio.h>
        enum { WORDS = 65536, ROUNDS = 200 };
        static uint64_t to[WORDS], from[WORDS], seen;
        int main(void) {
            shmem_init();
            long torn = 0;
            for (uint64_t round = 1; round <= ROUNDS; round++) {
                uint64_t now = round * 0x0001000100010001, before = now - 0x0001000100010001;
                if (shmem_my_pe() == 1) {
                    for (int i = 0; i < WORDS; i++)
                        from[i] = now;
                    shmem_putmem((char *)to + round % 2 * 4, from, sizeof to - 8, 0);
                    shmem_uint64_wait_until(&seen, SHMEM_CMP_GE, round);
                } else {
                    for (int i = 1; i < WORDS - 1; i++) {
                        shmem_uint64_wait_until(&to[i], SHMEM_CMP_NE, before);
                        torn += *(volatile uint64_t *)&to[i] != now;
                    }
                    shmem_uint64_p(&seen, round, 1);
                }
            }
            if (torn)
                fprintf(stderr, "%ld words were torn\n", torn);
            shmem_finalize();
            return torn != 0;
        }
    "#;

    let job = Job::new(compile_text("whole_words.c", text, tmpdir(), &[])).n(2);
    let outcome = over("ucx", job).env("UCX_TLS", "tcp,self").run();
    assert!(outcome.status.success(), "{outcome}");
}

testkit::module_tests! {
    a_refused_connection_over_libfabric_ends_init,
    a_hangup_ends_a_job_over_ucx,
    a_job_over_ucx_has_no_files_of_ucxs_shared_memory,
    the_pe_that_died_first_is_named_over_ucx,
    words_of_a_long_put_arrive_whole_over_ucx,
}
