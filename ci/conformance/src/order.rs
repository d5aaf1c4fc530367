//! Order towards one PE: fences, signals, and answers through memory.

use super::member::{Member, TestEndpoint};
use super::pattern::{Random, bytes};
use rushmem_transport::AmoOp;
use rushmem_transport::AmoWidth::Eight;
use testkit::LIMIT;

const ROUNDS: u64 = 300;
/// The offsets of two words and of the data. The words have the numbers of the last round that has
/// arrived, and of the last one that the neighbor has read.
const FLAG: usize = 0;
const ANSWER: usize = 64;
const DATA: usize = 128;

/// Returns a random length, mostly a short one, so that lengths on both sides of each boundary of a
/// provider occur.
fn length(random: &mut Random) -> usize {
    match random.below(8) {
        0 => 1 + random.below(200_000),
        1 | 2 => 1 + random.below(20_000),
        _ => 1 + random.below(300),
    }
}

/// Each PE sends [`ROUNDS`] rounds to its right neighbor. `send` puts the round's data and then
/// sets the flag. The neighbor checks the data when it sees the flag, and answers.
fn rounds<'a>(
    member: &'a Member,
    sources: &'a [Vec<u8>],
    mut send: impl FnMut(&mut TestEndpoint<'a>, u64, &'a [u8]),
) {
    let mut end = member.endpoint();
    for round in 1..=ROUNDS {
        send(&mut end, round, &sources[round as usize - 1]);
        member.wait_until(|| member.fetch::<u64>(FLAG) >= round);
        let sent = &bytes(round, sources[round as usize - 1].len());
        assert!(
            member.read(DATA, sent.len()) == *sent,
            "data of round {round} before its flag"
        );
        end.put_word(member.left(), ANSWER, round);
        end.fence();
        member.wait_until(|| member.fetch::<u64>(ANSWER) >= round);
    }
}

fn sources() -> Vec<Vec<u8>> {
    let mut random = Random::new(5);
    (1..=ROUNDS)
        .map(|round| bytes(round, length(&mut random)))
        .collect()
}

pub(crate) fn data_before_flag(member: &Member) {
    let right = member.right();
    rounds(member, &sources(), |end, round, source| {
        match round % 2 {
            0 => end.put(right, DATA, source),
            _ => end.put_nbi(right, DATA, source),
        }
        end.fence();
        match round % 3 {
            0 => end.put_word(right, FLAG, round),
            1 => end.update(right, FLAG, Eight, AmoOp::Set, round),
            _ => assert_eq!(end.amo(right, FLAG, Eight, AmoOp::Add, 1, 0), round - 1),
        }
        end.fence();
    });
}

pub(crate) fn signals(member: &Member) {
    let right = member.right();
    rounds(member, &sources(), |end, round, source| {
        match round % 4 {
            0 => end.put_signal(right, DATA, source, FLAG, 1, AmoOp::Add),
            1 => end.put_signal(right, DATA, source, FLAG, round, AmoOp::Set),
            2 => end.put_signal_nbi(right, DATA, source, FLAG, 1, AmoOp::Add),
            _ => end.put_signal_nbi(right, DATA, source, FLAG, round, AmoOp::Set),
        }
        end.fence();
    });
}

/// A signal adds to a word of its own data. If it were carried out first, the data would overwrite
/// the sum.
pub(crate) fn signal_after_its_data(member: &Member) {
    let sizes = [
        8, 256, 257, 1_000, 4_016, 4_024, 16_384, 40_000, 65_456, 65_464, 100_000,
    ];
    let sources: Vec<Vec<u8>> = (1..).zip(sizes).map(|(seed, n)| bytes(seed, n)).collect();
    let mut end = member.endpoint();
    for (round, source) in sources.iter().enumerate() {
        let at = source.len() / 16 * 8;
        match round % 2 {
            0 => end.put_signal(member.right(), DATA, source, DATA + at, 1, AmoOp::Add),
            _ => end.put_signal_nbi(member.right(), DATA, source, DATA + at, 1, AmoOp::Add),
        }
        end.quiet();
        member.barrier();
        let mut expected = source.clone();
        let word = &mut expected[at..at + 8];
        let sum = u64::from_ne_bytes(std::array::from_fn(|i| word[i])).wrapping_add(1);
        word.copy_from_slice(&sum.to_ne_bytes());
        assert!(
            member.read(DATA, expected.len()) == expected,
            "{} bytes",
            expected.len()
        );
        member.barrier();
    }
}

