//! The collectives that a simulated program may call: their plans and the results that they must
//! have.

use crate::value::Value;
use rushmem_collectives::choice::{LINE_MEMBERS, SyncAlgorithm};
use rushmem_collectives::two_level::{NodeBlocks, Nodes};
use rushmem_collectives::*;

pub type Plan = Box<dyn Iterator<Item = Step>>;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Call {
    Dissemination,
    GatherSync,
    CentralSync,
    /// An all-reduce of vectors from sources to destinations, which are the same if `in_place`.
    Reduce {
        by: Reduction,
        parts: u32,
        in_place: bool,
    },
    TwoLevelSync {
        p: u32,
    },
    /// A reduction to a root along the binomial tree.
    ReduceTo {
        root: u32,
    },
    /// A reduction to a root by [`direct`].
    DirectReduceTo {
        root: u32,
        parts: u32,
    },
    DirectReduceScatter,
    /// A reduction to a root by [`central`].
    CentralReduceTo {
        root: u32,
        parts: u32,
    },
    CentralReduceScatter,
    CentralScan {
        exclusive: bool,
        parts: u32,
        in_place: bool,
    },
    /// A gather at a root by [`pairwise`].
    GatherTo {
        root: u32,
    },
    /// A gather at a root by [`direct`].
    DirectGatherTo {
        root: u32,
    },
    /// A scatter by [`pairwise`].
    Scatter {
        root: u32,
    },
    /// A scatter by [`direct`].
    DirectScatter {
        root: u32,
    },
    Broadcast {
        root: u32,
    },
    /// A broadcast by [`scatter_all_gather`].
    LongBroadcast {
        root: u32,
        parts: u32,
    },
    AllReduce,
    TwoLevelShort {
        p: u32,
    },
    /// An all-reduce with receive buffers that all teams use.
    LongAllReduce,
    /// One more piece of the vector of the preceding long all-reduce.
    NextPiece,
    /// An all-reduce of private memory by [`central`].
    CentralPrivate,
    /// Scans with receive buffers that all teams use.
    InclusiveScan,
    ExclusiveScan,
    /// One more piece of the vector of the preceding inclusive scan.
    NextScanPiece,
    /// Scans with receive buffers that no other team uses.
    OwnInclusiveScan,
    OwnExclusiveScan,
    Bruck,
    Ring,
    /// An all-gather to memory that all teams use.
    Words,
    /// An all-gather by another algorithm.
    Gather(Gathering),
    AllToAll,
    AllToAllInLines,
    CentralAllToAll,
    /// An all-to-all with receive buffers that all teams use.
    BruckAllToAll,
    /// An all-to-all with receive buffers that no other team uses.
    OwnBruckAllToAll,
    DirectScan {
        exclusive: bool,
        parts: u32,
        in_place: bool,
    },
}

/// The algorithms of all-reduces without an accumulator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reduction {
    Direct(SyncAlgorithm),
    Central,
    Rabenseifner,
    Ring,
    TwoLevel {
        p: u32,
        lanes: u32,
    },
    /// A reduction of one part, through receive buffers.
    TwoLevelPiece {
        p: u32,
        shared: bool,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Gathering {
    RecursiveDoubling,
    NeighborExchange,
    Pairwise,
    Lines,
    Central,
}

/// The expected content of a part of a destination at the end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Expected {
    /// Never written.
    Untouched,
    /// The content of this part of the source of `owner`.
    Source { call: usize, owner: u32, part: u32 },
    /// The contributions of the members `0..end`, combined in order.
    Prefix { call: usize, end: u32, part: u32 },
    /// The contributions of all members, combined in the same way on all of them: in order, or
    /// around the circle.
    Combined {
        call: usize,
        n: u32,
        part: u32,
        in_order: bool,
    },
}

impl Expected {
    pub fn is_met_by(self, held: Option<Value>) -> bool {
        let Some(value) = held else {
            return self == Expected::Untouched;
        };
        match self {
            Expected::Untouched => false,
            Expected::Source { call, owner, part } => value == Value::source(call, owner, part),
            Expected::Prefix { call, end, part } => value.is_prefix(call, end, part),
            Expected::Combined {
                call,
                n,
                part,
                in_order: true,
            } => value.is_prefix(call, n, part),
            Expected::Combined { call, n, part, .. } => value.is_circle(call, n, part),
        }
    }
}

const DISSEMINATION: SyncAlgorithm = SyncAlgorithm::Dissemination;

