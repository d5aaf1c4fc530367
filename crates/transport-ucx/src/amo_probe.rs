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
    context: &'a UcpContext,
    from: &'a Worker,
    to: &'a Worker,
    /// The word as `from` accesses it.
    remote: UcpRemote,
    /// The first of three words, which are never freed. The other two are the operands.
    word: *mut u64,
}

/// The results of an operation.
#[derive(PartialEq, Eq)]
struct Outcome {
    /// The new value of the word.
    word: u64,
    /// The old value, which the operation returns.
    fetched: u64,
}

/// The reason why the probe of an operation failed.
struct ProbeFault {
    why: String,
    /// The operation has not ended within the limit, and may still use its memory.
    is_endless: bool,
}

impl From<String> for ProbeFault {
    fn from(why: String) -> ProbeFault {
        ProbeFault {
            why,
            is_endless: false,
        }
    }
}

/// Tests every operation that UCX has, on 4 and on 8 bytes. Returns the reason if one fails.
pub(crate) fn probe(context: &Arc<UcpContext>) -> Result<(), String> {
    // Leaked, since an operation that does not end in time may still write to this memory.
    let word = Box::into_raw(Box::new([0u64; 3])).cast::<u64>();
    // SAFETY: `word` points to 24 bytes that are never freed.
    let memory = unsafe { UcpMemory::register(context, word.cast(), 24) }?;

    let from = Worker::new(context)?;
    let to = Worker::new(context)?;
    // SAFETY: the address is that of a live worker. Without a handler, the null argument is not
    // used.
    let mut endpoint = unsafe { from.connect(&to.address()?, None, null_mut()) }?;
    let key = endpoint.unpack(context.ucp, 0, &memory.key()?)?;

    let pair = Pair {
        context,
        from: &from,
        to: &to,
        remote: UcpRemote {
            endpoint: endpoint.handle,
            key,
            address: word.addr() as u64,
        },
        word,
    };
    let tried = pair.try_all();

    if matches!(&tried, Err(fault) if fault.is_endless) {
        // UCX aborts if a worker is destroyed before its operations have ended.
        std::mem::forget((from, to, endpoint, memory));
    } else {
        // UCX prints a warning for each key that was not destroyed, also after a failed test.
        endpoint.forget_keys(context.ucp);
    }
    tried.map_err(|fault| fault.why)
}

/// Returns the results of an operation that this CPU carries out.
fn outcome_by_cpu(op: AmoOp, width: AmoWidth) -> Outcome {
    let mut word = OLD;
    // SAFETY: `word` is an aligned local of 8 bytes, valid for reads and writes of a word of either
    // width.
    let fetched = unsafe { mem::apply(op, width, (&raw mut word).cast(), OPERAND, OLD) };
    Outcome { word, fetched }
}

impl Pair<'_> {
    fn try_all(&self) -> Result<(), ProbeFault> {
        for op in AmoOp::ALL.into_iter().filter(|&op| UcpAtomic::has(op)) {
            for width in AmoWidth::ALL {
                self.try_one(op, width).map_err(|fault| {
                    let nbytes = width.nbytes();
                    let what = format!("UCX's atomic operation {op:?} on {nbytes} bytes");
                    ProbeFault {
                        why: format!("{what} is wrong: {}", fault.why),
                        ..fault
                    }
                })?;
            }
        }
        Ok(())
    }

    /// Carries out an operation by UCX and by this CPU, and compares the results.
    fn try_one(&self, op: AmoOp, width: AmoWidth) -> Result<(), ProbeFault> {
        let expected = outcome_by_cpu(op, width);
        let outcome = self.outcome_by_ucx(op, width)?;
        if outcome == expected {
            return Ok(());
        }

        let why = format!(
            "of {OLD:#x} it makes {:#x} and not {:#x}, and fetches {:#x}",
            outcome.word, expected.word, outcome.fetched
        );
        Err(why.into())
    }

    /// Returns the results of an operation that UCX carries out.
    fn outcome_by_ucx(&self, op: AmoOp, width: AmoWidth) -> Result<Outcome, ProbeFault> {
        let ucp = self.context.ucp;
        let refused = |status| status_string(ucp, status);

        let atomic = UcpAtomic::new(op, OPERAND, OLD);
        let word = self.word;
        let first = word.wrapping_add(1);
        let second = word.wrapping_add(2);
        // SAFETY: `word` is the first of three words that are never freed, and no operation is in
        // flight.
        unsafe { word.write_volatile(OLD) };
        // SAFETY: `first` is the second of the three words, so it has room for a word of either
        // width.
        unsafe { width.write(first.cast(), atomic.first) };
        // SAFETY: `second` is the third of the three words.
        unsafe { width.write(second.cast(), atomic.second) };

        let arguments = AtomicArguments {
            first: first.cast_const().cast(),
            second: second.cast(),
        };
        // SAFETY: `remote` has a live endpoint and a key that was unpacked for it. The arguments
        // have the values of `atomic`, and are never freed.
        let begun = unsafe { atomic.begin(ucp, self.remote, width, arguments, plain_params()) };
        if let Some(request) = started(begun).map_err(refused)? {
            let status = self.wait_for(request);
            request.free(ucp);
            let Some(ended) = status else {
                return Err(ProbeFault {
                    why: format!("it has not ended after {} s", LIMIT.as_secs()),
                    is_endless: true,
                });
            };
            ended.map_err(refused)?;
        }

        // SAFETY: `word` is never freed, and the operation has ended.
        let changed = unsafe { word.read_volatile() };
        let fetched = match width {
            // SAFETY: `second` is never freed, and the operation has ended.
            AmoWidth::Four => u64::from(unsafe { second.cast::<u32>().read_volatile() }),
            // SAFETY: as for 4 bytes.
            AmoWidth::Eight => unsafe { second.read_volatile() },
        };
        Ok(Outcome {
            word: changed,
            fetched,
        })
    }

    /// Makes progress on both workers until a request has ended. Returns its result; `None` if it
    /// has not ended within the limit.
    fn wait_for(&self, request: UcpRequest) -> Option<Result<(), ucs_status_t>> {
        let until = Instant::now() + LIMIT;
        loop {
            if !self.from.progress() && !self.to.progress() {
                // UCX's own thread, which connects the workers, needs the same locks.
                std::thread::yield_now();
            }

            let status = request.status(self.context.ucp);
            if status.is_some() || Instant::now() >= until {
                return status;
            }
        }
    }
}
