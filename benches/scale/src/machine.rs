//! A machine under LogGP: what a message costs, by who sends it to whom.
//!
//! A. Alexandrov, M. F. Ionescu, K. E. Schauser, C. Scheiman: LogGP: Incorporating long messages
//! into the LogP model. Journal of Parallel and Distributed Computing 44 (1), 1997. Times are in
//! microseconds.

/// The cost of a message on one kind of link.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LinkCost {
    /// L: from the end of sending to the arrival of the first byte.
    pub latency: f64,
    /// o: of the CPU, at the sender and at the receiver.
    pub overhead: f64,
    /// g: between the beginnings of two messages of one sender.
    pub gap: f64,
    /// G: per byte.
    pub per_byte: f64,
}

/// A machine whose nodes form groups, as in a dragonfly: within a group any two nodes are one hop
/// apart.
#[derive(Clone, Copy, Debug)]
pub struct Machine {
    /// In the tables.
    pub name: &'static str,
    /// PEs of a node: they follow each other.
    pub pes_per_node: u32,
    pub nodes_per_group: u32,
    on_node: LinkCost,
    in_group: LinkCost,
    between_groups: LinkCost,
    /// Combining a byte with another one.
    pub combine_per_byte: f64,
}

/// A store that another core sees, at the speed of its memory.
const MEMORY: LinkCost =
    LinkCost { latency: 0.06, overhead: 0.01, gap: 0.01, per_byte: 1.0 / 12e3 };
/// A put over a fabric of 200 Gbit/s.
const FABRIC: LinkCost = LinkCost { latency: 0.9, overhead: 0.15, gap: 0.05, per_byte: 1.0 / 24e3 };
/// The cost over two more switches and a long cable.
const FAR: LinkCost = LinkCost { latency: 1.7, ..FABRIC };

/// One PE to a node, all nodes alike.
pub const FLAT: Machine = Machine {
    name: "flat",
    pes_per_node: 1,
    nodes_per_group: 1 << 20,
    on_node: MEMORY,
    in_group: FABRIC,
    between_groups: FAR,
    combine_per_byte: 1.0 / 10e3,
};

/// Nodes of 64 PEs.
pub const TWO_LEVEL: Machine = Machine { name: "64 PEs per node", pes_per_node: 64, ..FLAT };

/// Nodes of 64 PEs in groups of 32 nodes.
pub const DRAGONFLY: Machine = Machine { name: "dragonfly", nodes_per_group: 32, ..TWO_LEVEL };

impl Machine {
    /// Returns the link between two members of a team that is the whole machine.
    pub fn link(&self, from: u32, to: u32) -> LinkCost {
        let (from, to) = (from / self.pes_per_node, to / self.pes_per_node);
        match from == to {
            true => self.on_node,
            false if from / self.nodes_per_group == to / self.nodes_per_group => self.in_group,
            false => self.between_groups,
        }
    }

    /// Returns true if two members have the same memory.
    pub fn shares_node(&self, one: u32, other: u32) -> bool {
        one / self.pes_per_node == other / self.pes_per_node
    }

    /// Returns the slowest link that a team of `n` uses.
    pub fn slowest(&self, n: u32) -> LinkCost {
        self.link(0, n - 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_follow_from_where_two_pes_are() {
        assert_eq!(DRAGONFLY.link(0, 63), MEMORY);
        assert_eq!(DRAGONFLY.link(63, 64), FABRIC);
        assert_eq!(DRAGONFLY.link(0, 64 * 32), FAR);
        assert_eq!(FLAT.link(0, 1), FABRIC);
    }
}
