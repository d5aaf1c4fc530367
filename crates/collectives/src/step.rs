//! The vocabulary of plans.

/// A buffer that a step reads or writes. Every member has one of each.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Place {
    /// The caller's source array.
    Source,
    /// The caller's destination array; every member's is ready before any member calls
    /// (OpenSHMEM 1.6, collective routines), so a peer may write it at once.
    Dest,
    /// Private memory of the member that holds its partial result.
    Accumulator,
    /// A buffer of the team's internal area into which one peer writes, by number.
    Landing(u8),
}

/// A run of consecutive parts of a buffer. What a part is (an element, a PE's block, the whole
/// vector) is for the executor to know; its size may differ from part to part.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Span {
    /// The buffer.
    pub place: Place,
    /// The first part.
    pub first: u32,
}

/// One step of a plan. `peer` is an index in the team.
///
/// Between two members messages are matched in order: the k-th `Put` or `Signal` of `a` to `b` is
/// taken by the k-th `Wait` of `b` for `a`. A `Put` is never seen before the data it carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Step {
    /// Copy `count` parts of the own `from` to `to` of `peer`, then signal it.
    Put {
        /// Receiver.
        peer: u32,
        /// Where the parts are here.
        from: Span,
        /// Where they go there.
        to: Span,
        /// How many parts.
        count: u32,
    },
    /// Signal `peer` without data.
    Signal {
        /// Receiver.
        peer: u32,
    },
    /// Wait for the next signal of `peer`.
    Wait {
        /// Sender.
        peer: u32,
    },
    /// Copy `count` parts within this member.
    Copy {
        /// Where the parts are.
        from: Span,
        /// Where they go.
        to: Span,
        /// How many parts.
        count: u32,
    },
    /// Combine the whole accumulator with a landing buffer, into the accumulator.
    Reduce {
        /// Number of the landing buffer.
        landing: u8,
        /// Whether the landing buffer holds the contribution of the lower indices, and so is the
        /// left operand. All members then combine in the same order and agree to the last bit.
        landing_is_left: bool,
    },
}
