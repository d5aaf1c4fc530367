//! The probe of a transport: a transfer of every kind to a peer, which decides whether the
//! transport works.
//!
//! The transfers use words of the peer's internal area to which only this PE writes. They have a
//! time limit, since a provider may try to connect forever without reporting an error.
#![allow(unsafe_code)]

use rushmem_pe::call::Call;
use rushmem_pe::memory::areas::Areas;
use rushmem_system::signals::without_signals;
use rushmem_system::thread;
use rushmem_transport::{
    AmoOp, AmoRequest, AmoWidth, Completion, DestBuf, Endpoint, Error, Get, OldValue, Pe, Put,
    RemoteAddr, Segment, SourceBuf, Transport,
};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::thread::{Builder, scope};
use std::time::Duration;

/// The number of words that are put and read back.
const WORDS: usize = 4;

/// The length of the sleeps in which the time limit is counted, so that the time during which the
/// process is stopped does not count.
const TICK: Duration = Duration::from_millis(100);

/// Runs `test`, which waits for `pe`. After `limit` the transport abandons `pe`, which ends the
/// test with an error. If the test goes on for `limit` again, a call of the provider blocks, and
/// this function ends the job with an error.
///
/// # Errors
/// The errors of the test; also if no thread can be started.
pub(super) fn limited(
    call: Call,
    transport: &dyn Transport,
    (pe, limit): (Pe, Duration),
    test: impl FnOnce() -> Result<(), String>,
) -> Result<(), String> {
    let (over, is_over) = mpsc::channel();
    let watch = move || {
        if sleep(limit, &is_over) {
            let why = format!(
                "a transfer to try it out is not over after {} s",
                limit.as_secs_f64()
            );
            transport.lose(pe, &why);
            if sleep(limit, &is_over) {
                call.fail(format_args!(
                    "{why}: this PE has given PE {pe} up, but its network library does not \
                     return; choose another one by SHMEM_TRANSPORT"
                ));
            }
        }
    };
    scope(|scope| {
        let watching = without_signals(|| {
            Builder::new()
                .name("rushmem-probe".to_owned())
                .spawn_scoped(scope, watch)
        });
        watching.map_err(|error| thread::refused(&error))?;
        let tested = test();
        drop::<mpsc::Sender<()>>(over);
        tested
    })
}

/// Sleeps for `limit`, or until the sender of `test_end` is dropped. Returns true if the whole time
/// has passed.
fn sleep(limit: Duration, test_end: &Receiver<()>) -> bool {
    let mut left = limit;
    while !left.is_zero() {
        let tick = left.min(TICK);
        if test_end.recv_timeout(tick) != Err(RecvTimeoutError::Timeout) {
            return false;
        }
        left -= tick;
    }
    true
}

/// Transfers data between this PE and `pe` by a put, a get and atomic operations, and completes
/// them.
///
/// # Errors
/// What failed, in words.
pub(super) fn transfer(
    endpoint: &mut dyn Endpoint,
    areas: &Areas,
    me: Pe,
    pe: Pe,
) -> Result<(), String> {
    let failed = |what: &'static str| {
        move |error: Error| format!("{what} PE {pe} to try it out failed: {error}")
    };
    let at = |word: usize| {
        let offset = (areas.probe(me) + word * 8) as u64;
        RemoteAddr {
            segment: Segment::Internal,
            offset,
        }
    };
    // The values differ for each pair of PEs, so that those of another pair are not accepted.
    let seed = (u64::from(me.0) << 32 | u64::from(pe.0)).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    let sent: [u64; WORDS] = std::array::from_fn(|i| seed ^ (i as u64 + 1));
    let mut found = [0u64; WORDS];
    let completion = Completion::Now;
    let put = Put {
        remote: at(0),
        // SAFETY: the source is a local array, which the put has read when it returns.
        local: unsafe { SourceBuf::new(sent.as_ptr().cast(), size_of_val(&sent)) },
        completion,
    };
    endpoint.put(pe, put).map_err(failed("a put to"))?;
    endpoint.quiet().map_err(failed("a put to"))?;
    let get = Get {
        remote: at(0),
        // SAFETY: the destination is a local array, which the get has written when it returns.
        local: unsafe { DestBuf::new(found.as_mut_ptr().cast(), size_of_val(&found)) },
        completion,
    };
    endpoint.get(pe, get).map_err(failed("a get from"))?;
    if found != sent {
        return Err(format!(
            "PE {pe} does not hold what was put there to try it out"
        ));
    }
    let mut amo = |op, operand| {
        let request = AmoRequest {
            dest: at(WORDS),
            width: AmoWidth::Eight,
            op,
            operand,
            condition: 0,
        };
        let done = endpoint.amo(pe, request, OldValue::Returned);
        done.map_err(failed("an atomic operation on"))
    };
    amo(AmoOp::Swap, seed)?;
    let (added, last) = (amo(AmoOp::Add, 1)?, amo(AmoOp::Fetch, 0)?);
    if (added, last) != (seed, seed.wrapping_add(1)) {
        return Err(format!(
            "an atomic operation on PE {pe} to try it out fetched a wrong value"
        ));
    }
    endpoint
        .quiet()
        .map_err(failed("the completion of operations on"))
}