/// Small operations, a fence, a large put, a fence, a flag: the target sees them in this order.
pub(crate) fn small_before_large(member: &Member) {
    const WORDS: usize = 40;
    const LARGE: usize = 1 << 20;
    let sources: Vec<Vec<u8>> = (1..=ROUNDS / 4)
        .map(|round| [&round.to_ne_bytes()[..], &bytes(round, 100_000)].concat())
        .collect();
    let mut end = member.endpoint();
    for (round, source) in (1..).zip(&sources) {
        for word in (DATA..).step_by(8).take(WORDS) {
            match word % 3 {
                0 => end.put_word(member.right(), word, round),
                1 => end.update(member.right(), word, Eight, AmoOp::Set, round),
                _ => end.put_signal(member.right(), FLAG + 8, &[], word, round, AmoOp::Set),
            }
        }
        end.fence();
        end.put_nbi(member.right(), LARGE, source);
        end.fence();
        end.update(member.right(), FLAG, Eight, AmoOp::Set, round);
        member.wait_until(|| member.fetch::<u64>(LARGE) >= round);
        for word in (DATA..).step_by(8).take(WORDS) {
            assert_eq!(
                member.fetch::<u64>(word),
                round,
                "the word at {word} before the large put"
            );
        }
        member.wait_until(|| member.fetch::<u64>(FLAG) >= round);
        assert!(
            member.read(LARGE, source.len()) == *source,
            "data of round {round} before its flag"
        );
        end.put_word(member.left(), ANSWER, round);
        end.fence();
        member.wait_until(|| member.fetch::<u64>(ANSWER) >= round);
    }
}

pub(crate) fn later_put_stays(member: &Member) {
    let mut random = Random::new(6);
    let right = member.right();
    for round in 0..200 {
        let puts: Vec<Vec<u8>> = (0..4)
            .map(|put| bytes(round * 4 + put, length(&mut random)))
            .collect();
        let mut expected = member.read(DATA, 0);
        expected.resize(200_000, 0);
        member.write(DATA, &expected);
        member.barrier();
        let mut end = member.endpoint();
        for (i, put) in puts.iter().enumerate() {
            match i % 2 {
                0 => end.put(right, DATA, put),
                _ => end.put_nbi(right, DATA, put),
            }
            end.fence();
            expected[..put.len()].copy_from_slice(put);
        }
        end.quiet();
        member.barrier();
        assert!(
            member.read(DATA, expected.len()) == expected,
            "round {round}"
        );
    }
}

pub(crate) fn ping_pong(member: &Member) {
    answer_each_other(member, |ready| member.wait_until(ready));
}

/// Each PE sleeps until the answer has arrived, if every arrival ends a sleep.
pub(crate) fn ping_pong_asleep(member: &Member) {
    let transport = member.transport();
    if !transport.caps().wakes_waits {
        return;
    }
    answer_each_other(member, |ready| {
        transport.progress().expect("no PE is lost");
        while !ready() {
            transport.wait(LIMIT, &[], ready).expect("no PE is lost");
        }
        transport.end_wait();
    });
}

/// Pairs of PEs answer each other. `wait` waits until the function that it is given returns true.
fn answer_each_other(member: &Member, wait: impl Fn(&mut dyn FnMut() -> bool)) {
    let peer = member.me() ^ 1;
    if peer >= member.n_pes() {
        return;
    }
    let mut end = member.endpoint();
    for round in 1..=1_000 {
        if member.me() > peer {
            wait(&mut || member.fetch::<u64>(FLAG) == round);
        }
        end.put_word(peer, FLAG, round);
        if member.me() < peer {
            wait(&mut || member.fetch::<u64>(FLAG) == round);
        }
    }
    end.quiet();
}
