//! Requests that no PE sends, and messages longer than the target's buffers. Each is refused, or,
//! if it is only longer than the buffers, may be carried out. A refused one never counts as
//! complete, and the target, or the origin if it finds the fault first, reports the fault and both
//! PEs. A runtime would end the job then.
//!
//! For malformed requests, the target publishes the key of a larger segment, of a second transport
//! that nobody uses, so that the origin takes the target's segment for larger than it is. For long
//! messages, the target has smaller limits than the origin.
#![allow(unsafe_code)]

use crate::member::heap;
use crate::{Member, Opener, job};
use rushmem_transport::mem::Amo;
use rushmem_transport::{
    AmoOp, AmoRequest, AmoWidth, Completion, DestBuf, Endpoint, EndpointUser, Error, Follows,
    OldValue, Pe, Put, RemoteAddr, Segment, SourceBuf, StridedBlocks, Transport,
};
use std::process::exit;
use std::thread;

const ORIGIN: Pe = Pe(0);
const TARGET: Pe = Pe(1);
/// Bytes of a heap, and of the larger one whose key is published instead.
const HEAP: usize = 1 << 16;
const PUBLISHED: usize = 1 << 20;
/// A word beyond the heap, but within the larger one.
const BEYOND: RemoteAddr = RemoteAddr {
    segment: Segment::Heap,
    offset: PUBLISHED as u64 / 2,
};
/// The offset of a word of the target's heap over the case's own transport, in which the origin
/// stores the number of the round in which it had an error.
const REPORTED: usize = 0;

/// Opens a transport with memory that is never freed. Returns it, the memory, and its key.
fn open(member: &Member, nbytes: usize) -> (Box<dyn Transport>, *mut u64, Vec<u8>) {
    let mut transport = member.open_beside(member.n_pes() as u32);
    let heap = vec![0u64; nbytes / 8].leak().as_mut_ptr();
    // SAFETY: it is never freed.
    let key = unsafe { transport.register(Segment::Heap, heap.cast(), nbytes) };
    (transport, heap, key.expect("memory").0)
}

/// Returns a connected transport and its heap. The other PEs access the heap by `key`, or, if
/// `None`, by its own key.
fn connected(member: &Member, key: Option<Vec<u8>>) -> (Box<dyn Transport>, *mut u64) {
    let (mut transport, heap, own_key) = open(member, HEAP);
    member.connect_beside(&mut *transport, &key.unwrap_or(own_key));
    (transport, heap)
}

/// Returns a connected transport for which each PE publishes the key of a larger heap.
fn connected_with_larger_key(member: &Member) -> Box<dyn Transport> {
    let (unused, _, key) = open(member, PUBLISHED);
    std::mem::forget(unused);
    connected(member, Some(key)).0
}

/// A request that cannot be carried out.
#[derive(Clone, Copy, Debug)]
enum Malformed {
    /// An addition to the word [`BEYOND`].
    Add,
    /// The same, with the old value fetched.
    FetchAdd,
    /// A put of this many bytes with a signal, both beyond the segment.
    Data(usize),
}

impl Malformed {
    /// Starts the request. The memory that it uses is never freed.
    fn start(self, endpoint: &mut dyn Endpoint) -> Result<(), Error> {
        let old = match self {
            Malformed::Data(nbytes) => return signal(endpoint, BEYOND, nbytes, BEYOND),
            Malformed::Add => OldValue::Ignored,
            Malformed::FetchAdd => {
                let word = Box::leak(Box::new([0u8; 8])).as_mut_ptr();
                // SAFETY: memory that is never freed.
                OldValue::AtQuiet(unsafe { DestBuf::new(word, 8) })
            }
        };
        let request = AmoRequest {
            dest: BEYOND,
            width: AmoWidth::Eight,
            op: AmoOp::Add,
            operand: 1,
            condition: 0,
        };
        endpoint.amo(TARGET, request, old).map(|_| ())
    }
}

