//! The collectives that a simulated program may call: their plans and what they must achieve.

use crate::value::Value;
use rushmem_collectives::choice::SyncAlgorithm;
use rushmem_collectives::*;
use std::ops::Range;

pub type Plan = Box<dyn Iterator<Item = Step>>;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Call {
    Dissemination,
    GatherSync,
    CentralSync,
    DirectReduce {
        parts: u32,
    },
    DirectScan {
        parts: u32,
        exclusive: bool,
    },
    Broadcast {
        root: u32,
    },
    AllReduce,
    /// With landings that all teams use.
    LongAllReduce,
    /// One more piece of the vector of the long all-reduce before it.
    NextPiece,
    CentralReduce,
    InclusiveScan,
    ExclusiveScan,
    Bruck,
    Ring,
    /// An all-gather to memory that all teams use.
    Words,
    AllToAll,
}

impl Call {
    pub const ALL: [Call; 17] = [
        Call::Dissemination,
        Call::GatherSync,
        Call::CentralSync,
        Call::DirectReduce { parts: 1 },
        Call::DirectReduce { parts: 10 },
        Call::DirectScan { parts: 3, exclusive: false },
        Call::DirectScan { parts: 10, exclusive: true },
        Call::Broadcast { root: 0 },
        Call::AllReduce,
        Call::LongAllReduce,
        Call::CentralReduce,
        Call::InclusiveScan,
        Call::ExclusiveScan,
        Call::Bruck,
        Call::Ring,
        Call::Words,
        Call::AllToAll,
    ];

    pub fn plan(self, n: u32, me: u32) -> Plan {
        match self {
            Call::Dissemination => Box::new(dissemination::sync(n, me)),
            Call::GatherSync => Box::new(binomial::gather_sync(n, me)),
            Call::CentralSync => Box::new(central::sync(n)),
            // The syncs alternate, so that both are tried.
            Call::DirectReduce { parts } => match parts % 2 {
                0 => Box::new(direct::all_reduce(n, me, parts, SyncAlgorithm::Dissemination)),
                _ => Box::new(direct::all_reduce(n, me, parts, SyncAlgorithm::Central)),
            },
            Call::DirectScan { parts, exclusive } => {
                Box::new(direct::scan(n, me, parts, SyncAlgorithm::Gather, exclusive))
            }
            Call::Broadcast { root } => Box::new(binomial::broadcast(n, me, root)),
            Call::CentralReduce => Box::new(central::all_reduce(n)),
            Call::AllReduce | Call::NextPiece => Box::new(recursive_doubling::all_reduce(n, me)),
            Call::LongAllReduce => Box::new(
                recursive_doubling::entry(n, me).chain(recursive_doubling::all_reduce(n, me)),
            ),
            Call::Words => Box::new(bruck::entry(n, me).chain(bruck::all_gather(n, me))),
            Call::InclusiveScan => Box::new(recursive_doubling::inclusive_scan(n, me)),
            Call::ExclusiveScan => Box::new(recursive_doubling::exclusive_scan(n, me)),
            Call::Bruck => Box::new(bruck::all_gather(n, me)),
            Call::Ring => Box::new(ring::all_gather(n, me)),
            Call::AllToAll => Box::new(pairwise::all_to_all(n, me)),
        }
    }

    /// How many parts the source has.
    pub fn source_parts(self, n: u32) -> u32 {
        match self {
            Call::Broadcast { .. } | Call::Bruck | Call::Ring | Call::Words => 1,
            Call::AllToAll => n,
            Call::DirectReduce { parts } | Call::DirectScan { parts, .. } => parts,
            _ => 0,
        }
    }

    /// How many parts the destination has.
    pub fn dest_parts(self, n: u32) -> u32 {
        match self {
            Call::Broadcast { .. } => 1,
            Call::Bruck | Call::Ring | Call::Words | Call::AllToAll => n,
            Call::DirectReduce { parts } | Call::DirectScan { parts, .. } => parts,
            _ => 0,
        }
    }

    /// What a part of the destination must hold at the end; nothing if it must not be touched.
    pub fn expected_dest(self, call: usize, n: u32, me: u32, part: u32) -> Option<Value> {
        match self {
            Call::Broadcast { root } => (me != root).then(|| Value::source(call, root, 0)),
            Call::AllToAll => Some(Value::source(call, part, me)),
            Call::DirectReduce { .. } => Some(Value::of_all(call, n, part)),
            Call::DirectScan { exclusive: false, .. } => Some(Value::of_all(call, me + 1, part)),
            Call::DirectScan { .. } => (me > 0).then(|| Value::of_all(call, me, part)),
            _ => Some(Value::source(call, part, 0)),
        }
    }

    /// The accumulator must hold the contributions of the indices below this at the end, if of any.
    pub fn expected_prefix(self, n: u32, me: u32) -> Option<u32> {
        match self {
            call if call.is_all_reduce() => Some(n),
            Call::InclusiveScan => Some(me + 1),
            Call::ExclusiveScan => (me > 0).then_some(me),
            _ => None,
        }
    }

    /// Whether the accumulator holds the own contribution at the start.
    pub fn accumulates(self) -> bool {
        self.is_all_reduce() || matches!(self, Call::InclusiveScan | Call::ExclusiveScan)
    }

    /// Whether every accumulator holds the contributions of all at the end.
    pub fn is_all_reduce(self) -> bool {
        matches!(
            self,
            Call::AllReduce | Call::LongAllReduce | Call::NextPiece | Call::CentralReduce
        )
    }

    /// The landings that a team of `n` may use.
    pub fn landings(self, n: u32) -> Range<u8> {
        0..if self.accumulates() { landing::count(n) as u8 } else { 0 }
    }

    /// Whether nobody may end it before everybody has entered it.
    pub fn depends_on_all(self) -> bool {
        !matches!(self, Call::Broadcast { .. } | Call::InclusiveScan | Call::ExclusiveScan)
    }
}
