//! A machine in the LogGP model: the cost of a message, which depends on the positions of the
//! sender and the receiver.
//!
//! A. Alexandrov, M. F. Ionescu, K. E. Schauser, C. Scheiman: LogGP: Incorporating long messages
//! into the LogP model. Journal of Parallel and Distributed Computing 44 (1), 1997. Times are in
//! microseconds.

/// The cost of a message on one kind of link.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LinkCost {
    /// L: the time from the end of the sender's overhead to the arrival of the first byte.
    pub latency: f64,
    /// o: the time of the CPU for a message, at the sender and at the receiver.
    pub overhead: f64,
    /// g: the minimum time between the beginnings of two messages of one sender.
    pub gap: f64,
    /// G: the time for each byte of a message.
    pub per_byte: f64,
}

/// A machine whose nodes form groups, as in a dragonfly: within a group any two nodes are one hop
/// apart.
#[derive(Clone, Copy, Debug)]
pub struct Machine {
    /// The name in the tables.
    pub name: &'static str,
    /// The number of PEs of a node. The PEs of a node have consecutive numbers.
    pub pes_per_node: u32,
    pub nodes_per_group: u32,
    on_node: LinkCost,
    in_group: LinkCost,
    between_groups: LinkCost,
    /// The time to combine a byte with another one.
    pub combine_per_byte: f64,
}

/// The cost of a store to shared memory that another core sees.
const MEMORY: LinkCost = LinkCost {
    latency: 0.06,
    overhead: 0.01,
    gap: 0.01,
    per_byte: 1.0 / 12e3,
};
/// The cost of a put over a fabric of 200 Gbit/s.
const FABRIC: LinkCost = LinkCost {
    latency: 0.9,
    overhead: 0.15,
    gap: 0.05,
    per_byte: 1.0 / 24e3,
};
/// The cost of a put over two more switches and a long cable.
const FAR: LinkCost = LinkCost {
    latency: 1.7,
    ..FABRIC
};

/// Nodes of one PE, with the same link between any two.
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
pub const TWO_LEVEL: Machine = Machine {
    name: "64 PEs per node",
    pes_per_node: 64,
    ..FLAT
};

/// Nodes of 64 PEs in groups of 32 nodes.
pub const DRAGONFLY: Machine = Machine {
    name: "dragonfly",
    nodes_per_group: 32,
    ..TWO_LEVEL
};

impl Machine {
    /// Returns the cost of the link between two PEs.
    pub fn link(&self, from: u32, to: u32) -> LinkCost {
        let from_node = from / self.pes_per_node;
        let to_node = to / self.pes_per_node;
        if from_node == to_node {
            self.on_node
        } else if from_node / self.nodes_per_group == to_node / self.nodes_per_group {
            self.in_group
        } else {
            self.between_groups
        }
    }

    /// Returns true if two PEs are on one node.
    pub fn shares_node(&self, one: u32, other: u32) -> bool {
        one / self.pes_per_node == other / self.pes_per_node
    }

    /// Returns the cost of the slowest link in a team of the first `n` PEs.
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
