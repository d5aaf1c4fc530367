//! The choice of a transport: requests that cannot be met, PEs that find different libraries, the
//! variables of UCX and libfabric, and reports.

use std::path::{Path, PathBuf};
use std::process::Command;

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

    let run = |transport: &str| {
        let job = Job::new(&program).n(2).args([1 << 20, 0]);
        job.envs(&forced(transport)).run()
    };

    run("tcp").assert_ok(2);
    run("auto").assert_ok(2);
    run("ucx").assert_fails(&["SHMEM_TRANSPORT is ucx", "statically linked", "auto, tcp"]);
}

fn variables_of_ucx_and_ours_are_heard() {
    needs_library(UCX);
    let with = |name, value| job(2, &forced("ucx")).env(name, value).run();

    with("SHMEM_UCX_TLS", "tcp,self").assert_ok(2);
    with("UCX_TLS", "tcp,self").assert_ok(2);

    // UCX's own variable takes precedence.
    job(2, &forced("ucx"))
        .env("SHMEM_UCX_TLS", "pigeon")
        .env("UCX_TLS", "tcp,self")
        .run()
        .assert_ok(2);
}

fn variables_of_libfabric_and_ours_are_heard() {
    needs_library(LIBFABRIC);
    let with = |name, value| job(2, &forced("ofi")).env(name, value).run();

    with("SHMEM_OFI_PROVIDER", "tcp;ofi_rxm").assert_ok(2);
    with("FI_PROVIDER", "tcp").assert_ok(2);

    let tcp = [
        ("SHMEM_OFI_PROVIDER", "tcp;ofi_rxm"),
        ("SHMEM_OFI_DOMAIN", "lo"),
    ];
    job(2, &[&forced("ofi")[..], &tcp].concat())
        .run()
        .assert_ok(2);

    with("SHMEM_OFI_PROVIDER", "pigeon").assert_fails(&["ofi", "pigeon", "fi_info"]);
    with("SHMEM_OFI_DOMAIN", "pigeon").assert_fails(&["ofi", "pigeon", "fi_info"]);
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

        let set = |name: &str, value: &str| {
            let job = || {
                job(2, &forced(transport))
                    .env("SHMEM_OFI_PROVIDER", "tcp;ofi_rxm")
                    .env("UCX_TLS", "tcp,self")
                    .env(name, value)
            };

            let outcome = job().run();
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

            let stderr = job().env("SHMEM_DEBUG", 2).run().stderr;
            let lines: Vec<&str> = stderr
                .lines()
                .filter(|line| line.contains("atomic operations are carried"))
                .collect();
            assert_eq!(lines.len(), 1, "{stderr}");
            assert!(lines[0].contains(said), "{said}: {stderr}");
        };

        for value in ["auto", "software", "network"] {
            set("SHMEM_AMOS", value);
        }
        set("SHMEM_UCX_AMOS", "network");
        set("SHMEM_OFI_AMOS", "software");
    }
}

fn what_is_found_here_names_who_carries_out_atomic_operations() {
    let info = |value: &str| {
        Command::new(prefix().join("bin/shmem-info"))
            .arg("--transports")
            .env("SHMEM_AMOS", value)
            .output()
            .expect("it runs")
    };

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

fn what_is_found_and_chosen_is_reported_on_request() {
    let report = |variables: &[(&str, &str)]| {
        let outcome = job(4, variables).env("SHMEM_DEBUG", 2).run();
        outcome.assert_ok(4);
        outcome.stderr
    };

    let auto = report(&[OFF]);
    has_one_line(&auto, &["transport ucx:"]);
    has_one_line(&auto, &["transport ofi:"]);
    has_one_line(&auto, &["transport tcp:", "chosen, and every PE moved data"]);
    has_one_line(&auto, &["atomic operations", "CPU of the target"]);

    let tcp = report(&forced("tcp"));
    let reason = "not chosen: SHMEM_TRANSPORT is tcp";
    has_one_line(&tcp, &["transport ucx:", reason]);

    // A job on one node has no transport.
    assert!(!report(&[]).contains("transport "));

    let chosen = |variables: &[(&str, &str)], path: &str| {
        let outcome = job(4, variables).env("SHMEM_DEBUG", 1).run();
        outcome.assert_ok(4);

        let lines: Vec<&str> = outcome.stderr.lines().collect();
        assert!(
            lines.len() == 1 && lines[0].contains(path),
            "{path} alone in\n{outcome}"
        );
    };

    chosen(
        &[],
        "shared memory: all PEs are on one node; atomic operations",
    );
    chosen(
        &forced("tcp"),
        " tcp: SHMEM_TRANSPORT is tcp; atomic operations",
    );

    let split = ("SHMEM_VIRTUAL_NODES", "2");
    chosen(
        &[split],
        "shared memory on a node, tcp between nodes: ucx is not chosen: ",
    );

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
