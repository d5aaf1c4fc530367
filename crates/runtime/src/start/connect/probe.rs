//! The probe of a transport: a transfer of every kind to a peer, which decides whether the
//! transport works.
//!
//! The transfers use words of the peer's internal area to which only this PE writes. They have a
//! time limit, since a provider may try to connect forever without reporting an error.
#![allow(unsafe_code)]

use rushmem_pe::call::{Call, fail};
use rushmem_pe::memory::areas::Areas;
use rushmem_system::signals::without_signals;
use rushmem_system::thread;
use rushmem_transport::{
    AmoOp, AmoRequest, AmoWidth, Completion, DestBuf, Endpoint, Error, Get, OldValue, Pe, Put,
    RemoteAddr, Segment, SourceBuf, Transport,
};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::thread::{Builder, scope};
use std::time::Duration;

/// The number of words that are put and read back.
const WORDS: usize = 4;

/// The length of the sleeps in which the time limit is counted, so that the time during which the
/// process is stopped does not count.
const TICK: Duration = Duration::from_millis(100);

/// A probe of the path from this PE to another one.
pub(super) struct Probe<'a> {
    pub(super) me: Pe,
    pub(super) pe: Pe,
    pub(super) areas: &'a Areas,
    /// The time after which the transport abandons `pe`.
    pub(super) limit: Duration,
}

impl Probe<'_> {
    /// Transfers data within the limit. After the limit the transport abandons the peer, which ends
    /// the transfer with an error. If the transfer goes on for the limit again, a call of the
    /// provider blocks, and this function ends the job with an error.
    ///
    /// # Errors
    /// A text that says what has failed: the transfer, or the start of the thread that counts the
    /// time.
    pub(super) fn run(
        &self,
        call: Call,
        transport: &dyn Transport,
        endpoint: &mut dyn Endpoint,
    ) -> Result<(), String> {
        let (end, awaited_end): (Sender<()>, Receiver<()>) = mpsc::channel();
        scope(|scope| {
            let watching = without_signals(|| {
                Builder::new()
                    .name("rushmem-probe".to_owned())
                    .spawn_scoped(scope, move || self.watch(call, transport, &awaited_end))
            });
            watching.map_err(|error| thread::refused(&error))?;

            let transferred = self.transfer(endpoint);
            // This ends the watching thread, for which the scope waits.
            drop(end);
            transferred
        })
    }

    /// Enforces the limit until the sender of `end` is dropped.
    fn watch(&self, call: Call, transport: &dyn Transport, end: &Receiver<()>) {
        if !has_passed(self.limit, end) {
            return;
        }
        let seconds = self.limit.as_secs_f64();
        let why = format!("a transfer to try it out is not over after {seconds} s");
        transport.lose(self.pe, &why);

        if has_passed(self.limit, end) {
            fail!(
                call,
                "{why}: this PE has given PE {} up, but its network library does not return; \
                 choose another one by SHMEM_TRANSPORT",
                self.pe
            );
        }
    }

    /// Transfers data between this PE and the peer by a put, a get and atomic operations, and
    /// completes them.
    fn transfer(&self, endpoint: &mut dyn Endpoint) -> Result<(), String> {
        // The values differ for each pair of PEs, so that those of another pair are not accepted.
        // The multiplication by an odd number, 2^64 divided by the golden ratio, maps each pair to
        // a value of its own, whose bytes are not mostly 0.
        let pair = u64::from(self.me.0) << 32 | u64::from(self.pe.0);
        let seed = pair.wrapping_mul(0x9E37_79B9_7F4A_7C15);

        self.put_and_get(endpoint, seed)?;
        self.swap_and_add(endpoint, seed)?;
        match endpoint.quiet() {
            Ok(()) => Ok(()),
            Err(error) => Err(self.failed("the completion of operations on", &error)),
        }
    }

    /// Puts words on the peer, and gets them back.
    fn put_and_get(&self, endpoint: &mut dyn Endpoint, seed: u64) -> Result<(), String> {
        let pe = self.pe;
        let sent: [u64; WORDS] = std::array::from_fn(|i| seed ^ (i as u64 + 1));
        let put = Put {
            remote: self.word(0),
            // SAFETY: the source is a local array, which the put has read when it returns.
            local: unsafe { SourceBuf::new(sent.as_ptr().cast(), size_of_val(&sent)) },
            completion: Completion::Now,
        };
        endpoint
            .put(pe, put)
            .and_then(|()| endpoint.quiet())
            .map_err(|error| self.failed("a put to", &error))?;

        let mut found = [0u64; WORDS];
        let get = Get {
            remote: self.word(0),
            // SAFETY: the destination is a local array, which the get has written when it returns.
            local: unsafe { DestBuf::new(found.as_mut_ptr().cast(), size_of_val(&found)) },
            completion: Completion::Now,
        };
        endpoint
            .get(pe, get)
            .map_err(|error| self.failed("a get from", &error))?;

        if found != sent {
            return Err(format!(
                "PE {pe} does not hold what was put there to try it out"
            ));
        }
        Ok(())
    }

    /// Sets a word on the peer and adds to it, by atomic operations that fetch the old value.
    fn swap_and_add(&self, endpoint: &mut dyn Endpoint, seed: u64) -> Result<(), String> {
        let mut amo = |op, operand| {
            let request = AmoRequest {
                dest: self.word(WORDS),
                width: AmoWidth::Eight,
                op,
                operand,
                condition: 0,
            };
            endpoint
                .amo(self.pe, request, OldValue::Returned)
                .map_err(|error| self.failed("an atomic operation on", &error))
        };
        amo(AmoOp::Swap, seed)?;
        let before_addition = amo(AmoOp::Add, 1)?;
        let after_addition = amo(AmoOp::Fetch, 0)?;

        if before_addition != seed || after_addition != seed.wrapping_add(1) {
            return Err(format!(
                "an atomic operation on PE {} to try it out fetched a wrong value",
                self.pe
            ));
        }
        Ok(())
    }

    /// Returns the text for an operation of the probe that has failed.
    fn failed(&self, operation: &str, error: &Error) -> String {
        format!("{operation} PE {} to try it out failed: {error}", self.pe)
    }

    /// Returns the address of a word that the peer keeps for the probe of this PE. The words before
    /// `WORDS` are for the put, and the word `WORDS` is for atomic operations.
    fn word(&self, index: usize) -> RemoteAddr {
        RemoteAddr {
            segment: Segment::Internal,
            offset: (self.areas.probe(self.me) + index * 8) as u64,
        }
    }
}

/// Sleeps for `limit`, or until the sender of `end` is dropped. Returns true if the whole time has
/// passed.
fn has_passed(limit: Duration, end: &Receiver<()>) -> bool {
    let mut left = limit;
    while !left.is_zero() {
        let tick = left.min(TICK);
        if end.recv_timeout(tick) != Err(RecvTimeoutError::Timeout) {
            return false;
        }
        left -= tick;
    }
    true
}
