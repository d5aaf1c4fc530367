//! The vocabulary of plans.

use crate::edge::Peer;

/// A buffer that a step reads or writes. Every member has one of each.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Place {
    /// The caller's source array. Read by its owner alone, but for [`Step::ReduceDirect`] and [`Step::ScanDirect`].
    Source,
    /// The caller's destination array; every member's is ready before any member calls
    /// (OpenSHMEM 1.6, collective routines), so a peer may write it at once. A plan writes each
    /// part of it at most once.
    Dest,
    /// Private memory of the member that holds its partial result: one part, the whole vector.
    Accumulator,
    /// A buffer of the team's internal area into which one peer writes one part, by number: see
    /// [`landing`](crate::landing).
    Landing(u8),
}

impl Place {
    /// The run of parts of this buffer that starts with part `first`.
    pub const fn at(self, first: u32) -> Span {
        Span { place: self, first }
    }
}

/// A run of consecutive parts of a buffer. What a part is (an element, a PE's block, the whole
/// vector) is for the executor to know; its size may differ from part to part, and be zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Span {
    /// The buffer.
    pub place: Place,
    /// The first part.
    pub first: u32,
}

/// One step of a plan.
///
/// On each edge from one member to another messages are matched in order: the k-th `Put` or `Signal` of `a` on an edge to `b`
/// is taken by the k-th `Wait` of `b` for it. On [`Edge::Any`](crate::Edge::Any) a `Wait` takes a message of whichever member, so only after
/// the last one the data of a given member are there. A `Put` is never seen before the data it carries.
/// Every plan takes as many signals as its peers' plans send, so that plans can follow one another
/// on the same counters without an agreement between them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Step {
    /// Copy `count` parts of the own `from` to `to` of `peer`, then signal it. An accumulator as
    /// `from` may change as soon as the step is done; parts of `Source` and `Dest` that were put
    /// stay as they are until the plan ends.
    Put {
        /// Receiver.
        peer: Peer,
        /// Where the parts are here.
        from: Span,
        /// Where they go there.
        to: Span,
        /// How many parts, at least 1.
        count: u32,
    },
    /// Signal `peer` without data.
    Signal {
        /// Receiver.
        peer: Peer,
    },
    /// Wait for the next signal of `peer`.
    Wait {
        /// Sender.
        peer: Peer,
    },
    /// Copy `count` parts within this member.
    Copy {
        /// Where the parts are.
        from: Span,
        /// Where they go.
        to: Span,
        /// How many parts, at least 1.
        count: u32,
    },
    /// Count this member in at the counter of member `at`, which may be itself. The last of all members to be counted
    /// releases them all. Nothing but such steps uses the counter.
    Arrive {
        /// Whose counter.
        at: u32,
    },
    /// Give the accumulator to the counter of member `at`, and count this member in there like [`Step::Arrive`]. The last of
    /// all members combines what they gave in the order of the indices, before it releases them.
    Contribute {
        /// Whose counter.
        at: u32,
    },
    /// Copy what was combined at the counter of member `at`, which has released the members, to the accumulator.
    TakeCombined {
        /// Whose counter.
        at: u32,
    },
    /// Wait until the counter of member `at` releases the members.
    AwaitRelease {
        /// Whose counter.
        at: u32,
    },
    /// Combine `count` parts of `Source` of all members, in the order of the indices, and store the result in the same parts
    /// of `Dest` of all members. Nobody is signalled.
    ReduceDirect {
        /// The first part.
        first: u32,
        /// How many parts, at least 1.
        count: u32,
    },
    /// Combine `count` parts of `Source` of the members in the order of the indices, and store in the same parts of `Dest` of
    /// each member what the members up to it combine to. Nobody is signalled.
    ScanDirect {
        /// The first part.
        first: u32,
        /// How many parts, at least 1.
        count: u32,
        /// Whether a member's own contribution is left out; then nothing is stored at member 0.
        exclusive: bool,
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

impl Step {
    /// The same step with its peer, where it has one, under another number.
    pub fn with_peer(self, number: impl FnOnce(u32) -> u32) -> Step {
        match self {
            Step::Put { peer, from, to, count } => {
                Step::Put { peer: peer.numbered(number), from, to, count }
            }
            Step::Signal { peer } => Step::Signal { peer: peer.numbered(number) },
            Step::Wait { peer } => Step::Wait { peer: peer.numbered(number) },
            Step::Arrive { at } => Step::Arrive { at: number(at) },
            Step::AwaitRelease { at } => Step::AwaitRelease { at: number(at) },
            Step::Contribute { at } => Step::Contribute { at: number(at) },
            Step::TakeCombined { at } => Step::TakeCombined { at: number(at) },
            Step::Copy { .. }
            | Step::Reduce { .. }
            | Step::ReduceDirect { .. }
            | Step::ScanDirect { .. } => self,
        }
    }
}
