//! Unit tests of `apply`.
#![allow(unsafe_code)]

use super::*;

/// Returns the new value of the word, by plain arithmetic.
fn model(op: AmoOp, old: u64, operand: u64, condition: u64) -> u64 {
    match op {
        AmoOp::Fetch => old,
        AmoOp::Set | AmoOp::Swap => operand,
        AmoOp::CompareSwap => {
            if old == condition {
                operand
            } else {
                old
            }
        }
        AmoOp::Add => old.wrapping_add(operand),
        AmoOp::And => old & operand,
        AmoOp::Or => old | operand,
        AmoOp::Xor => old ^ operand,
        AmoOp::AddFloat => unreachable!("the bits of a sum that is no number are not specified"),
    }
}

/// The operations on integers.
fn of_integers() -> impl Iterator<Item = AmoOp> {
    AmoOp::ALL.into_iter().filter(|&op| op != AmoOp::AddFloat)
}

const VALUES: [u64; 5] = [0, 1, 0x8000_0000, u64::MAX, 0x0123_4567_89AB_CDEF];

#[test]
fn every_operation_of_eight_bytes_is_its_model() {
    for op in of_integers() {
        for old in VALUES {
            for operand in VALUES {
                for condition in [old, !old] {
                    let mut word = old;
                    let at = (&raw mut word).cast();
                    // SAFETY: a live, aligned local of 8 bytes.
                    let was = unsafe { apply(op, AmoWidth::Eight, at, operand, condition) };
                    assert_eq!(
                        (was, word),
                        (old, model(op, old, operand, condition)),
                        "{op:?}"
                    );
                }
            }
        }
    }
}

#[test]
fn every_operation_of_four_bytes_is_its_model_and_leaves_its_neighbors() {
    for op in of_integers() {
        for old in VALUES {
            for operand in VALUES {
                for condition in [old, !old] {
                    let mut words = [7u32, old as u32, 9];
                    let at = (&raw mut words[1]).cast();
                    // SAFETY: a live, aligned local of 4 bytes.
                    let was = unsafe { apply(op, AmoWidth::Four, at, operand, condition) };

                    let low = |x: u64| x & 0xFFFF_FFFF;
                    let new = low(model(op, low(old), low(operand), low(condition)));
                    assert_eq!(was, low(old), "{op:?}");
                    assert_eq!(words, [7, new as u32, 9], "{op:?}");
                }
            }
        }
    }
}

#[test]
fn floating_point_numbers_add() {
    for (old, operand) in [(0.25, 1.5), (-3.0, 3.0), (1e30, 1.0), (f64::MAX, f64::MAX)] {
        let mut word = old;
        let at = (&raw mut word).cast();
        // SAFETY: a live, aligned local of 8 bytes.
        let was = unsafe { apply(AmoOp::AddFloat, AmoWidth::Eight, at, operand.to_bits(), 0) };
        assert_eq!((f64::from_bits(was), word), (old, old + operand));

        let mut words = [7.0, old as f32, 9.0];
        let at = (&raw mut words[1]).cast();
        let bits = (operand as f32).to_bits();
        // SAFETY: a live, aligned local of 4 bytes.
        let was = unsafe { apply(AmoOp::AddFloat, AmoWidth::Four, at, u64::from(bits), 0) };
        assert_eq!(was, u64::from((old as f32).to_bits()));
        assert_eq!(words, [7.0, old as f32 + operand as f32, 9.0]);
    }
}
