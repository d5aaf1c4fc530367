//! The position of a member among the nodes of its team, and the conversion of plans for a node or
//! a lane to plans for the team.

use crate::Step;

/// The position of a member in its team.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Levels {
    /// The number of nodes that have members.
    pub nodes: u32,
    /// The number of the member's node.
    pub node: u32,
    /// The number of members on this node.
    pub members: u32,
    /// The index of the member among these. The one with index 0 is the leader.
    pub local: u32,
    /// The number of lanes: the minimum number of members of a node. A lane consists of the members
    /// with the same `local`, one on each node.
    pub lanes: u32,
}

/// What a member knows of the nodes of its team.
pub trait Nodes: Copy {
    /// Returns the position of the member.
    fn levels(self) -> Levels;

    /// Returns the index in the team of a member of the own node.
    fn member(self, local: u32) -> u32;

    /// Returns the index in the team of the member of the own lane on a node.
    fn in_lane(self, node: u32) -> u32;
}

/// Converts a step of a plan for the own node to one for the team.
pub(super) fn on_node(at: impl Nodes) -> impl Fn(Step) -> Step + Clone {
    move |step| step.in_pairs(|local| at.member(local))
}

/// Converts a step of a plan for the own lane to one for the team.
pub(super) fn in_lane(at: impl Nodes) -> impl Fn(Step) -> Step + Clone {
    move |step| step.in_pairs(|node| at.in_lane(node))
}
