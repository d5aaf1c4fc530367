//! A program passes local memory that its process cannot access. The PE that passes it reports the
//! call and the argument, and no other PE is blamed.

use testkit::{Job, needs_library, scenario};

/// A transport, the library that it needs, and the provider of libfabric.
type Transport = (&'static str, Option<&'static str>, &'static str);

const TCP: Transport = ("tcp", None, "");
const UCX: Transport = ("ucx", Some("libucp.so.0"), "");
const RXM: Transport = ("ofi", Some("libfabric.so.1"), "tcp;ofi_rxm");

fn misuse(how: &str) -> Job {
    Job::new(scenario!("misuse.c")).n(3).arg(how)
}

fn over((transport, library, provider): Transport, how: &str) -> Job {
    library.into_iter().for_each(needs_library);
    let job = misuse(how)
        .env("SHMEM_ONNODE", "off")
        .env("SHMEM_TRANSPORT", transport);
    if provider.is_empty() {
        job
    } else {
        job.env("SHMEM_OFI_PROVIDER", provider)
    }
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
fn check_misuses_over(transport: Transport) {
    const WORDS: [&str; 3] = [
        " bytes) is not ",
        "local memory of an operation",
        "SIGSEGV in ",
    ];

    for how in MISUSES {
        let job = over(transport, how);
        let job = if transport == UCX {
            job.env("UCX_TLS", "tcp,self")
        } else {
            job
        };
        let outcome = job.run();

        let said = outcome
            .stderr
            .lines()
            .find(|line| line.starts_with("PE 1: "));
        let said = said.unwrap_or_else(|| panic!("PE 1 says nothing of {how}\n{outcome}"));

        assert!(
            outcome.code() != 0 && WORDS.iter().any(|words| said.contains(words)),
            "{outcome}"
        );
        assert!(
            said.contains("misuse.c:") || said.starts_with(IN_SERVICE),
            "{outcome}"
        );
        assert!(!outcome.stderr.contains("was lost"), "{outcome}");
    }
}

fn over_tcp() {
    check_misuses_over(TCP);

    assert_says(
        over(TCP, "local_put"),
        "shmem_putmem: argument source (0x1000, 100000 bytes) is not",
    );
}

fn over_ucx() {
    check_misuses_over(UCX);
}

fn over_libfabric() {
    check_misuses_over(RXM);
}

fn in_a_service_thread() {
    let outcome = over(TCP, "local_get_alone").run();
    assert!(
        outcome.code() != 0 && outcome.stderr.starts_with(IN_SERVICE),
        "{outcome}"
    );
    assert!(
        outcome.stderr.contains(", which is protected; "),
        "{outcome}"
    );
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
        assert_says(over(TCP, how).env("SHMEM_CHECK", 1), words);
    }
}

testkit::module_tests! {
    over_tcp,
    over_ucx,
    over_libfabric,
    in_a_service_thread,
    with_checks_of_any_length,
}
