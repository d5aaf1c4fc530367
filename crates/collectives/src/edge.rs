//! Edges: the relation between the sender and the receiver of a message of a plan. Plans use few
//! kinds of edges, so that a team needs few flags.

use crate::index::{ahead, behind, log2_ceil};

/// The relation between the sender and the receiver of a message. On an edge of each kind but the
/// last three, a member receives from at most one member and sends to at most one. So an executor
/// needs one flag for each kind instead of one for each peer: O(log n) flags.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Edge {
    /// To the member 2^k places ahead, around the circle.
    Ahead(u8),
    /// To the member 2^k places behind, around the circle.
    Behind(u8),
    /// Between the two members of a pair, which exchange messages in round k.
    Exchange(u8),
    /// From any member to any other one. In a plan that uses it each member receives one such
    /// message from each other one, and no member leaves the plan before all have entered it. So
    /// messages can be counted instead of distinguished, by two alternating counters.
    Any,
    /// Between any two members. An executor needs a flag for each pair of PEs, which all teams
    /// share.
    Pair,
    /// Between any two members that share memory: the flag and up to [`LINE_BYTES`] bytes of data
    /// are in one cache line. A plan sends at most one such message from one member to another, to
    /// a receive buffer, and no member ends the plan before all have entered it. So two lines, used
    /// in turn, suffice: none is overwritten before it is read.
    Line,
}

/// Maximum number of bytes of a message along [`Edge::Line`]: a cache line without its flag.
pub const LINE_BYTES: usize = 56;

/// The other member of a message: its receiver in [`Step::Put`](crate::Step::Put) and
/// [`Step::Signal`](crate::Step::Signal), its sender in [`Step::Wait`](crate::Step::Wait).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Partner {
    /// Its index in the team, never the member's own.
    pub index: u32,
    /// The edge from the sender to the receiver.
    pub edge: Edge,
}

impl Edge {
    /// Returns the number of edges on which a member of a team of `n` receives, without the last
    /// three kinds.
    pub const fn count(n: u32) -> usize {
        3 * log2_ceil(n) as usize
    }

    /// Returns these edges, in the order of their [numbers](Edge::number).
    pub fn all(n: u32) -> impl Iterator<Item = Edge> {
        let rounds = log2_ceil(n) as u8;
        let kinds = [Edge::Ahead, Edge::Behind, Edge::Exchange];
        kinds
            .into_iter()
            .flat_map(move |kind| (0..rounds).map(kind))
    }

    /// Returns the index of this edge among those that [`count`](Edge::count) counts.
    ///
    /// # Panics
    /// For the last three kinds.
    #[inline]
    pub const fn number(self, n: u32) -> usize {
        let rounds = log2_ceil(n) as usize;
        match self {
            Edge::Ahead(k) => k as usize,
            Edge::Behind(k) => rounds + k as usize,
            Edge::Exchange(k) => 2 * rounds + k as usize,
            Edge::Any | Edge::Pair | Edge::Line => panic!("no edge of a team"),
        }
    }
}

impl Partner {
    /// Returns a partner of the exchange in round `k`.
    pub(crate) const fn exchange(index: u32, k: u8) -> Self {
        Self {
            index,
            edge: Edge::Exchange(k),
        }
    }

    /// Returns a partner on [`Edge::Any`].
    pub(crate) const fn any(index: u32) -> Self {
        Self {
            index,
            edge: Edge::Any,
        }
    }

    /// Returns a partner on [`Edge::Pair`].
    pub(crate) const fn pair(index: u32) -> Self {
        Self {
            index,
            edge: Edge::Pair,
        }
    }

    /// Returns a partner on [`Edge::Line`].
    pub(crate) const fn line(index: u32) -> Self {
        Self {
            index,
            edge: Edge::Line,
        }
    }
}

/// Returns the receiver of a message to the member 2^`k` places ahead.
pub(crate) const fn to_ahead(n: u32, me: u32, k: u8) -> Partner {
    Partner {
        index: ahead(n, me, 1 << k),
        edge: Edge::Ahead(k),
    }
}

/// Returns the sender of a message from the member 2^`k` places behind.
pub(crate) const fn from_behind(n: u32, me: u32, k: u8) -> Partner {
    Partner {
        index: behind(n, me, 1 << k),
        edge: Edge::Ahead(k),
    }
}

/// Returns the receiver of a message to the member 2^`k` places behind.
pub(crate) const fn to_behind(n: u32, me: u32, k: u8) -> Partner {
    Partner {
        index: behind(n, me, 1 << k),
        edge: Edge::Behind(k),
    }
}

/// Returns the sender of a message from the member 2^`k` places ahead.
pub(crate) const fn from_ahead(n: u32, me: u32, k: u8) -> Partner {
    Partner {
        index: ahead(n, me, 1 << k),
        edge: Edge::Behind(k),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn edges_are_listed_in_the_order_of_their_numbers() {
        for n in [1, 2, 5, u32::MAX] {
            let numbers: Vec<usize> = Edge::all(n).map(|edge| edge.number(n)).collect();
            assert_eq!(numbers, Vec::from_iter(0..Edge::count(n)), "{n} members");
        }
    }

    #[test]
    fn who_sends_on_an_edge_is_who_is_waited_for() {
        for (n, me, k) in [(2, 1, 0), (5, 4, 2), (7, 0, 2), (u32::MAX, 3, 31)] {
            let receiver = to_ahead(n, me, k);
            assert_eq!(
                from_behind(n, receiver.index, k),
                Partner {
                    index: me,
                    ..receiver
                }
            );

            let receiver = to_behind(n, me, k);
            assert_eq!(
                from_ahead(n, receiver.index, k),
                Partner {
                    index: me,
                    ..receiver
                }
            );
        }
    }
}
