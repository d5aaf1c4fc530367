//! The position of a member among the nodes of its team, for nodes of equal numbers of neighboring
//! members and for any others, and the conversion of plans for a node or a lane to plans for the
//! team.

use crate::Step;
use std::collections::HashMap;

/// The position of a member in its team.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Levels {
    /// The number of nodes that have members.
    pub nodes: u32,
    /// The number of the member's node.
    pub node: u32,
    /// The number of members on this node.
    pub members: u32,
    /// The index of the member among the members of its node. The member with index 0 is the
    /// leader.
    pub local: u32,
    /// The number of lanes: the minimum number of members of a node. A lane consists of the members
    /// with the same `local`, one on each node.
    pub lanes: u32,
}

/// The nodes of a team, as one of its members needs them.
pub trait Nodes: Copy {
    /// Returns the position of the member.
    fn levels(self) -> Levels;

    /// Returns the index in the team of a member of the own node.
    fn member(self, local: u32) -> u32;

    /// Returns the index in the team of the member of the own lane on a node.
    fn in_lane(self, node: u32) -> u32;
}

/// Converts a step of a plan for the own node to one for the team.
pub(super) fn on_node(team: impl Nodes) -> impl Fn(Step) -> Step + Clone {
    move |step| step.in_pairs(|local| team.member(local))
}

/// Converts a step of a plan for the own lane to one for the team.
pub(super) fn in_lane(team: impl Nodes) -> impl Fn(Step) -> Step + Clone {
    move |step| step.in_pairs(|node| team.in_lane(node))
}

/// The nodes of a team of `n` whose first `p` members share a node, then the next `p`, and so on.
#[derive(Clone, Copy, Debug)]
pub struct NodeBlocks {
    /// The size of the team.
    pub n: u32,
    /// The index of the member.
    pub me: u32,
    /// The number of members of each node; the last node may have fewer.
    pub p: u32,
}

impl Nodes for NodeBlocks {
    fn levels(self) -> Levels {
        let Self { n, me, p } = self;
        let nodes = n.div_ceil(p);
        let last = n - (nodes - 1) * p;
        let members = if me / p == nodes - 1 { last } else { p };

        Levels {
            nodes,
            node: me / p,
            members,
            local: me % p,
            lanes: last,
        }
    }

    fn member(self, local: u32) -> u32 {
        self.me / self.p * self.p + local
    }

    fn in_lane(self, node: u32) -> u32 {
        node * self.p + self.me % self.p
    }
}

/// The position of a member, and the members with which it exchanges messages, for any nodes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeLists {
    levels: Levels,
    /// The members of the own node, by their index on the node.
    on_node: Box<[u32]>,
    /// The member of the own lane on each node; empty if some node has no member in this lane.
    in_lane: Box<[u32]>,
}

impl NodeLists {
    /// Makes the lists of member `me` of a team of `n`, where `node_of` returns the node of each
    /// member.
    pub fn of(n: u32, me: u32, node_of: impl Fn(u32) -> u32) -> NodeLists {
        /// A node, as far as its members were found.
        struct Node {
            /// Its number in the order of the nodes' first members.
            number: usize,
            members: u32,
        }

        let own = node_of(me);
        let on_node: Box<[u32]> = (0..n).filter(|&member| node_of(member) == own).collect();
        let local = on_node
            .iter()
            .position(|&member| member == me)
            .expect("it is on its node");

        let mut nodes: HashMap<u32, Node> = HashMap::new();
        let mut in_lane = Vec::new();
        for member in 0..n {
            let number = nodes.len();
            let node = nodes
                .entry(node_of(member))
                .or_insert(Node { number, members: 0 });

            // The first member stands for its node until that of the own lane is found.
            if node.members == 0 {
                in_lane.push(member);
            } else if node.members == local as u32 {
                in_lane[node.number] = member;
            }
            node.members += 1;
        }

        // A node without a member in the lane of this member is still represented by its first one.
        let lanes = nodes.values().map(|node| node.members).min().unwrap_or(0);
        if lanes <= local as u32 {
            in_lane.clear();
        }

        let levels = Levels {
            nodes: nodes.len() as u32,
            node: nodes[&own].number as u32,
            members: on_node.len() as u32,
            local: local as u32,
            lanes,
        };
        NodeLists {
            levels,
            on_node,
            in_lane: in_lane.into(),
        }
    }
}

impl Nodes for &NodeLists {
    fn levels(self) -> Levels {
        self.levels
    }

    fn member(self, local: u32) -> u32 {
        self.on_node[local as usize]
    }

    fn in_lane(self, node: u32) -> u32 {
        self.in_lane[node as usize]
    }
}
