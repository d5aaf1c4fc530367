//! The facts on which a choice depends.

/// Maximum number of bytes of a vector that is stored beside a counter or sent beside a flag.
pub const SHORT_MAX_BYTES: usize = 8;

/// Maximum size of a team whose members exchange messages along [`Edge::Line`](crate::Edge::Line).
pub const LINE_MEMBERS: u32 = 16;

/// The facts on which a choice depends besides sizes: the same on all members of a team.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChoiceFacts {
    /// The number of members.
    pub members: u32,
    /// The number of members on the node with the most members.
    pub per_node: u32,
    /// True if PEs of the job share CPUs on some node.
    pub oversubscribed: bool,
    /// Bytes of a receive buffer. 0 if the members must not use receive buffers, because one of
    /// them may be in another collective that uses the same ones.
    pub receive_buffer_bytes: usize,
    /// True if the members may use the flags of pairs of PEs, the data beside these flags, and the
    /// contributions to counters. All teams share these, so this is false if another team may use
    /// them at the same time.
    pub pair_flags: bool,
    /// True if the members share memory, and may exchange messages along
    /// [`Edge::Line`](crate::Edge::Line).
    pub lines: bool,
}

impl ChoiceFacts {
    /// Returns true if all members share one node's memory.
    #[inline]
    pub const fn one_node(&self) -> bool {
        self.per_node == self.members
    }

    /// Returns true if the members may use receive buffers.
    #[inline]
    pub const fn has_receive_buffers(&self) -> bool {
        self.receive_buffer_bytes > 0
    }

    /// Returns true if plans of two levels can be used. These need receive buffers and the flags of
    /// pairs of PEs.
    #[inline]
    pub(super) const fn has_levels(&self) -> bool {
        self.has_receive_buffers() && self.pair_flags && !self.one_node() && self.per_node > 1
    }
}
