//! The choice of a transport: requests that cannot be met, PEs that find different libraries, the
//! variables of UCX and libfabric, and reports.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use testkit::{Job, Outcome, compile, has_library, needs_library, prefix, scenario};

/// The libraries that transports open at run time.
pub const UCX: &str = "libucp.so.0";
pub const LIBFABRIC: &str = "libfabric.so.1";

/// Returns a small job with these variables.
fn job(n: usize, variables: &[(&str, &str)]) -> Job {
    Job::new(scenario!("heap_size.c"))
        .n(n)
        .args([1 << 20, 0])
        .envs(variables)
}

pub const OFF: (&str, &str) = ("SHMEM_ONNODE", "off");

pub fn forced(transport: &str) -> [(&str, &str); 2] {
    [OFF, ("SHMEM_TRANSPORT", transport)]
}

/// Returns a directory with a file that has the name of a library and cannot be loaded.
fn unloadable_library(library: &str) -> PathBuf {
    let dir = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("spoilt-{library}"));
    std::fs::create_dir_all(&dir).expect("a directory");
    std::fs::write(dir.join(library), "no library").expect("a file");
    dir
}

/// Returns a script that runs a program with an additional variable on PE 1. Jobs pass it to a
/// shell: the kernel would refuse to execute it while a child of another test has it open for
/// writing.
fn for_pe_1(name: &str, variable: &str) -> PathBuf {
    let script = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let text = format!("[ \"$SHMEM_LOCAL_ID\" = 1 ] && export {variable}\nexec \"$@\"\n");
    std::fs::write(&script, text).expect("a file");
    script
}

fn differing(name: &str, variable: &str, variables: &[(&str, &str)]) -> Outcome {
    Job::new("/bin/sh")
        .n(3)
        .arg(for_pe_1(name, variable).display())
        .arg(scenario!("heap_size.c").display())
        .args([1 << 20, 0])
        .envs(variables)
        .run()
}

fn who_saw_what_is_said_when_pes_differ() {
    for (transport, library) in [("ucx", UCX), ("ofi", LIBFABRIC)] {
        if has_library(library) {
            let path = format!("LD_LIBRARY_PATH={}", unloadable_library(library).display());
            let outcome = differing(&format!("lacks-{transport}"), &path, &forced(transport));

            let said = outcome.assert_fails(&["PE 1: ", library, transport]);
            assert!(!said.contains("all PEs: "), "{said}");
        }
    }

    let outcome = differing("asks-another", "SHMEM_TRANSPORT=ofi", &forced("tcp"));
    outcome.assert_fails(&["tcp on PE 0", "ofi on PE 1"]);

    if has_library(LIBFABRIC) {
        let outcome = differing("asks-other-amos", "SHMEM_AMOS=network", &forced("ofi"));
        outcome.assert_fails(&["SHMEM_AMOS is auto on PE 0 and network on PE 1", "all PEs"]);
    }

    // A difference that does not matter for the choice is ignored.
    let path = format!("LD_LIBRARY_PATH={}", unloadable_library(UCX).display());
    differing("lacks-what-it-needs-not", &path, &[OFF]).assert_ok(3);
}

fn a_static_program_has_no_transport_that_opens_libraries() {
    let source = Path::new(concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/tests/scenarios/heap_size.c"
    ));
    let program = compile(source, Path::new(env!("CARGO_TARGET_TMPDIR")), &["-static"]);

    let job = Job::new(&program).n(2).args([1 << 20, 0]);

    job.clone().envs(&forced("tcp")).run().assert_ok(2);
    job.clone().envs(&forced("auto")).run().assert_ok(2);
    job.envs(&forced("ucx")).run().assert_fails(&[
        "SHMEM_TRANSPORT is ucx",
        "statically linked",
        "auto, tcp",
    ]);
}

fn variables_of_ucx_and_ours_are_heard() {
    needs_library(UCX);
    let over_ucx = job(2, &forced("ucx"));

    for name in ["SHMEM_UCX_TLS", "UCX_TLS"] {
        let with_tcp = over_ucx.clone().env(name, "tcp,self");
        with_tcp.run().assert_ok(2);
    }

    // UCX's own variable takes precedence.
    over_ucx
        .env("SHMEM_UCX_TLS", "pigeon")
        .env("UCX_TLS", "tcp,self")
        .run()
        .assert_ok(2);
}

fn variables_of_libfabric_and_ours_are_heard() {
    needs_library(LIBFABRIC);
    let over_ofi = job(2, &forced("ofi"));

    let tcp = ("SHMEM_OFI_PROVIDER", "tcp;ofi_rxm");
    let loopback = ("SHMEM_OFI_DOMAIN", "lo");
    for variables in [&[tcp][..], &[("FI_PROVIDER", "tcp")], &[tcp, loopback]] {
        over_ofi.clone().envs(variables).run().assert_ok(2);
    }

    for name in ["SHMEM_OFI_PROVIDER", "SHMEM_OFI_DOMAIN"] {
        let outcome = over_ofi.clone().env(name, "pigeon").run();
        outcome.assert_fails(&["ofi", "pigeon", "fi_info"]);
    }
}