impl Call {
    pub const ALL: [Call; 66] = [
        Call::Dissemination,
        Call::GatherSync,
        Call::CentralSync,
        Call::TwoLevelSync { p: 2 },
        Call::TwoLevelSync { p: 3 },
        Call::TwoLevelSync { p: 4 },
        Call::reduce(Reduction::Direct(SyncAlgorithm::Central), 1),
        Call::reduce(Reduction::Direct(DISSEMINATION), 10),
        Call::reduce_in_place(Reduction::Direct(DISSEMINATION), 10),
        Call::reduce(Reduction::Central, 3),
        Call::reduce_in_place(Reduction::Central, 3),
        Call::reduce(Reduction::Rabenseifner, 10),
        Call::reduce(Reduction::Rabenseifner, 64),
        Call::reduce_in_place(Reduction::Rabenseifner, 10),
        Call::reduce(Reduction::Ring, 10),
        Call::reduce_in_place(Reduction::Ring, 10),
        Call::TwoLevelShort { p: 1 },
        Call::TwoLevelShort { p: 2 },
        Call::TwoLevelShort { p: 3 },
        Call::reduce(Reduction::TwoLevelPiece { p: 2, shared: true }, 1),
        Call::reduce(
            Reduction::TwoLevelPiece {
                p: 3,
                shared: false,
            },
            1,
        ),
        Call::reduce_in_place(Reduction::TwoLevelPiece { p: 4, shared: true }, 1),
        Call::reduce(Reduction::TwoLevel { p: 2, lanes: 1 }, 10),
        Call::reduce(Reduction::TwoLevel { p: 3, lanes: 1 }, 10),
        Call::reduce_in_place(Reduction::TwoLevel { p: 2, lanes: 2 }, 10),
        Call::reduce(Reduction::TwoLevel { p: 4, lanes: 3 }, 70),
        Call::reduce_in_place(Reduction::TwoLevel { p: 8, lanes: 1 }, 10),
        Call::ReduceTo { root: 0 },
        Call::DirectReduceTo { root: 0, parts: 10 },
        Call::DirectReduceScatter,
        Call::CentralReduceTo { root: 0, parts: 3 },
        Call::CentralReduceScatter,
        Call::GatherTo { root: 0 },
        Call::DirectGatherTo { root: 0 },
        Call::Scatter { root: 0 },
        Call::DirectScatter { root: 0 },
        Call::Broadcast { root: 0 },
        Call::LongBroadcast { root: 0, parts: 10 },
        Call::AllReduce,
        Call::LongAllReduce,
        Call::CentralPrivate,
        Call::InclusiveScan,
        Call::ExclusiveScan,
        Call::OwnInclusiveScan,
        Call::OwnExclusiveScan,
        Call::CentralScan {
            exclusive: false,
            parts: 3,
            in_place: false,
        },
        Call::CentralScan {
            exclusive: false,
            parts: 3,
            in_place: true,
        },
        Call::CentralScan {
            exclusive: true,
            parts: 3,
            in_place: false,
        },
        Call::CentralScan {
            exclusive: true,
            parts: 3,
            in_place: true,
        },
        Call::DirectScan {
            exclusive: false,
            parts: 10,
            in_place: false,
        },
        Call::DirectScan {
            exclusive: false,
            parts: 10,
            in_place: true,
        },
        Call::DirectScan {
            exclusive: true,
            parts: 10,
            in_place: false,
        },
        Call::DirectScan {
            exclusive: true,
            parts: 10,
            in_place: true,
        },
        Call::Bruck,
        Call::Ring,
        Call::Words,
        Call::Gather(Gathering::RecursiveDoubling),
        Call::Gather(Gathering::NeighborExchange),
        Call::Gather(Gathering::Pairwise),
        Call::Gather(Gathering::Lines),
        Call::Gather(Gathering::Central),
        Call::AllToAll,
        Call::AllToAllInLines,
        Call::CentralAllToAll,
        Call::BruckAllToAll,
        Call::OwnBruckAllToAll,
    ];

    pub const fn reduce(by: Reduction, parts: u32) -> Self {
        Call::Reduce {
            by,
            parts,
            in_place: false,
        }
    }

    pub const fn reduce_in_place(by: Reduction, parts: u32) -> Self {
        Call::Reduce {
            by,
            parts,
            in_place: true,
        }
    }

