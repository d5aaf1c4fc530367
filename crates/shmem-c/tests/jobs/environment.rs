//! Environment variables of the standard and of this library.

use std::path::Path;

use testkit::{Job, Outcome, compile_text, program, scenario};

/// Runs a job of 2 PEs that checks that a block of `possible` bytes can be allocated and one of
/// `impossible` bytes cannot; 0 omits the check.
fn heap(variables: &[(&str, &str)], possible: u64, impossible: u64) -> Outcome {
    Job::new(scenario!("heap_size.c"))
        .n(2)
        .args([possible, impossible])
        .envs(variables)
        .run()
}

const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;

/// Point 69: the heap has about the requested size, of which the allocator uses a part.
#[test]
fn the_heap_has_the_requested_size() {
    for (text, size) in [
        ("64K", 64 * KIB),
        ("65536", 64 * KIB),
        (".5m", MIB / 2),
        ("0.5M", MIB / 2),
        ("1.5m", 3 * MIB / 2),
        ("3.1M", 3_250_586),
        ("20kk", 20 * KIB),
        ("0.01g", 10_737_419),
        ("0.00002T", 21_990_233),
        ("2mebibytes", 2 * MIB),
        ("1e7", 10_000_000),
        ("0.25e2m", 25 * MIB),
        ("+5m", 5 * MIB),
        ("0x1p21", 2 * MIB),
    ] {
        heap(&[("SHMEM_SYMMETRIC_SIZE", text)], size / 2, size + 8 * MIB).assert_ok(2);
    }
}

#[test]
fn a_heap_of_no_bytes_is_allowed() {
    for text in ["0", "0k", "0.0g"] {
        heap(&[("SHMEM_SYMMETRIC_SIZE", text)], 0, 8 * MIB).assert_ok(2);
    }
}

#[test]
fn the_old_name_counts_where_the_new_one_is_not_set() {
    let old = ("SMA_SYMMETRIC_SIZE", "2m");
    heap(&[old], MIB, 10 * MIB).assert_ok(2);

    let new = ("SHMEM_SYMMETRIC_SIZE", "32m");
    heap(&[old, new], 16 * MIB, 40 * MIB).assert_ok(2);

    // A wrong value is no error where it does not count.
    let wrong = ("SMA_SYMMETRIC_SIZE", "abc");
    let new = ("SHMEM_SYMMETRIC_SIZE", "2m");
    heap(&[wrong, new], MIB, 10 * MIB).assert_ok(2);
}

#[test]
fn a_size_that_is_none_is_an_error() {
    for text in [
        "abc",
        "-1",
        "1x2",
        "",
        "k",
        ".",
        "1,5m",
        "nan",
        "99999999999999999999",
    ] {
        heap(&[("SHMEM_SYMMETRIC_SIZE", text)], 0, 0).assert_fails(&["SHMEM_SYMMETRIC_SIZE", text]);
    }
    heap(&[("SMA_SYMMETRIC_SIZE", "abc")], 0, 0).assert_fails(&["SMA_SYMMETRIC_SIZE", "abc"]);
}

#[test]
fn a_heap_that_cannot_be_had_is_one_sentence() {
    for text in ["1000t", "16000000t"] {
        let outcome = heap(&[("SHMEM_SYMMETRIC_SIZE", text)], 0, 0);
        outcome.assert_fails(&["SHMEM_SYMMETRIC_SIZE"]);
    }
}

#[test]
fn pes_of_a_node_can_do_without_shared_memory() {
    heap(&[("SHMEM_ONNODE", "on")], MIB, 0).assert_ok(2);
    heap(&[("SHMEM_ONNODE", "off")], MIB, 0).assert_ok(2);
    heap(&[("SHMEM_ONNODE", "maybe")], 0, 0).assert_fails(&["SHMEM_ONNODE", "maybe"]);
}

/// A peer that disconnects after its last finalize is not reported as lost.
#[test]
fn pes_that_share_no_memory_leave_in_peace() {
    Job::new(scenario!("lingers.c"))
        .n(6)
        .env("SHMEM_ONNODE", "off")
        .run()
        .assert_ok(6);
}

#[test]
fn a_machine_splits_into_nodes_that_fit_its_pes() {
    heap(&[("SHMEM_VIRTUAL_NODES", "2")], MIB, 0).assert_ok(2);
    heap(&[("SHMEM_VIRTUAL_NODES", "1+1")], MIB, 0).assert_ok(2);
    for text in ["3", "1+2", "0", "two", "1+"] {
        heap(&[("SHMEM_VIRTUAL_NODES", text)], 0, 0).assert_fails(&["SHMEM_VIRTUAL_NODES"]);
    }
}

/// If a requested transport cannot be used, no other one is used instead.
#[test]
fn a_transport_that_is_not_there_ends_the_job() {
    let off_node = ("SHMEM_ONNODE", "off");
    for transport in ["auto", "tcp"] {
        heap(&[off_node, ("SHMEM_TRANSPORT", transport)], MIB, 0).assert_ok(2);
    }

    // Also if no PE uses the transport, since all PEs are on one node.
    let absent = ("SHMEM_TRANSPORT", "pigeon");
    for variables in [&[off_node, absent][..], &[absent]] {
        heap(variables, 0, 0).assert_fails(&["SHMEM_TRANSPORT", "pigeon", "tcp"]);
    }
}