/// Starts to put data of this many bytes, and to add one to a word after them.
fn signal(
    endpoint: &mut dyn Endpoint,
    dest: RemoteAddr,
    nbytes: usize,
    word: RemoteAddr,
) -> Result<(), Error> {
    let data = vec![1u8; nbytes].leak();
    let put = Put {
        remote: dest,
        // SAFETY: memory that is never freed.
        local: unsafe { SourceBuf::new(data.as_ptr(), nbytes) },
        completion: Completion::AtQuiet,
    };
    let signal = AmoRequest::of_word(word, AmoOp::Add, 1);
    endpoint.put_signal(TARGET, put, signal, Follows::Data)
}

/// Returns the target's error, once it has one.
fn until_lost(transport: &dyn Transport) -> Error {
    let decided = until_decided(transport, || false);
    decided.expect("decided by nothing else")
}

/// Returns the target's error, unless something else `is_decided` first.
fn until_decided(transport: &dyn Transport, is_decided: impl Fn() -> bool) -> Option<Error> {
    while !is_decided() {
        if let Err(error) = transport.progress() {
            return Some(error);
        }
        thread::yield_now();
    }
    None
}

/// Checks that the error of PE `me` is the loss of the other PE for one of these reasons.
fn check_message(error: &Error, (me, lost): (Pe, Pe), reasons: &[&str]) {
    assert!(
        matches!(error, Error::Lost(pe, _) if *pe == lost),
        "{error}"
    );
    let (text, between) = (
        error.to_string(),
        (format!("from PE {me} on "), format!(" to PE {lost} on ")),
    );
    let said = reasons.iter().any(|reason| text.contains(reason));
    assert!(
        said && text.contains(&between.0) && text.contains(&between.1),
        "{text}"
    );
}

/// The reasons for which a request beyond the segment is refused.
const BEYOND_SEGMENT: &[&str] = &["invalid offset", "damaged batch"];

/// The origin's part in a round: polls until the target has decided, and checks that the operations
/// are complete only if the target has carried them out. If the origin has an error first, stores
/// the number of the round at the target. `issued` is the result of issuing the operations.
fn check_origin(
    member: &Member,
    mut endpoint: Box<dyn Endpoint>,
    issued: Result<(), Error>,
    round: u64,
) {
    let (mut is_quiet, mut is_reported) = (issued.map(|()| false), false);
    member.poll_until_barrier(|| match is_quiet {
        Ok(false) => is_quiet = endpoint.is_quiet(),
        Err(_) if !is_reported => {
            let mut usual = member.endpoint();
            usual.put_word(TARGET.index(), REPORTED, round);
            usual.quiet();
            is_reported = true;
        }
        Ok(true) | Err(_) => {}
    });
    let is_carried_out = member.exchange(&[])[TARGET.index()] == [CARRIED_OUT];
    match is_quiet {
        Ok(is_quiet) => assert!(!is_quiet || is_carried_out, "a request was lost"),
        Err(error) => check_message(&error, (ORIGIN, TARGET), &[""]),
    }
    // A drop would wait forever for the operations that were refused.
    std::mem::forget(endpoint);
}

/// The target's decision on a request, which it sends to the origin.
const REFUSED: u8 = 1;
const CARRIED_OUT: u8 = 2;

/// Each request is refused, whether it is sent alone, in a batch or in a session.
pub(crate) fn requests(member: &Member) {
    if !member.caps().amos_compose_with_cpu {
        // The network carries out atomic operations, so no message is sent to the target's CPU.
        return;
    }
    let kinds = [
        Malformed::Add,
        Malformed::FetchAdd,
        Malformed::Data(8),
        Malformed::Data(32 << 10),
    ];
    let rounds = kinds
        .into_iter()
        .flat_map(|kind| [(kind, false), (kind, true)]);
    for (round, (malformed, in_session)) in (1..).zip(rounds) {
        let transport = connected_with_larger_key(member);
        if member.me() == TARGET.index() {
            // If the network moves long data, it may find the fault first; then the origin reports
            // it.
            let is_reported = || member.fetch::<u64>(REPORTED) == round;
            if let Some(error) = until_decided(&*transport, is_reported) {
                check_message(&error, (TARGET, ORIGIN), BEYOND_SEGMENT);
                assert_eq!(transport.progress(), Err(error), "from now on");
            }
            member.barrier();
            member.exchange(&[REFUSED]);
        } else {
            let mut endpoint = transport
                .endpoint(EndpointUser::Context)
                .expect("an endpoint");
            endpoint
                .session(in_session)
                .expect("an endpoint that is quiet");
            // The second request follows soon, so that both may be batched.
            let issued = (0..2).try_for_each(|_| malformed.start(&mut *endpoint));
            check_origin(member, endpoint, issued, round);
        }
        std::mem::forget(transport);
    }
    member.barrier();
    exit(0);
}

