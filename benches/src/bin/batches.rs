//! Prints how many batched updates of 8 bytes a core executes per second as their target, and how
//! many atomic additions on the same words without a batch.
//!
//! The words are random ones in 32 KiB of memory, which caches hold, so that the code is measured
//! and not the memory.
#![allow(unsafe_code)]

use std::hint::black_box;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use rushmem_transport::engine::entries::{append_amo, carry_out};
use rushmem_transport::segments::Segments;
use rushmem_transport::{AmoOp, AmoRequest, AmoWidth, Host, LocalBuf, RemoteAddr, Segment};

/// Bytes of a batch of a session over UCX.
const BATCH: usize = 32 << 10;
/// The number of words that are updated: 32 KiB.
const WORDS: usize = 4 << 10;
/// The number of times that the batch is executed.
const ROUNDS: usize = 20_000;

/// A PE that is no proxy.
struct NoProxy;

impl Host for NoProxy {}

/// Prints the rate of `rounds` times `n` operations.
fn report(what: &str, rounds: usize, n: usize, mut round: impl FnMut()) {
    let start = Instant::now();
    for _ in 0..rounds {
        round();
    }
    let seconds = start.elapsed().as_secs_f64();
    println!(
        "{what}: {:.0} million a second",
        (n * rounds) as f64 / seconds / 1e6
    );
}

fn main() {
    measure(ROUNDS);
}

/// Measures the batch and the additions without one, and checks the sum of the words.
fn measure(rounds: usize) {
    let memory: Vec<AtomicU64> = (0..WORDS).map(|_| AtomicU64::new(0)).collect();
    let segments: Segments = Segments::default();
    let whole = LocalBuf {
        base: memory.as_ptr().cast_mut().cast(),
        nbytes: size_of_val(&memory[..]),
    };
    // SAFETY: the memory lives as long as the segments, and is accessed by atomic operations alone.
    unsafe { segments.register(Segment::Heap, whole, ()) }.expect("no other heap");

    let mut batch = Vec::new();
    let mut words = Vec::new();
    while batch.len() < BATCH {
        let word = fastrand::usize(..WORDS);
        let request = AmoRequest {
            op: AmoOp::Add,
            width: AmoWidth::Eight,
            dest: RemoteAddr {
                segment: Segment::Heap,
                offset: 8 * word as u64,
            },
            operand: 1,
            condition: 0,
        };
        append_amo(&mut batch, &request, 0, false);
        words.push(word);
    }

    let mut results = Vec::new();
    report("gathered updates", rounds, words.len(), || {
        assert!(carry_out(black_box(&batch), &[], &segments, &NoProxy, &mut results).is_ok());
    });
    report("additions without a batch", rounds, words.len(), || {
        for word in black_box(&words) {
            memory[*word].fetch_add(1, Ordering::Relaxed);
        }
    });

    let sum: u64 = memory.iter().map(|word| word.load(Ordering::Relaxed)).sum();
    assert_eq!(sum, (2 * rounds * words.len()) as u64);
}

#[cfg(test)]
mod tests {
    #[test]
    fn all_additions_are_made() {
        super::measure(3);
    }
}
