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
    AmoOp, AmoRequest, Completion, DestBuf, Endpoint, EndpointUser, Error, OldValue, Pe, Put,
    RemoteAddr, Segment, SignalOrder, SourceBuf, StridedBlocks, Transport,
};
use std::process::exit;
use std::thread;

const ORIGIN: Pe = Pe(0);
const TARGET: Pe = Pe(1);
/// Bytes of a heap.
const HEAP: usize = 1 << 16;
/// Bytes of the larger heap whose key is published instead.
const PUBLISHED: usize = 1 << 20;
/// A word beyond the heap, but within the larger one.
const BEYOND: RemoteAddr = RemoteAddr {
    segment: Segment::Heap,
    offset: PUBLISHED as u64 / 2,
};
/// The offset of a word of the target's heap over the case's own transport, in which the origin
/// stores the number of the round in which it had an error.
const REPORTED: usize = 0;

/// A transport with a heap that is never freed.
struct Opened {
    transport: Box<dyn Transport>,
    heap: *mut u64,
    key: Vec<u8>,
}

/// Opens a transport with a heap of this size.
fn open(member: &Member, nbytes: usize) -> Opened {
    let mut transport = member.open_beside(member.n_pes() as u32);
    let heap = vec![0u64; nbytes / 8].leak().as_mut_ptr();
    // SAFETY: the memory is never freed.
    let key = unsafe { transport.register(Segment::Heap, heap.cast(), nbytes) };
    Opened {
        transport,
        heap,
        key: key.expect("memory").0,
    }
}

/// Returns a connected transport for which each PE publishes the key of a larger heap.
fn connected_with_larger_key(member: &Member) -> Box<dyn Transport> {
    let larger = open(member, PUBLISHED);
    // It stays open, so that its key stays valid.
    std::mem::forget(larger.transport);

    let mut transport = open(member, HEAP).transport;
    member.connect_beside(&mut *transport, &larger.key);
    transport
}

fn endpoint(transport: &dyn Transport) -> Box<dyn Endpoint> {
    transport
        .endpoint(EndpointUser::Context)
        .expect("an endpoint")
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
        match self {
            Malformed::Data(nbytes) => signal(endpoint, BEYOND, nbytes, BEYOND),
            Malformed::Add => add_beyond(endpoint, OldValue::Ignored),
            Malformed::FetchAdd => {
                let word = Box::leak(Box::new([0u8; 8])).as_mut_ptr();
                // SAFETY: the memory is never freed.
                let old = OldValue::AtQuiet(unsafe { DestBuf::new(word, 8) });
                add_beyond(endpoint, old)
            }
        }
    }
}

/// Starts to add one to the word [`BEYOND`].
fn add_beyond(endpoint: &mut dyn Endpoint, old: OldValue) -> Result<(), Error> {
    let request = AmoRequest::of_word(BEYOND, AmoOp::Add, 1);
    endpoint.amo(TARGET, request, old).map(|_| ())
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
        // SAFETY: the memory is never freed.
        local: unsafe { SourceBuf::new(data.as_ptr(), nbytes) },
        completion: Completion::AtQuiet,
    };
    let signal = AmoRequest::of_word(word, AmoOp::Add, 1);
    endpoint.put_signal(TARGET, put, signal, SignalOrder::AfterData)
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

/// Checks that the error of PE `me` is the loss of PE `lost` for one of these reasons.
fn check_message(error: &Error, me: Pe, lost: Pe, reasons: &[&str]) {
    assert!(
        matches!(error, Error::Lost(pe, _) if *pe == lost),
        "{error}"
    );

    let text = error.to_string();
    assert!(reasons.iter().any(|reason| text.contains(reason)), "{text}");
    assert!(text.contains(&format!("from PE {me} on ")), "{text}");
    assert!(text.contains(&format!(" to PE {lost} on ")), "{text}");
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
    let mut is_quiet = issued.map(|()| false);
    let mut is_reported = false;
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
        Ok(true) => assert!(is_carried_out, "a request was lost"),
        Ok(false) => {}
        // Any reason will do.
        Err(error) => check_message(&error, ORIGIN, TARGET, &[""]),
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
    let mut round = 0;
    for malformed in kinds {
        for in_session in [false, true] {
            round += 1;
            request(member, malformed, in_session, round);
        }
    }
    member.barrier();
    exit(0);
}

