//! Atomic memory operations.

use super::member::Member;
use super::pattern::Random;
use rushmem_transport::AmoOp::{self, Add, AddFloat, And, CompareSwap, Fetch, Or, Set, Swap, Xor};
use rushmem_transport::AmoWidth::{self, Eight, Four};

/// Returns the value of a word after an operation. The caller cuts it to the width of the word.
pub(crate) fn model(op: AmoOp, width: AmoWidth, old: u64, operand: u64, condition: u64) -> u64 {
    let float = |bits| f32::from_bits(cut(Four, bits) as u32);
    match op {
        Fetch => old,
        Set | Swap => operand,
        CompareSwap if old == condition => operand,
        CompareSwap => old,
        Add => old.wrapping_add(operand),
        And => old & operand,
        Or => old | operand,
        Xor => old ^ operand,
        AddFloat => match width {
            Four => u64::from((float(old) + float(operand)).to_bits()),
            Eight => (f64::from_bits(old) + f64::from_bits(operand)).to_bits(),
        },
    }
}

/// Returns a random operand. One of a floating-point addition is a finite number, since the bits of
/// a sum with a NaN are not specified.
pub(crate) fn operand(op: AmoOp, width: AmoWidth, random: &mut Random) -> u64 {
    let number = random.below(1_000) as f32 / 8.0;
    match (op, width) {
        (AddFloat, Four) => u64::from(number.to_bits()),
        (AddFloat, Eight) => f64::from(number).to_bits(),
        _ => cut(width, random.next_u64()),
    }
}

/// Returns the bits of a value that a word of this width keeps.
pub(crate) fn cut(width: AmoWidth, value: u64) -> u64 {
    match width {
        Four => value & 0xFFFF_FFFF,
        Eight => value,
    }
}

pub(crate) fn semantics(member: &Member) {
    let mut random = Random::new(7);
    for peer in member.peers() {
        for width in [Four, Eight] {
            // A word for this origin, between words that must not change.
            let at = 4096 + member.me() * 64 + 16;
            let mut end = member.endpoint();
            end.put(peer, at - 16, &[0xC3; 40]);
            end.quiet();
            let mut value = cut(width, u64::from_ne_bytes([0xC3; 8]));
            for op in AmoOp::ALL.into_iter().cycle().take(400) {
                let operand = operand(op, width, &mut random);
                let condition = match random.below(2) {
                    0 => value,
                    _ => cut(width, random.next_u64()),
                };
                let next = cut(width, model(op, width, value, operand, condition));
                match random.below(3) {
                    0 if !matches!(op, Fetch | CompareSwap) => {
                        end.update(peer, at, width, op, operand);
                        end.fence();
                    }
                    1 => {
                        let mut fetched = vec![0; width.nbytes()];
                        let mut one = member.endpoint();
                        end.quiet();
                        one.amo_nbi(&mut fetched, peer, at, width, op, operand, condition);
                        one.quiet();
                        drop(one);
                        assert_eq!(fetched, value.to_le_bytes()[..width.nbytes()], "{op:?}");
                    }
                    _ => {
                        let old = end.amo(peer, at, width, op, operand, condition);
                        assert_eq!(old, value, "{op:?} {width:?}");
                    }
                }
                value = next;
            }
            end.quiet();
            let around = end.get(peer, at - 16, 40);
            let word = &around[16..16 + width.nbytes()];
            assert_eq!(word, &value.to_le_bytes()[..width.nbytes()]);
            let mut neighbors = around[..16].iter().chain(&around[16 + width.nbytes()..]);
            assert!(
                neighbors.all(|&byte| byte == 0xC3),
                "the neighbors of a word stay"
            );
        }
    }
}

