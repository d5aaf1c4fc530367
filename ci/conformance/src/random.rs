//! Random operations of all PEs on all PEs, against a model.
//!
//! Every origin owns a room, a range of bytes, in every PE's heap, and has a model of its contents.
//! All origins issue operations at once. Operations of a batch access ranges that do not overlap; a
//! quiet ends the batch.

use super::atomic::{cut, model, operand};
use super::member::{Member, TestEndpoint};
use super::pattern::Random;
use rushmem_transport::AmoOp::{self, CompareSwap, Fetch};
use rushmem_transport::AmoWidth::{self, Eight, Four};
use std::thread;
use std::time::{Duration, Instant};

/// The memory that one origin, or one thread of it, has at each PE.
struct Room {
    start: usize,
    nbytes: usize,
    /// The expected content, per PE.
    expected: Vec<Vec<u8>>,
    random: Random,
}

/// The distribution of the sizes of transfers.
#[derive(Clone, Copy)]
enum Mix {
    /// Mostly words, seldom hundreds of kilobytes.
    Usual,
    /// Many large ones, so that every buffer fills.
    Heavy,
}

impl Room {
    fn new(member: &Member, start: usize, nbytes: usize, seed: u64) -> Room {
        let expected = vec![vec![0; nbytes]; member.n_pes()];
        Room {
            start,
            nbytes,
            expected,
            random: Random::new(seed),
        }
    }

    fn length(&mut self, mix: Mix) -> usize {
        let most = match (mix, self.random.below(20)) {
            (Mix::Usual, 0) | (Mix::Heavy, 0..8) => self.nbytes / 4,
            (_, 1..8) => 5_000,
            _ => 40,
        };
        1 + self.random.below(most)
    }

    /// Issues a batch of up to 60 operations on a new endpoint, completes it, and checks each
    /// result.
    fn batch(&mut self, member: &Member, mix: Mix) {
        let mut puts = Vec::new();
        let mut gets = Vec::new();
        let mut words = Vec::new();
        let mut at = vec![0; member.n_pes()];
        let peers: Vec<usize> = member.peers().collect();
        for _ in 0..60 {
            let peer = peers[self.random.below(peers.len())];
            let nbytes = self.length(mix);
            let gap = self.random.below(9);
            let start = at[peer] + gap;
            if start + nbytes + 16 > self.nbytes {
                continue;
            }
            at[peer] = start + nbytes;
            match self.random.below(4) {
                0 | 1 => puts.push((peer, start, self.random.bytes(nbytes))),
                2 => gets.push((peer, start, vec![0; nbytes])),
                _ => {
                    words.push((peer, start.next_multiple_of(8), [0; 8]));
                    at[peer] = start.next_multiple_of(8) + 8;
                }
            }
        }
        let mut end = match self.random.below(2) {
            0 => member.endpoint(),
            _ => member.internal_endpoint(),
        };
        for (peer, start, data) in &puts {
            match self.random.below(2) {
                0 => end.put(*peer, self.start + start, data),
                _ => end.put_nbi(*peer, self.start + start, data),
            }
            self.expected[*peer][*start..start + data.len()].copy_from_slice(data);
        }
        let mut olds = Vec::new();
        for (peer, start, fetched) in &mut words {
            olds.push(self.amo(&mut end, *peer, *start, fetched));
        }
        let mut wanted = Vec::new();
        for (peer, start, dest) in &mut gets {
            wanted.push(self.expected[*peer][*start..*start + dest.len()].to_vec());
            match self.random.below(2) {
                0 => *dest = end.get(*peer, self.start + *start, dest.len()),
                _ => end.get_nbi(*peer, self.start + *start, dest),
            }
        }
        end.quiet();
        drop(end);
        for ((peer, start, got), wanted) in gets.iter().zip(&wanted) {
            assert!(
                got == wanted,
                "get of {} at {start} from PE {peer}",
                got.len()
            );
        }
        for ((peer, start, fetched), old) in words.iter().zip(olds) {
            assert_eq!(
                u64::from_le_bytes(*fetched),
                old,
                "AMO at {start} of PE {peer}"
            );
        }
    }

