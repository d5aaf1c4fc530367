//! A program passes local memory that its process cannot access. The PE that passes it reports the
//! call and the argument, and no other PE is blamed.

use testkit::{Job, needs_library, scenario};

struct Transport {
    name: &'static str,
    /// The library that the transport needs.
    library: Option<&'static str>,
    /// A variable that selects what works on every machine.
    variable: Option<(&'static str, &'static str)>,
}

const TCP: Transport = Transport {
    name: "tcp",
    library: None,
    variable: None,
};
const UCX: Transport = Transport {
    name: "ucx",
    library: Some("libucp.so.0"),
    variable: Some(("UCX_TLS", "tcp,self")),
};
const RXM: Transport = Transport {
    name: "ofi",
    library: Some("libfabric.so.1"),
    variable: Some(("SHMEM_OFI_PROVIDER", "tcp;ofi_rxm")),
};

fn misuse(how: &str) -> Job {
    Job::new(scenario!("misuse.c")).n(3).arg(how)
}

fn over(transport: &Transport, how: &str) -> Job {
    if let Some(library) = transport.library {
        needs_library(library);
    }

    let mut job = misuse(how)
        .env("SHMEM_ONNODE", "off")
        .env("SHMEM_TRANSPORT", transport.name);
    if let Some((name, value)) = transport.variable {
        job = job.env(name, value);
    }
    job
}

#[track_caller]
fn assert_says(job: Job, words: &str) {
    let outcome = job.run();
    let said = outcome.assert_fails(&["PE 1: ", words]);
    assert!(!said.contains("was lost"), "{outcome}");
}

const MISUSES: [&str; 10] = [
    "local_put",
    "local_put_nbi",
    "local_put_signal",
    "local_get",
    "local_get_nbi",
    "local_get_constant",
    "local_put_hole",
    "local_put_nbi_hole",
    "local_get_hole",
    "local_put_later",
];

/// The start of the message for a crash outside of any call.
const IN_SERVICE: &str = "PE 1: SIGSEGV in a service thread of the library";

/// Checks the message of each misuse. If the kernel refuses an access, the message names the call
/// or the operation. If the process itself copies, it crashes, and the message names the line of
/// the call, unless a service thread has copied.
#[track_caller]
fn check_misuses_over(transport: &Transport) {
    const WORDS: [&str; 3] = [
        " bytes) is not ",
        "local memory of an operation",
        "SIGSEGV in ",
    ];

    for how in MISUSES {
        let outcome = over(transport, how).run();
        assert_ne!(outcome.code(), 0, "{outcome}");

        let message = outcome
            .stderr
            .lines()
            .find(|line| line.starts_with("PE 1: "))
            .unwrap_or_else(|| panic!("PE 1 says nothing of {how}\n{outcome}"));
        let names_access = WORDS.iter().any(|words| message.contains(words));
        assert!(names_access, "{outcome}");
        let names_place = message.contains("misuse.c:") || message.starts_with(IN_SERVICE);
        assert!(names_place, "{outcome}");
        assert!(!outcome.stderr.contains("was lost"), "{outcome}");
    }
}

fn over_tcp() {
    check_misuses_over(&TCP);

    let words = "shmem_putmem: argument source (0x1000, 100000 bytes) is not";
    assert_says(over(&TCP, "local_put"), words);
}

fn over_ucx() {
    check_misuses_over(&UCX);
}

fn over_libfabric() {
    check_misuses_over(&RXM);
}

fn in_a_service_thread() {
    let outcome = over(&TCP, "local_get_alone").run();
    assert_ne!(outcome.code(), 0, "{outcome}");
    assert!(outcome.stderr.starts_with(IN_SERVICE), "{outcome}");
    let reason = ", which is protected; ";
    assert!(outcome.stderr.contains(reason), "{outcome}");
}

/// Without checks, short transfers are copied by the CPU, and so crash as `memcpy` does.
fn with_checks_of_any_length() {
    for (how, words) in [
        (
            "local_put_short",
            "shmem_putmem: argument source (0x1000, 8 bytes) is not readable",
        ),
        (
            "local_get_short",
            "shmem_getmem: argument dest (0x1000, 8 bytes) is not writable",
        ),
        (
            "local_put",
            "shmem_putmem: argument source (0x1000, 100000 bytes) is not readable",
        ),
        ("local_get_constant", "bytes) is not writable"),
    ] {
        assert_says(misuse(how).env("SHMEM_CHECK", 1), words);
        assert_says(over(&TCP, how).env("SHMEM_CHECK", 1), words);
    }
}

testkit::module_tests! {
    over_tcp,
    over_ucx,
    over_libfabric,
    in_a_service_thread,
    with_checks_of_any_length,
}
