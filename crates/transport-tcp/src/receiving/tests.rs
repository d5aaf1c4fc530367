//! Unit tests of `receiving`: bodies with any start, cut anywhere.
#![allow(unsafe_code)]

use super::*;

const BYTES: usize = 40;
const OLD: u8 = 0;
const NEW: u8 = 1;

/// Checks that no aligned word of a body at `start..start + nbytes` was written only in part.
fn assert_whole_words(memory: &[u8], start: usize, nbytes: usize) {
    for width in [2, 4, 8] {
        for offset in (0..memory.len()).step_by(width) {
            let is_within = offset >= start && offset + width <= start + nbytes;
            let word = &memory[offset..offset + width];
            assert!(
                !is_within || word.iter().all(|byte| *byte == word[0]),
                "{offset}: {memory:?}"
            );
        }
    }
}

/// Writes a body of `nbytes` bytes, which begins at `start`, in three parts.
fn write(start: usize, nbytes: usize, cuts: [usize; 2]) {
    #[repr(align(8))]
    struct Memory([u8; BYTES]);

    let mut memory = Memory([OLD; BYTES]);
    let base = (&raw mut memory.0).cast::<u8>();
    let dest = LocalBuf {
        base: base.wrapping_add(start),
        nbytes,
    };

    let body = [NEW; BYTES];
    let mut words = WholeWords::default();
    let mut done = 0;
    for end in [cuts[0], cuts[1], nbytes] {
        // SAFETY: `dest` is a part of `memory`, which is valid for writes.
        unsafe { words.write(dest.skip(done), &body[done..end]) };
        done = end;

        // SAFETY: `base` points to the `BYTES` initialized bytes of `memory`, and nothing writes to
        // them before the last use of the slice.
        let memory = unsafe { std::slice::from_raw_parts(base, BYTES) };
        assert_whole_words(memory, start, nbytes);
        let written = memory.iter().filter(|byte| **byte == NEW).count();
        assert!(
            written <= done && done - written < WORD,
            "{written} of {done} are there"
        );
    }

    assert_eq!(words.n_held, 0);
    let expected = std::array::from_fn(|i| u8::from((start..start + nbytes).contains(&i)));
    assert_eq!(memory.0, expected);
}

#[test]
fn words_are_whole_wherever_a_body_begins_and_is_cut() {
    for start in 0..WORD {
        for nbytes in 0..BYTES - WORD {
            for first in 0..=nbytes {
                for second in first..=nbytes {
                    write(start, nbytes, [first, second]);
                }
            }
        }
    }
}

#[test]
fn a_body_is_used_once_however_it_is_cut() {
    let body: Vec<u8> = (0..100).collect();
    for length in [1, 7, 50, 99, 100] {
        let mut whole = WholeBody::default();
        let mut used = Vec::new();
        for part in body.chunks(length) {
            used.extend(whole.take(body.len(), part, <[u8]>::to_vec));
        }
        assert_eq!(used, [&body[..]], "in parts of {length} bytes");
        assert_eq!(whole.0.capacity(), 0, "nothing is kept");
    }
}
