//! The layout of the library's own flags and buffers in a PE's internal area: the same on every PE.
//!
//! ```text
//! doorbell, exits, finalizes, crashes, long waits, warnings |
//! per source PE: mailbox, pair line, acknowledgment | lines of source PEs |
//! slot per team | table | receive buffers | steps | status | last writes |
//! receive buffers of single teams |
//! keys of heap blocks
//! ```
//!
//! A fabric pins this memory, so it must not grow with the number of teams times PEs: a team's slot
//! has a flag for each edge of its plans, O(log n) of them, and all teams share the receive
//! buffers, but for those of reductions among all PEs. Together that is at most 1 MiB, 200 bytes
//! for each PE of the job, and the keys. Where threads of a PE may be in several collectives at
//! once, there are more sets of receive buffers, each for one team. This file computes offsets; it
//! never touches the memory.

use rushmem_collectives::{Edge, receive_buffer};
use rushmem_explain::status::STATUS_BYTES;
use rushmem_explain::writes::RING_BYTES;
use rushmem_transport::Pe;
use rushmem_transport::segments::heap_blocks;

/// A cache line.
const LINE: usize = 64;
const WORD: usize = 8;
/// Teams that can exist at once on a PE.
pub(crate) const TEAM_SLOTS: usize = 1024;
/// Slots whose flags have a cache line each, so that no writers of two flags share one: those of
/// the predefined teams and of finalize. Others take less memory instead.
const WIDE_SLOTS: usize = 4;
/// The minimum number of bytes of a receive buffer.
pub(crate) const MIN_RECEIVE_BUFFER: usize = receive_buffer::MIN_BYTES;
/// Bytes of a vector that is sent beside a flag.
pub(crate) const SHORT: usize = rushmem_collectives::choice::SHORT_MAX_BYTES;
/// PEs that have lines in the areas of those that share memory with them: the first ones.
pub(crate) const LINE_PES: usize = rushmem_collectives::choice::LINE_MEMBERS as usize;
/// Sets of receive buffers where threads of a PE may be in several collectives at once: those of
/// the predefined teams come first, others are given to teams as they are made.
pub(crate) const RECEIVE_BUFFER_SETS: usize = 16;
/// Words of a mailbox message.
pub(crate) const MESSAGE: usize = 6;

/// The offsets of all parts of an internal area, in bytes from its start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Areas {
    n_pes: usize,
    /// The maximum number of rounds of a plan, that of the largest team.
    rounds: usize,
    lines: usize,
    slots: usize,
    narrow_slots: usize,
    table: usize,
    receive_buffers: usize,
    receive_buffer_sets: usize,
}

/// The places of the flags by which the members of a team signal each other along the edges of
/// plans: computed once for a team, since each step of a plan asks for one.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SlotFlags {
    ahead: usize,
    behind: usize,
    exchanges: usize,
    stride: Stride,
}

impl SlotFlags {
    /// Returns the flag that the sender on an edge writes.
    #[inline]
    pub(crate) fn flag(self, edge: Edge) -> usize {
        match edge {
            Edge::Ahead(k) => self.ahead + k as usize * self.stride.flag,
            Edge::Behind(k) => self.behind + k as usize * self.stride.flag,
            Edge::Exchange(k) => self.exchanges + k as usize * self.stride.exchange,
            Edge::Any => unreachable!("messages from any member are counted"),
            Edge::Pair | Edge::Line => unreachable!("the lines of PEs have flags for that"),
        }
    }

    /// Returns where the other member of a pair puts what it combines in round `k` of a reduction
    /// of at most [`SHORT`] bytes, beside its flag. There are two, by parity.
    #[inline]
    pub(crate) fn short(self, edge: Edge, parity: usize) -> usize {
        debug_assert!(matches!(edge, Edge::Exchange(_)), "other edges have no room");
        self.flag(edge) + WORD + parity * SHORT
    }
}

/// The layout of the flags of a slot.
#[derive(Clone, Copy, Debug)]
struct Stride {
    /// From one flag to the next.
    flag: usize,
    /// The stride of exchanges, which have two short vectors beside the flag.
    exchange: usize,
    /// From the counters of messages to the others.
    counters: usize,
}

const WIDE: Stride = Stride { flag: LINE, exchange: LINE, counters: LINE };
const NARROW: Stride = Stride { flag: WORD, exchange: 4 * WORD, counters: 4 * WORD };

impl Stride {
    const fn of(slot: u16) -> Self {
        if (slot as usize) < WIDE_SLOTS { WIDE } else { NARROW }
    }

