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

/// Values of words and operands. What Miri finds depends on none of them.
const VALUES: &[u64] = if cfg!(miri) {
    &[0, u64::MAX]
} else {
    &[0, 1, 0x8000_0000, u64::MAX, 0x0123_4567_89AB_CDEF]
};

/// An operation on an integer that has the value `old`.
#[derive(Clone, Copy, Debug)]
struct Case {
    op: AmoOp,
    old: u64,
    operand: u64,
    condition: u64,
}

fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    for op in AmoOp::ALL {
        if op == AmoOp::AddFloat {
            continue;
        }
        for &old in VALUES {
            for &operand in VALUES {
                for condition in [old, !old] {
                    cases.push(Case {
                        op,
                        old,
                        operand,
                        condition,
                    });
                }
            }
        }
    }
    cases
}

/// Applies an operation to a number of this width. Returns its old value.
fn apply_to<T>(word: &mut T, width: AmoWidth, op: AmoOp, operand: u64, condition: u64) -> u64 {
    assert_eq!(size_of::<T>(), width.nbytes());
    // SAFETY: a mutable reference is valid for reads and writes. Numbers of 4 and 8 bytes are
    // aligned to their size.
    unsafe {
        apply(
            op,
            width,
            std::ptr::from_mut(word).cast(),
            operand,
            condition,
        )
    }
}

#[test]
fn every_operation_of_eight_bytes_is_its_model() {
    for case in cases() {
        let Case {
            op,
            old,
            operand,
            condition,
        } = case;

        let mut word = old;
        let found = apply_to(&mut word, AmoWidth::Eight, op, operand, condition);
        assert_eq!(found, old, "{case:?}");
        assert_eq!(word, model(op, old, operand, condition), "{case:?}");
    }
}

#[test]
fn every_operation_of_four_bytes_is_its_model_and_leaves_its_neighbors() {
    for case in cases() {
        let Case {
            op,
            old,
            operand,
            condition,
        } = case;

        let mut words = [7u32, old as u32, 9];
        let found = apply_to(&mut words[1], AmoWidth::Four, op, operand, condition);

        let [old, operand, condition] =
            [old, operand, condition].map(|word| u64::from(word as u32));
        let new = model(op, old, operand, condition) as u32;
        assert_eq!(found, old, "{case:?}");
        assert_eq!(words, [7, new, 9], "{case:?}");
    }
}

#[test]
fn floating_point_numbers_add() {
    for (old, operand) in [(0.25, 1.5), (-3.0, 3.0), (1e30, 1.0), (f64::MAX, f64::MAX)] {
        let bits = f64::to_bits(operand);
        let mut word = old;
        let found = apply_to(&mut word, AmoWidth::Eight, AmoOp::AddFloat, bits, 0);
        assert_eq!(f64::from_bits(found), old);
        assert_eq!(word, old + operand);

        let old = old as f32;
        let operand = operand as f32;
        let bits = u64::from(operand.to_bits());
        let mut words = [7.0, old, 9.0];
        let found = apply_to(&mut words[1], AmoWidth::Four, AmoOp::AddFloat, bits, 0);
        assert_eq!(found, u64::from(old.to_bits()));
        assert_eq!(words, [7.0, old + operand, 9.0]);
    }
}
