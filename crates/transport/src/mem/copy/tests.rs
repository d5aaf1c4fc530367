//! Unit tests of `copy`.
#![allow(unsafe_code)]

use super::*;
use crate::mem::{AtomicLoads, VolatileLoads};
use std::sync::atomic::AtomicU64;

/// Lengths up to 80 and some longer ones; under Miri, which takes milliseconds for each byte, those
/// up to 80 around powers of two unless `cargo xtask test --full` sets RUSHMEM_EVERY_SIZE.
fn lengths() -> impl Iterator<Item = usize> {
    let all = !cfg!(miri) || std::env::var_os("RUSHMEM_EVERY_SIZE").is_some();
    (0..80)
        .chain([128, 255, 256])
        .filter(move |&n| all || n < 80 && is_near_power(n))
}

fn is_near_power(n: usize) -> bool {
    let neighbors = [n.saturating_sub(1), n, n + 1];
    neighbors.iter().any(|n| n.is_power_of_two())
}

#[test]
fn runs_of_every_length_and_alignment_arrive() {
    for nbytes in lengths() {
        let source: Vec<u8> = (0..nbytes + 16).map(|i| i as u8).collect();
        for (dest_start, source_start) in [
            (0, 0),
            (8, 0),
            (4, 4),
            (2, 6),
            (1, 1),
            (3, 5),
            (0, 1),
            (7, 0),
        ] {
            let dest_end = dest_start + nbytes;
            let mut dest = vec![0xAAu8; nbytes + 16];
            let to = dest[dest_start..].as_mut_ptr();
            let from = source[source_start..].as_ptr();
            // SAFETY: both vectors hold 16 bytes more than are copied, and offsets stay below that.
            unsafe { copy_bytes::<VolatileLoads>(to, from, nbytes) };
            assert_eq!(dest[dest_start..dest_end], source[source_start..][..nbytes]);
            let mut others = dest[..dest_start].iter().chain(&dest[dest_end..]);
            assert!(others.all(|&byte| byte == 0xAA));

            let mut owned = source.clone();
            let source_start = source_start + 9;
            let to = dest[dest_start..].as_mut_ptr();
            let from = owned[source_start..].as_mut_ptr();
            // SAFETY: both vectors hold 16 bytes more than are copied, and offsets stay below that.
            unsafe { copy_bytes::<AtomicLoads>(to, from, nbytes) };
            assert_eq!(dest[dest_start..dest_end], source[source_start..][..nbytes]);

            // SAFETY: both are the same bytes of a vector.
            unsafe { copy_bytes::<AtomicLoads>(from, from, nbytes) };
            assert_eq!(owned, source);
        }
    }
}

/// Returns the starts of the parts in which a run at `addr` is copied, and the end of the last one.
/// The part of aligned 8 bytes counts as one.
fn cuts(addr: usize, nbytes: usize) -> Vec<usize> {
    let (before, after) = cut(addr, nbytes);
    let mut sizes: Vec<usize> = Vec::new();
    sizes.extend([1, 2, 4].iter().filter(|size| before & **size != 0));
    sizes.push(nbytes - before - after);
    sizes.extend([4, 2, 1].iter().filter(|size| after & **size != 0));

    let mut cuts = vec![addr];
    let mut end = addr;
    for size in sizes {
        end += size;
        cuts.push(end);
    }
    cuts
}

#[test]
#[cfg_attr(miri, ignore = "it is safe code")]
fn no_aligned_word_is_cut() {
    for addr in 64..64 + WORD {
        for nbytes in 0..200 {
            let end = addr + nbytes;
            let cuts = cuts(addr, nbytes);
            assert_eq!(cuts.last(), Some(&end));
            for size in [2, 4, 8] {
                for &cut in &cuts {
                    let word = cut - cut % size;
                    let is_cut = word < cut && addr <= word && word + size <= end;
                    assert!(!is_cut, "{size} bytes at {word} of {addr}..{end}: {cuts:?}");
                }
            }
        }
    }
}