    pub fn plan(self, n: u32, me: u32) -> Plan {
        match self {
            Call::Dissemination => Box::new(dissemination::sync(n, me)),
            Call::GatherSync => Box::new(binomial::gather_sync(n, me)),
            Call::CentralSync => Box::new(central::sync(n)),
            Call::Reduce { by, parts, .. } => match by {
                Reduction::Direct(sync) => Box::new(direct::all_reduce(n, me, parts, sync)),
                Reduction::Central => Box::new(central::all_reduce(n, parts)),
                Reduction::Rabenseifner => Box::new(rabenseifner::all_reduce(n, me, parts)),
                Reduction::Ring => Box::new(ring::all_reduce(n, me, parts)),
                Reduction::TwoLevel { p, lanes } => {
                    let team = NodeBlocks { n, me, p };
                    let lanes = lanes.min(team.levels().lanes);
                    Box::new(two_level::all_reduce(team, parts, lanes))
                }
                Reduction::TwoLevelPiece { p, shared } => {
                    Box::new(two_level::all_reduce_piece(NodeBlocks { n, me, p }, shared))
                }
            },
            Call::TwoLevelSync { p } => Box::new(two_level::sync(NodeBlocks { n, me, p })),
            Call::TwoLevelShort { p } => {
                Box::new(two_level::all_reduce_short(NodeBlocks { n, me, p }))
            }
            Call::ReduceTo { root } => Box::new(binomial::reduce(n, me, root)),
            Call::DirectReduceTo { root, parts } => {
                Box::new(direct::reduce_to(n, me, root, parts, DISSEMINATION))
            }
            Call::DirectReduceScatter => {
                Box::new(direct::reduce_scatter(n, me, SyncAlgorithm::Central))
            }
            Call::CentralReduceTo { root, parts } => Box::new(central::reduce_to(n, root, parts)),
            Call::CentralReduceScatter => Box::new(central::reduce_scatter(n)),
            Call::CentralScan {
                exclusive, parts, ..
            } => Box::new(central::scan(n, parts, exclusive)),
            Call::GatherTo { root } => Box::new(pairwise::gather(n, me, root)),
            Call::DirectGatherTo { root } => Box::new(direct::gather(n, me, root)),
            Call::Scatter { root } => Box::new(pairwise::scatter(n, me, root)),
            Call::DirectScatter { root } => Box::new(direct::scatter(n, me, root)),
            Call::LongBroadcast { root, parts } => {
                Box::new(scatter_all_gather::broadcast(n, me, root, parts))
            }
            Call::Gather(by) => match by {
                Gathering::RecursiveDoubling => Box::new(recursive_doubling::all_gather(n, me)),
                Gathering::NeighborExchange => Box::new(neighbor_exchange::all_gather(n, me)),
                Gathering::Pairwise => Box::new(pairwise::all_gather(n, me)),
                Gathering::Lines => Box::new(pairwise::all_gather_in_lines(n, me)),
                Gathering::Central => Box::new(central::all_gather(n, me)),
            },
            Call::BruckAllToAll => {
                Box::new(bruck::all_to_all_entry(n, me).chain(bruck::all_to_all(n, me)))
            }
            Call::OwnBruckAllToAll => Box::new(bruck::all_to_all(n, me)),
            Call::DirectScan {
                exclusive, parts, ..
            } => Box::new(direct::scan(n, me, parts, SyncAlgorithm::Gather, exclusive)),
            Call::Broadcast { root } => Box::new(binomial::broadcast(n, me, root)),
            Call::AllToAllInLines => Box::new(pairwise::all_to_all_in_lines(n, me)),
            Call::CentralAllToAll => Box::new(central::all_to_all(n, me)),
            Call::CentralPrivate => Box::new(central::all_reduce_private(n)),
            Call::AllReduce | Call::NextPiece => Box::new(recursive_doubling::all_reduce(n, me)),
            Call::LongAllReduce => Box::new(
                recursive_doubling::entry(n, me).chain(recursive_doubling::all_reduce(n, me)),
            ),
            Call::Words => Box::new(bruck::entry(n, me).chain(bruck::all_gather(n, me))),
            Call::InclusiveScan => Box::new(
                recursive_doubling::scan_entry(n, me)
                    .chain(recursive_doubling::inclusive_scan(n, me)),
            ),
            Call::ExclusiveScan => Box::new(
                recursive_doubling::scan_entry(n, me)
                    .chain(recursive_doubling::exclusive_scan(n, me)),
            ),
            Call::NextScanPiece | Call::OwnInclusiveScan => {
                Box::new(recursive_doubling::inclusive_scan(n, me))
            }
            Call::OwnExclusiveScan => Box::new(recursive_doubling::exclusive_scan(n, me)),
            Call::Bruck => Box::new(bruck::all_gather(n, me)),
            Call::Ring => Box::new(ring::all_gather(n, me)),
            Call::AllToAll => Box::new(pairwise::all_to_all(n, me)),
        }
    }

