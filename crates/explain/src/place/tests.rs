//! Places that are written, damaged and copied meanwhile.

use super::*;
use crate::status::{Place, Stage, Wait, Word, Words};

/// A place as a reader copies it, with this sequence number.
fn page(sequence: u64, status: &Status) -> Vec<u8> {
    let words = std::iter::once(sequence).chain(encode(status));
    let mut page: Vec<u8> = words.flat_map(u64::to_ne_bytes).collect();
    assert!(page.len() <= PLACE_BYTES);
    page.resize(PLACE_BYTES, 0);
    page
}

fn waits_for(nwords: usize, threads: u32) -> Status {
    let word = |index: usize| Word {
        place: Place::Heap { offset: u64::MAX - index as u64, block: Some((u64::MAX, u64::MAX)) },
        in_memfd: Some(u64::MAX),
        nbytes: 8,
        signed: false,
        wanted: u64::MAX,
    };
    let wait = |thread| Wait {
        thread,
        call: "shmem_uint64_wait_until_all".into(),
        since: u64::MAX,
        subject: Subject::Words(Words {
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
        held_locks: Vec::new(),
    }
}

#[test]
fn a_status_comes_back_from_its_place() {
    let status = waits_for(10, 3);
    assert!(fits(&status));
    assert_eq!(parse(&page(2, &status)), Some(status));
}

#[test]
fn an_empty_place_and_one_that_is_being_written_have_no_status() {
    assert_eq!(parse(&[0; PLACE_BYTES]), None);
    assert_eq!(parse(&[]), None);
    assert_eq!(parse(&page(3, &waits_for(1, 1))), None);
    let mut damaged = page(2, &waits_for(1, 1));
    damaged[8..16].copy_from_slice(&u64::MAX.to_ne_bytes());
    assert_eq!(parse(&damaged), None);
}

#[test]
fn a_status_that_is_too_large_loses_the_ends_of_its_lists() {
    let status = waits_for(MAX_LISTED, 100);
    assert!(!fits(&status));
    let read = parse(&page(2, &status)).expect("a shorter status");
    assert!(!read.waits.is_empty() && fits(&read));
    for wait in &read.waits {
        let Subject::Words(words) = &wait.subject else { panic!("{wait:?}") };
        assert_eq!(words.words.len() as u64 + words.more, MAX_LISTED as u64 + 1);
    }
}

#[test]
fn a_reader_copies_again_when_a_write_came_between() {
    let (old, new) = (waits_for(1, 1), waits_for(2, 1));
    let mut copies = [page(2, &old), page(3, &new), page(4, &new), page(4, &new)].into_iter();
    assert_eq!(read(|| copies.next()), Some(new));
    assert_eq!(copies.next(), None);
    assert_eq!(read(|| Some(page(5, &old))), None);
}