/// Returns the opener for this process: `tiny` for the target, `usual` for all others.
pub(crate) fn opener(usual: Opener, tiny: Opener) -> Opener {
    let is_target = |position: job::Position| Pe(position.pe) == TARGET;
    if job::position().is_some_and(is_target) {
        tiny
    } else {
        usual
    }
}

/// The number of words that are put as blocks, which are sent in one batch if they are batched.
const WORDS: usize = 384;
/// The offsets in the target's heap of the word that is signaled, and of the data.
const SIGNALED: usize = 0;
const DATA: usize = 4096;

/// A batch, and data with their signal, that are longer than the target's buffers: each is carried
/// out or refused.
pub(crate) fn oversized(member: &Member) {
    for (round, is_batch) in [(1, true), (2, false)] {
        let (transport, heap_words) = connected(member, None);
        if member.me() == TARGET.index() {
            let is_reported = || member.fetch::<u64>(REPORTED) == round;
            // SAFETY: a word of memory that is never freed.
            let is_signaled = || unsafe { u64::fetch(heap_words.wrapping_add(SIGNALED / 8)) } == 1;
            let decided = until_decided(&*transport, || is_reported() || is_signaled());
            match &decided {
                // A provider of libfabric may keep nothing of a truncated message, not even its
                // sender.
                Some(Error::Lost(TARGET, text)) => {
                    assert!(
                        text.contains("PE 1 on ") && text.contains("kept nothing"),
                        "{text}"
                    );
                }
                // libfabric's shm does not report the length of a truncated message.
                Some(error) => {
                    let reasons = ["it sent a message of ", "Truncation error, of a message"];
                    check_message(error, (TARGET, ORIGIN), &reasons);
                }
                None => {}
            }
            member.barrier();
            let is_carried_out = decided.is_none() && is_signaled();
            member.exchange(&[if is_carried_out { CARRIED_OUT } else { REFUSED }]);
        } else {
            let mut endpoint = transport
                .endpoint(EndpointUser::Context)
                .expect("an endpoint");
            let batched = if is_batch {
                put_words(&mut *endpoint)
            } else {
                Ok(())
            };
            let nbytes = if is_batch { 8 } else { HEAP - DATA };
            let issued =
                batched.and_then(|()| signal(&mut *endpoint, heap(DATA), nbytes, heap(SIGNALED)));
            check_origin(member, endpoint, issued, round);
        }
        std::mem::forget(transport);
    }
    member.barrier();
    exit(0);
}

/// Puts [`WORDS`] words, to every second word of the target.
fn put_words(endpoint: &mut dyn Endpoint) -> Result<(), Error> {
    let words = vec![1u64; WORDS].leak();
    let blocks = StridedBlocks {
        remote: heap(DATA),
        // SAFETY: memory that is never freed.
        local: unsafe { SourceBuf::new(words.as_ptr().cast(), size_of_val(words)) },
        nbytes: 8,
        remote_stride: 16,
        local_stride: 8,
        n: WORDS,
    };
    endpoint.put_strided(TARGET, blocks)
}

/// The target's process ends after it has refused a request, as under a runtime. A call of the
/// origin that waits for the request returns the loss.
///
/// # Panics
/// If the target has another error, or the origin none.
pub fn target_ends(member: &Member) {
    let transport = connected_with_larger_key(member);
    if member.me() == TARGET.index() {
        check_message(&until_lost(&*transport), (TARGET, ORIGIN), BEYOND_SEGMENT);
        exit(0);
    }
    let mut endpoint = transport
        .endpoint(EndpointUser::Context)
        .expect("an endpoint");
    let added = (0..2).try_for_each(|_| Malformed::FetchAdd.start(&mut *endpoint));
    let error = added.and_then(|()| endpoint.quiet()).expect_err("a loss");
    assert!(matches!(error, Error::Lost(TARGET, _)), "{error}");
    exit(0);
}
