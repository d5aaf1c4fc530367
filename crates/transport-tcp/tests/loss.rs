//! A PE that dies: whoever uses it, waits or computes learns of it, with the names of both; nobody hangs.

mod second;

use conformance::{Case, LIMIT, Member, verbs};
use rushmem_transport::{Error, Host, Open, Pe, RemoteAddr, Segment, Transport};
use rushmem_transport_tcp::{Tuning, open};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use std::os::fd::AsRawFd;
use std::process::exit;
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// What this process's host was told.
static TOLD: Mutex<Vec<Error>> = Mutex::new(Vec::new());

struct Recorder;

impl Host for Recorder {
    fn lost(&self, error: &Error) {
        TOLD.lock().expect("no panic holds it").push(error.clone());
    }
}

fn told() -> Vec<Error> {
    TOLD.lock().expect("no panic holds it").clone()
}

fn recording(with: &Open) -> Result<Box<dyn Transport>, Error> {
    let with = Open { host: Arc::new(Recorder), ..with.clone() };
    open(&with, Tuning::default())
}

fn is_the_right_message(error: &Error, me: usize, lost: u32) {
    assert!(matches!(error, Error::Lost(Pe(pe), _) if *pe == lost), "{error}");
    let (text, host) = (error.to_string(), std::fs::read_to_string("/proc/sys/kernel/hostname"));
    let host = host.expect("a host name").trim().to_owned();
    assert!(text.contains(&format!("PE {me} on {host}")), "{text}");
    assert!(text.contains(&format!("PE {lost} on {host}")), "{text}");
}

const DYING: usize = 3;

/// PE 3 dies in the middle; the others must learn it, each at what it does.
fn one_dies(member: &Member) {
    let me = member.me();
    let mut end = member.endpoint();
    for peer in 0..member.n_pes() {
        end.put_word(peer, 64 * me, 1);
    }
    end.quiet();
    member.barrier();
    let at = RemoteAddr { segment: Segment::Heap, offset: 4096 };
    let mut endpoint = member.transport().endpoint().expect("one");
    match me {
        DYING => exit(0),
        // Puts and completes, large and small.
        0 => {
            let data = vec![1u8; 1 << 20];
            let mut nbytes = 1;
            let error = loop {
                let put = verbs::put(&mut *endpoint, Pe(DYING as u32), at, &data[..nbytes]);
                if let Err(error) = put.and_then(|()| endpoint.quiet()) {
                    break error;
                }
                nbytes = nbytes * 5 % (1 << 20);
            };
            is_the_right_message(&error, me, DYING as u32);
            // From now on every verb says so.
            assert_eq!(endpoint.quiet(), Err(error.clone()));
            let put = verbs::put(&mut *endpoint, Pe(1), at, &data[..8]);
            assert_eq!(put, Err(error));
        }
        // Waits for a flag that nobody will set.
        1 => {
            let error = loop {
                if let Err(error) = member.transport().progress() {
                    break error;
                }
            };
            is_the_right_message(&error, me, DYING as u32);
        }
        // Computes: the service thread tells.
        _ => {
            while told().is_empty() {
                std::hint::spin_loop();
            }
        }
    }
    while told().is_empty() {
        std::thread::yield_now();
    }
    assert_eq!(told().len(), 1, "the host is told once");
    is_the_right_message(&told()[0], me, DYING as u32);
    // Nobody must hear of another loss first.
    member.barrier_without_the_last();
    std::mem::forget(end);
    exit(0);
}

#[test]
fn a_pe_that_dies_is_noticed_by_all() {
    let case = Case { sizes: &[4], heap_bytes: 2 << 20, limit: LIMIT, body: one_dies };
    conformance::run("a_pe_that_dies_is_noticed_by_all", recording, case);
}

fn second(member: &Member, tuning: Tuning, heap: &mut [u64]) -> Box<dyn Transport> {
    second::open_beside(member, tuning, heap, Arc::new(Recorder))
}

/// A PE that leaves in order is no loss, whatever the others do meanwhile.
fn one_leaves_early(member: &Member) {
    let (me, n_pes) = (member.me(), member.n_pes());
    let mut heap = vec![0u64; 512];
    let transport = second(member, Tuning::default(), &mut heap);
    let use_pes = |pes: std::ops::Range<usize>| {
        let mut endpoint = transport.endpoint().expect("an endpoint");
        for pe in pes {
            let at = RemoteAddr { segment: Segment::Heap, offset: 64 * me as u64 };
            let added = verbs::add_one(&mut *endpoint, Pe(pe as u32), at);
            added.expect("a PE that is there");
        }
    };
    use_pes(0..n_pes);
    member.barrier();
    if me == 0 {
        drop(transport);
        member.barrier();
        member.barrier();
    } else {
        // The farewell of PE 0 is here when this barrier is over.
        member.barrier();
        for _ in 0..10_000 {
            transport.progress().expect("a farewell is no loss");
        }
        use_pes(1..n_pes);
        assert_eq!(told(), Vec::new());
        member.barrier();
        drop(transport);
    }
    drop(heap);
}