    const fn exchanges(self, rounds: usize) -> usize {
        (2 * rounds * self.flag).next_multiple_of(self.exchange)
    }

    const fn counted(self, rounds: usize) -> usize {
        self.exchanges(rounds) + rounds * self.exchange
    }

    const fn counter(self, rounds: usize) -> usize {
        self.counted(rounds) + self.counters
    }

    /// Returns the bytes of a slot. No two slots share a line.
    const fn slot_bytes(self, rounds: usize) -> usize {
        (self.counter(rounds) + 5 * WORD).next_multiple_of(LINE)
    }
}

impl Areas {
    pub(crate) fn new(n_pes: u32, receive_buffer_sets: usize) -> Areas {
        let rounds = Edge::count(n_pes) / 3;
        let n_pes = n_pes as usize;
        let lines = (LINE + n_pes * (2 * LINE + WORD)).next_multiple_of(LINE);
        let slots = lines + 2 * LINE * n_pes.min(LINE_PES);
        let narrow_slots = slots + WIDE_SLOTS * WIDE.slot_bytes(rounds);
        let table = narrow_slots + (TEAM_SLOTS - WIDE_SLOTS) * NARROW.slot_bytes(rounds);
        let receive_buffers = (table + n_pes * WORD).next_multiple_of(LINE);
        Areas {
            n_pes,
            rounds,
            lines,
            slots,
            narrow_slots,
            table,
            receive_buffers,
            receive_buffer_sets,
        }
    }

    /// Returns the PEs of the job.
    pub(crate) fn n_pes(&self) -> usize {
        self.n_pes
    }

    /// Returns the bytes of the whole area.
    pub(crate) fn nbytes(&self) -> usize {
        self.receive_buffer_set(self.receive_buffer_sets) + heap_blocks::TABLE
    }

    /// Returns how many sets of receive buffers there are.
    pub(crate) fn receive_buffer_sets(&self) -> usize {
        self.receive_buffer_sets
    }

    /// Returns the place of this PE's status.
    pub(crate) fn status(&self) -> usize {
        self.step(2)
    }

    /// Returns the last writes of this PE, directly after its status.
    pub(crate) fn writes(&self) -> usize {
        self.status() + STATUS_BYTES
    }

    /// Returns what this PE shows as its step, by parity.
    pub(crate) fn step(&self, parity: usize) -> usize {
        self.receive_buffers + self.receive_buffer_set_bytes() + parity * LINE
    }

    /// Returns where the PE before this one says how far it has come: the end of the line of a
    /// step.
    pub(crate) fn progress(&self) -> usize {
        self.step(0) + LINE - WORD
    }

    /// Returns where PEs are counted that have come to finalize, or to their exit, after
    /// `start_pes`: by CPUs and by a network, which must not update the same word. It is on PE 0.
    pub(crate) fn exits(&self) -> [usize; 2] {
        [WORD, 2 * WORD]
    }

    /// Returns how many finalizes this PE has entered.
    pub(crate) fn finalizes(&self) -> usize {
        3 * WORD
    }

    /// Returns how many PEs of this PE's node have crashed; used on the node's first PE.
    pub(crate) fn crashes(&self) -> usize {
        4 * WORD
    }

    /// Returns how many PEs of this PE's node have waited for long; used on the node's first PE
    /// alone.
    pub(crate) fn long_waits(&self) -> usize {
        5 * WORD
    }

    /// Returns where the PEs of this PE's node record the digests of warnings that one of them has
    /// given; used on the node's first PE alone.
    pub(crate) fn warnings(&self) -> [usize; 2] {
        [6 * WORD, 7 * WORD]
    }

    /// Returns the mailbox into which `source` writes: a sequence number, a tag, the message.
    pub(crate) fn mailbox(&self, source: Pe) -> usize {
        LINE + source.index() * LINE
    }

    /// Returns the line of the flag that `source` writes whatever team it shares with this PE.
    fn pair(&self, source: Pe) -> usize {
        LINE + (self.n_pes + source.index()) * LINE
    }

    /// Returns where `dest` says how many of this PE's messages it took.
    pub(crate) fn acknowledged(&self, dest: Pe) -> usize {
        LINE + 2 * self.n_pes * LINE + dest.index() * WORD
    }

    /// Seven words with which `source` tries out a transport: those of its mailbox that mean
    /// nothing before a sequence number announces them.
    pub(crate) fn probe(&self, source: Pe) -> usize {
        self.mailbox(source) + WORD
    }

    /// Returns the flag that `source` writes on [`Edge::Pair`].
    pub(crate) fn pair_flag(&self, source: Pe) -> usize {
        self.pair(source)
    }