/// The round of one request.
fn request(member: &Member, malformed: Malformed, in_session: bool, round: u64) {
    let transport = connected_with_larger_key(member);
    if member.me() == TARGET.index() {
        // If the network moves long data, it may find the fault first; then the origin reports it.
        let is_reported = || member.fetch::<u64>(REPORTED) == round;
        if let Some(error) = until_decided(&*transport, is_reported) {
            check_message(&error, TARGET, ORIGIN, BEYOND_SEGMENT);
            assert_eq!(transport.progress(), Err(error), "from now on");
        }
        member.barrier();
        member.exchange(&[REFUSED]);
    } else {
        let mut endpoint = endpoint(&*transport);
        endpoint
            .session(in_session)
            .expect("an endpoint that is quiet");
        // The second request follows soon, so that both may be batched.
        let issued = (0..2).try_for_each(|_| malformed.start(&mut *endpoint));
        check_origin(member, endpoint, issued, round);
    }
    // A drop would wait for the operations that were refused.
    std::mem::forget(transport);
}

/// Returns the opener for this process: `tiny` for the target, `usual` for all others.
pub(crate) fn opener(usual: Opener, tiny: Opener) -> Opener {
    match job::position() {
        Some(position) if Pe(position.pe) == TARGET => tiny,
        _ => usual,
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
        let mut opened = open(member, HEAP);
        member.connect_beside(&mut *opened.transport, &opened.key);
        if member.me() == TARGET.index() {
            let decision = decide_oversized(member, &opened, round);
            member.barrier();
            member.exchange(&[decision]);
        } else {
            let mut endpoint = endpoint(&*opened.transport);
            let issued = if is_batch {
                put_words(&mut *endpoint)
                    .and_then(|()| signal(&mut *endpoint, heap(DATA), 8, heap(SIGNALED)))
            } else {
                signal(&mut *endpoint, heap(DATA), HEAP - DATA, heap(SIGNALED))
            };
            check_origin(member, endpoint, issued, round);
        }
        // A drop would wait for the operations that were refused.
        std::mem::forget(opened.transport);
    }
    member.barrier();
    exit(0);
}

/// Waits until the target has carried out or refused a message, or the origin has reported an
/// error. Returns [`CARRIED_OUT`] or [`REFUSED`]; an error of the origin counts as a refusal.
fn decide_oversized(member: &Member, opened: &Opened, round: u64) -> u8 {
    let is_reported = || member.fetch::<u64>(REPORTED) == round;
    let signaled = opened.heap.wrapping_add(SIGNALED / 8);
    // SAFETY: `signaled` is a word of memory that is never freed.
    let is_signaled = || unsafe { u64::fetch(signaled) } == 1;

    match until_decided(&*opened.transport, || is_reported() || is_signaled()) {
        // A provider of libfabric may keep nothing of a truncated message, not even its sender.
        Some(Error::Lost(TARGET, text)) => {
            assert!(
                text.contains("PE 1 on ") && text.contains("kept nothing"),
                "{text}"
            );
            REFUSED
        }
        // libfabric's shm does not report the length of a truncated message.
        Some(error) => {
            let reasons = ["it sent a message of ", "Truncation error, of a message"];
            check_message(&error, TARGET, ORIGIN, &reasons);
            REFUSED
        }
        None if is_signaled() => CARRIED_OUT,
        None => REFUSED,
    }
}

/// Puts [`WORDS`] words, to every second word of the target.
fn put_words(endpoint: &mut dyn Endpoint) -> Result<(), Error> {
    let words = vec![1u64; WORDS].leak();
    let blocks = StridedBlocks {
        remote: heap(DATA),
        // SAFETY: the memory is never freed.
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
        let error = until_decided(&*transport, || false).expect("decided by nothing else");
        check_message(&error, TARGET, ORIGIN, BEYOND_SEGMENT);
        exit(0);
    }

    let mut endpoint = endpoint(&*transport);
    let added = (0..2).try_for_each(|_| Malformed::FetchAdd.start(&mut *endpoint));
    let error = added.and_then(|()| endpoint.quiet()).expect_err("a loss");
    assert!(matches!(error, Error::Lost(TARGET, _)), "{error}");
    exit(0);
}
