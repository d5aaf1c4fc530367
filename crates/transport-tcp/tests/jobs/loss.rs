//! A PE that dies: each PE that uses it, waits or computes gets an error that names both, and none
//! hangs. A PE that cannot connect, or cannot accept a connection, says why.

use conformance::loss::{LossCase, Recorder, losses, one_dies, one_leaves, open_beside};
use conformance::{Case, LIMIT, Member, in_sessions, verbs};
use rushmem_system::limits::getrlimit;
use rushmem_transport::{EndpointUser, Error, Open, Pe, RemoteAddr, Segment, Transport};
use rushmem_transport_tcp::{Tuning, open};
use rustix::process::{Resource, Rlimit, setrlimit};
use std::os::fd::AsRawFd;
use std::process::exit;
use std::sync::Arc;
use std::thread::sleep;
use std::time::Duration;

/// The time between two looks whether a loss was reported.
const POLL_INTERVAL: Duration = Duration::from_millis(2);

const START: RemoteAddr = RemoteAddr {
    segment: Segment::Heap,
    offset: 0,
};

fn recording(with: &Open) -> Result<Box<dyn Transport>, Error> {
    let with = Open {
        host: Arc::new(Recorder(&[])),
        ..with.clone()
    };
    open(&with, Tuning::default())
}

#[test]
fn a_pe_that_dies_is_noticed_by_all() {
    let body = |member: &_| {
        one_dies(
            member,
            &[LossCase::Puts, LossCase::Waits, LossCase::Computes],
        )
    };
    let case = Case {
        sizes: &[4],
        heap_bytes: 2 << 20,
        limit: LIMIT,
        body,
    };
    conformance::run("loss::a_pe_that_dies_is_noticed_by_all", recording, case);
}

/// Checks that the death of a PE is noticed where operations on it are batched.
#[test]
fn a_pe_that_dies_is_noticed_in_sessions() {
    let body = |member: &_| one_dies(member, &[LossCase::Puts, LossCase::Computes]);
    let case = Case {
        sizes: &[3],
        heap_bytes: 2 << 20,
        limit: LIMIT,
        body,
    };
    let open = |with: &Open| recording(with).map(in_sessions);
    conformance::run("loss::a_pe_that_dies_is_noticed_in_sessions", open, case);
}

fn second(member: &Member, tuning: Tuning, heap: &mut [u64]) -> Box<dyn Transport> {
    open_beside(member, heap, Arc::new(Recorder(&[])), |with| {
        open(with, tuning)
    })
}

fn leaves(member: &Member) {
    let mut heap = vec![0u64; 512];
    one_leaves(member, second(member, Tuning::default(), &mut heap));
}

/// PE 0 uses a PE that has left, which fails. PE 1, which PE 0 used before, must not report the
/// loss of PE 0.
fn one_link_fails(member: &Member) {
    const LEFT: u32 = 2;
    let mut heap = vec![0u64; 512];
    let transport = second(member, Tuning::default(), &mut heap);
    if member.me() == LEFT as usize {
        drop(transport);
        member.barrier();
        member.barrier();
        member.barrier();
        return;
    }
    member.barrier();

    let mut endpoint = transport
        .endpoint(EndpointUser::Context)
        .expect("an endpoint");
    if member.me() == 0 {
        verbs::add_one(&mut *endpoint, Pe(1), START).expect("a PE that is there");
        let left = verbs::add_one(&mut *endpoint, Pe(LEFT), START);
        assert!(matches!(left, Err(Error::Lost(Pe(LEFT), _))), "{left:?}");
    }
    member.barrier();

    if member.me() == 1 {
        for _ in 0..10_000 {
            transport.progress().expect("PE 0 is there");
        }
        assert_eq!(losses(), Vec::new());
    }
    member.barrier();
}

#[test]
fn a_link_that_fails_takes_no_other_along() {
    let case = Case {
        sizes: &[3],
        heap_bytes: 1 << 20,
        limit: LIMIT,
        body: one_link_fails,
    };
    conformance::run(
        "loss::a_link_that_fails_takes_no_other_along",
        recording,
        case,
    );
}

/// Limits this process to `more` descriptors in addition to those that are open.
fn leave_descriptors(more: u64) {
    // The lowest number that is free.
    let free = std::fs::File::open("/dev/null")
        .expect("a file")
        .as_raw_fd() as u64;

    let limit = getrlimit(Resource::Nofile);
    let current = Some(free + more);
    setrlimit(Resource::Nofile, Rlimit { current, ..limit }).expect("a lower limit");
}