    /// Returns where `source` puts what it combines in a reduction of at most [`SHORT`] bytes, in
    /// the line of its flag: the writer and the reader are the same, and both arrive together.
    /// There are two, by parity.
    pub(crate) fn pair_short(&self, source: Pe, parity: usize) -> usize {
        self.pair(source) + WORD + parity * SHORT
    }

    /// Returns where `source` puts what it gives to a counter of this PE, on whatever team: a PE is
    /// in one collective at a time that uses it.
    pub(crate) fn contribution(&self, source: Pe) -> usize {
        self.pair_short(source, 2)
    }

    /// Returns the flags of the team in `slot`.
    pub(crate) fn slot_flags(&self, slot: u16) -> SlotFlags {
        let (at, stride) = (self.slot(slot), Stride::of(slot));
        SlotFlags {
            ahead: at,
            behind: at + self.rounds * stride.flag,
            exchanges: at + stride.exchanges(self.rounds),
            stride,
        }
    }

    /// Returns the line in which `source` sends its messages on [`Edge::Line`], of two in turn: a
    /// flag, and the message.
    #[inline]
    pub(crate) fn line(&self, source: Pe, turn: u64) -> usize {
        debug_assert!(source.index() < LINE_PES, "others have no lines");
        self.lines + (2 * source.index() + (turn % 2) as usize) * LINE
    }

    /// Returns the counter of messages that any member sends, by parity: what CPUs count, or what a
    /// network does. The two must not update the same word.
    pub(crate) fn counted(&self, slot: u16, parity: usize, by_network: bool) -> usize {
        let at = Stride::of(slot).counted(self.rounds);
        self.slot(slot) + at + (2 * usize::from(by_network) + parity) * WORD
    }

    /// Returns the counter at which members of the team are counted in, and then the flag that
    /// releases them.
    pub(crate) fn counter(&self, slot: u16) -> usize {
        self.slot(slot) + Stride::of(slot).counter(self.rounds)
    }

    /// Returns what was combined at a counter: in the area of each member.
    pub(crate) fn combined(&self, slot: u16) -> usize {
        self.counter(slot) + 2 * WORD
    }

    /// Returns a word that this PE shows the other members. There are two, by parity.
    pub(crate) fn shown(&self, slot: u16, parity: usize) -> usize {
        self.counter(slot) + (3 + parity) * WORD
    }

    /// Returns a table of one word per member, for the team whose collective this PE is in.
    pub(crate) fn table(&self) -> usize {
        self.table
    }

    /// Returns the bytes of one receive buffer: what a reduction combines at a time.
    pub(crate) fn receive_buffer_bytes(&self) -> usize {
        receive_buffer::nbytes(self.n_pes as u32)
    }

    fn receive_buffer_set_bytes(&self) -> usize {
        4 * receive_buffer::count(self.n_pes as u32) * self.receive_buffer_bytes()
    }

    /// Returns where a set of receive buffers begins.
    fn receive_buffer_set(&self, set: usize) -> usize {
        match set.checked_sub(1) {
            None => self.receive_buffers,
            Some(before) => {
                let first = (self.writes() + RING_BYTES).next_multiple_of(LINE);
                first + before * self.receive_buffer_set_bytes()
            }
        }
    }

    /// Returns a receive buffer of a set, for the team whose collective this PE is in. It has two
    /// copies.
    pub(crate) fn receive_buffer(&self, set: u8, receive_buffer: u8, copy: usize) -> usize {
        self.receive_buffer_set(set.into())
            + (4 * receive_buffer as usize + copy) * self.receive_buffer_bytes()
    }

    /// Returns the offset of a receive buffer for reductions among all PEs of the job, whatever
    /// team or active set they are on. There are two, by parity.
    pub(crate) fn receive_buffer_of_job(
        &self,
        set: u8,
        receive_buffer: u8,
        parity: usize,
    ) -> usize {
        self.receive_buffer(set, receive_buffer, 2 + parity)
    }

    /// Returns where this PE packs what it puts to receive buffers: the last receive buffer of the
    /// job, to which nothing is put.
    pub(crate) fn packed(&self, set: u8) -> usize {
        self.receive_buffer_of_job(set, self.rounds as u8, 0)
    }

    fn slot(&self, slot: u16) -> usize {
        match (slot as usize).checked_sub(WIDE_SLOTS) {
            None => self.slots + slot as usize * WIDE.slot_bytes(self.rounds),
            Some(narrow) => self.narrow_slots + narrow * NARROW.slot_bytes(self.rounds),
        }
    }
}

#[cfg(test)]
mod tests;