pub(crate) fn float_bits(member: &Member) {
    let mut end = member.endpoint();
    let (right, at) = (member.right(), 64);
    let doubles = [
        -0.0,
        f64::INFINITY,
        f64::MIN_POSITIVE / 2.0,
        f64::from_bits(0x7FF0_0000_0000_0001),
    ];
    for value in doubles {
        end.update(right, at, Eight, Set, value.to_bits());
        end.fence();
        let old = end.amo(right, at, Eight, Swap, 1.5f64.to_bits(), 0);
        assert_eq!(old, value.to_bits());
        assert_eq!(end.amo(right, at, Eight, Fetch, 0, 0), 1.5f64.to_bits());
    }
    for value in [-0.0, f32::NEG_INFINITY, f32::from_bits(0x7F80_0001)] {
        let old = end.amo(right, at, Four, Swap, u64::from(value.to_bits()), 0);
        assert!(old <= u64::from(u32::MAX));
        assert_eq!(
            end.amo(right, at, Four, Fetch, 0, 0),
            u64::from(value.to_bits())
        );
    }
    member.barrier();
    assert_eq!(member.fetch::<f32>(at).to_bits(), 0x7F80_0001);
}

pub(crate) fn contended_counter(member: &Member) {
    const EACH: usize = 1_000;
    let (four, eight) = (64, 128);
    let mut end = member.endpoint();
    let mut last = 0;
    let n_updates = if member.reaches(0) { EACH } else { 0 };
    for i in 0..n_updates {
        end.update(0, four, Four, Add, 1);
        match i % 2 {
            0 => end.update(0, eight, Eight, Add, 1),
            _ => {
                let old = end.amo(0, eight, Eight, Add, 1, 0);
                assert!(old >= last, "a counter never goes back");
                last = old + 1;
            }
        }
    }
    for _ in n_updates..EACH {
        member.cpu_add(four, 1u32);
        member.cpu_add(eight, 1u64);
    }
    end.quiet();
    member.barrier();
    if member.me() == 0 {
        let all = member.n_pes() * EACH;
        assert_eq!(member.fetch::<u32>(four) as usize, all);
        assert_eq!(member.fetch::<u64>(eight) as usize, all);
    }
}

/// The values are chosen so that each sum is exact.
pub(crate) fn contended_sums(member: &Member) {
    const EACH: usize = 500;
    let (four, eight) = (64, 128);
    let mut end = member.endpoint();
    let mut last = 0.0;
    let n_updates = if member.reaches(0) { EACH } else { 0 };
    for i in 0..n_updates {
        end.update(0, four, Four, AddFloat, u64::from(0.5f32.to_bits()));
        match i % 2 {
            0 => end.update(0, eight, Eight, AddFloat, 0.25f64.to_bits()),
            _ => {
                let old = f64::from_bits(end.amo(0, eight, Eight, AddFloat, 0.25f64.to_bits(), 0));
                assert!(old >= last, "a sum of positive numbers never falls");
                last = old + 0.25;
            }
        }
    }
    end.quiet();
    member.barrier();
    if member.me() == 0 {
        let all = (member.peers().count() * EACH) as f64;
        assert_eq!(f64::from(member.fetch::<f32>(four)), all * 0.5);
        assert_eq!(member.fetch::<f64>(eight), all * 0.25);
    }
}

pub(crate) fn compare_swap_lock(member: &Member) {
    const EACH: u64 = 100;
    let (lock, counter) = (64, 4096);
    let mut end = member.endpoint();
    let me = member.me() as u64 + 1;
    let n_turns = if member.reaches(0) { EACH } else { 0 };
    for _ in 0..n_turns {
        while end.amo(0, lock, Eight, CompareSwap, me, 0) != 0 {
            std::thread::yield_now();
        }
        let old = end
            .get(0, counter, 8)
            .try_into()
            .map(u64::from_ne_bytes)
            .expect("a word");
        end.put_word(0, counter, old + 1);
        end.quiet();
        assert_eq!(
            end.amo(0, lock, Eight, Swap, 0, 0),
            me,
            "nobody else took the lock"
        );
    }
    member.barrier();
    if member.me() == 0 {
        assert_eq!(
            member.fetch::<u64>(counter),
            EACH * member.peers().count() as u64
        );
    }
}
