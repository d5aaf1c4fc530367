//! Tests of slots that are too small for a status, damaged, or written while they are read.

use super::*;
use crate::status::{
    Finalizing, HeapBlock, InFlight, Search, Stage, SymmetricLocation, Wait, Word, Words,
};
use std::sync::atomic::AtomicU64;

/// Returns a slot as a reader copies it, with this sequence number.
fn slot(sequence: u64, status: &Status) -> Vec<u8> {
    let words = std::iter::once(sequence).chain(encode(status));
    let mut slot: Vec<u8> = words.flat_map(u64::to_ne_bytes).collect();
    assert!(slot.len() <= STATUS_BYTES);
    slot.resize(STATUS_BYTES, 0);
    slot
}

/// Returns the status that a reader finds in a slot that is not being written.
fn found(slot: &[u8]) -> Option<Status> {
    read(|nbytes| Some(slot.get(..nbytes)?.to_vec()))
}

/// Returns a status in which this many threads wait for this many words each, with the largest
/// numbers that there are.
fn waits_for(nwords: usize, threads: u32) -> Status {
    let word = |index: usize| Word {
        location: SymmetricLocation::Heap {
            offset: u64::MAX - index as u64,
            block: Some(HeapBlock {
                offset: u64::MAX,
                nbytes: u64::MAX,
                is_buffer: false,
            }),
        },
        in_memfd: Some(u64::MAX),
        nbytes: 8,
        signed: false,
        wanted: u64::MAX,
    };
    let wait = |thread| Wait {
        thread,
        call: "shmem_uint64_wait_until_all".into(),
        called_at: Some("ring.c:12 in exchange".into()),
        search: Some(Search {
            stack: u64::MAX,
            since: u64::MAX,
            is_over: true,
        }),
        allocated_at: Some("ring.c:5 in main".into()),
        since: u64::MAX,
        limit: Some(u64::MAX),
        subject: AwaitedObject::Words(Words {
            words: (0..nwords).map(word).collect(),
            more: 1,
            all: true,
            comparison: "==".into(),
        }),
    };
    Status {
        pid: 7,
        pid_namespace: u64::MAX,
        stage: Stage::Initialized,
        waits: (0..threads).map(wait).collect(),
        further_waits: Vec::new(),
        held_locks: Vec::new(),
        in_flight: Some(InFlight {
            n: u64::MAX,
            targets: vec![u32::MAX; 64],
            more: false,
        }),
        finalizing: Some(Finalizing {
            entered: vec![(u64::MAX, u64::MAX); 64],
        }),
        finds_polls: true,
        poll: None,
        checks: true,
    }
}

#[test]
fn a_status_comes_back_from_its_slot() {
    let status = waits_for(10, 3);
    assert!(fits(&status));
    assert_eq!(found(&slot(2, &status)), Some(status));
}

#[test]
fn an_empty_slot_and_one_that_is_being_written_have_no_status() {
    assert_eq!(found(&[0; STATUS_BYTES]), None);
    assert_eq!(found(&[]), None);
    assert_eq!(found(&slot(3, &waits_for(1, 1))), None);

    let mut damaged = slot(2, &waits_for(1, 1));
    damaged[8..16].copy_from_slice(&u64::MAX.to_ne_bytes());
    assert_eq!(found(&damaged), None);
}

#[test]
fn a_status_that_is_too_large_loses_the_ends_of_its_lists() {
    let status = waits_for(MAX_LISTED, 100);
    assert!(!fits(&status));

    let read = found(&slot(2, &status)).expect("a shorter status");
    assert!(!read.waits.is_empty() && fits(&read));
    assert!(read.waiting_threads().eq(0..100));
    for wait in &read.waits {
        let AwaitedObject::Words(words) = &wait.subject else {
            panic!("{wait:?}")
        };
        assert_eq!(words.words.len() as u64 + words.more, MAX_LISTED as u64 + 1);
    }
}

#[test]
fn a_reader_copies_again_when_a_write_came_between() {
    let new = waits_for(2, 1);
    let old_slot = slot(2, &waits_for(1, 1));
    let new_slot = slot(4, &new);

    // The number, the slot and the number, then the slot and the number again.
    let mut copies = [&old_slot, &old_slot, &new_slot, &new_slot, &new_slot].into_iter();
    assert_eq!(
        read(|nbytes| Some(copies.next()?[..nbytes].to_vec())),
        Some(new.clone())
    );
    assert_eq!(copies.len(), 0);

    assert_eq!(found(&slot(5, &new)), None);
}

/// Every status that is read while another thread writes is one of those written.
#[test]
fn a_reader_finds_no_status_that_was_not_written() {
    const WRITES: u64 = 2000;
    let words: Vec<AtomicU64> = (0..STATUS_BYTES / WORD)
        .map(|_| AtomicU64::new(0))
        .collect();
    let status = |round: u64| {
        let mut status = waits_for(1 + round as usize % 5, 1 + round as u32 % 3);
        status.pid_namespace = round;
        status
    };

    let write = |round: u64| {
        words[0].store(2 * round + 1, Ordering::Relaxed);
        fence(Ordering::Release);
        for (from, to) in encode(&status(round)).into_iter().zip(&words[1..]) {
            to.store(from, Ordering::Relaxed);
        }
        words[0].store(2 * round + 2, Ordering::Release);
    };

    // From the last word to the first, as a copy may be made.
    let copy = |nbytes: usize| {
        let mut copied: Vec<u64> = words[..nbytes / WORD]
            .iter()
            .rev()
            .map(|word| word.load(Ordering::Relaxed))
            .collect();
        copied.reverse();
        Some(copied.into_iter().flat_map(u64::to_ne_bytes).collect())
    };

    std::thread::scope(|scope| {
        let writer = scope.spawn(|| (0..WRITES).for_each(write));
        while !writer.is_finished() {
            if let Some(read) = read(copy) {
                assert_eq!(read, status(read.pid_namespace));
            }
        }
    });
    assert_eq!(read(copy), Some(status(WRITES - 1)));
}
