//! Requests that no PE sends: their target says what is wrong and who sent it, and none of them is
//! taken for complete. A runtime ends the job then.
//!
//! Their origin takes the target's segment for larger than it is: the target publishes the key of a
//! larger one, of a second transport that nobody uses.
#![allow(unsafe_code)]

use crate::Member;
use rushmem_transport::{
    AmoOp, AmoRequest, AmoWidth, Directory, Endpoint, Error, OldValue, Pe, PeRecord, RemoteAddr,
    Segment, Transport,
};
use std::process::exit;
use std::sync::Arc;
use std::thread;

const ORIGIN: Pe = Pe(0);
const TARGET: Pe = Pe(1);
/// Bytes of a heap, and of what it is taken for.
const HEAP: usize = 4096;
const PUBLISHED: usize = 1 << 20;
/// A word that is not there.
const BEYOND: RemoteAddr = RemoteAddr { segment: Segment::Heap, offset: PUBLISHED as u64 / 2 };

/// Opens a transport with memory that is never freed; its key.
fn open(member: &Member, nbytes: usize) -> (Box<dyn Transport>, Vec<u8>) {
    let mut transport = member.open_beside(member.n_pes() as u32);
    let heap = vec![0u64; nbytes / 8].leak();
    // SAFETY: it is never freed.
    let key = unsafe { transport.register(Segment::Heap, heap.as_mut_ptr().cast(), nbytes) };
    (transport, key.expect("memory").0)
}

/// Returns a transport by which the PEs take each other's heaps for larger than they are.
fn connected(member: &Member) -> Box<dyn Transport> {
    let (mut transport, _) = open(member, HEAP);
    let (unused, key) = open(member, PUBLISHED);
    std::mem::forget(unused);
    let (addresses, keys) = (member.exchange(&transport.address()), member.exchange(&key));
    let records = addresses.iter().zip(&keys);
    let records = records.map(|(address, heap)| PeRecord { address, keys: [heap, &[], &[]] });
    let directory = Directory::new(Directory::encode(records));
    transport.connect(Arc::new(directory)).expect("addresses");
    member.barrier();
    transport
}

/// Starts an addition to the word that is not there. An old value that it fetches goes to memory
/// that is never freed.
fn add(endpoint: &mut dyn Endpoint, fetches: bool) -> Result<(), Error> {
    let fetched = Box::leak(Box::new(0u64));
    let old = match fetches {
        true => OldValue::AtQuiet((&raw mut *fetched).cast()),
        false => OldValue::Ignored,
    };
    let (width, op) = (AmoWidth::Eight, AmoOp::Add);
    let request = AmoRequest { dest: BEYOND, width, op, operand: 1, condition: 0, old };
    // SAFETY: the old value goes to memory that is never freed.
    unsafe { endpoint.amo(TARGET, request) }.map(|_| ())
}

/// Returns the target's error, once it has one.
fn until_lost(transport: &dyn Transport) -> Error {
    loop {
        if let Err(error) = transport.progress() {
            return error;
        }
        thread::yield_now();
    }
}

fn check_message(error: &Error) {
    assert!(matches!(error, Error::Lost(ORIGIN, _)), "{error}");
    let text = error.to_string();
    let said = ["invalid offset", "damaged batch"].iter().any(|what| text.contains(what));
    assert!(said && text.contains("from PE 1 on ") && text.contains(" to PE 0 on "), "{text}");
}

/// Each request is refused, whether it travels alone, in a batch or in a session.
pub(crate) fn requests(member: &Member) {
    if !member.caps().amos_compose_with_cpu {
        // The network carries them out, and no message goes to the target's CPU.
        return;
    }
    for (fetches, in_session) in [(false, false), (true, false), (true, true)] {
        let transport = connected(member);
        if member.me() == TARGET.index() {
            let error = until_lost(&*transport);
            check_message(&error);
            assert_eq!(transport.progress(), Err(error), "from now on");
            member.barrier();
        } else {
            let mut endpoint = transport.endpoint().expect("an endpoint");
            endpoint.session(in_session).expect("an endpoint that is quiet");
            // The second one finds that more are to follow, so that they are gathered.
            let added = (0..2).try_for_each(|_| add(&mut *endpoint, fetches));
            let mut is_quiet = added.and_then(|()| endpoint.is_quiet());
            member.poll_until_barrier(|| {
                if is_quiet == Ok(false) {
                    is_quiet = endpoint.is_quiet();
                }
            });
            match is_quiet {
                Ok(quiet) => assert!(!quiet, "a request was lost"),
                Err(error) => assert!(matches!(error, Error::Lost(TARGET, _)), "{error}"),
            }
            // To complete what was issued would take forever.
            std::mem::forget(endpoint);
        }
        std::mem::forget(transport);
    }
    member.barrier();
    exit(0);
}

/// The target ends after its message, as a runtime has it do: a call of the origin that waits
/// returns the loss.
///
/// # Panics
/// If the target has another error, or the origin none.
pub fn target_ends(member: &Member) {
    let transport = connected(member);
    if member.me() == TARGET.index() {
        check_message(&until_lost(&*transport));
        exit(0);
    }
    let mut endpoint = transport.endpoint().expect("an endpoint");
    let added = (0..2).try_for_each(|_| add(&mut *endpoint, true));
    let error = added.and_then(|()| endpoint.quiet()).expect_err("a loss");
    assert!(matches!(error, Error::Lost(TARGET, _)), "{error}");
    exit(0);
}
