//! Local memory that a program passes and this process cannot access: the PE that passes it says
//! so, names the call and the argument, and accuses no other PE.

use testkit::{Job, needs_library, program};

/// A transport, the library that it needs, and the provider of libfabric.
type Transport = (&'static str, Option<&'static str>, &'static str);

const TCP: Transport = ("tcp", None, "");
const UCX: Transport = ("ucx", Some("libucp.so.0"), "");
const RXM: Transport = ("ofi", Some("libfabric.so.1"), "tcp;ofi_rxm");

fn misuse(how: &str) -> Job {
    Job::new(program!("misuse.c")).n(3).arg(how)
}

fn over((transport, library, provider): Transport, how: &str) -> Job {
    library.into_iter().for_each(needs_library);
    let job = misuse(how).env("SHMEM_ONNODE", "off").env("SHMEM_TRANSPORT", transport);
    if provider.is_empty() { job } else { job.env("SHMEM_OFI_PROVIDER", provider) }
}

#[track_caller]
fn assert_says(job: Job, words: &str) {
    let outcome = job.run();
    let said = outcome.assert_fails(&["PE 1: ", words]);
    assert!(!said.contains("was lost"), "{outcome}");
}

/// The calls that name the argument at once, whatever the transport.
const NAMED: [(&str, &str); 6] = [
    ("local_put", "shmem_putmem: argument source (0x1000, 100000 bytes) is not readable"),
    ("local_put_nbi", "shmem_putmem_nbi: argument source (0x1000, 100000 bytes) is not readable"),
    ("local_put_signal", "shmem_putmem_signal: argument source (0x1000, 100000 bytes) is not"),
    ("local_get", "shmem_getmem: argument dest (0x1000, 100000 bytes) is not writable"),
    ("local_get_nbi", "shmem_getmem_nbi: argument dest (0x1000, 100000 bytes) is not writable"),
    ("local_get_constant", "bytes) is not writable"),
];

/// The accesses to a range with an inaccessible page in the middle.
const HOLES: [(&str, &str); 2] = [
    ("local_put_hole", "100000 bytes) is not readable"),
    ("local_get_hole", "100000 bytes) is not writable"),
];

fn over_tcp() {
    for (how, words) in NAMED.into_iter().chain(HOLES) {
        assert_says(over(TCP, how), words);
    }
    for (how, words) in [
        ("local_put_hole", "shmem_putmem: argument source"),
        ("local_get_hole", "shmem_getmem: argument dest"),
        ("local_get_constant", "shmem_getmem: argument dest"),
    ] {
        assert_says(over(TCP, how), words);
    }
    assert_says(over(TCP, "local_put_later"), "an earlier call's argument source");
}

/// UCX copies by itself, so that only the ends are examined.
fn over_ucx() {
    for (how, words) in NAMED {
        assert_says(over(UCX, how).env("UCX_TLS", "tcp,self"), words);
    }
}

/// The provider reports failures after the call without the address.
fn over_libfabric() {
    for (how, words) in NAMED.into_iter().chain(HOLES) {
        assert_says(over(RXM, how), words);
    }
    for how in ["local_put_nbi_hole", "local_put_later"] {
        assert_says(over(RXM, how), "Bad address, of local memory of an operation with PE 0");
    }
}

/// Short transfers are copied at once, which ends a process by a signal, as `memcpy` does.
fn with_checks_of_any_length() {
    for (how, words) in [
        ("local_put_short", "shmem_putmem: argument source (0x1000, 8 bytes) is not readable"),
        ("local_get_short", "shmem_getmem: argument dest (0x1000, 8 bytes) is not writable"),
        NAMED[0],
        NAMED[5],
    ] {
        assert_says(misuse(how).env("SHMEM_CHECK", 1), words);
        assert_says(over(TCP, how).env("SHMEM_CHECK", 1), words);
    }
}

testkit::module_tests! {
    over_tcp,
    over_ucx,
    over_libfabric,
    with_checks_of_any_length,
}
