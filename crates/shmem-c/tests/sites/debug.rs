//! `SHMEM_DEBUG`: the events that a job reports over each transport, by level and by module.
//! Without the setting it reports nothing.

use testkit::{Job, Outcome, needs_library, program, scenario};

/// The libraries that transports open at run time.
const UCX: &str = "libucp.so.0";
const LIBFABRIC: &str = "libfabric.so.1";

/// Runs a job whose PEs share no memory and synchronize over a transport.
fn job(transport: &str, debug: Option<&str>) -> Outcome {
    let mut job = Job::new(scenario!("heap_size.c"))
        .n(3)
        .args([1 << 20, 0])
        .env("SHMEM_ONNODE", "off")
        .env("SHMEM_TRANSPORT", transport);
    if let Some(filter) = debug {
        job = job.env("SHMEM_DEBUG", filter);
    }

    let outcome = job.run();
    outcome.assert_ok(3);
    outcome
}

/// Checks that each of these sets of words is in one line.
fn has(outcome: &Outcome, lines: &[&[&str]]) {
    for words in lines {
        let has_line = outcome
            .stderr
            .lines()
            .any(|line| words.iter().all(|word| line.contains(word)));
        assert!(has_line, "{words:?} in\n{outcome}");
    }
}

/// Checks the events that every transport reports: how a PE joins, the choice of the transport, and
/// the first use of peers. `provider` has the events of this transport only.
fn reports(transport: &str, provider: &[&[&str]]) {
    let outcome = job(transport, Some("debug"));
    let chosen = format!("transport {transport}:");
    has(
        &outcome,
        &[
            &[
                "DEBUG bootstrap::membership: joins by oshrun's protocol",
                "pe=2",
                "n_pes=3",
            ],
            &[
                "INFO runtime::start::connect:",
                &format!("{transport}: SHMEM_TRANSPORT is"),
                "pe=0",
            ],
            &[&chosen, "chosen, and every PE moved data over it"],
            &[
                "transport::peers: a peer is used for the first time",
                "pe=0",
                "peer=1",
            ],
            &[
                "transport::peers: a peer is used for the first time",
                "pe=1",
                "peer=2",
            ],
            &["runtime::exit::finalize: the library is closed", "pe=1"],
        ],
    );
    has(&outcome, provider);

    for pe in 0..3 {
        assert!(outcome.stderr.contains(&format!("pe={pe}")), "{outcome}");
    }
    assert!(!outcome.stderr.contains("TRACE"), "{outcome}");
}

fn jobs_over_tcp_name_their_connections() {
    reports(
        "tcp",
        &[
            &["DEBUG transport_tcp::transport: listens on [127.0.0.1:"],
            &[
                "DEBUG transport_tcp::connect: connected to 127.0.0.1:",
                "peer=",
            ],
            &[
                "DEBUG transport_tcp::shared: accepted its connection from 127.0.0.1:",
                "peer=",
            ],
        ],
    );
}

fn jobs_over_ucx_name_its_transports() {
    needs_library(UCX);
    reports(
        "ucx",
        &[
            &["DEBUG transport_ucx::transport: UCX may use ", "pe=0"],
            &[
                "DEBUG transport_ucx::wire::establish: made an endpoint to it",
                "pe=0",
                "peer=1",
            ],
            &["DEBUG transport::engine::issuer: an endpoint uses an issuer"],
        ],
    );
}

fn jobs_over_libfabric_name_its_provider() {
    needs_library(LIBFABRIC);
    reports(
        "ofi",
        &[
            &[
                "DEBUG transport_ofi::transport: provider ",
                " is used, at ",
                "mr_mode=0x",
            ],
            &[
                "DEBUG transport_ofi::shared: has its address, ",
                "pe=0",
                "peer=1",
            ],
        ],
    );
}

/// Returns the module of each line.
fn modules(outcome: &Outcome) -> Vec<&str> {
    let mut modules = Vec::new();
    for line in outcome.stderr.lines() {
        // The module follows the time and the level. A line of fewer than three words, which is no
        // event, is a module of its own.
        let path = line.split_whitespace().nth(2).unwrap_or(line);
        modules.push(path.split("::").next().unwrap_or(path));
    }
    modules
}