/// Checks each value over each transport, and a value under each other name of the setting. A wrong
/// value is an error even in a job on one node.
fn who_carries_out_atomic_operations_is_one_setting() {
    let values = "it must be auto, software or network";

    for name in ["SHMEM_AMOS", "SHMEM_UCX_AMOS", "SHMEM_OFI_AMOS"] {
        job(2, &[(name, "pigeon")])
            .run()
            .assert_fails(&[name, "pigeon", values]);
        job(2, &[(name, "")])
            .run()
            .assert_fails(&[name, "empty", values]);
    }

    for (transport, library) in [("tcp", ""), ("ucx", UCX), ("ofi", LIBFABRIC)] {
        if transport != "tcp" && !has_library(library) {
            continue;
        }

        for value in ["auto", "software", "network"] {
            check_executor_of_amos(transport, "SHMEM_AMOS", value);
        }
        check_executor_of_amos(transport, "SHMEM_UCX_AMOS", "network");
        check_executor_of_amos(transport, "SHMEM_OFI_AMOS", "software");
    }
}

/// Checks which side carries out atomic operations over a transport if the variable `name` has this
/// value.
fn check_executor_of_amos(transport: &str, name: &str, value: &str) {
    let job = job(2, &forced(transport))
        .env("SHMEM_OFI_PROVIDER", "tcp;ofi_rxm")
        .env("UCX_TLS", "tcp,self")
        .env(name, value);

    let outcome = job.clone().run();
    if value == "network" && transport == "tcp" {
        outcome.assert_fails(&["SHMEM_AMOS is network, but tcp has no"]);
        return;
    }
    // Some versions of UCX have wrong atomic operations, which are refused.
    if value == "network" && transport == "ucx" && !outcome.status.success() {
        outcome.assert_fails(&["SHMEM_AMOS=software", "UCX's atomic operation"]);
        return;
    }
    outcome.assert_ok(2);

    let said = match value {
        "network" => "out by the network",
        "software" => "target, on-node and off-node alike (SHMEM_AMOS is software)",
        // The machines of the tests have no such hardware.
        _ => "target, on-node and off-node alike (not every PE has hardware",
    };
    let outcome = job.env("SHMEM_DEBUG", 2).run();
    let lines: Vec<&str> = outcome
        .stderr
        .lines()
        .filter(|line| line.contains("atomic operations are carried"))
        .collect();
    assert_eq!(lines.len(), 1, "{outcome}");
    assert!(lines[0].contains(said), "{said}: {outcome}");
}

/// Runs `shmem-info --transports` with a value of `SHMEM_AMOS`.
fn info(amos: &str) -> Output {
    Command::new(prefix().join("bin/shmem-info"))
        .arg("--transports")
        .env("SHMEM_AMOS", amos)
        .output()
        .expect("it runs")
}

fn what_is_found_here_names_who_carries_out_atomic_operations() {
    let auto = info("auto");
    let found = String::from_utf8_lossy(&auto.stdout);
    assert!(found.contains("tcp: available"), "{found}");
    let executor = "atomic operations: by the CPU of the target";
    assert!(found.contains(executor), "{found}");

    let network = info("network");
    let found = String::from_utf8_lossy(&network.stdout);
    let refusal = "SHMEM_AMOS is network, but tcp has no";
    assert!(found.contains(refusal), "{found}");

    let wrong = info("pigeon");
    let message = String::from_utf8_lossy(&wrong.stderr);
    assert!(!wrong.status.success());
    assert!(message.contains("SHMEM_AMOS is pigeon"), "{message}");
}

/// Returns what a job with these variables reports at a level of `SHMEM_DEBUG`.
fn report(level: u32, variables: &[(&str, &str)]) -> String {
    let outcome = job(4, variables).env("SHMEM_DEBUG", level).run();
    outcome.assert_ok(4);
    outcome.stderr
}

fn what_is_found_and_chosen_is_reported_on_request() {
    let auto = report(2, &[OFF]);
    has_one_line(&auto, &["transport ucx:"]);
    has_one_line(&auto, &["transport ofi:"]);
    has_one_line(&auto, &["transport tcp:", "chosen, and every PE moved data"]);
    has_one_line(&auto, &["atomic operations", "CPU of the target"]);

    let tcp = report(2, &forced("tcp"));
    let reason = "not chosen: SHMEM_TRANSPORT is tcp";
    has_one_line(&tcp, &["transport ucx:", reason]);

    // A job on one node has no transport.
    assert!(!report(2, &[]).contains("transport "));

    // The lowest level reports the choice alone.
    let on_node = "shared memory: all PEs are on one node; atomic operations";
    let over_tcp = " tcp: SHMEM_TRANSPORT is tcp; atomic operations";
    let split = ("SHMEM_VIRTUAL_NODES", "2");
    let between_nodes = "shared memory on a node, tcp between nodes: ucx is not chosen: ";
    for (variables, path) in [
        (&[][..], on_node),
        (&forced("tcp")[..], over_tcp),
        (&[split][..], between_nodes),
    ] {
        let text = report(1, variables);
        assert_eq!(text.lines().count(), 1, "{text}");
        assert!(text.contains(path), "{path} in\n{text}");
    }

    let info = job(2, &[("SHMEM_INFO", "1")]).run();
    let names = ["SHMEM_TRANSPORT", "auto", "tcp", "ucx", "ofi"];
    has_one_line(&info.stdout, &names);
}

/// Checks that exactly one line of a text has all these words.
#[track_caller]
fn has_one_line(text: &str, words: &[&str]) {
    let lines = text
        .lines()
        .filter(|line| words.iter().all(|word| line.contains(word)));
    assert_eq!(lines.count(), 1, "{words:?} in\n{text}");
}

testkit::module_tests! {
    who_saw_what_is_said_when_pes_differ,
    a_static_program_has_no_transport_that_opens_libraries,
    variables_of_ucx_and_ours_are_heard,
    variables_of_libfabric_and_ours_are_heard,
    what_is_found_and_chosen_is_reported_on_request,
    who_carries_out_atomic_operations_is_one_setting,
    what_is_found_here_names_who_carries_out_atomic_operations,
}