    /// Returns true if the plan can be used for `n` members, and needs each of its steps there.
    pub fn fits(self, n: u32) -> bool {
        match self {
            // On one node the leader has no other leader to which it could send a piece.
            Call::Reduce {
                by: Reduction::TwoLevelPiece { p, .. },
                ..
            } if n <= p => false,
            // In place, a member that is alone on its node has nothing to copy.
            Call::Reduce {
                by: Reduction::TwoLevel { p, .. } | Reduction::TwoLevelPiece { p, .. },
                in_place: true,
                ..
            } => n % p != 1,
            Call::Gather(Gathering::RecursiveDoubling) => n.is_power_of_two(),
            Call::Gather(Gathering::NeighborExchange) => n.is_multiple_of(2),
            Call::Gather(Gathering::Lines) | Call::AllToAllInLines => n <= LINE_MEMBERS,
            call => n > 1 || !call.is_in_place(),
        }
    }

    /// Returns the number of parts of the source.
    pub fn source_parts(self, n: u32) -> u32 {
        match self {
            Call::Broadcast { .. } | Call::Bruck | Call::Ring | Call::Words | Call::Gather(_) => 1,
            Call::GatherTo { .. } | Call::DirectGatherTo { .. } => 1,
            Call::Scatter { .. } | Call::DirectScatter { .. } => n,
            Call::AllToAll
            | Call::AllToAllInLines
            | Call::CentralAllToAll
            | Call::BruckAllToAll
            | Call::OwnBruckAllToAll
            | Call::DirectReduceScatter
            | Call::CentralReduceScatter => n,
            Call::Reduce { parts, .. }
            | Call::DirectReduceTo { parts, .. }
            | Call::CentralReduceTo { parts, .. }
            | Call::LongBroadcast { parts, .. }
            | Call::DirectScan { parts, .. }
            | Call::CentralScan { parts, .. } => parts,
            _ => 0,
        }
    }

    /// Returns the number of parts of the destination.
    pub fn dest_parts(self, n: u32) -> u32 {
        match self {
            Call::Bruck | Call::Ring | Call::Words | Call::Gather(_) => n,
            Call::GatherTo { .. } | Call::DirectGatherTo { .. } => n,
            Call::Scatter { .. } | Call::DirectScatter { .. } => 1,
            Call::DirectReduceScatter | Call::CentralReduceScatter => 1,
            _ => self.source_parts(n),
        }
    }

    /// Returns what a part of the destination must hold at the end.
    pub fn expected_dest(self, call: usize, n: u32, me: u32, part: u32) -> Expected {
        match self {
            Call::Broadcast { root } | Call::LongBroadcast { root, .. } if me == root => {
                Expected::Untouched
            }
            Call::Broadcast { root } | Call::LongBroadcast { root, .. } => Expected::Source {
                call,
                owner: root,
                part,
            },
            Call::DirectReduceTo { root, .. }
            | Call::CentralReduceTo { root, .. }
            | Call::GatherTo { root }
            | Call::DirectGatherTo { root }
                if me != root =>
            {
                Expected::Untouched
            }
            Call::Scatter { root } | Call::DirectScatter { root } => Expected::Source {
                call,
                owner: root,
                part: me,
            },
            Call::DirectReduceTo { .. } | Call::CentralReduceTo { .. } => {
                Expected::Prefix { call, end: n, part }
            }
            Call::DirectReduceScatter | Call::CentralReduceScatter => Expected::Prefix {
                call,
                end: n,
                part: me,
            },
            Call::AllToAll
            | Call::AllToAllInLines
            | Call::CentralAllToAll
            | Call::BruckAllToAll
            | Call::OwnBruckAllToAll => Expected::Source {
                call,
                owner: part,
                part: me,
            },
            Call::Reduce { by, .. } => Expected::Combined {
                call,
                n,
                part,
                in_order: by != Reduction::Ring,
            },
            Call::DirectScan {
                exclusive: true,
                in_place: false,
                ..
            }
            | Call::CentralScan {
                exclusive: true,
                in_place: false,
                ..
            } if me == 0 => Expected::Untouched,
            Call::DirectScan { exclusive, .. } | Call::CentralScan { exclusive, .. } => {
                let end = if exclusive { me.max(1) } else { me + 1 };
                Expected::Prefix { call, end, part }
            }
            _ => Expected::Source {
                call,
                owner: part,
                part: 0,
            },
        }
    }

