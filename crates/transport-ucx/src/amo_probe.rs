//! Tests all atomic operations that UCX has, between two workers of this process, and checks the
//! results.
//!
//! UCX 1.13.1, for example, returns the old value for AND, OR and XOR but does not change the word.
#![allow(unsafe_code)]

use crate::ucp::{
    UcpAtomic, UcpContext, UcpEndpoint, UcpMemory, Worker, plain_params, started, status_string,
};
use rushmem_transport::{AmoOp, AmoWidth, mem};
use std::ptr::null_mut;
use std::sync::Arc;
use std::time::{Duration, Instant};
use ucx_sys::ucp_rkey_h;

/// The maximum duration of an operation. The first one connects the workers, which may take seconds
/// over a NIC.
const LIMIT: Duration = Duration::from_secs(30);

const OLD: u64 = 0x8765_4321_0FED_CBA9;
const OPERAND: u64 = 0x1357_9BDF_0246_8ACE;

/// Tests every operation that UCX has, on 4 and on 8 bytes. Returns the reason if one fails.
pub(crate) fn probe(context: &Arc<UcpContext>) -> Result<(), String> {
    // Leaked, since an operation that does not end in time may still write to this memory.
    let word = Box::into_raw(Box::new([0u64; 3])).cast::<u64>();
    // SAFETY: the three words are never freed.
    let memory = unsafe { UcpMemory::register(context, word.cast(), 24) }?;
    let (from, to) = (Worker::new(context)?, Worker::new(context)?);
    // SAFETY: there is no handler.
    let mut endpoint = unsafe { from.connect(&to.address()?, None, null_mut()) }?;
    let key = endpoint.unpack(context.ucp, 0, &memory.key()?)?;
    match try_all(context, (&from, &to), (&endpoint, key), word) {
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

/// Tests every operation on the first of three words, which are never freed. The other two are its
/// operands.
fn try_all(
    context: &UcpContext,
    (from, to): (&Worker, &Worker),
    (endpoint, key): (&UcpEndpoint, ucp_rkey_h),
    word: *mut u64,
) -> Result<(), ProbeFault> {
    let (first, second) = (word.wrapping_add(1), word.wrapping_add(2));
    let ops = AmoOp::ALL.into_iter().filter(|&op| UcpAtomic::has(op));
    for (op, width) in ops.flat_map(|op| [(op, AmoWidth::Four), (op, AmoWidth::Eight)]) {
        let until = Instant::now() + LIMIT;
        let mut expected = OLD;
        // SAFETY: an aligned local.
        let old = unsafe { mem::apply(op, width, (&raw mut expected).cast(), OPERAND, OLD) };
        let atomic = UcpAtomic::new(op, OPERAND, OLD);
        // SAFETY: the first of three words that are never freed.
        unsafe { word.write_volatile(OLD) };
        // SAFETY: room for a word of this width.
        unsafe { width.write(first.cast(), atomic.first) };
        // SAFETY: room for a word of this width.
        unsafe { width.write(second.cast(), atomic.second) };
        let remote = word.addr() as u64;
        // SAFETY: a live endpoint and its key; the words are never freed.
        let begun = unsafe {
            atomic.begin(
                context.ucp,
                (endpoint.handle, key),
                remote,
                width,
                (first.cast(), second.cast()),
                plain_params(),
            )
        };
        let wrong = |why: &str| {
            format!(
                "UCX's atomic operation {op:?} on {} bytes is wrong: {why}",
                width.nbytes()
            )
        };
        if let Some(request) = started(begun)
            .map_err(|status| ProbeFault::Wrong(wrong(&status_string(context.ucp, status))))?
        {
            let ended = loop {
                if !from.progress() && !to.progress() {
                    // UCX's own thread, which connects the workers, needs the same locks.
                    std::thread::yield_now();
                }
                match request.status(context.ucp) {
                    None if Instant::now() < until => {}
                    ended => break ended,
                }
            };
            request.free(context.ucp);
            match ended {
                Some(Ok(())) => {}
                Some(Err(status)) => {
                    return Err(ProbeFault::Wrong(wrong(&status_string(
                        context.ucp,
                        status,
                    ))));
                }
                None => {
                    return Err(ProbeFault::Endless(wrong(&format!(
                        "it has not ended after {} s",
                        LIMIT.as_secs()
                    ))));
                }
            }
        }
        // SAFETY: the word is never freed, and the operation has ended.
        let now = unsafe { word.read_volatile() };
        // SAFETY: the word is never freed, and the operation has ended.
        let fetched = unsafe { second.read_volatile() };
        let fetched = match width {
            AmoWidth::Four => u64::from(u32::from_ne_bytes(
                fetched.to_ne_bytes()[..4].try_into().expect("4 bytes"),
            )),
            AmoWidth::Eight => fetched,
        };
        if (now, fetched) != (expected, old) {
            return Err(ProbeFault::Wrong(wrong(&format!(
                "of {OLD:#x} it makes {now:#x} and not {expected:#x}, and fetches {fetched:#x}"
            ))));
        }
    }
    Ok(())
}
