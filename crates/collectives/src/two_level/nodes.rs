//! The facts about the nodes of a team that plans of two levels need, and plans of one level for a
//! node or a lane.

use crate::Step;

/// The position of a member in its team.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Levels {
    /// The number of nodes that have members.
    pub nodes: u32,
    /// The number of the own one.
    pub node: u32,
    /// The number of members that the own one has.
    pub members: u32,
    /// The own number among these. Member 0 is the leader.
    pub local: u32,
    /// The minimum number of members of a node. Members with the same number below this are a lane:
    /// one on each node.
    pub lanes: u32,
}

/// The nodes of a team, as a member knows them.
pub trait Nodes: Copy {
    /// Returns where the member itself is.
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

/// Translates steps for the member's own lane.
pub(super) fn in_lane(at: impl Nodes) -> impl Fn(Step) -> Step + Clone {
    move |step| step.in_pairs(|node| at.in_lane(node))
}
