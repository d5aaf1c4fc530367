//! A PE that dies: whoever uses it, waits or computes learns of it, with the names of both; nobody hangs.

use rushmem_transport::conformance::{self, Case, LIMIT, Member};
use rushmem_transport::{
    AmoOp, AmoWidth, EndpointOptions, Error, Host, Key, Open, Pe, RemoteAddr, Segment, Transport,
};
use rushmem_transport_tcp::{Tuning, open};
use std::process::exit;
use std::sync::{Arc, Mutex};

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

const DYING: usize = 2;

/// PE 2 dies in the middle; the others must learn it, each at what it does.
fn one_dies(member: &Member) {
    let me = member.me();
    let mut end = member.endpoint();
    for peer in 0..member.n_pes() {
        end.put_word(peer, 64 * me, 1);
    }
    end.quiet();
    member.barrier();
    let at = RemoteAddr { segment: Segment::Heap, offset: 4096 };
    let mut endpoint = member.transport().endpoint(EndpointOptions::default()).expect("one");
    match me {
        DYING => exit(0),
        // Puts and completes, large and small.
        0 => {
            let data = vec![1u8; 1 << 20];
            let mut nbytes = 1;
            let error = loop {
                // SAFETY: within a live buffer.
                let put = unsafe { endpoint.put(Pe(DYING as u32), at, data.as_ptr(), nbytes) };
                if let Err(error) = put.and_then(|()| endpoint.quiet()) {
                    break error;
                }
                nbytes = nbytes * 5 % (1 << 20);
            };
            is_the_right_message(&error, me, DYING as u32);
            // From now on every verb says so.
            assert_eq!(endpoint.quiet(), Err(error.clone()));
            // SAFETY: within a live buffer.
            let put = unsafe { endpoint.put(Pe(1), at, data.as_ptr(), 8) };
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
    // The meeting at the end of a case lacks a PE; and the others must not hear of another loss first.
    std::mem::forget(end);
    exit(0);
}

#[test]
fn a_pe_that_dies_is_noticed_by_all() {
    let case = Case { sizes: &[4], heap_bytes: 2 << 20, limit: LIMIT, body: one_dies };
    conformance::run("loss::a_pe_that_dies_is_noticed_by_all", recording, case);
}

/// A PE that leaves in order is no loss, whatever the others do meanwhile. A second transport beside the
/// case's own, since a member keeps that to the end.
fn one_leaves_early(member: &Member) {
    let (me, n_pes) = (member.me(), member.n_pes());
    let with = Open {
        pe: Pe(me as u32),
        n_pes: n_pes as u32,
        secret: [3; 32],
        one_machine: true,
        crowded: true,
        host: Arc::new(Recorder),
    };
    let mut heap = vec![0u64; 512];
    let mut transport = open(&with, Tuning::default()).expect("sockets");
    // SAFETY: dropped after the transport, and used by nobody else meanwhile.
    let key = unsafe { transport.register(Segment::Heap, heap.as_mut_ptr().cast(), 4096) };
    let keys = member.exchange(&key.expect("memory").0);
    for (pe, address) in member.exchange(&transport.address()).iter().enumerate() {
        let key = Key(keys[pe].clone());
        transport.connect(Pe(pe as u32), address, &[(Segment::Heap, key)]).expect("an address");
    }
    member.barrier();
    let use_pes = |pes: std::ops::Range<usize>| {
        let mut endpoint = transport.endpoint(EndpointOptions::default()).expect("an endpoint");
        for pe in pes {
            let at = RemoteAddr { segment: Segment::Heap, offset: 64 * me as u64 };
            let added = endpoint.amo(Pe(pe as u32), at, AmoWidth::Eight, AmoOp::Add, 1, 0);
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

#[test]
fn a_pe_that_leaves_is_no_loss() {
    let case = Case { sizes: &[2, 3], heap_bytes: 1 << 20, limit: LIMIT, body: one_leaves_early };
    conformance::run("loss::a_pe_that_leaves_is_no_loss", recording, case);
}
