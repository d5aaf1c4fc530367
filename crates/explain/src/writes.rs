//! The record of a PE's last writes to other PEs, in the shared memory of its node. It tells which
//! PE was the last to write an awaited word, and when.
//!
//! The writes are in a ring behind the slot of the status. The ring consists of words of 8 bytes in
//! native byte order: a word that is 1 if the PE records its writes, then [`ENTRIES`] entries of
//! [`ENTRY_WORDS`] words. Word 0 of an entry is the number of the write, counted from 1; it is 0 in
//! an unused entry, and [`BUSY`] while a thread writes the entry.
//!
//! A writer exchanges the older number of the entry for [`BUSY`], with acquire order, stores the
//! other words after a release fence, and then the new number by a release store. If the entry is
//! busy, or has a later number because other threads have filled the ring since, the write is not
//! recorded. So one thread at a time writes an entry, after all earlier stores to it. A reader
//! copies the ring three times and accepts an entry of the second copy if its number is the same in
//! the first and the third copy. The number was the same in between, since numbers are never reused
//! (see [`status_slot`](crate::status_slot)).

use crate::status::SymmetricLocation;
use serde::{Deserialize, Serialize};
use std::sync::atomic::{Ordering, fence};

/// The number of entries of the ring. A write is forgotten after as many later ones of its PE.
pub const ENTRIES: usize = 32;

/// The number of an entry that is being written.
pub const BUSY: u64 = u64::MAX;

/// The number of words of an entry: number, time, PE and kind of location, offset or address,
/// number of bytes, and the name of the call.
pub const ENTRY_WORDS: usize = 5 + NAME_WORDS;

const NAME_WORDS: usize = 4;

/// The start of the name of a call, padded with zeros.
pub type NameWords = [u64; NAME_WORDS];

const WORD: usize = size_of::<u64>();

/// The size of the ring in bytes; it begins at a multiple of 64.
pub const RING_BYTES: usize = (WORD * (1 + ENTRIES * ENTRY_WORDS)).next_multiple_of(64);

/// The bit, behind the number of the PE, of a location in static data.
const IS_STATIC: u64 = 1 << 32;

/// A write to memory of another PE: a put or an atomic operation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LastWrite {
    /// When the call began, in nanoseconds of `CLOCK_MONOTONIC_COARSE` of the host, which ticks
    /// every few milliseconds.
    pub began_at: u64,
    /// The world PE whose memory is written.
    pub pe: u32,
    /// The location of the first byte.
    pub location: SymmetricLocation,
    /// The number of bytes from the first byte to the last one.
    pub nbytes: u64,
    /// The function as the user called it; the end of a long name is missing.
    pub call: String,
}

/// Encodes a write: returns the words of its entry behind the first one; `None` if the location is
/// not symmetric.
#[inline]
pub fn encode(
    began_at: u64,
    pe: u32,
    location: &SymmetricLocation,
    nbytes: u64,
    name: NameWords,
) -> Option<[u64; ENTRY_WORDS - 1]> {
    let pe = u64::from(pe);
    let (target, offset) = match location {
        SymmetricLocation::Heap { offset, .. } => (pe, *offset),
        SymmetricLocation::Static { address } => (pe | IS_STATIC, *address),
        SymmetricLocation::Other { .. } => return None,
    };

    let [first, second, third, fourth] = name;
    Some([
        began_at, target, offset, nbytes, first, second, third, fourth,
    ])
}

/// Returns the words of the name of a call.
pub const fn name_words(call: &str) -> NameWords {
    let mut name = [[0; WORD]; NAME_WORDS];
    let mut words = [0; NAME_WORDS];
    let mut i = 0;
    while i < call.len() && i < NAME_WORDS * WORD {
        name[i / WORD][i % WORD] = call.as_bytes()[i];
        words[i / WORD] = u64::from_ne_bytes(name[i / WORD]);
        i += 1;
    }
    words
}

impl LastWrite {
    fn decode(words: &[u64]) -> Option<LastWrite> {
        let &[began_at, target, offset, nbytes, ref name @ ..] = words else {
            return None;
        };

        let location = if target & IS_STATIC == 0 {
            SymmetricLocation::Heap {
                offset,
                block: None,
            }
        } else {
            SymmetricLocation::Static { address: offset }
        };
        let name: Vec<u8> = name.iter().flat_map(|word| word.to_ne_bytes()).collect();
        let call = String::from_utf8_lossy(&name)
            .trim_end_matches('\0')
            .to_owned();

        Some(LastWrite {
            began_at,
            pe: target as u32,
            location,
            nbytes,
            call,
        })
    }

