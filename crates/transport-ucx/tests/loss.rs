//! A PE that dies: whoever uses it learns of it, with the names of both, and nobody hangs. A PE that leaves
//! is no loss.
#![allow(unsafe_code)]

use conformance::{Case, LIMIT, Member, verbs};
use rushmem_transport::{
    Amos, Completion, Directory, Error, Host, LocalBuf, Open, Pe, PeRecord, Put, RemoteAddr,
    Segment, Transport,
};
use rushmem_transport_ucx::{Tuning, open};
use std::process::exit;
use std::sync::{Arc, Mutex};

/// What this process's host was told.
static TOLD: Mutex<Vec<Error>> = Mutex::new(Vec::new());

struct Recorder;

impl Host for Recorder {
    fn variable(&self, name: &str) -> Option<String> {
        (name == "SHMEM_UCX_TLS").then(|| "tcp,self".to_owned())
    }

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

/// A UCX must be here that survives the loss of a peer.
fn needs() {
    let why = match ucx_sys::open() {
        Err(why) => why,
        // Seen with 1.13.1: tcp_ep.c, "Assertion `!(ep->flags & UCT_TCP_EP_FLAG_CTX_TYPE_TX)' failed".
        Ok(ucp) if ucx_sys::version(ucp) < (1, 20, 0) => {
            "UCX before 1.20 may abort by an assertion of its own when a peer is gone".to_owned()
        }
        Ok(_) => return,
    };
    testkit::absent(why);
}

const GONE: usize = 3;

fn is_the_right_message(error: &Error, me: usize) {
    assert!(matches!(error, Error::Lost(Pe(pe), _) if *pe as usize == GONE), "{error}");
    let (text, host) = (error.to_string(), std::fs::read_to_string("/proc/sys/kernel/hostname"));
    let host = host.expect("a host name").trim().to_owned();
    assert!(text.contains(&format!("PE {me} on {host}")), "{text}");
    assert!(text.contains(&format!("PE {GONE} on {host}")), "{text}");
}

/// PE 3 dies in the middle; PE 0 puts and completes, PE 1 gets, PE 2 computes after a put that is not
/// complete.
fn one_dies(member: &Member) {
    let me = member.me();
    let mut end = member.endpoint();
    for peer in 0..member.n_pes() {
        end.put_word(peer, 64 * me, 1);
    }
    end.quiet();
    member.barrier();
    if me == GONE {
        exit(0);
    }
    let at = RemoteAddr { segment: Segment::Heap, offset: 4096 };
    let mut endpoint = member.transport().endpoint().expect("one");
    let mut data = vec![1u8; 1 << 20];
    let gone = Pe(GONE as u32);
    let error = match me {
        0 => {
            let mut nbytes = 1;
            loop {
                let put = verbs::put(&mut *endpoint, gone, at, &data[..nbytes]);
                if let Err(error) = put.and_then(|()| endpoint.quiet()) {
                    break error;
                }
                nbytes = nbytes * 5 % (1 << 20);
            }
        }
        1 => loop {
            if let Err(error) = verbs::get(&mut *endpoint, gone, &mut data[..1 << 19], at) {
                break error;
            }
        },
        // The service thread completes what it left, and finds out.
        _ => loop {
            let source = LocalBuf::source(data.as_ptr(), 1 << 19);
            let put = Put { dest: at, source, completion: Completion::AtQuiet };
            // SAFETY: the buffer is not dropped before the end.
            let put = unsafe { endpoint.put(gone, put) };
            if let Some(error) = put.err().or_else(|| told().pop()) {
                break error;
            }
            std::thread::sleep(std::time::Duration::from_millis(1));
        },
    };
    is_the_right_message(&error, me);
    // From now on every verb says so.
    assert_eq!(endpoint.quiet(), Err(error.clone()));
    let put = verbs::put(&mut *endpoint, Pe((me as u32 + 1) % 3), at, &data[..8]);
    assert_eq!(put, Err(error));
    assert_eq!(told().len(), 1, "the host is told once");
    is_the_right_message(&told()[0], me);
    // Nobody must hear of another loss first.
    member.barrier_without_the_last();
    std::mem::forget(end);
    exit(0);
}

fn a_pe_that_dies_is_noticed_by_who_uses_it() {
    let case = Case { sizes: &[4], heap_bytes: 2 << 20, limit: LIMIT, body: one_dies };
    let test = "a_pe_that_dies_is_noticed_by_who_uses_it";
    conformance::run_where(needs, test, recording, case);
}

/// PE 0 leaves after everybody used everybody; the others go on without it. A second transport beside the
/// case's own, since a member keeps that to the end.
fn one_leaves(member: &Member) {
    let (me, n_pes) = (member.me(), member.n_pes());
    let with = Open {
        pe: Pe(me as u32),
        n_pes: n_pes as u32,
        secret: [3; 32],
        one_machine: true,
        oversubscribed: true,
        amos: Amos::Software,
        host: Arc::new(Recorder),
    };
    let mut heap = vec![0u64; 512];
    let mut transport = open(&with, Tuning::default()).expect("UCX");
    // SAFETY: dropped after the transport, and used by nobody else meanwhile.
    let key = unsafe { transport.register(Segment::Heap, heap.as_mut_ptr().cast(), 4096) };
    let keys = member.exchange(&key.expect("memory").0);
    let addresses = member.exchange(&transport.address());
    let records = addresses.iter().zip(&keys);
    let records = records.map(|(address, heap)| PeRecord { address, keys: [heap, &[], &[]] });
    let directory = Directory::new(Directory::encode(records));
    transport.connect(Arc::new(directory)).expect("addresses");
    member.barrier();
    let use_pes = |pes: std::ops::Range<usize>| {
        let mut endpoint = transport.endpoint().expect("an endpoint");
        for pe in pes {
            let at = RemoteAddr { segment: Segment::Heap, offset: 64 * me as u64 };
            let put = verbs::put(&mut *endpoint, Pe(pe as u32), at, &1u64.to_ne_bytes());
            put.expect("a PE that is there");
            let added = verbs::add_one(&mut *endpoint, Pe(pe as u32), at);
            added.expect("a PE that is there");
        }
        endpoint.quiet().expect("PEs that are there");
    };
    use_pes(0..n_pes);
    member.barrier();
    if me == 0 {
        drop(transport);
        member.barrier();
        member.barrier();
    } else {
        // PE 0 is gone when this barrier is over.
        member.barrier();
        for _ in 0..10_000 {
            transport.progress().expect("who leaves is no loss");
        }
        use_pes(1..n_pes);
        assert_eq!(told(), Vec::new());
        member.barrier();
        drop(transport);
    }
    drop(heap);
}

fn a_pe_that_leaves_is_no_loss() {
    let case = Case { sizes: &[2, 3], heap_bytes: 1 << 20, limit: LIMIT, body: one_leaves };
    conformance::run_where(needs, "a_pe_that_leaves_is_no_loss", recording, case);
}

testkit::tests! {
    a_pe_that_dies_is_noticed_by_who_uses_it,
    a_pe_that_leaves_is_no_loss,
}
