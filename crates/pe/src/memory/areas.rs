//! The layout of the library's own flags and buffers in the internal area of a PE, the same on all
//! PEs. This file only computes offsets; `net::flags` of `communication` accesses the memory.
//!
//! ```text
//! doorbell, exits, finalizes, crashes, long waits, warnings |
//! per source PE: mailbox, pair line, acknowledgment | lines of source PEs |
//! slot per team | table | receive buffers | steps | status | last writes |
//! receive buffers of single teams |
//! keys of heap blocks
//! ```
//!
//! A network pins this memory, so its size must not grow with the number of teams times PEs. The
//! slot of a team has a flag for each edge of its plans, of which there are O(log n), and all teams
//! share one set of receive buffers. With that set, the size is at most 1 MiB, 200 bytes for each
//! PE of the job, and the keys. Where threads of a PE may be in several collectives at once, there
//! are more sets of receive buffers, each for one team.

use rushmem_collectives::{Edge, receive_buffer};
use rushmem_explain::status::STATUS_BYTES;
use rushmem_explain::writes::RING_BYTES;
use rushmem_transport::Pe;
use rushmem_transport::segments::heap_blocks;

/// The size of a cache line.
const LINE: usize = 64;
const WORD: usize = 8;
/// Maximum number of teams that exist at once on a PE. Each PE has the flags of all of these slots
/// in its internal area, whether they are used or not.
pub const TEAM_SLOTS: usize = 1024;
/// The number of slots in which each flag has a cache line of its own, so that no two PEs write to
/// one line: those of the predefined teams and of finalize. The other slots are smaller.
const WIDE_SLOTS: usize = 4;
/// The minimum number of bytes of a receive buffer.
pub const MIN_RECEIVE_BUFFER: usize = receive_buffer::MIN_BYTES;
/// Maximum number of bytes of a vector that is sent beside a flag.
pub const SHORT: usize = rushmem_collectives::choice::SHORT_MAX_BYTES;
/// The number of PEs that have lines in the areas of other PEs: the first ones of the job.
pub const LINE_PES: usize = rushmem_collectives::choice::LINE_MEMBERS as usize;
/// The number of sets of receive buffers where threads of a PE may be in several collectives at
/// once. The first ones belong to the predefined teams; agreements give the others to new teams. A
/// team without a set uses algorithms that need none, so the number only bounds the memory.
pub const RECEIVE_BUFFER_SETS: usize = 16;
/// The number of copies of a receive buffer in a set: two for collectives among some PEs of the
/// job, and two for those among all.
const COPIES: usize = 4;
/// The number of words of a mailbox message.
pub const MESSAGE: usize = 6;

/// The layout of an internal area: the offsets of its parts, in bytes from its start, and the
/// numbers from which they are computed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Areas {
    n_pes: usize,
    /// The number of rounds of a plan for all PEs: the logarithm of their number, rounded up.
    rounds: usize,
    lines: usize,
    slots: usize,
    narrow_slots: usize,
    table: usize,
    receive_buffers: usize,
    receive_buffer_sets: usize,
}

/// The offsets of two counters of the same events. CPUs add to one and networks to the other, since
/// the atomic operations of a network are not atomic with respect to those of a CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CounterPair {
    /// The counter to which PEs add that share memory with its PE.
    pub by_cpu: usize,
    /// The counter to which a network adds.
    pub by_network: usize,
}

/// The distances in a slot, in bytes.
#[derive(Clone, Copy, Debug)]
struct Stride {
    /// From one flag to the next.
    flag: usize,
    /// From one flag of an exchange to the next, with two short vectors beside each.
    exchange: usize,
    /// From the counters of messages to the counter of members.
    counters: usize,
}

const WIDE: Stride = Stride {
    flag: LINE,
    exchange: LINE,
    counters: LINE,
};
const NARROW: Stride = Stride {
    flag: WORD,
    exchange: 4 * WORD,
    counters: 4 * WORD,
};