    /// Issues a random AMO on a word. Returns the value that `fetched` must have after the quiet.
    fn amo<'a>(
        &mut self,
        end: &mut TestEndpoint<'a>,
        peer: usize,
        start: usize,
        fetched: &'a mut [u8; 8],
    ) -> u64 {
        let width = if self.random.below(2) == 0 {
            Four
        } else {
            Eight
        };
        let op = AmoOp::ALL[self.random.below(AmoOp::ALL.len())];
        let old = self.word(peer, start, width);
        let operand = operand(op, width, &mut self.random);
        let condition = if self.random.below(2) == 0 { old } else { !old };
        let condition = cut(width, condition);
        let at = self.start + start;
        let mut fetched_value = 0;
        match self.random.below(3) {
            0 if !matches!(op, Fetch | CompareSwap) => end.update(peer, at, width, op, operand),
            1 => {
                let fetched = &mut fetched[..width.nbytes()];
                end.amo_nbi(fetched, peer, at, width, op, operand, condition);
                fetched_value = old;
            }
            _ => assert_eq!(end.amo(peer, at, width, op, operand, condition), old),
        }
        let new = cut(width, model(op, width, old, operand, condition)).to_le_bytes();
        self.expected[peer][start..start + width.nbytes()].copy_from_slice(&new[..width.nbytes()]);
        fetched_value
    }

    fn word(&self, peer: usize, start: usize, width: AmoWidth) -> u64 {
        let mut word = [0; 8];
        let at = &self.expected[peer][start..start + width.nbytes()];
        word[..width.nbytes()].copy_from_slice(at);
        u64::from_le_bytes(word)
    }

    /// Puts the model's contents, such as the zeros of a new room, to every peer.
    fn clear(&self, member: &Member) {
        let mut end = member.endpoint();
        for peer in member.peers() {
            end.put(peer, self.start, &self.expected[peer]);
        }
        end.quiet();
    }

    /// Checks that the room at every peer has the model's contents.
    fn check(&self, member: &Member) {
        let mut end = member.endpoint();
        for peer in member.peers() {
            assert!(
                end.get(peer, self.start, self.nbytes) == self.expected[peer],
                "the room at PE {peer}"
            );
        }
    }
}

const ROOM: usize = 1 << 20;

pub(crate) fn random(member: &Member) {
    let mut room = Room::new(member, member.me() * ROOM, ROOM, 100 + member.me() as u64);
    for _ in 0..60 {
        room.batch(member, Mix::Usual);
    }
    room.check(member);
}

pub(crate) fn back_pressure(member: &Member) {
    let mut room = Room::new(member, member.me() * ROOM, ROOM, 200 + member.me() as u64);
    for _ in 0..10 {
        room.batch(member, Mix::Heavy);
    }
    room.check(member);
    member.barrier();
    // All PEs put and get megabytes at once, and issue their own operations before they complete
    // any.
    let data = vec![member.me() as u8 + 1; ROOM];
    let mut copies = vec![vec![0; ROOM]; member.peers().count()];
    let mut end = member.endpoint();
    for (peer, copy) in member.peers().zip(&mut copies) {
        for part in data.chunks(ROOM / 8) {
            end.put_nbi(peer, 8 * ROOM + member.me() * ROOM, part);
        }
        for part in copy.chunks_mut(1_000) {
            end.get_nbi(peer, 15 * ROOM, part);
        }
    }
    end.quiet();
}

/// Threads of one PE, each with an endpoint and a room of its own.
pub(crate) fn own_endpoints(member: &Member) {
    const THREADS: usize = 4;
    const NBYTES: usize = 1 << 19;
    let rooms = (0..THREADS).map(|i| {
        let number = member.me() * THREADS + i;
        Room::new(member, number * NBYTES, NBYTES, 400 + number as u64)
    });
    thread::scope(|scope| {
        for mut room in rooms {
            scope.spawn(move || {
                for _ in 0..15 {
                    room.batch(member, Mix::Usual);
                }
                room.check(member);
            });
        }
    });
}

/// The result of a soak.
pub struct Soak {
    /// The number of batches of up to 60 operations that this PE issued.
    pub batches: u64,
}

/// Issues random operations for this time. Calls `look` after every 64 batches, with the number of
/// batches so far.
pub fn soak(member: &Member, time: Duration, mut look: impl FnMut(u64)) -> Soak {
    let mut room = Room::new(member, member.me() * ROOM, ROOM, 300 + member.me() as u64);
    room.clear(member);
    let until = Instant::now() + time;
    let mut batches = 0;
    while Instant::now() < until {
        let mix = if batches % 16 == 0 {
            Mix::Heavy
        } else {
            Mix::Usual
        };
        room.batch(member, mix);
        batches += 1;
        if batches % 64 == 0 {
            look(batches);
        }
    }
    room.check(member);
    Soak { batches }
}
