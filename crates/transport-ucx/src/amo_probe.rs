//! Tests all atomic operations that UCX has, between two workers of this process, and checks the
//! results.
//!
//! UCX 1.13.1, for example, returns the old value for AND, OR and XOR but does not change the word.
#![allow(unsafe_code)]

use crate::ucp::{
    AtomicArguments, UcpAtomic, UcpContext, UcpMemory, UcpRemote, UcpRequest, Worker, plain_params,
    started, status_string,
};
use rushmem_transport::{AmoOp, AmoWidth, mem};
use std::ptr::null_mut;
use std::sync::Arc;
use std::time::{Duration, Instant};
use ucx_sys::ucs_status_t;

/// The maximum duration of an operation. The first one connects the workers, which may take seconds
/// over a NIC.
const LIMIT: Duration = Duration::from_secs(30);

const OLD: u64 = 0x8765_4321_0FED_CBA9;
const OPERAND: u64 = 0x1357_9BDF_0246_8ACE;

/// The two workers between which operations are tested, and the word that they change.
struct Pair<'a> {
    from: &'a Worker,
    to: &'a Worker,
    /// The word as `from` accesses it.
    remote: UcpRemote,
    /// The first of three words, which are never freed. The other two are the operands.
    word: *mut u64,
}

/// Tests every operation that UCX has, on 4 and on 8 bytes. Returns the reason if one fails.
pub(crate) fn probe(context: &Arc<UcpContext>) -> Result<(), String> {
    // Leaked, since an operation that does not end in time may still write to this memory.
    let word = Box::into_raw(Box::new([0u64; 3])).cast::<u64>();
    // SAFETY: the three words are never freed.
    let memory = unsafe { UcpMemory::register(context, word.cast(), 24) }?;

    let from = Worker::new(context)?;
    let to = Worker::new(context)?;
    // SAFETY: without a handler, the null argument is not used.
    let mut endpoint = unsafe { from.connect(&to.address()?, None, null_mut()) }?;
    let key = endpoint.unpack(context.ucp, 0, &memory.key()?)?;

    let pair = Pair {
        from: &from,
        to: &to,
        remote: UcpRemote {
            endpoint: endpoint.handle,
            key,
            address: word.addr() as u64,
        },
        word,
    };
    match try_all(context, &pair) {
        Err(ProbeFault::Endless(why)) => {
            // UCX aborts if a worker is destroyed before its operations have ended.
            std::mem::forget((from, to, endpoint, memory));
            Err(why)
        }
        tried => {
            // UCX prints a warning for each key that was not destroyed, also after a failed test.
            endpoint.forget_keys(context.ucp);
            tried.map_err(|(ProbeFault::Wrong(why) | ProbeFault::Endless(why))| why)
        }
    }
}

/// The reason why the probe of an operation failed.
enum ProbeFault {
    /// The result is wrong, or UCX refused the operation.
    Wrong(String),
    /// The operation has not ended within the limit, and may still use its memory.
    Endless(String),
}

fn try_all(context: &UcpContext, pair: &Pair<'_>) -> Result<(), ProbeFault> {
    for op in AmoOp::ALL.into_iter().filter(|&op| UcpAtomic::has(op)) {
        for width in [AmoWidth::Four, AmoWidth::Eight] {
            try_one(context, pair, op, width)?;
        }
    }
    Ok(())
}

/// Carries out an operation by UCX and by this CPU, and compares the results.
fn try_one(
    context: &UcpContext,
    pair: &Pair<'_>,
    op: AmoOp,
    width: AmoWidth,
) -> Result<(), ProbeFault> {
    let wrong = |why: &str| {
        let nbytes = width.nbytes();
        format!("UCX's atomic operation {op:?} on {nbytes} bytes is wrong: {why}")
    };

    let mut expected = OLD;
    // SAFETY: `expected` is an aligned local of 8 bytes, valid for reads and writes of a word of
    // either width.
    let old = unsafe { mem::apply(op, width, (&raw mut expected).cast(), OPERAND, OLD) };

    let atomic = UcpAtomic::new(op, OPERAND, OLD);
    let word = pair.word;
    let first = word.wrapping_add(1);
    let second = word.wrapping_add(2);
    // SAFETY: `word` is the first of three words that are never freed, and no operation is in
    // flight.
    unsafe { word.write_volatile(OLD) };
    // SAFETY: `first` is the second of the three words, so it has room for a word of either width.
    unsafe { width.write(first.cast(), atomic.first) };
    // SAFETY: `second` is the third of the three words.
    unsafe { width.write(second.cast(), atomic.second) };

    let until = Instant::now() + LIMIT;
    // SAFETY: a live endpoint and its key; the words are never freed.
    let begun = unsafe {
        atomic.begin(
            context.ucp,
            pair.remote,
            width,
            AtomicArguments {
                first: first.cast_const().cast(),
                second: second.cast(),
            },
            plain_params(),
        )
    };
    let refused = |status| ProbeFault::Wrong(wrong(&status_string(context.ucp, status)));
    if let Some(request) = started(begun).map_err(refused)? {
        let ended = wait_for(context, pair, request, until);
        request.free(context.ucp);
        match ended {
            Some(result) => result.map_err(refused)?,
            None => {
                let why = format!("it has not ended after {} s", LIMIT.as_secs());
                return Err(ProbeFault::Endless(wrong(&why)));
            }
        }
    }

    // SAFETY: the word is never freed, and the operation has ended.
    let now = unsafe { word.read_volatile() };
    let fetched = match width {
        // SAFETY: the word is never freed, and the operation has ended.
        AmoWidth::Four => u64::from(unsafe { second.cast::<u32>().read_volatile() }),
        // SAFETY: the word is never freed, and the operation has ended.
        AmoWidth::Eight => unsafe { second.read_volatile() },
    };
    if now != expected || fetched != old {
        let why = format!(
            "of {OLD:#x} it makes {now:#x} and not {expected:#x}, and fetches {fetched:#x}"
        );
        return Err(ProbeFault::Wrong(wrong(&why)));
    }
    Ok(())
}

/// Makes progress on both workers until a request has ended. Returns its result; `None` if it has
/// not ended in time.
fn wait_for(
    context: &UcpContext,
    pair: &Pair<'_>,
    request: UcpRequest,
    until: Instant,
) -> Option<Result<(), ucs_status_t>> {
    loop {
        if !pair.from.progress() && !pair.to.progress() {
            // UCX's own thread, which connects the workers, needs the same locks.
            std::thread::yield_now();
        }

        let status = request.status(context.ucp);
        if status.is_some() || Instant::now() >= until {
            return status;
        }
    }
}
