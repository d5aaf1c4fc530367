//! The facts on which a choice depends.

/// The largest vector that is given to a counter or sent beside a flag.
pub const SHORT_MAX_BYTES: usize = 8;

/// The most members that exchange messages in lines, each with each.
pub const LINE_MEMBERS: u32 = 16;

/// The facts on which a choice depends besides sizes: the same on all members of a team.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChoiceFacts {
    /// The number of members.
    pub members: u32,
    /// The number of of them that are on the node that has most of them.
    pub per_node: u32,
    /// PEs of the job share CPUs on some node.
    pub oversubscribed: bool,
    /// Bytes of the receive buffers that the members use; 0 if one of them may be in another
    /// collective that uses the same.
    pub receive_buffer_bytes: usize,
    /// They use the flags of each two PEs and what lies beside these, contributions to counters,
    /// which all teams share: no other team uses them at once.
    pub pair_flags: bool,
    /// They share memory, and have lines for messages of [`LINE_BYTES`](crate::LINE_BYTES).
    pub lines: bool,
}

impl ChoiceFacts {
    /// Returns true if all members share one node's memory.
    #[inline]
    pub const fn one_node(&self) -> bool {
        self.per_node == self.members
    }

    /// Returns true if the members use receive buffers.
    #[inline]
    pub const fn has_receive_buffers(&self) -> bool {
        self.receive_buffer_bytes > 0
    }

    /// Returns true if plans of two levels can be used: they use receive buffers and the flags of
    /// each two PEs.
    #[inline]
    pub(super) const fn has_levels(&self) -> bool {
        self.has_receive_buffers() && self.pair_flags && !self.one_node() && self.per_node > 1
    }
}