    /// Returns true if the source is the destination.
    pub fn is_in_place(self) -> bool {
        matches!(
            self,
            Call::Reduce { in_place: true, .. }
                | Call::DirectScan { in_place: true, .. }
                | Call::CentralScan { in_place: true, .. }
        )
    }

    /// Returns what the accumulator must hold at the end; `None` if its content does not matter.
    pub fn expected_accumulator(self, call: usize, n: u32, me: u32) -> Option<Expected> {
        let up_to = |end| Expected::Prefix { call, end, part: 0 };
        match self {
            of_all if of_all.is_all_reduce() => Some(up_to(n)),
            Call::InclusiveScan | Call::NextScanPiece | Call::OwnInclusiveScan => {
                Some(up_to(me + 1))
            }
            Call::ExclusiveScan | Call::OwnExclusiveScan => (me > 0).then_some(up_to(me)),
            Call::ReduceTo { root } => (me == root).then_some(Expected::Combined {
                call,
                n,
                part: 0,
                in_order: false,
            }),
            _ => None,
        }
    }

    /// Returns true if the accumulator holds the own contribution at the start.
    pub fn accumulates(self) -> bool {
        self.is_all_reduce() || self.is_scan() || matches!(self, Call::ReduceTo { .. })
    }

    /// Returns true if accumulators have the results of a scan at the end.
    fn is_scan(self) -> bool {
        matches!(
            self,
            Call::InclusiveScan
                | Call::ExclusiveScan
                | Call::NextScanPiece
                | Call::OwnInclusiveScan
                | Call::OwnExclusiveScan
        )
    }

    /// Returns true if the call continues the one before it with one more piece of the vector.
    pub fn is_next_piece(self) -> bool {
        matches!(self, Call::NextPiece | Call::NextScanPiece)
    }

    /// Returns true if every accumulator has the contributions of all members at the end.
    pub fn is_all_reduce(self) -> bool {
        matches!(
            self,
            Call::AllReduce
                | Call::TwoLevelShort { .. }
                | Call::LongAllReduce
                | Call::NextPiece
                | Call::CentralPrivate
        )
    }

    /// Returns true if no other team uses the receive buffers of the call.
    pub fn has_own_receive_buffers(self) -> bool {
        match self {
            Call::AllReduce | Call::TwoLevelShort { .. } | Call::OwnBruckAllToAll => true,
            Call::OwnInclusiveScan | Call::OwnExclusiveScan => true,
            Call::Gather(Gathering::Lines) | Call::AllToAllInLines => true,
            Call::Reduce {
                by: Reduction::TwoLevelPiece { shared, .. },
                ..
            } => !shared,
            _ => false,
        }
    }

    /// Returns true if plans for huge teams have few enough steps to examine them.
    pub fn is_logarithmic(self) -> bool {
        let is_linear = match self {
            Call::Ring
            | Call::Reduce {
                by: Reduction::Ring,
                ..
            } => true,
            Call::AllToAll
            | Call::AllToAllInLines
            | Call::CentralAllToAll
            | Call::BruckAllToAll
            | Call::OwnBruckAllToAll => true,
            Call::Gather(by) => by != Gathering::RecursiveDoubling,
            Call::LongBroadcast { .. } | Call::GatherTo { .. } | Call::Scatter { .. } => true,
            _ => false,
        };
        !is_linear
    }

    /// Returns the number of parts of a receive buffer in a team of `n`.
    pub fn receive_buffer_parts(self, n: u32, receive_buffer: u8) -> u32 {
        let exists = (receive_buffer as usize) < receive_buffer::count(n);
        match self {
            Call::BruckAllToAll | Call::OwnBruckAllToAll if exists => {
                bruck::receive_buffer_parts(n)
            }
            Call::TwoLevelShort { .. } => 1,
            Call::Gather(Gathering::Lines) | Call::AllToAllInLines => {
                (u32::from(receive_buffer) + 1 < n).into()
            }
            Call::Reduce {
                by: Reduction::TwoLevelPiece { .. },
                ..
            } => exists.into(),
            call => (exists && call.accumulates()).into(),
        }
    }

    /// Returns true if no member may leave the call before all have entered it.
    pub fn depends_on_all(self) -> bool {
        let has_root = matches!(
            self,
            Call::Broadcast { .. }
                | Call::LongBroadcast { .. }
                | Call::ReduceTo { .. }
                | Call::GatherTo { .. }
                | Call::DirectGatherTo { .. }
                | Call::Scatter { .. }
                | Call::DirectScatter { .. }
        );
        !has_root
    }
}
