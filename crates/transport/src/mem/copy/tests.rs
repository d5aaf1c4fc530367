//! Unit tests of `copy`.
#![allow(unsafe_code)]

use super::*;

#[test]
fn runs_of_every_length_and_alignment_arrive() {
    let source: Vec<u8> = (0..400).map(|i| i as u8).collect();
    for nbytes in (0..80).chain([128, 255, 256]) {
        for (to, from) in [(0, 0), (8, 0), (4, 4), (2, 6), (1, 1), (3, 5), (0, 1)] {
            let mut dest = vec![0xAAu8; 400];
            let (d, s) = (dest[to..].as_mut_ptr(), source[from..].as_ptr());
            // SAFETY: both vectors hold 400 bytes, offsets and lengths stay below that.
            unsafe { copy_bytes(d, s, nbytes) };
            assert_eq!(dest[to..to + nbytes], source[from..from + nbytes]);
            assert!(dest[..to].iter().chain(&dest[to + nbytes..]).all(|&b| b == 0xAA));
        }
    }
}

#[test]
fn elements_of_every_size_arrive() {
    fn check<T: Element + PartialEq + std::fmt::Debug>(make: impl Fn(usize) -> T) {
        for nelems in 0..40 {
            let source: Vec<T> = (0..40).map(&make).collect();
            let mut dest: Vec<T> = (0..40).map(|_| make(99)).collect();
            // SAFETY: both vectors hold 40 elements.
            unsafe { copy_elements(dest.as_mut_ptr(), source.as_ptr(), nelems) };
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
    unsafe { copy_strided(dest.as_mut_ptr(), source.as_ptr(), 4, 3, 2, 3) };
    assert_eq!(dest, [0, 1, -1, -1, 3, 4, -1, -1, 6, 7, -1, -1]);
}
