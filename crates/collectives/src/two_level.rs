//! Two levels: the members of a node meet at their leader, and only leaders talk to other nodes.
//!
//! V. Tipparaju, J. Nieplocha, D. Panda: Fast collective operations using shared and remote memory access protocols on clusters.
//! International Parallel and Distributed Processing Symposium (IPDPS), 2003.
//!
//! Members of a node need not be neighbours in the team, and nodes may have different numbers of them: [`Nodes`] tells a plan who
//! is where, and all else is the plan of one level over the members of a node or over leaders. All messages go along
//! [`Edge::Pair`](crate::Edge::Pair), because leaders are at other distances than members.

use crate::{Step, binomial, dissemination};

mod blocks;
mod listed;
mod reduce;

pub use blocks::Blocks;
pub use listed::Listed;
pub use reduce::{all_reduce, all_reduce_piece, all_reduce_short};

/// Where a member is among its team.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Levels {
    /// How many nodes have members.
    pub nodes: u32,
    /// The number of the own one.
    pub node: u32,
    /// How many members the own one has.
    pub members: u32,
    /// The own number among these. Member 0 is the leader.
    pub local: u32,
    /// How many members each node has at least. Members with the same number below this are a lane: one on each node.
    pub lanes: u32,
}

/// What a member knows of the nodes of its team.
pub trait Nodes: Copy {
    /// Where the member itself is.
    fn levels(self) -> Levels;

    /// The index in the team of a member of the own node.
    fn member(self, local: u32) -> u32;

    /// The index in the team of the member of the own lane on a node.
    fn in_lane(self, node: u32) -> u32;
}

/// The plan of a sync in 2 ⌈log2 p⌉ + ⌈log2 m⌉ rounds on m nodes of up to p members: nobody ends it before everybody has entered
/// it.
pub fn sync(at: impl Nodes) -> impl Iterator<Item = Step> + Clone {
    let Levels { nodes, node, members, local, .. } = at.levels();
    let leaders = (local == 0).then(|| dissemination::sync(nodes, node));
    (binomial::gather(members, local, local).map(on_node(at)))
        .chain(leaders.into_iter().flatten().map(in_lane(at)))
        .chain(binomial::release(members, local, local).map(on_node(at)))
}

/// From a step of a plan for the own node alone to that for the team.
fn on_node(at: impl Nodes) -> impl Fn(Step) -> Step + Clone {
    move |step| step.in_pairs(|local| at.member(local))
}

/// The same for the own lane.
fn in_lane(at: impl Nodes) -> impl Fn(Step) -> Step + Clone {
    move |step| step.in_pairs(|node| at.in_lane(node))
}

#[cfg(test)]
mod tests;
