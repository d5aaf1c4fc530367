//! Random operations of all PEs on all PEs, against a model.
//!
//! Every origin owns a room, a range of bytes, in every PE's heap, and has a model of its contents.
//! All origins issue operations at once. Operations of a batch access ranges that do not overlap; a
//! quiet ends the batch.

use super::atomic::{cut, model, operand};
use super::member::{Member, TestAmo, TestEndpoint, TestWord};
use super::pattern::Random;
use rushmem_transport::AmoOp::{self, CompareSwap, Fetch};
use rushmem_transport::AmoWidth::{Eight, Four};
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

/// A put or a get of a batch.
struct Transfer {
    peer: usize,
    /// The offset in the room.
    start: usize,
    /// The data of a put, or the destination of a get.
    bytes: Vec<u8>,
}

/// An atomic operation of a batch, whose kind is drawn when it is issued.
struct WordUpdate {
    peer: usize,
    /// The offset in the room.
    start: usize,
    /// Where the next quiet stores the old value, if the operation fetches it so.
    fetched: [u8; 8],
}

/// Operations on ranges that do not overlap.
#[derive(Default)]
struct Batch {
    puts: Vec<Transfer>,
    gets: Vec<Transfer>,
    updates: Vec<WordUpdate>,
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

    /// Draws a batch of up to 60 operations.
    fn draw(&mut self, member: &Member, mix: Mix) -> Batch {
        let mut batch = Batch::default();
        // The end of the last range at each PE.
        let mut ends = vec![0; member.n_pes()];
        let peers: Vec<usize> = member.peers().collect();
        for _ in 0..60 {
            let peer = peers[self.random.below(peers.len())];
            let nbytes = self.length(mix);
            let gap = self.random.below(9);
            let start = ends[peer] + gap;
            // 16 bytes are enough for an aligned word.
            if start + nbytes + 16 > self.nbytes {
                continue;
            }
            match self.random.below(4) {
                0 | 1 => {
                    ends[peer] = start + nbytes;
                    batch.puts.push(Transfer {
                        peer,
                        start,
                        bytes: self.random.bytes(nbytes),
                    });
                }
                2 => {
                    ends[peer] = start + nbytes;
                    batch.gets.push(Transfer {
                        peer,
                        start,
                        bytes: vec![0; nbytes],
                    });
                }
                _ => {
                    let start = start.next_multiple_of(8);
                    ends[peer] = start + 8;
                    batch.updates.push(WordUpdate {
                        peer,
                        start,
                        fetched: [0; 8],
                    });
                }
            }
        }
        batch
    }

    /// Issues a batch on a new endpoint, completes it, and checks each result.
    fn batch(&mut self, member: &Member, mix: Mix) {
        let Batch {
            puts,
            mut gets,
            mut updates,
        } = self.draw(member, mix);
        let mut end = match self.random.below(2) {
            0 => member.endpoint(),
            _ => member.internal_endpoint(),
        };

        for Transfer { peer, start, bytes } in &puts {
            match self.random.below(2) {
                0 => end.put(*peer, self.start + start, bytes),
                _ => end.put_nbi(*peer, self.start + start, bytes),
            }
            self.expected[*peer][*start..start + bytes.len()].copy_from_slice(bytes);
        }

        let mut expected_olds = Vec::new();
        for update in &mut updates {
            expected_olds.push(self.amo(&mut end, update));
        }

        let mut expected_gets = Vec::new();
        for Transfer { peer, start, bytes } in &mut gets {
            let range = *start..*start + bytes.len();
            expected_gets.push(self.expected[*peer][range].to_vec());
            match self.random.below(2) {
                0 => *bytes = end.get(*peer, self.start + *start, bytes.len()),
                _ => end.get_nbi(*peer, self.start + *start, bytes),
            }
        }

        end.quiet();
        drop(end);
        for (get, expected) in gets.iter().zip(&expected_gets) {
            let Transfer { peer, start, bytes } = get;
            let nbytes = bytes.len();
            assert!(
                bytes == expected,
                "get of {nbytes} at {start} from PE {peer}"
            );
        }
        for (update, expected) in updates.iter().zip(expected_olds) {
            let WordUpdate { peer, start, .. } = update;
            let fetched = u64::from_le_bytes(update.fetched);
            assert_eq!(fetched, expected, "AMO at {start} of PE {peer}");
        }
    }

    /// Issues a random AMO on a word. Returns the value that `fetched` must have after the quiet,
    /// which is 0 if it is not stored.
    fn amo<'a>(&mut self, end: &mut TestEndpoint<'a>, update: &'a mut WordUpdate) -> u64 {
        let WordUpdate {
            peer,
            start,
            fetched,
        } = update;
        let width = if self.random.below(2) == 0 {
            Four
        } else {
            Eight
        };
        let nbytes = width.nbytes();
        let range = *start..*start + nbytes;
        let old = word_of(&self.expected[*peer][range.clone()]);

        let op = AmoOp::ALL[self.random.below(AmoOp::ALL.len())];
        let operand = operand(op, width, &mut self.random);
        // Half of the comparisons succeed.
        let condition = if self.random.below(2) == 0 { old } else { !old };
        let amo = TestAmo {
            op,
            operand,
            condition: cut(width, condition),
        };
        let word = TestWord {
            pe: *peer,
            offset: self.start + *start,
            width,
        };

        let mut expected_fetched = 0;
        match self.random.below(3) {
            0 if !matches!(op, Fetch | CompareSwap) => end.update(word, amo),
            1 => {
                end.amo_nbi(&mut fetched[..nbytes], word, amo);
                expected_fetched = old;
            }
            _ => assert_eq!(end.amo(word, amo), old),
        }

        let new = model(amo, width, old).to_le_bytes();
        self.expected[*peer][range].copy_from_slice(&new[..nbytes]);
        expected_fetched
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

/// Returns the value of a word of 4 or 8 bytes.
fn word_of(bytes: &[u8]) -> u64 {
    let mut word = [0; 8];
    word[..bytes.len()].copy_from_slice(bytes);
    u64::from_le_bytes(word)
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
    // any. The offsets are beyond the rooms. Only the end of the operations is tested, so all puts
    // of a PE may go to the same bytes, and all gets may come from the same.
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

/// Issues random operations for the duration `time`. Calls `look` after every 64 batches, with the
/// number of batches so far.
pub fn soak(member: &Member, time: Duration, mut look: impl FnMut(u64)) -> Soak {
    let mut room = Room::new(member, member.me() * ROOM, ROOM, 300 + member.me() as u64);
    // The caller may have used the heap before.
    room.clear(member);

    let until = Instant::now() + time;
    let mut batches = 0;
    while Instant::now() < until {
        // Seldom, since a heavy batch takes as long as many usual ones.
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