/// PE 0 uses a PE that has left, which fails; PE 1, which it used before, must not take PE 0 for lost.
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
    let mut endpoint = transport.endpoint().expect("an endpoint");
    if member.me() == 0 {
        let at = RemoteAddr { segment: Segment::Heap, offset: 0 };
        verbs::add_one(&mut *endpoint, Pe(1), at).expect("a PE that is there");
        let left = verbs::add_one(&mut *endpoint, Pe(LEFT), at);
        assert!(matches!(left, Err(Error::Lost(Pe(LEFT), _))), "{left:?}");
    }
    member.barrier();
    if member.me() == 1 {
        for _ in 0..10_000 {
            transport.progress().expect("PE 0 is there");
        }
        assert_eq!(told(), Vec::new());
    }
    member.barrier();
}

#[test]
fn a_link_that_fails_takes_no_other_along() {
    let case = Case { sizes: &[3], heap_bytes: 1 << 20, limit: LIMIT, body: one_link_fails };
    conformance::run("a_link_that_fails_takes_no_other_along", recording, case);
}

/// From now on this process can have so many descriptors more.
fn leave_descriptors(more: u64) {
    // The lowest number that is free.
    let free = std::fs::File::open("/dev/null").expect("a file").as_raw_fd() as u64;
    let limit = getrlimit(Resource::Nofile);
    let current = Some(free + more);
    setrlimit(Resource::Nofile, Rlimit { current, ..limit }).expect("a lower limit");
}

/// PE 2 has one descriptor left: it lets PE 0 in, and says that it cannot let PE 1 in, who waits for as long.
fn one_place_left(member: &Member) {
    const TARGET: u32 = 2;
    let mut heap = vec![0u64; 512];
    let refuse_limit = Duration::from_secs(4);
    let transport = second(member, Tuning { refuse_limit, ..Tuning::default() }, &mut heap);
    if member.me() == TARGET as usize {
        leave_descriptors(1);
    }
    member.barrier();
    let mut endpoint = transport.endpoint().expect("an endpoint");
    let at = RemoteAddr { segment: Segment::Heap, offset: 0 };
    let mut add = || verbs::add_one(&mut *endpoint, Pe(TARGET), at);
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
            while told().is_empty() {
                std::thread::yield_now();
            }
            let text = told()[0].to_string();
            assert!(text.contains("PE 2 on") && text.contains("ulimit -n"), "{text}");
        }
    }
    exit(0);
}

#[test]
fn the_last_descriptor_lets_a_peer_in() {
    let case = Case { sizes: &[3], heap_bytes: 1 << 20, limit: LIMIT, body: one_place_left };
    conformance::run("the_last_descriptor_lets_a_peer_in", recording, case);
}

/// PE 0 has no descriptor left to connect with: it says so of itself.
fn nothing_to_connect_with(member: &Member) {
    let mut heap = vec![0u64; 512];
    let transport = second(member, Tuning::default(), &mut heap);
    member.barrier();
    if member.me() == 0 {
        leave_descriptors(0);
        let mut endpoint = transport.endpoint().expect("an endpoint");
        let at = RemoteAddr { segment: Segment::Heap, offset: 0 };
        let used = verbs::add_one(&mut *endpoint, Pe(1), at);
        let Err(error @ Error::Lost(Pe(0), _)) = used else { panic!("{used:?}") };
        let text = error.to_string();
        assert!(text.contains("PE 0 on") && text.contains("ulimit -n"), "{text}");
        assert!(!text.contains("firewall"), "{text}");
    }
    exit(0);
}

#[test]
fn a_pe_that_cannot_connect_says_so_of_itself() {
    let case =
        Case { sizes: &[2], heap_bytes: 1 << 20, limit: LIMIT, body: nothing_to_connect_with };
    conformance::run("a_pe_that_cannot_connect_says_so_of_itself", recording, case);
}

/// PE 1 has no descriptor left when PE 0 connects: it says so, with the cure.
fn no_room_at_the_door(member: &Member) {
    let mut heap = vec![0u64; 512];
    let refuse_limit = Duration::from_secs(1);
    let transport = second(member, Tuning { refuse_limit, ..Tuning::default() }, &mut heap);
    if member.me() == 0 {
        member.barrier();
        let mut endpoint = transport.endpoint().expect("an endpoint");
        let at = RemoteAddr { segment: Segment::Heap, offset: 0 };
        let used = verbs::add_one(&mut *endpoint, Pe(1), at);
        assert!(matches!(used, Err(Error::Lost(Pe(1), _))), "{used:?}");
        exit(0);
    }
    leave_descriptors(0);
    member.barrier();
    while told().is_empty() {
        std::thread::yield_now();
    }
    let text = told()[0].to_string();
    assert!(text.contains("PE 1 on") && text.contains("ulimit -n"), "{text}");
    exit(0);
}

#[test]
fn a_pe_without_descriptors_says_so() {
    let case = Case { sizes: &[2], heap_bytes: 1 << 20, limit: LIMIT, body: no_room_at_the_door };
    conformance::run("a_pe_without_descriptors_says_so", recording, case);
}

#[test]
fn a_pe_that_leaves_is_no_loss() {
    let case = Case { sizes: &[2, 3], heap_bytes: 1 << 20, limit: LIMIT, body: one_leaves_early };
    conformance::run("a_pe_that_leaves_is_no_loss", recording, case);
}