/// PE 2 has one descriptor left: it accepts the connection of PE 0, and reports that it cannot
/// accept that of PE 1, which waits until then.
fn one_place_left(member: &Member) {
    const TARGET: u32 = 2;
    let tuning = Tuning {
        refuse_limit: Duration::from_secs(1),
        ..Tuning::default()
    };
    let mut heap = vec![0u64; 512];
    let transport = second(member, tuning, &mut heap);
    if member.me() == TARGET as usize {
        leave_descriptors(1);
    }
    member.barrier();

    let mut endpoint = transport
        .endpoint(EndpointUser::Context)
        .expect("an endpoint");
    let mut add = || verbs::add_one(&mut *endpoint, Pe(TARGET), START);
    if member.me() == 0 {
        add().expect("a place is left");
    }
    member.barrier();

    match member.me() as u32 {
        0 => while add().is_ok() {},
        1 => {
            add().expect_err("no place is left");
        }
        _ => {
            while losses().is_empty() {
                sleep(POLL_INTERVAL);
            }

            let text = losses()[0].to_string();
            assert!(
                text.contains("PE 2 on") && text.contains("ulimit -n"),
                "{text}"
            );
        }
    }
    exit(0);
}

#[test]
fn the_last_descriptor_lets_a_peer_in() {
    let case = Case {
        sizes: &[3],
        heap_bytes: 1 << 20,
        limit: LIMIT,
        body: one_place_left,
    };
    conformance::run("loss::the_last_descriptor_lets_a_peer_in", recording, case);
}

/// PE 0 has no descriptor left to connect with, and reports that as its own failure.
fn nothing_to_connect_with(member: &Member) {
    let mut heap = vec![0u64; 512];
    let transport = second(member, Tuning::default(), &mut heap);
    member.barrier();

    if member.me() == 0 {
        leave_descriptors(0);
        let mut endpoint = transport
            .endpoint(EndpointUser::Context)
            .expect("an endpoint");
        let used = verbs::add_one(&mut *endpoint, Pe(1), START);
        let Err(error @ Error::Lost(Pe(0), _)) = used else {
            panic!("{used:?}")
        };

        let text = error.to_string();
        assert!(
            text.contains("PE 0 on") && text.contains("ulimit -n"),
            "{text}"
        );
        assert!(!text.contains("firewall"), "{text}");
    }
    exit(0);
}

#[test]
fn a_pe_that_cannot_connect_says_so_of_itself() {
    let case = Case {
        sizes: &[2],
        heap_bytes: 1 << 20,
        limit: LIMIT,
        body: nothing_to_connect_with,
    };
    conformance::run(
        "loss::a_pe_that_cannot_connect_says_so_of_itself",
        recording,
        case,
    );
}

/// PE 1 has no descriptor left when PE 0 connects, and reports that with the remedy.
fn no_descriptor_to_accept_with(member: &Member) {
    let tuning = Tuning {
        refuse_limit: Duration::from_secs(1),
        ..Tuning::default()
    };
    let mut heap = vec![0u64; 512];
    let transport = second(member, tuning, &mut heap);

    if member.me() == 0 {
        member.barrier();
        let mut endpoint = transport
            .endpoint(EndpointUser::Context)
            .expect("an endpoint");
        let used = verbs::add_one(&mut *endpoint, Pe(1), START);
        assert!(matches!(used, Err(Error::Lost(Pe(1), _))), "{used:?}");
        exit(0);
    }

    leave_descriptors(0);
    member.barrier();
    while losses().is_empty() {
        sleep(POLL_INTERVAL);
    }

    let text = losses()[0].to_string();
    assert!(
        text.contains("PE 1 on") && text.contains("ulimit -n"),
        "{text}"
    );
    exit(0);
}

#[test]
fn a_pe_without_descriptors_says_so() {
    let case = Case {
        sizes: &[2],
        heap_bytes: 1 << 20,
        limit: LIMIT,
        body: no_descriptor_to_accept_with,
    };
    conformance::run("loss::a_pe_without_descriptors_says_so", recording, case);
}

#[test]
fn a_request_that_cannot_be_carried_out_ends_the_wait_for_it() {
    let body = conformance::malformed::target_ends;
    let case = Case {
        sizes: &[2],
        heap_bytes: 1 << 20,
        limit: LIMIT,
        body,
    };
    let test = "loss::a_request_that_cannot_be_carried_out_ends_the_wait_for_it";
    conformance::run(test, recording, case);
}

#[test]
fn a_pe_that_leaves_is_no_loss() {
    let case = Case {
        sizes: &[2, 3],
        heap_bytes: 1 << 20,
        limit: LIMIT,
        body: leaves,
    };
    conformance::run("loss::a_pe_that_leaves_is_no_loss", recording, case);
}
