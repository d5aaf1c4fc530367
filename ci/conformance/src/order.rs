//! Order towards one PE: fences, signals, and answers through memory.

use super::member::{Member, TestAmo, TestEndpoint, TestSignal, word};
use super::pattern::{Random, bytes};
use rushmem_transport::AmoOp;
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
    for (round, source) in (1..).zip(sources) {
        send(&mut end, round, source);
        member.wait_until(|| member.fetch::<u64>(FLAG) >= round);
        // All PEs send the same.
        assert!(
            member.read(DATA, source.len()) == *source,
            "data of round {round} before its flag"
        );
        answer(member, &mut end, round);
    }
}

/// Tells the left neighbor that its round has been read, and waits until the right one has told so.
fn answer(member: &Member, end: &mut TestEndpoint<'_>, round: u64) {
    end.put_word(member.left(), ANSWER, round);
    end.fence();
    member.wait_until(|| member.fetch::<u64>(ANSWER) >= round);
}

fn sources() -> Vec<Vec<u8>> {
    let mut random = Random::new(5);
    (1..=ROUNDS)
        .map(|round| bytes(round, length(&mut random)))
        .collect()
}

pub(crate) fn data_before_flag(member: &Member) {
    let right = member.right();
    let flag = word(right, FLAG);
    rounds(member, &sources(), |end, round, source| {
        if round % 2 == 0 {
            end.put(right, DATA, source);
        } else {
            end.put_nbi(right, DATA, source);
        }
        end.fence();

        match round % 3 {
            0 => end.put_word(right, FLAG, round),
            1 => end.update(flag, TestAmo::new(AmoOp::Set, round)),
            _ => assert_eq!(end.amo(flag, TestAmo::new(AmoOp::Add, 1)), round - 1),
        }
        end.fence();
    });
}

pub(crate) fn signals(member: &Member) {
    let right = member.right();
    rounds(member, &sources(), |end, round, source| {
        let mut signal = TestSignal {
            offset: FLAG,
            op: AmoOp::Set,
            value: round,
        };
        if round % 2 == 0 {
            // Adding gives the flag the number of the round, too, since it has that of the last
            // one.
            signal.op = AmoOp::Add;
            signal.value = 1;
        }

        // All combinations of the signal and the routine occur.
        if round % 4 < 2 {
            end.put_signal(right, DATA, source, signal);
        } else {
            end.put_signal_nbi(right, DATA, source, signal);
        }
        end.fence();
    });
}

/// A signal adds to a word of its own data. If it were carried out first, the data would overwrite
/// the sum.
pub(crate) fn signal_after_its_data(member: &Member) {
    // With their heads and the signal, which take 80 bytes, 4,016 and 65,456 bytes of data fill a
    // message of a page and of 64 KiB over libfabric. Longer data need an operation of their own.
    let sizes = [
        8, 256, 257, 1_000, 4_016, 4_024, 16_384, 40_000, 65_456, 65_464, 100_000,
    ];
    let sources: Vec<Vec<u8>> = (1..).zip(sizes).map(|(seed, n)| bytes(seed, n)).collect();
    let mut end = member.endpoint();
    for (round, source) in sources.iter().enumerate() {
        // An aligned word in the middle.
        let middle = source.len() / 16 * 8;
        let signal = TestSignal {
            offset: DATA + middle,
            op: AmoOp::Add,
            value: 1,
        };
        if round % 2 == 0 {
            end.put_signal(member.right(), DATA, source, signal);
        } else {
            end.put_signal_nbi(member.right(), DATA, source, signal);
        }
        end.quiet();
        member.barrier();

        let mut expected = source.clone();
        let word = &mut expected[middle..middle + 8];
        let sent = u64::from_ne_bytes((&*word).try_into().expect("8 bytes"));
        word.copy_from_slice(&sent.wrapping_add(1).to_ne_bytes());
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
    let right = member.right();
    // The first word is the number of the round.
    let sources: Vec<Vec<u8>> = (1..=ROUNDS / 4)
        .map(|round| [&round.to_ne_bytes()[..], &bytes(round, 100_000)].concat())
        .collect();
    let mut end = member.endpoint();
    for (round, source) in (1..).zip(&sources) {
        let set = TestAmo::new(AmoOp::Set, round);
        for offset in (DATA..).step_by(8).take(WORDS) {
            let signal = TestSignal {
                offset,
                op: AmoOp::Set,
                value: round,
            };
            match offset % 3 {
                0 => end.put_word(right, offset, round),
                1 => end.update(word(right, offset), set),
                _ => end.put_signal(right, FLAG + 8, &[], signal),
            }
        }
        end.fence();
        end.put_nbi(right, LARGE, source);
        end.fence();
        end.update(word(right, FLAG), set);

        member.wait_until(|| member.fetch::<u64>(LARGE) >= round);
        for offset in (DATA..).step_by(8).take(WORDS) {
            assert_eq!(
                member.fetch::<u64>(offset),
                round,
                "the word at {offset} before the large put"
            );
        }

        member.wait_until(|| member.fetch::<u64>(FLAG) >= round);
        assert!(
            member.read(LARGE, source.len()) == *source,
            "data of round {round} before its flag"
        );
        answer(member, &mut end, round);
    }
}

pub(crate) fn later_put_stays(member: &Member) {
    let mut random = Random::new(6);
    let right = member.right();
    for round in 0..200 {
        let puts: Vec<Vec<u8>> = (0..4)
            .map(|put| bytes(round * 4 + put, length(&mut random)))
            .collect();
        // As long as the longest put.
        let mut expected = vec![0; 200_000];
        member.write(DATA, &expected);
        member.barrier();

        let mut end = member.endpoint();
        for (i, put) in puts.iter().enumerate() {
            if i % 2 == 0 {
                end.put(right, DATA, put);
            } else {
                end.put_nbi(right, DATA, put);
            }
            end.fence();
            // Each put overwrites the bytes of those before it, as far as it is long.
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
