//! What plans of two levels need to know of the nodes of a team, and how plans of one level are
//! made for a node or a lane.

use crate::Step;

/// Where a member is among its team.
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
    /// The number of members that each node has at least. Members with the same number below this
    /// are a lane: one on each node.
    pub lanes: u32,
}

/// What a member knows of the nodes of its team.
pub trait Nodes: Copy {
    /// Returns where the member itself is.
    fn levels(self) -> Levels;

    /// The index in the team of a member of the own node.
    fn member(self, local: u32) -> u32;

    /// The index in the team of the member of the own lane on a node.
    fn in_lane(self, node: u32) -> u32;
}

/// From a step of a plan for the own node alone to that for the team.
pub(super) fn on_node(at: impl Nodes) -> impl Fn(Step) -> Step + Clone {
    move |step| step.in_pairs(|local| at.member(local))
}

/// The same for the own lane.
pub(super) fn in_lane(at: impl Nodes) -> impl Fn(Step) -> Step + Clone {
    move |step| step.in_pairs(|node| at.in_lane(node))
}