    /// Returns true if the write overlaps a word of `nbytes` bytes on a PE.
    pub fn is_of(&self, pe: u32, location: &SymmetricLocation, nbytes: u64) -> bool {
        if self.pe != pe {
            return false;
        }

        use SymmetricLocation::{Heap, Static};
        let (ours, theirs) = match (&self.location, location) {
            (Heap { offset: ours, .. }, Heap { offset: theirs, .. }) => (*ours, *theirs),
            (Static { address: ours }, Static { address: theirs }) => (*ours, *theirs),
            _ => return false,
        };
        // Ranges overlap if one of them contains the start of the other one. A start that lies
        // before the range gives a huge difference.
        theirs.wrapping_sub(ours) < self.nbytes || ours.wrapping_sub(theirs) < nbytes
    }
}

/// Returns the writes, the oldest first, in a ring to which its PE may be writing; `copy` returns
/// copies of the ring. `None` if the PE records no writes.
pub fn read(mut copy: impl FnMut() -> Option<Vec<u8>>) -> Option<Vec<LastWrite>> {
    let mut copy_words = || -> Option<Vec<u64>> {
        let bytes = copy()?;
        // No load of a copy may move behind those of the next one.
        fence(Ordering::Acquire);
        let (words, _) = bytes.as_chunks();
        Some(words.iter().map(|word| u64::from_ne_bytes(*word)).collect())
    };
    let before = copy_words()?;
    let ring = copy_words()?;
    let after = copy_words()?;
    if ring.first() != Some(&1) {
        return None;
    }

    let mut numbered = Vec::new();
    let entries = ring.get(1..)?.chunks_exact(ENTRY_WORDS);
    for (index, entry) in entries.take(ENTRIES).enumerate() {
        let first_word = 1 + index * ENTRY_WORDS;
        let number = before.get(first_word);
        let is_used = ![Some(&0), Some(&BUSY)].contains(&number);
        // If the number has not changed, nothing in the entry has changed in between.
        if is_used && number == after.get(first_word) {
            numbered.push((number, LastWrite::decode(&entry[1..])?));
        }
    }
    numbered.sort_by_key(|(number, _)| *number);
    Some(numbered.into_iter().map(|(_, write)| write).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::status::HeapBlock;

    fn write(pe: u32, location: SymmetricLocation) -> LastWrite {
        LastWrite {
            began_at: 5,
            pe,
            location,
            nbytes: 16,
            call: "shmem_uint64_atomic_compare_swap".into(),
        }
    }

    /// Returns a ring with these entries, by their numbers.
    fn ring(entries: &[(u64, &LastWrite)]) -> Vec<u8> {
        let mut words = vec![0; RING_BYTES / WORD];
        words[0] = 1;
        for ((number, write), entry) in entries.iter().zip(words[1..].chunks_exact_mut(ENTRY_WORDS))
        {
            let LastWrite {
                began_at,
                pe,
                location,
                nbytes,
                call,
            } = write;
            let encoded = encode(*began_at, *pe, location, *nbytes, name_words(call))
                .expect("a symmetric location");
            entry[0] = *number;
            entry[1..].copy_from_slice(&encoded);
        }
        words.into_iter().flat_map(u64::to_ne_bytes).collect()
    }

    #[test]
    fn whole_entries_come_back() {
        let heap = write(
            3,
            SymmetricLocation::Heap {
                offset: 64,
                block: None,
            },
        );

        let variable = write(0, SymmetricLocation::Static { address: 0x4040 });
        let name = name_words("shmem_putmem");
        assert_eq!(
            encode(5, 0, &SymmetricLocation::Other { address: 1 }, 8, name),
            None
        );

        let old = ring(&[(1, &heap), (2, &heap)]);
        let new = ring(&[(1, &heap), (34, &variable)]);
        assert_eq!(
            read(|| Some(new.clone())),
            Some(vec![heap.clone(), variable])
        );

        let mut copies = [old, new.clone(), new].into_iter();
        assert_eq!(read(|| copies.next()), Some(vec![heap.clone()]));

        let busy = ring(&[(1, &heap), (BUSY, &heap)]);
        assert_eq!(read(|| Some(busy.clone())), Some(vec![heap]));

        assert_eq!(read(|| Some(vec![0; RING_BYTES])), None);
        assert_eq!(read(|| Some(Vec::new())), None);
    }

    #[test]
    fn a_write_is_of_the_words_that_it_overlaps() {
        let write = write(
            3,
            SymmetricLocation::Heap {
                offset: 64,
                block: None,
            },
        );
        let is_of = |pe, offset| {
            let word = SymmetricLocation::Heap {
                offset,
                block: Some(HeapBlock {
                    offset: 0,
                    nbytes: 8,
                    is_buffer: false,
                }),
            };
            write.is_of(pe, &word, 8)
        };
        assert!([57, 64, 72, 79].into_iter().all(|offset| is_of(3, offset)));
        assert!(![56, 80].into_iter().any(|offset| is_of(3, offset)));
        assert!(!is_of(2, 64));
        assert!(!write.is_of(3, &SymmetricLocation::Static { address: 64 }, 8));
    }
}
