//! The collectives that are modeled: their plans, the sizes of the parts of their data, and lower
//! bounds for any algorithm.

use std::collections::VecDeque;

use rushmem_collectives::Step;
use rushmem_collectives::two_level::NodeBlocks;
use rushmem_collectives::{
    binomial, bruck, dissemination, neighbor_exchange, pairwise, rabenseifner, recursive_doubling,
    ring, scatter_all_gather, two_level,
};

use crate::machine::{LinkCost, Machine, TWO_LEVEL};

pub type Plan = Box<dyn Iterator<Item = Step>>;

/// A collective with one of its algorithms.
#[derive(Clone, Copy, Debug)]
pub struct ModeledCollective {
    pub collective: SizedCollective,
    /// The algorithm, as the literature calls it.
    pub algorithm: &'static str,
    plan: fn(u32, u32) -> Plan,
    /// The number of parts into which the plan divides the bytes of the collective.
    parts: u32,
    /// True if a plan has a step for each member, so that only teams of a few thousand can be run.
    pub is_linear: bool,
}

/// A collective and its number of bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SizedCollective {
    /// No data; no member returns before all have entered.
    Sync,
    /// All members receive this number of bytes of one member.
    Broadcast(usize),
    /// All members receive the combination of all members' vectors of this number of bytes.
    Reduce(usize),
    /// An inclusive scan over vectors of this number of bytes.
    Scan(usize),
    /// All members receive this number of bytes of each member.
    Collect(usize),
    /// Each member sends another block of this number of bytes to each member.
    AllToAll(usize),
}

/// Returns all modeled collectives with their algorithms, at a short and a long size where the size
/// matters.
pub fn all() -> Vec<ModeledCollective> {
    use SizedCollective::*;
    vec![
        ModeledCollective::new(Sync, "dissemination", |n, me| {
            Box::new(dissemination::sync(n, me))
        }),
        ModeledCollective::new(Sync, "binomial gather", |n, me| {
            Box::new(binomial::gather_sync(n, me))
        }),
        ModeledCollective::new(Sync, "two-level", |n, me| {
            Box::new(two_level::sync(nodes(n, me)))
        }),
        ModeledCollective::new(Broadcast(8), "binomial", |n, me| {
            Box::new(binomial::broadcast(n, me, 0))
        }),
        ModeledCollective::new(Broadcast(LONG), "binomial", |n, me| {
            Box::new(binomial::broadcast(n, me, 0))
        }),
        ModeledCollective::new(Broadcast(LONG), "scatter and all-gather", |n, me| {
            Box::new(scatter_all_gather::broadcast(n, me, 0, LONG as u32))
        })
        .linear()
        .parts(LONG as u32),
        ModeledCollective::new(Reduce(8), "recursive doubling", |n, me| {
            Box::new(recursive_doubling::all_reduce(n, me))
        }),
        ModeledCollective::new(Reduce(8), "two-level", |n, me| {
            Box::new(two_level::all_reduce_short(nodes(n, me)))
        }),
        ModeledCollective::new(Reduce(8 << 10), "recursive doubling", |n, me| {
            Box::new(recursive_doubling::all_reduce(n, me))
        }),
        ModeledCollective::new(Reduce(LONG), "recursive doubling", |n, me| {
            Box::new(recursive_doubling::all_reduce(n, me))
        }),
        ModeledCollective::new(Reduce(LONG), "Rabenseifner", |n, me| {
            Box::new(rabenseifner::all_reduce(n, me, LONG as u32))
        })
        .parts(LONG as u32),
        ModeledCollective::new(Reduce(LONG), "two-level", |n, me| {
            let nodes = nodes(n, me);
            let lanes = two_level::lanes(nodes, LONG_PARTS);
            Box::new(two_level::all_reduce(nodes, LONG_PARTS, lanes))
        })
        .parts(LONG_PARTS),
        ModeledCollective::new(Reduce(LONG), "ring", |n, me| {
            Box::new(ring::all_reduce(n, me, LONG as u32))
        })
        .linear()
        .parts(LONG as u32),
        ModeledCollective::new(Scan(8), "recursive doubling", |n, me| {
            Box::new(recursive_doubling::inclusive_scan(n, me))
        }),
        ModeledCollective::new(Collect(8), "Bruck", |n, me| {
            Box::new(bruck::all_gather(n, me))
        }),
        ModeledCollective::new(Collect(8 << 10), "ring", |n, me| {
            Box::new(ring::all_gather(n, me))
        })
        .linear(),
        ModeledCollective::new(Collect(8 << 10), "neighbor exchange", |n, me| {
            // It needs an even number of members.
            if n.is_multiple_of(2) {
                Box::new(neighbor_exchange::all_gather(n, me))
            } else {
                Box::new(ring::all_gather(n, me))
            }
        })
        .linear(),
        ModeledCollective::new(AllToAll(8), "pairwise", |n, me| {
            Box::new(pairwise::all_to_all(n, me))
        })
        .linear(),
        ModeledCollective::new(AllToAll(8), "Bruck", |n, me| {
            Box::new(bruck::all_to_all(n, me))
        })
        .linear(),
    ]
}

/// The number of bytes of a long vector. Some plans for it have a part for each byte.
const LONG: usize = 1 << 20;

/// The number of parts of a long vector in the library's two-level reduction.
const LONG_PARTS: u32 = LONG as u32 / 512;

/// Returns the node of member `me` of `n`, on the machines whose nodes have several PEs.
const fn nodes(n: u32, me: u32) -> NodeBlocks {
    NodeBlocks {
        n,
        me,
        p: TWO_LEVEL.pes_per_node,
    }
}

