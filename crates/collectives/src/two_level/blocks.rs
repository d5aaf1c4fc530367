//! Nodes with the same number of consecutive members each; the last one may have fewer. Everything
//! is computed from these numbers.

use super::nodes::{Levels, Nodes};

/// The nodes of a team of `n` whose first `p` members share a node, then the next `p`, and so on.
#[derive(Clone, Copy, Debug)]
pub struct NodeBlocks {
    /// The size of the team.
    pub n: u32,
    /// The member.
    pub me: u32,
    /// Members of a node.
    pub p: u32,
}

impl Nodes for NodeBlocks {
    fn levels(self) -> Levels {
        let Self { n, me, p } = self;
        let nodes = n.div_ceil(p);
        let last = n - (nodes - 1) * p;
        let members = if me / p == nodes - 1 { last } else { p };
        Levels { nodes, node: me / p, members, local: me % p, lanes: last }
    }

    fn member(self, local: u32) -> u32 {
        self.me / self.p * self.p + local
    }

    fn in_lane(self, node: u32) -> u32 {
        node * self.p + self.me % self.p
    }
}