/// Checks that a job with this value of `SHMEM_DEBUG` reports events of these modules alone.
fn reports_only(filter: &str, expected: &[&str]) -> Outcome {
    let outcome = job("tcp", Some(filter));
    let found = modules(&outcome);
    for module in expected {
        assert!(found.contains(module), "{module} in\n{outcome}");
    }
    for module in found {
        assert!(expected.contains(&module), "{expected:?}: {outcome}");
    }
    outcome
}

fn a_filter_shows_its_modules_alone() {
    reports_only("transport=debug", &["transport", "transport_tcp"]);
    reports_only("transport-tcp", &["transport_tcp"]);

    let outcome = reports_only("bootstrap=trace,runtime=info", &["bootstrap", "runtime"]);
    let joined = ["TRACE bootstrap", "has the records of all PEs", "round=0"];
    has(&outcome, &[&joined]);
    assert!(!outcome.stderr.contains("DEBUG runtime"), "{outcome}");
}

fn nothing_is_reported_unless_it_is_wanted() {
    let outcome = job("tcp", None);
    assert!(outcome.stderr.is_empty(), "{outcome}");
}

fn a_filter_that_names_no_module_is_refused() {
    let outcome = Job::new(scenario!("heap_size.c"))
        .n(2)
        .args([1 << 20, 0])
        .env("SHMEM_DEBUG", "transport=debug,tcp=trace")
        .run();
    outcome.assert_fails(&[
        "SHMEM_DEBUG is transport=debug,tcp=trace, but it must be 1, 2 or 3, or ",
        "transport_tcp",
        "by default nothing is printed",
    ]);
}

/// Exit handlers run after the destructors of thread-local variables.
fn what_handlers_of_exit_do_is_reported() {
    let text = r#"
        #include <shmem.h>
        #include <stdlib.h>
        int main(void) {
            shmem_init();
            atexit(shmem_finalize);
            return 0;
        }
    "#;

    let dir = std::path::Path::new(env!("CARGO_TARGET_TMPDIR"));
    let program = testkit::compile_text("finalizes_at_exit.c", text, dir, &[]);

    let outcome = Job::new(program).n(2).env("SHMEM_DEBUG", "debug").run();
    assert!(outcome.status.success(), "{outcome}");
    for pe in 0..2 {
        let event = format!("runtime::exit::finalize: the library is closed pe={pe}");
        has(&outcome, &[&[&event]]);
    }
}

/// If there are more contexts than the user permits endpoints, they share endpoints, which each PE
/// reports once.
fn contexts_that_share_endpoints_are_reported_once() {
    for (transport, library, setting) in [
        ("ucx", UCX, "SHMEM_UCX_WORKERS"),
        ("ofi", LIBFABRIC, "SHMEM_OFI_ENDPOINTS"),
    ] {
        needs_library(library);
        let job = Job::new(program!("contexts.c"))
            .n(3)
            .env("SHMEM_TRANSPORT", transport)
            .env("SHMEM_ONNODE", "off")
            .env("SHMEM_DEBUG", 1);

        let outcome = job.clone().env(setting, "3").run();
        outcome.assert_ok(3);
        for pe in 0..3 {
            let of_pe = format!("pe={pe}");
            let words = ["contexts share", setting, &of_pe];
            let lines = outcome
                .stderr
                .lines()
                .filter(|line| words.iter().all(|word| line.contains(word)));
            assert_eq!(lines.count(), 1, "PE {pe}: {outcome}");
        }

        let outcome = job.env(setting, "none").run();
        let refused = format!("{setting} is none, but it must be a number above 0");
        outcome.assert_fails(&[&refused]);
    }
}

testkit::module_tests! {
    contexts_that_share_endpoints_are_reported_once,
    jobs_over_tcp_name_their_connections,
    jobs_over_ucx_name_its_transports,
    jobs_over_libfabric_name_its_provider,
    a_filter_shows_its_modules_alone,
    nothing_is_reported_unless_it_is_wanted,
    a_filter_that_names_no_module_is_refused,
    what_handlers_of_exit_do_is_reported,
}