impl ModeledCollective {
    /// Returns a collective whose plan does not divide the bytes, and has fewer steps than the team
    /// has members.
    fn new(
        collective: SizedCollective,
        algorithm: &'static str,
        plan: fn(u32, u32) -> Plan,
    ) -> Self {
        Self {
            collective,
            algorithm,
            plan,
            parts: 1,
            is_linear: false,
        }
    }

    /// Declares that the plan has a step for each member.
    fn linear(self) -> Self {
        Self {
            is_linear: true,
            ..self
        }
    }

    /// Declares the number of parts into which the plan divides the bytes.
    fn parts(self, parts: u32) -> Self {
        Self { parts, ..self }
    }

    pub fn plan(&self, n: u32, me: u32) -> Plan {
        (self.plan)(n, me)
    }

    /// Returns the number of bytes of this number of parts.
    pub fn nbytes(&self, parts: u32) -> usize {
        self.collective.nbytes() * parts as usize / self.parts as usize
    }

    /// Returns the time on a machine with one PE per node, for those linear plans for which a
    /// formula is known.
    pub fn closed_form(&self, machine: &Machine, n: u32) -> Option<f64> {
        let others = f64::from(n - 1);
        let nbytes = self.collective.nbytes() as f64;
        let LinkCost {
            latency,
            overhead,
            gap,
            per_byte,
        } = machine.slowest(n);

        let own_copy = nbytes * machine.link(0, 0).per_byte;
        let transfer = nbytes * per_byte;

        match (self.collective, self.algorithm) {
            (SizedCollective::Collect(_), "ring") => {
                // The own block is copied while the first message travels.
                let round = |copy: f64| copy.max(transfer + latency) + 2.0 * overhead;
                Some(round(own_copy) + (others - 1.0) * round(0.0))
            }
            (SizedCollective::AllToAll(_), "pairwise") => {
                let sends = others * overhead + (others - 1.0) * gap.max(transfer);
                let last_arrival = sends + transfer + latency;
                // Either the CPU or the last message ends last.
                Some((sends + own_copy + others * overhead).max(last_arrival + overhead))
            }
            _ => None,
        }
    }
}

impl SizedCollective {
    /// Returns the number of bytes that the collective takes of a member, or gives to it.
    pub fn nbytes(self) -> usize {
        match self {
            Self::Sync => 0,
            Self::Broadcast(nbytes)
            | Self::Reduce(nbytes)
            | Self::Scan(nbytes)
            | Self::Collect(nbytes)
            | Self::AllToAll(nbytes) => nbytes,
        }
    }

    /// Returns the name in tables.
    pub fn name(self) -> String {
        let (name, nbytes) = match self {
            Self::Sync => return "sync".to_owned(),
            Self::Broadcast(nbytes) => ("broadcast", nbytes),
            Self::Reduce(nbytes) => ("max-reduction", nbytes),
            Self::Scan(nbytes) => ("scan", nbytes),
            Self::Collect(nbytes) => ("fcollect", nbytes),
            Self::AllToAll(nbytes) => ("alltoall", nbytes),
        };
        match nbytes {
            0..1024 => format!("{name}, {nbytes} B"),
            1024..0x10_0000 => format!("{name}, {} KiB", nbytes >> 10),
            _ => format!("{name}, {} MiB", nbytes >> 20),
        }
    }

    /// Returns a lower bound of the time of any algorithm on a team of `n`: a word of one member
    /// must reach all members, and each member must receive all bytes that it does not have.
    pub fn lower_bound(self, machine: &Machine, n: u32) -> f64 {
        let local = machine.link(0, 0);
        let slowest = machine.slowest(n);

        // To the first PE of each node, to all PEs of a node, or to the farthest PE.
        let nodes = n.div_ceil(machine.pes_per_node);
        let nearest = machine.link(0, machine.pes_per_node);
        let word = broadcast_bound(nearest, nodes)
            .max(broadcast_bound(local, n.min(machine.pes_per_node)))
            .max(slowest.latency + 2.0 * slowest.overhead);

        let others = f64::from(n - 1);
        let bytes = match self {
            Self::Sync => 0.0,
            Self::Broadcast(nbytes) | Self::Scan(nbytes) => nbytes as f64,
            // A member sends each byte that another one combines, and receives each combined byte.
            Self::Reduce(nbytes) => 2.0 * nbytes as f64 * others / f64::from(n),
            Self::Collect(nbytes) | Self::AllToAll(nbytes) => nbytes as f64 * others,
        };
        word.max(bytes * local.per_byte.min(slowest.per_byte))
    }
}

/// Returns the minimum time in which a word of one member reaches `n` members, if each member that
/// has it sends it to others as fast as it can.
///
/// R. M. Karp, A. Sahay, E. E. Santos, K. E. Schauser: Optimal broadcast and summation in the LogP
/// model. Symposium on Parallel Algorithms and Architectures (SPAA), 1993.
fn broadcast_bound(link: LinkCost, n: u32) -> f64 {
    let hop = link.latency + 2.0 * link.overhead;
    let interval = link.gap.max(link.overhead);

    // Arrival times in ascending order. `first` has those of each member's first message, `next`
    // those of the message that a sender sends after one that has arrived.
    let mut first = VecDeque::from([hop]);
    let mut next = VecDeque::new();
    let mut last = 0.0;
    for _ in 1..n {
        // Each arrival adds one to both, so `first` is never empty.
        let is_next_earlier = next.front().is_some_and(|next| *next < first[0]);
        let earlier = if is_next_earlier {
            &mut next
        } else {
            &mut first
        };
        last = earlier.pop_front().expect("it is not empty");
        first.push_back(last + hop);
        next.push_back(last + interval);
    }
    last
}
