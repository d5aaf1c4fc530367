//! A PE whose first attempts to connect fail: a later one succeeds, and what was put arrives.

use conformance::{Case, LIMIT, Member};
use rushmem_system::limits::getrlimit;
use rushmem_transport::{Error, Host, Open, Transport};
use rushmem_transport_ucx::{PROVIDER, Tuning, open};
use rustix::process::{Resource, Rlimit, setrlimit};
use std::fs::File;
use std::os::fd::AsRawFd;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

struct Asks;

impl Host for Asks {
    fn variable(&self, name: &str) -> Option<String> {
        (name == "SHMEM_UCX_TLS").then(|| "tcp,self".to_owned())
    }
}

fn over_tcp(with: &Open) -> Result<Box<dyn Transport>, Error> {
    let over_tcp = Open {
        host: Arc::new(Asks),
        ..with.clone()
    };
    open(&over_tcp, Tuning::default())
}

fn needs() {
    if let Err(why) = (PROVIDER.available)(&Asks) {
        testkit::absent(why);
    }
    // Seen with 1.22: "getting perf estimations failed" while there is no descriptor, and then
    // "cannot find remote protocol for: put" over each later endpoint.
    if ucx_sys::open().is_ok_and(|ucp| ucx_sys::version(ucp) >= (1, 22, 0)) {
        testkit::absent("UCX from 1.22 on keeps what it chose while it had no descriptors");
    }
}

/// PE 0 has no file descriptor for a socket when it begins to connect, and gets some later.
fn has_no_descriptors_at_first(member: &Member) {
    let mut endpoint = member.endpoint();
    if member.me() == 0 {
        let usual = getrlimit(Resource::Nofile);
        let lowest_free = File::open("/dev/null").expect("a descriptor").as_raw_fd();

        let none = Rlimit {
            current: Some(lowest_free as u64),
            ..usual
        };
        setrlimit(Resource::Nofile, none).expect("it is lower");
        File::open("/dev/null").expect_err("there is no descriptor");

        let raise = thread::spawn(move || {
            // Long enough for several attempts, and much shorter than the limit of all attempts.
            thread::sleep(Duration::from_millis(500));
            setrlimit(Resource::Nofile, usual)
        });

        endpoint.put_word(1, 0, 7);
        endpoint.quiet();
        raise
            .join()
            .expect("no panic")
            .expect("it is as high as before");
    }

    member.barrier();
    assert!(member.me() == 0 || member.fetch::<u64>(0) == 7);
}

fn a_later_attempt_connects() {
    let body = has_no_descriptors_at_first;
    let case = Case {
        sizes: &[2],
        heap_bytes: 1 << 20,
        limit: LIMIT,
        body,
    };
    conformance::run_where(needs, "a_later_attempt_connects", over_tcp, case);
}

testkit::tests! {
    a_later_attempt_connects,
}
