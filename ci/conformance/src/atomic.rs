//! Atomic memory operations.

use super::member::{Member, TestAmo, TestWord, short_word, word};
use super::pattern::Random;
use rushmem_transport::AmoOp::{self, Add, AddFloat, And, CompareSwap, Fetch, Or, Set, Swap, Xor};
use rushmem_transport::AmoWidth::{self, Eight, Four};

/// Returns the value of a word after an operation.
pub(crate) fn model(amo: TestAmo, width: AmoWidth, old: u64) -> u64 {
    let operand = amo.operand;
    let new = match amo.op {
        Fetch => old,
        Set | Swap => operand,
        CompareSwap if old == amo.condition => operand,
        CompareSwap => old,
        Add => old.wrapping_add(operand),
        And => old & operand,
        Or => old | operand,
        Xor => old ^ operand,
        AddFloat => match width {
            Four => {
                let sum = f32::from_bits(old as u32) + f32::from_bits(operand as u32);
                u64::from(sum.to_bits())
            }
            Eight => (f64::from_bits(old) + f64::from_bits(operand)).to_bits(),
        },
    };
    cut(width, new)
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
            let word = TestWord {
                pe: peer,
                offset: 4096 + member.me() * 64 + 16,
                width,
            };
            compare_with_model(member, word, &mut random);
        }
    }
}

/// Issues all operations on a word that only this PE changes, and compares each with the model.
fn compare_with_model(member: &Member, word: TestWord, random: &mut Random) {
    let TestWord { pe, offset, width } = word;
    let mut end = member.endpoint();
    end.put(pe, offset - 16, &[0xC3; 40]);
    end.quiet();

    let mut value = cut(width, u64::from_ne_bytes([0xC3; 8]));
    for op in AmoOp::ALL.into_iter().cycle().take(400) {
        let operand = operand(op, width, random);
        let condition = match random.below(2) {
            0 => value,
            _ => cut(width, random.next_u64()),
        };
        let amo = TestAmo {
            op,
            operand,
            condition,
        };

        match random.below(3) {
            0 if !matches!(op, Fetch | CompareSwap) => {
                end.update(word, amo);
                end.fence();
            }
            1 => {
                // Another endpoint, so that the earlier operations must be complete first.
                end.quiet();
                let mut fetched = vec![0; width.nbytes()];
                let mut one = member.endpoint();
                one.amo_nbi(&mut fetched, word, amo);
                one.quiet();
                drop(one);
                assert_eq!(fetched, value.to_le_bytes()[..width.nbytes()], "{op:?}");
            }
            _ => assert_eq!(end.amo(word, amo), value, "{op:?} {width:?}"),
        }
        value = model(amo, width, value);
    }

    end.quiet();
    let around = end.get(pe, offset - 16, 40);
    let (before, rest) = around.split_at(16);
    let (found, after) = rest.split_at(width.nbytes());
    assert_eq!(found, &value.to_le_bytes()[..width.nbytes()]);
    assert!(
        before.iter().chain(after).all(|&byte| byte == 0xC3),
        "the neighbors of a word stay"
    );
}

pub(crate) fn float_bits(member: &Member) {
    const WORD: usize = 64;
    let mut end = member.endpoint();
    let double = word(member.right(), WORD);
    let doubles = [
        -0.0,
        f64::INFINITY,
        f64::MIN_POSITIVE / 2.0,
        f64::from_bits(0x7FF0_0000_0000_0001),
    ];
    for value in doubles {
        end.update(double, TestAmo::new(Set, value.to_bits()));
        end.fence();
        let old = end.amo(double, TestAmo::new(Swap, 1.5f64.to_bits()));
        assert_eq!(old, value.to_bits());
        assert_eq!(end.amo(double, TestAmo::fetch()), 1.5f64.to_bits());
    }

    let float = short_word(member.right(), WORD);
    for value in [-0.0, f32::NEG_INFINITY, f32::from_bits(0x7F80_0001)] {
        let bits = u64::from(value.to_bits());
        let old = end.amo(float, TestAmo::new(Swap, bits));
        assert!(old <= u64::from(u32::MAX));
        assert_eq!(end.amo(float, TestAmo::fetch()), bits);
    }
    member.barrier();
    assert_eq!(member.fetch::<f32>(WORD).to_bits(), 0x7F80_0001);
}