impl Stride {
    const fn of(slot: u16) -> Self {
        if (slot as usize) < WIDE_SLOTS {
            WIDE
        } else {
            NARROW
        }
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

    /// Returns the size of a slot. No two slots share a cache line.
    const fn slot_bytes(self, rounds: usize) -> usize {
        // The counter of members, the flag that releases them, the combined result, and two words
        // that a PE publishes.
        (self.counter(rounds) + 5 * WORD).next_multiple_of(LINE)
    }
}

impl Areas {
    /// Lays out the areas of a job of `n_pes` PEs.
    pub fn new(n_pes: u32, receive_buffer_sets: usize) -> Areas {
        // Each round has three edges: ahead, behind and exchange.
        let rounds = Edge::count(n_pes) / 3;
        let n_pes = n_pes as usize;

        // Before the lines: one line of single words, then for each PE a mailbox, the line of a
        // pair, and the word of an acknowledgment.
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

    /// Returns the number of PEs of the job.
    #[inline]
    pub fn n_pes(&self) -> usize {
        self.n_pes
    }

    /// Returns the size of an internal area.
    pub fn nbytes(&self) -> usize {
        self.receive_buffer_set(self.receive_buffer_sets) + heap_blocks::TABLE
    }

    /// Returns the number of sets of receive buffers.
    pub fn receive_buffer_sets(&self) -> usize {
        self.receive_buffer_sets
    }

    /// Returns the offset of the slot of the status.
    pub fn status(&self) -> usize {
        self.step(2)
    }

    /// Returns the offset of the ring of last writes, directly behind the status.
    pub fn writes(&self) -> usize {
        self.status() + STATUS_BYTES
    }

    /// Returns the offset of the step that a PE publishes (`coll::step`). There are two, by parity.
    #[inline]
    pub fn step(&self, parity: usize) -> usize {
        self.receive_buffers + self.receive_buffer_set_bytes() + parity * LINE
    }

    /// Returns the offset of the word in which the PE before this one publishes its progress: the
    /// last word in the cache line of a step.
    pub fn progress(&self) -> usize {
        self.step(0) + LINE - WORD
    }

    /// Returns the counters, on PE 0, of the times that PEs have reached finalize or their exit
    /// after `start_pes`.
    pub fn exits(&self) -> CounterPair {
        CounterPair {
            by_cpu: WORD,
            by_network: 2 * WORD,
        }
    }

    /// Returns the offset of the number of finalizes that a PE has entered.
    pub fn finalizes(&self) -> usize {
        3 * WORD
    }

    /// Returns the offset of the word, on the first PE of a node, by which one PE of the node at a
    /// time reports its crash. Counts the crashed PEs until the report is printed.
    pub fn crashes(&self) -> usize {
        4 * WORD
    }

    /// Returns the offset of the word, on the first PE of a node, by which one PE of the node
    /// claims the message about a long wait.
    pub fn long_waits(&self) -> usize {
        5 * WORD
    }

    /// Returns the offsets of two words on the first PE of a node. A PE claims a warning by storing
    /// its digest in a free one, so that no other PE of the node prints the same warning.
    pub fn warnings(&self) -> [usize; 2] {
        [6 * WORD, 7 * WORD]
    }

    /// Returns the offset of the mailbox for messages of `source`: a sequence number, a tag, and
    /// the message.
    pub fn mailbox(&self, source: Pe) -> usize {
        LINE + source.index() * LINE
    }

    /// Returns the offset of the word in which `dest` stores the number of messages that it has
    /// taken from this PE.
    pub fn acknowledged(&self, dest: Pe) -> usize {
        LINE + 2 * self.n_pes * LINE + dest.index() * WORD
    }

    /// Returns the offset of seven words with which `source` tests a transport. They are in its
    /// mailbox, whose words have no meaning before its sequence number is stored.
    pub fn probe(&self, source: Pe) -> usize {
        self.mailbox(source) + WORD
    }

    /// Returns the offset of the flag that `source` writes on [`Edge::Pair`], in a cache line of
    /// its own.
    #[inline]
    pub fn pair_flag(&self, source: Pe) -> usize {
        LINE + (self.n_pes + source.index()) * LINE
    }

    /// Returns the offset of the contribution of `source` to a counter of this PE. All teams share
    /// it, since a PE is in one such collective at a time.
    #[inline]
    pub fn contribution(&self, source: Pe) -> usize {
        short_beside(self.pair_flag(source), 2)
    }

    /// Returns the offset of the flag of the team in `slot` that the sender on an edge writes.
    ///
    /// # Panics
    /// If the edge has no flag of a team: `Any`, `Pair` and `Line`.
    pub fn slot_flag(&self, slot: u16, edge: Edge) -> usize {
        let stride = Stride::of(slot);
        let offset = match edge {
            Edge::Ahead(k) => k as usize * stride.flag,
            Edge::Behind(k) => (self.rounds + k as usize) * stride.flag,
            Edge::Exchange(k) => stride.exchanges(self.rounds) + k as usize * stride.exchange,
            Edge::Any => unreachable!("messages from any member are counted"),
            Edge::Pair | Edge::Line => unreachable!("the lines of PEs have flags for that"),
        };
        self.slot(slot) + offset
    }

    /// Returns the offset of the cache line of `source` on [`Edge::Line`]: a flag and a message.
    /// There are two, used in turn.
    #[inline]
    pub fn line(&self, source: Pe, turn: u64) -> usize {
        debug_assert!(source.index() < LINE_PES, "others have no lines");
        self.lines + (2 * source.index() + (turn % 2) as usize) * LINE
    }

    /// Returns the counters of messages from any member. There are two pairs, by parity.
    #[inline]
    pub fn counted(&self, slot: u16, parity: usize) -> CounterPair {
        let first = self.slot(slot) + Stride::of(slot).counted(self.rounds);
        CounterPair {
            by_cpu: first + parity * WORD,
            by_network: first + (2 + parity) * WORD,
        }
    }

    /// Returns the offset of the counter at which the members of a team arrive.
    #[inline]
    pub fn counter(&self, slot: u16) -> usize {
        self.slot(slot) + Stride::of(slot).counter(self.rounds)
    }

    /// Returns the offset of the flag that releases the members of a team that have arrived at the
    /// counter.
    #[inline]
    pub fn release_flag(&self, slot: u16) -> usize {
        self.counter(slot) + WORD
    }

    /// Returns the offset of the result, of at most [`SHORT`] bytes, that the last member to arrive
    /// at the counter stores in the area of each member.
    #[inline]
    pub fn combined(&self, slot: u16) -> usize {
        self.counter(slot) + 2 * WORD
    }

    /// Returns the offset of the word that a PE publishes to the other members of a team. There are
    /// two, by parity.
    pub fn shown(&self, slot: u16, parity: usize) -> usize {
        self.counter(slot) + (3 + parity) * WORD
    }

    /// Returns the offset of a table with one word per member, which all teams share.
    #[inline]
    pub fn table(&self) -> usize {
        self.table
    }

    /// Returns the size of one receive buffer: the piece that a reduction combines at a time.
    pub fn receive_buffer_bytes(&self) -> usize {
        receive_buffer::nbytes(self.n_pes as u32)
    }

    fn receive_buffer_set_bytes(&self) -> usize {
        COPIES * receive_buffer::count(self.n_pes as u32) * self.receive_buffer_bytes()
    }

    /// Returns the offset of a set of receive buffers.
    fn receive_buffer_set(&self, set: usize) -> usize {
        match set.checked_sub(1) {
            None => self.receive_buffers,
            Some(before) => {
                let first = (self.writes() + RING_BYTES).next_multiple_of(LINE);
                first + before * self.receive_buffer_set_bytes()
            }
        }
    }

    /// Returns the offset of a receive buffer of a set, for collectives among some PEs of the job.
    /// There are two copies.
    #[inline]
    pub fn receive_buffer(&self, set: u8, receive_buffer: u8, copy: usize) -> usize {
        self.receive_buffer_set(set.into())
            + (COPIES * receive_buffer as usize + copy) * self.receive_buffer_bytes()
    }

    /// Returns the offset of a receive buffer of a set, for reductions, scans and all-to-alls among
    /// all PEs of the job, on any team or active set. There are two copies, by parity.
    pub fn receive_buffer_of_job(&self, set: u8, receive_buffer: u8, parity: usize) -> usize {
        self.receive_buffer(set, receive_buffer, 2 + parity)
    }

    /// Returns the offset of memory in which this PE packs data of a collective: the last receive
    /// buffer for collectives among all PEs, to which only an exclusive scan puts, when this PE has
    /// entered that scan. In an alltoallv on one node, the other members read the memory between
    /// two syncs.
    pub fn packed(&self, set: u8) -> usize {
        self.receive_buffer_of_job(set, self.rounds as u8, 0)
    }

    fn slot(&self, slot: u16) -> usize {
        match (slot as usize).checked_sub(WIDE_SLOTS) {
            None => self.slots + slot as usize * WIDE.slot_bytes(self.rounds),
            Some(narrow) => self.narrow_slots + narrow * NARROW.slot_bytes(self.rounds),
        }
    }
}

/// Returns the offset of a short vector in the cache line of a flag, which the sender writes with
/// it: on [`Edge::Exchange`] and [`Edge::Pair`]. There are two, by parity.
#[inline]
pub fn short_beside(flag: usize, parity: usize) -> usize {
    flag + WORD + parity * SHORT
}

#[cfg(test)]
mod tests;