/// Checks that a variable without effect is named once per job, and that the job goes on.
#[test]
fn variables_with_a_mistake_are_warned_of() {
    let typo = "warning: SHMEM_TRANSPROT is set, but there is no such setting; did you mean SHMEM_TRANSPORT?";
    let empty = "warning: SHMEM_TCP_INTERFACE is empty, which is as if it were not set";
    let interface =
        "warning: SHMEM_TCP_INTERFACE names loo, which the host of PE 0 does not have: it has ";
    let nic = "warning: SHMEM_NIC names mlx5_77, which the host of PE 0 does not have: it has ";

    for (name, value, warning) in [
        ("SHMEM_TRANSPROT", "ucx", typo),
        ("SHMEM_TCP_INTERFACE", "", empty),
        ("SHMEM_TCP_INTERFACE", " , ", empty),
        ("SHMEM_TCP_INTERFACE", "loo", interface),
        ("SHMEM_NIC", "mlx5_77:1", nic),
    ] {
        let outcome = heap(&[(name, value)], 0, 0);
        outcome.assert_ok(2);

        let lines: Vec<&str> = outcome.stderr.lines().collect();
        assert_eq!(lines.len(), 1, "{warning}\n{outcome}");
        assert!(lines[0].starts_with(warning), "{warning}\n{outcome}");
    }

    let over_tcp = [("SHMEM_ONNODE", "off"), ("SHMEM_TCP_INTERFACE", "")];
    heap(&over_tcp, MIB, 0).assert_ok(2);

    // Settings of other implementations are no mistakes.
    let of_others = [
        ("SHMEM_USE_HUGEPAGES", "1"),
        ("SHMEM_FCOLLECT_ALGORITHM", "ring"),
    ];
    assert_eq!(heap(&of_others, 0, 0).stderr, "");
}

/// The message names the limit of file sizes and how to raise it, since the user may not want a
/// smaller heap.
#[test]
fn a_heap_beyond_the_limit_of_file_sizes_says_which_limit_to_raise() {
    let outcome = Job::new("/bin/sh")
        .n(2)
        .args(["-c", "ulimit -f 1000; exec \"$0\" 0 0"])
        .arg(scenario!("heap_size.c").display())
        .run();

    outcome.assert_fails(&[
        "PE",
        "shmem_init",
        "limit of file sizes",
        "`ulimit -f unlimited`",
    ]);
}

/// The size that the message names fits under the same limit.
#[test]
fn a_heap_beyond_the_limit_of_addresses_says_which_size_fits() {
    let limited = |size: &str| {
        Job::new("/bin/sh")
            .n(2)
            .args(["-c", "ulimit -v 2000000; exec \"$0\" 0 0"])
            .arg(scenario!("heap_size.c").display())
            .env("SHMEM_SYMMETRIC_SIZE", size)
            .run()
    };

    let outcome = limited("512m");
    let words = [
        "takes 3221225472 bytes of addresses",
        "`ulimit -v unlimited`",
    ];
    let message = outcome.assert_fails(&words);
    let (_, size) = message
        .split_once("set SHMEM_SYMMETRIC_SIZE to ")
        .expect("a size that fits");
    let size = size.split(' ').next().expect("a word");
    limited(size).assert_ok(2);
}

/// A job also runs if a kernel or sandbox refuses to exclude memory from core files.
#[test]
fn advice_that_is_refused_is_done_without() {
    let text = "
        #include <errno.h>
        #include <linux/filter.h>
        #include <linux/seccomp.h>
        #include <stddef.h>
        #include <sys/mman.h>
        #include <sys/prctl.h>
        #include <sys/syscall.h>
        #include <unistd.h>
        int main(int count, char **words) {
            struct sock_filter steps[] = {
                BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
                BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_madvise, 0, 3),
                BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[2])),
                BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, MADV_DONTDUMP, 0, 1),
                BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EINVAL),
                BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
            };
            struct sock_fprog program = {sizeof steps / sizeof *steps, steps};
            if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program))
                return 77;
            execvp(words[1], words + (count > 1));
            return 127;
        }
    ";
    let dir = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let refusing = compile_text("refusing.c", text, dir, &[]);

    Job::new(refusing)
        .n(2)
        .arg(program!("reductions.c").display())
        .run()
        .assert_ok(2);
}

/// The text is printed once per job, on standard output or standard error.
#[test]
fn version_and_help_are_printed_on_request() {
    let plain = heap(&[], 0, 0);
    for (name, word) in [
        ("SHMEM_VERSION", "1.6"),
        ("SMA_VERSION", "1.6"),
        ("SHMEM_INFO", "SHMEM_TCP_INTERFACE"),
    ] {
        let outcome = heap(&[(name, "1")], 0, 0);
        outcome.assert_ok(2);
        let both = outcome.stdout.clone() + &outcome.stderr;
        let lines = both.lines().filter(|line| line.contains(word));
        assert_eq!(lines.count(), 1, "{name}\n{outcome}");

        assert!(!plain.stdout.contains(word), "{plain}");
        assert!(!plain.stderr.contains(word), "{plain}");
    }

    heap(&[("SHMEM_DEBUG", "2")], 0, 0).assert_ok(2);
}

/// PEs that see other nodes than others would wait for them in another step of the start.
#[test]
fn settings_of_nodes_that_differ_between_pes_are_an_error() {
    for (variable, value) in [("SHMEM_ONNODE", "off"), ("SHMEM_VIRTUAL_NODES", "2")] {
        let differs = format!("[ $SHMEM_LOCAL_ID = 0 ] && export {variable}={value}; exec \"$0\"");
        let outcome = Job::new("/bin/sh")
            .n(2)
            .args(["-c", &differs])
            .arg(program!("barriers.c").display())
            .run();
        outcome.assert_fails(&[variable, "it must be the same on all"]);
    }
}