/// The offsets in PE 0's heap of the words that all PEs change.
const SHORT: usize = 64;
const LONG: usize = 128;

pub(crate) fn contended_counter(member: &Member) {
    const EACH: usize = 1_000;
    let short = short_word(0, SHORT);
    let long = word(0, LONG);
    let add_one = TestAmo::new(Add, 1);
    let mut end = member.endpoint();
    let mut last = 0;

    // A PE that does not reach the words over the transport adds to them by its CPU.
    let n_updates = if member.reaches(0) { EACH } else { 0 };
    for i in 0..n_updates {
        end.update(short, add_one);
        if i % 2 == 0 {
            end.update(long, add_one);
        } else {
            let old = end.amo(long, add_one);
            assert!(old >= last, "a counter never goes back");
            last = old + 1;
        }
    }
    for _ in n_updates..EACH {
        member.cpu_add(SHORT, 1u32);
        member.cpu_add(LONG, 1u64);
    }
    end.quiet();
    member.barrier();

    if member.me() == 0 {
        let all = member.n_pes() * EACH;
        assert_eq!(member.fetch::<u32>(SHORT) as usize, all);
        assert_eq!(member.fetch::<u64>(LONG) as usize, all);
    }
}

/// The values are chosen so that each sum is exact.
pub(crate) fn contended_sums(member: &Member) {
    const EACH: usize = 500;
    let short = short_word(0, SHORT);
    let long = word(0, LONG);
    let add_half = TestAmo::new(AddFloat, u64::from(0.5f32.to_bits()));
    let add_quarter = TestAmo::new(AddFloat, 0.25f64.to_bits());
    let mut end = member.endpoint();
    let mut last = 0.0;

    let n_updates = if member.reaches(0) { EACH } else { 0 };
    for i in 0..n_updates {
        end.update(short, add_half);
        if i % 2 == 0 {
            end.update(long, add_quarter);
        } else {
            let old = f64::from_bits(end.amo(long, add_quarter));
            assert!(old >= last, "a sum of positive numbers never falls");
            last = old + 0.25;
        }
    }
    end.quiet();
    member.barrier();

    if member.me() == 0 {
        let all = (member.peers().count() * EACH) as f64;
        assert_eq!(f64::from(member.fetch::<f32>(SHORT)), all * 0.5);
        assert_eq!(member.fetch::<f64>(LONG), all * 0.25);
    }
}

pub(crate) fn compare_swap_lock(member: &Member) {
    const EACH: u64 = 100;
    const COUNTER: usize = 4096;
    let lock = word(0, 64);
    let mut end = member.endpoint();

    // The lock has the number of the PE that holds it, plus 1, or 0 if it is free.
    let me = member.me() as u64 + 1;
    let n_turns = if member.reaches(0) { EACH } else { 0 };
    for _ in 0..n_turns {
        while end.amo(lock, TestAmo::compare_swap(0, me)) != 0 {
            std::thread::yield_now();
        }

        let old = end.get(0, COUNTER, 8).try_into().expect("a word");
        end.put_word(0, COUNTER, u64::from_ne_bytes(old) + 1);
        // The counter is changed before the lock is free.
        end.quiet();
        let holder = end.amo(lock, TestAmo::new(Swap, 0));
        assert_eq!(holder, me, "nobody else took the lock");
    }
    member.barrier();

    if member.me() == 0 {
        let all = EACH * member.peers().count() as u64;
        assert_eq!(member.fetch::<u64>(COUNTER), all);
    }
}
