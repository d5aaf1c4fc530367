//! Where the library's own flags and buffers are in a PE's internal area: the same on every PE.
//!
//! ```text
//! bell | mailbox, acknowledgement, probe per source PE | slot per team: flags, counts, landings |
//! two landings per source PE, for active sets
//! ```
//!
//! Flags are words of 8 bytes in a cache line of their own that one PE writes and one reads; only the counter of a sync and
//! its flag are written by all members of a team. Pages that no team uses are never touched, so the area costs address space,
//! not memory. This file computes offsets; it never touches the memory.

use rushmem_transport::Pe;

/// A cache line; flags of different writers never share one.
const LINE: usize = 64;
/// Teams that can exist at once on a PE.
pub(crate) const TEAM_SLOTS: usize = 1024;
/// Bytes of one landing buffer: what a reduction combines at a time.
pub(crate) const LANDING: usize = 8 << 10;
/// Bytes of a vector that is sent in the line of a flag.
pub(crate) const SHORT: usize = rushmem_collectives::choice::SHORT_MAX_BYTES;
/// Words of a mailbox message.
pub(crate) const MESSAGE: usize = 6;

/// Where things are in an internal area; offsets in bytes from its start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Areas {
    n_pes: usize,
    all_reduce_landings: usize,
    slot_bytes: usize,
    slots: usize,
}

impl Areas {
    pub(crate) fn new(n_pes: u32) -> Areas {
        let all_reduce_landings = rushmem_collectives::landing::all_reduce(n_pes).len();
        let scan_landings = rushmem_collectives::landing::scan(n_pes).len();
        let n_pes = n_pes as usize;
        let counts = (2 * n_pes * 8).next_multiple_of(LINE);
        let landings = (2 * all_reduce_landings + scan_landings) * LANDING;
        Areas {
            n_pes,
            all_reduce_landings,
            slot_bytes: (n_pes * LINE + counts + landings).next_multiple_of(4096),
            slots: (LINE + n_pes * 3 * LINE).next_multiple_of(4096),
        }
    }

    /// Bytes of the whole area.
    pub(crate) fn nbytes(&self) -> usize {
        self.pair_landing(Pe(self.n_pes as u32), 0)
    }

    /// The mailbox into which `source` writes: a sequence number, a tag, the message.
    pub(crate) fn mailbox(&self, source: Pe) -> usize {
        LINE + source.index() * LINE
    }

    /// Where `dest` says how many of this PE's messages it took.
    pub(crate) fn acknowledged(&self, dest: Pe) -> usize {
        LINE + (self.n_pes + dest.index()) * LINE
    }

    /// Where `source` tries out a transport.
    pub(crate) fn probe(&self, source: Pe) -> usize {
        LINE + (2 * self.n_pes + source.index()) * LINE
    }

    /// The flag that member `source` of the team in `slot` writes.
    pub(crate) fn flag(&self, slot: u16, source: u32) -> usize {
        self.slot(slot) + source as usize * LINE
    }

    /// How many broadcasts member `source` has entered in which this PE writes to it. It shares the line of
    /// the flag, whose writer and reader are the same.
    pub(crate) fn entered(&self, slot: u16, source: u32) -> usize {
        self.flag(slot, source) + 8
    }

    /// Where member `source` puts what it combines in a reduction of at most [`SHORT`] bytes, in the line of its flag: the
    /// writer and the reader are the same, and both arrive together. There are two, by parity.
    pub(crate) fn short(&self, slot: u16, source: u32, parity: usize) -> usize {
        self.flag(slot, source) + 16 + parity * SHORT
    }

    /// The counter of member `owner` at which members of the team are counted in, and after it the flag that releases them.
    /// They are in the line of its flag for itself, which nobody else uses.
    pub(crate) fn counter(&self, slot: u16, owner: u32) -> usize {
        self.flag(slot, owner) + 16
    }

    /// Where member `source` puts what it gives to the counter of `owner`: behind what [`short`](Areas::short) has.
    pub(crate) fn contribution(&self, slot: u16, owner: u32, source: u32) -> usize {
        let behind = if source == owner {
            self.counter(slot, owner) + 16
        } else {
            self.short(slot, source, 2)
        };
        debug_assert!(behind + SHORT <= self.flag(slot, source) + LINE);
        behind
    }

    /// What was combined at the counter of member `owner`.
    pub(crate) fn combined(&self, slot: u16, owner: u32) -> usize {
        self.contribution(slot, owner, owner) + SHORT
    }

    /// A landing buffer into which the PE `source` alone writes. There are two, by parity.
    pub(crate) fn pair_landing(&self, source: Pe, parity: usize) -> usize {
        self.slots + TEAM_SLOTS * self.slot_bytes + (2 * source.index() + parity) * LANDING
    }

    /// A table of one 8-byte count per member; there are two, by parity.
    pub(crate) fn counts(&self, slot: u16, parity: usize) -> usize {
        self.slot(slot) + self.n_pes * LINE + parity * self.n_pes * 8
    }

    /// A landing buffer. Those of all-reduce exist twice, by parity.
    pub(crate) fn landing(&self, slot: u16, landing: u8, parity: usize) -> usize {
        use rushmem_collectives::landing::{ALL_REDUCE, SCAN};
        let index = if ALL_REDUCE.contains(&landing) {
            parity * self.all_reduce_landings + landing as usize
        } else {
            2 * self.all_reduce_landings + (landing - SCAN.start) as usize
        };
        let counts = (2 * self.n_pes * 8).next_multiple_of(LINE);
        self.slot(slot) + self.n_pes * LINE + counts + index * LANDING
    }

    fn slot(&self, slot: u16) -> usize {
        self.slots + slot as usize * self.slot_bytes
    }
}

#[cfg(test)]
mod tests;
