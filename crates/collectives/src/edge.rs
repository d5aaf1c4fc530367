//! The edges between members along which the messages of plans go.
//!
//! Plans use few of them, so that a team needs few flags. Knows nothing of what messages carry.

use crate::index::{ahead, behind, log2_ceil};

/// The edge of a plan along which a message goes from its sender to its receiver. Of each edge but
/// the last three one leads to each member and one from each, so an executor needs one flag for
/// each edge instead of one for each peer: O(log n) of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Edge {
    /// To the member 2^k places ahead, around the circle.
    Ahead(u8),
    /// To the member 2^k places behind, around the circle.
    Behind(u8),
    /// Between the two members of a pair, which exchange messages in round k.
    Exchange(u8),
    /// From any member to any other one. In a plan that uses it each member gets one such message
    /// of each other one, and no member leaves the plan before all have entered it: so messages can
    /// be counted instead of distinguished, by two alternating counters.
    Any,
    /// Between any two members. An executor needs a flag for each two of them: it has these for
    /// each two PEs, not for each team.
    Pair,
    /// Between any two members that share memory, with [`LINE_BYTES`] beside the flag in its cache
    /// line. A plan sends at most one such message from one member to another, to a receive buffer,
    /// and no member ends the plan before all have entered it: so of two lines, used in turn, none
    /// is overwritten unread.
    Line,
}

/// The most bytes of a message along [`Edge::Line`]: a cache line but for its flag.
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
    /// Returns how many edges but the last three lead to a member of a team of `n`.
    pub const fn count(n: u32) -> usize {
        3 * log2_ceil(n) as usize
    }

    /// Returns the number of this edge among those. Those of an exchange come last.
    ///
    /// # Panics
    /// For the last three.
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
        Self { index, edge: Edge::Exchange(k) }
    }

    /// Returns a partner whose messages are counted.
    pub(crate) const fn any(index: u32) -> Self {
        Self { index, edge: Edge::Any }
    }

    /// Returns a partner whose messages come in a line.
    pub(crate) const fn line(index: u32) -> Self {
        Self { index, edge: Edge::Line }
    }
}

/// Returns the receiver of a message that goes 2^`k` places ahead.
pub(crate) const fn to_ahead(n: u32, me: u32, k: u8) -> Partner {
    Partner { index: ahead(n, me, 1 << k), edge: Edge::Ahead(k) }
}

/// Returns the sender of a message that comes from 2^`k` places behind.
pub(crate) const fn from_behind(n: u32, me: u32, k: u8) -> Partner {
    Partner { index: behind(n, me, 1 << k), edge: Edge::Ahead(k) }
}

/// Returns the receiver of a message that goes 2^`k` places back.
pub(crate) const fn to_behind(n: u32, me: u32, k: u8) -> Partner {
    Partner { index: behind(n, me, 1 << k), edge: Edge::Behind(k) }
}

/// Returns the sender of a message that comes from 2^`k` places ahead.
pub(crate) const fn from_ahead(n: u32, me: u32, k: u8) -> Partner {
    Partner { index: ahead(n, me, 1 << k), edge: Edge::Behind(k) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_sends_on_an_edge_is_who_is_waited_for() {
        for (n, me, k) in [(2, 1, 0), (5, 4, 2), (7, 0, 2), (u32::MAX, 3, 31)] {
            let receiver = to_ahead(n, me, k);
            assert_eq!(from_behind(n, receiver.index, k), Partner { index: me, ..receiver });
            let receiver = to_behind(n, me, k);
            assert_eq!(from_ahead(n, receiver.index, k), Partner { index: me, ..receiver });
        }
    }
}
