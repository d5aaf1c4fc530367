//! A loss while operations are in flight to a PE that serves nobody: when a call has returned the
//! loss, UCX does not use the call's memory any more.
#![allow(unsafe_code)]

use super::pair::{HEAP, NBYTES, PEER, TestPair, pair};
use crate::shared::SharedState;
use rushmem_system::lock::lock;
use rushmem_transport::engine::WireEndpoint;
use rushmem_transport::engine::driver::Driver;
use rushmem_transport::{
    AmoOp, AmoRequest, Completion, DestBuf, Endpoint, Error, Get, LocalBuf, Put, SignalOrder,
    SourceBuf,
};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::thread;
use std::time::Duration;

/// A call that has polled this many times counts as waiting.
const ENOUGH: u64 = 100;

impl TestPair {
    /// Calls `work`, which waits for the peer, which serves nobody, and reports the loss of the
    /// peer once `work` waits. Returns the error of `work`.
    fn lose(
        &mut self,
        work: impl FnOnce(&mut WireEndpoint<SharedState>) -> Result<(), Error>,
    ) -> Error {
        let TestPair {
            endpoint, progress, ..
        } = self;
        let shared = progress.network();
        let seen = shared.local.state.polls();
        thread::scope(|scope| {
            scope.spawn(|| {
                while shared.local.state.polls() < seen + ENOUGH {
                    thread::yield_now();
                }
                shared.lose_peer(PEER, "it serves nobody");
            });
            work(endpoint).expect_err("nobody serves")
        })
    }
}

fn loses(work: impl Fn(&mut WireEndpoint<SharedState>, LocalBuf) -> Result<(), Error>) {
    for connected in [true, false] {
        let Some(mut pair) = pair("tcp,self", Duration::from_secs(30)) else {
            return;
        };
        let mut memory = vec![1u8; NBYTES];
        let local = LocalBuf {
            base: memory.as_mut_ptr(),
            nbytes: NBYTES,
        };

        if connected {
            pair.connect();
        }

        let error = pair.lose(|endpoint| work(endpoint, local));
        let how = "the connection from PE 0 on here to PE 1 on here broke: it serves nobody";
        assert_eq!(error, Error::Lost(PEER, format!("PE 1 was lost: {how}")));
        assert_eq!(lock(&pair.issuer.origin).wire().free_ended(), 0);

        memory.fill(2);
        pair.poll_until_idle();
        assert!(
            memory.iter().all(|&byte| byte == 2),
            "memory was written after the loss was reported"
        );

        // SAFETY: never freed, and nobody puts there any more.
        let heap = unsafe { std::slice::from_raw_parts(pair.heap.base, NBYTES) };
        assert!(
            !heap.contains(&2),
            "memory was read after the loss was reported"
        );

        // Every later call returns the same error, and no operation is left to end.
        assert_eq!(pair.endpoint.is_quiet(), Err(error));

        let TestPair {
            endpoint,
            issuer,
            progress,
            peer,
            ..
        } = pair;
        drop((endpoint, issuer));
        SharedState::leave(&progress);
        // UCX 1.13.1 aborts by an assertion if a worker is destroyed whose fetch of data was broken
        // off.
        std::mem::forget(peer);
    }
}

/// When the operations complete: in the call, or at the next quiet.
const COMPLETIONS: [Completion; 2] = [Completion::Now, Completion::AtQuiet];

/// Returns a put of memory that [`loses`] keeps longer than any operation.
fn put(memory: LocalBuf, completion: Completion) -> Put {
    Put {
        remote: HEAP,
        // SAFETY: `loses` keeps the memory longer than any operation.
        local: unsafe { SourceBuf::new(memory.base, memory.nbytes) },
        completion,
    }
}

/// Returns a get into memory that [`loses`] keeps longer than any operation.
fn get(memory: LocalBuf, completion: Completion) -> Get {
    Get {
        remote: HEAP,
        // SAFETY: `loses` keeps the memory longer than any operation.
        local: unsafe { DestBuf::new(memory.base, memory.nbytes) },
        completion,
    }
}

#[test]
fn a_put_ends_with_a_loss_whether_or_not_somebody_waits() {
    for completion in COMPLETIONS {
        loses(|endpoint, memory| {
            endpoint.put(PEER, put(memory, completion))?;
            endpoint.quiet()
        });
    }
}

#[test]
fn a_get_ends_with_a_loss_whether_or_not_somebody_waits() {
    for completion in COMPLETIONS {
        loses(|endpoint, memory| {
            endpoint.get(PEER, get(memory, completion))?;
            endpoint.quiet()
        });
    }
}

#[test]
fn a_put_with_a_signal_ends_with_a_loss_whether_or_not_somebody_waits() {
    let signal = AmoRequest::of_word(HEAP, AmoOp::Add, 1);
    for completion in COMPLETIONS {
        loses(|endpoint, memory| {
            endpoint.put_signal(
                PEER,
                put(memory, completion),
                signal,
                SignalOrder::AfterData,
            )?;
            endpoint.quiet()
        });
    }
}

#[test]
fn a_test_for_completion_ends_with_a_loss() {
    loses(|endpoint, memory| {
        endpoint.get(PEER, get(memory, Completion::AtQuiet))?;
        while !endpoint.is_quiet()? {}
        Ok(())
    });
}

#[test]
fn what_cannot_be_ended_ends_the_process() {
    // Over shared memory alone, no endpoint can be closed by force.
    let Some(mut pair) = pair("posix,self", Duration::ZERO) else {
        return;
    };

    let never_freed = LocalBuf {
        base: vec![1u8; NBYTES].leak().as_mut_ptr(),
        nbytes: NBYTES,
    };

    let lose = || pair.lose(|endpoint| endpoint.get(PEER, get(never_freed, Completion::Now)));
    let ended = catch_unwind(AssertUnwindSafe(lose)).expect_err("the process ends");

    let text = ended.downcast_ref::<String>().expect("a message");
    for word in [
        "PE 0",
        "PE 1",
        "it serves nobody",
        "in flight: 1",
        "SHMEM_UCX_TLS",
    ] {
        assert!(text.contains(word), "{text}");
    }

    // UCX cannot destroy a worker with an operation in flight.
    std::mem::forget(pair);
}
