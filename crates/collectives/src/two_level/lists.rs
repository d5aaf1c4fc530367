//! Nodes with any members, as two lists for one member: the members of its node, and those of its
//! lane.

use super::nodes::{Levels, Nodes};
use std::collections::HashMap;

/// The position of a member, and the members that it exchanges messages with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeLists {
    levels: Levels,
    on_node: Box<[u32]>,
    /// By node; empty if some node has no member in this lane.
    in_lane: Box<[u32]>,
}

impl NodeLists {
    /// Makes the lists of member `me` of a team of `n`, where `node_of` returns the node of each
    /// member.
    pub fn of(n: u32, me: u32, node_of: impl Fn(u32) -> u32) -> NodeLists {
        let own = node_of(me);
        let on_node: Box<[u32]> = (0..n).filter(|&member| node_of(member) == own).collect();
        let local = on_node.iter().position(|&member| member == me).expect("it is on its node");
        // For each node, its number, in the order of the nodes' first members, and how many of its
        // members were found so far.
        let mut found: HashMap<u32, (usize, u32)> = HashMap::new();
        let mut in_lane = Vec::new();
        for member in 0..n {
            let number = found.len();
            let (number, members) = found.entry(node_of(member)).or_insert((number, 0));
            if *members == 0 {
                in_lane.push(member);
            } else if *members == local as u32 {
                in_lane[*number] = member;
            }
            *members += 1;
        }
        let lanes = found.values().map(|&(_, members)| members).min().unwrap_or(0);
        if lanes <= local as u32 {
            in_lane.clear();
        }
        let levels = Levels {
            nodes: found.len() as u32,
            node: found[&own].0 as u32,
            members: on_node.len() as u32,
            local: local as u32,
            lanes,
        };
        NodeLists { levels, on_node, in_lane: in_lane.into() }
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