#[test]
fn elements_of_every_size_arrive() {
    fn check<T: Element + PartialEq + std::fmt::Debug>(make: impl Fn(usize) -> T) {
        for nelems in lengths().take_while(|&nelems| nelems < 40) {
            let source: Vec<T> = (0..40).map(&make).collect();
            let mut dest: Vec<T> = (0..40).map(|_| make(99)).collect();
            let to = dest.as_mut_ptr();
            // SAFETY: both vectors hold 40 elements.
            unsafe { copy_elements::<VolatileLoads, T>(to, source.as_ptr(), nelems) };
            assert_eq!(dest[..nelems], source[..nelems]);
            assert!(dest[nelems..].iter().all(|&x| x == make(99)));
        }
    }
    check(|i| i as u8);
    check(|i| i as u16 * 257);
    check(|i| i as f32);
    check(|i| i as u64 * 0x0101_0101_0101_0101);
    check(|i| i as u128 * 3);
}

#[test]
fn strided_blocks_leave_gaps_alone() {
    let source: Vec<i32> = (0..12).collect();
    let mut dest = [-1; 12];
    // SAFETY: 3 blocks of 2 elements, 4 and 3 apart, end at elements 10 and 8.
    unsafe { copy_strided::<VolatileLoads, i32>(dest.as_mut_ptr(), source.as_ptr(), 4, 3, 2, 3) };
    assert_eq!(dest, [0, 1, -1, -1, 3, 4, -1, -1, 6, 7, -1, -1]);
}

#[test]
fn strided_elements_of_every_size_arrive() {
    fn check<T: Element + PartialEq + std::fmt::Debug>(make: impl Fn(usize) -> T) {
        let source: Vec<T> = (0..13).map(&make).collect();
        for nelems in 0..5 {
            let mut dest: Vec<T> = (0..10).map(|_| make(99)).collect();
            let mut expected: Vec<T> = (0..10).map(|_| make(99)).collect();
            for i in 0..nelems {
                expected[2 * i] = source[12 - 3 * i];
            }

            let to = dest.as_mut_ptr();
            let from = source.as_ptr().wrapping_add(12);
            // SAFETY: 4 elements, 2 and -3 apart, end at elements 6 and 3.
            unsafe { copy_strided::<VolatileLoads, T>(to, from, 2, -3, 1, nelems) };
            assert_eq!(dest, expected);
        }
    }
    check(|i| i as u8);
    check(|i| i as u16 * 257);
    check(|i| i as f32);
    check(|i| i as u64 * 0x0101_0101_0101_0101);
    check(|i| i as u128 * 3);
    check(|i| [i as u8; 3]);
}

/// Miri detects an atomic of borrowed elements, which would have to be valid for writes.
#[test]
fn a_borrowed_source_is_not_written() {
    fn copied<T: Element, const N: usize>(source: &[T; N], mut dest: [T; N]) -> [T; N] {
        // SAFETY: as many elements each.
        unsafe { copy_elements::<VolatileLoads, T>(dest.as_mut_ptr(), source.as_ptr(), N) };
        dest
    }

    assert_eq!(copied(&[17u8], [0]), [17]);
    assert_eq!(copied(&[1u16, 2], [0; 2]), [1, 2]);
    assert_eq!(copied(&[1.5f32, 2.5], [0.0; 2]), [1.5, 2.5]);
    assert_eq!(copied(&[u64::MAX; 7], [0; 7]), [u64::MAX; 7]);
    assert_eq!(copied(&[3u64; 70], [0; 70]), [3; 70]);
    assert_eq!(copied(&[[1u8, 2, 3]], [[0; 3]]), [[1, 2, 3]]);
}

/// Miri would detect a data race between the copy and the other thread's stores.
#[test]
fn words_of_symmetric_memory_are_untorn_while_another_thread_writes_them() {
    let words: [AtomicU64; 8] = Default::default();
    std::thread::scope(|s| {
        s.spawn(|| {
            for round in 1..20u64 {
                for word in &words {
                    // SAFETY: a word.
                    unsafe { store(word.as_ptr(), round << 32 | round) };
                }
            }
        });

        for _ in 0..20 {
            let mut seen = [0u64; 8];
            // SAFETY: as many words each.
            unsafe {
                copy_elements::<AtomicLoads, u64>(seen.as_mut_ptr(), words.as_ptr().cast(), 8)
            };
            assert!(
                seen.iter().all(|&word| word >> 32 == word & 0xFFFF_FFFF),
                "{seen:?}"
            );
        }
    });
}
