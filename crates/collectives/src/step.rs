//! The vocabulary of plans.

use crate::edge::{Edge, Partner};

/// A buffer that a step reads or writes. Every member has one of each.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Buffer {
    /// The caller's source array. Peers read it in [`Step::Get`], [`Step::ReduceDirect`] and
    /// [`Step::ScanDirect`] alone.
    Source,
    /// The caller's destination array; every member's is ready before any member calls (OpenSHMEM
    /// 1.6, collective routines), so a peer may write it at once. A plan that writes a part of it
    /// again knows that the first write, and all reads of what it wrote, are over.
    Dest,
    /// Private memory of the member that holds its partial result: one part, the whole vector. In
    /// an all-to-all it holds the blocks that are sent together.
    Accumulator,
    /// A buffer of the internal area into which one peer writes once, by number: see
    /// [`receive_buffer`](crate::receive_buffer). What it holds is read once.
    Receive(u8),
}

impl Buffer {
    /// Returns the run of parts of this buffer that starts with part `first`.
    pub const fn at(self, first: u32) -> Span {
        Span { buffer: self, first }
    }
}

/// A run of consecutive parts of a buffer. What a part is (an element, a PE's block, the whole
/// vector) is for the executor to know; its size may differ from part to part, and be zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Span {
    /// The buffer.
    pub buffer: Buffer,
    /// The first part.
    pub first: u32,
}

/// The own operand of a combination, beside one of a peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Operand {
    /// The own buffer that holds it, in the parts where the result goes in the destination.
    pub buffer: Buffer,
    /// True if it holds the contribution of the lower indices, and so is the left operand.
    pub is_left: bool,
}

/// One step of a plan.
///
/// On each edge from one member to another messages are matched in order: the k-th `Put` or
/// `Signal` of `a` on an edge to `b` is taken by the k-th `Wait` of `b` for it. On
/// [`Edge::Any`](crate::Edge::Any) a `Wait` takes a message of whichever member, so only after the
/// last one the data of a given member are there. A `Put` is never seen before the data it carries.
/// Every plan takes as many signals as its peers' plans send, so that plans can follow one another
/// on the same counters without an agreement between them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Step {
    /// Copy `count` parts of the own `from` to `to` of `peer`, then signals it. An accumulator as
    /// `from` may change as soon as the step is done; parts of `Source` and `Dest` that were put
    /// stay as they are until the plan ends.
    Put {
        /// Receiver.
        peer: Partner,
        /// The position of the parts here.
        from: Span,
        /// Their position there.
        to: Span,
        /// The number of parts, at least 1.
        count: u32,
    },
    /// Signal `peer` without data.
    Signal {
        /// Receiver.
        peer: Partner,
    },
    /// Wait for the next signal of `peer`.
    Wait {
        /// Sender.
        peer: Partner,
    },
    /// Copy `count` parts of `Source` or `Dest` of another member to the own ones; or combine them
    /// with an own operand, and store the result there. No member is signaled: the plan has heard
    /// that the parts are there, and notifies their owner that they were read before it ends or
    /// writes to them.
    Get {
        /// The owner of the parts.
        peer: u32,
        /// The position of the parts there.
        from: Span,
        /// Their position here.
        to: Span,
        /// The number of parts, at least 1.
        count: u32,
        /// With what they are combined, if with anything.
        with: Option<Operand>,
    },
    /// Copy `count` parts within this member.
    Copy {
        /// The position of the parts.
        from: Span,
        /// Their new position.
        to: Span,
        /// The number of parts, at least 1.
        count: u32,
    },
    /// Count this member in at the counter of member `at`, which may be itself. The last of all
    /// members to be counted releases them all. Nothing but such steps uses the counter.
    Arrive {
        /// The owner of the counter.
        at: u32,
    },
    /// Give the accumulator to the counter of member `at`, and count this member in there like
    /// [`Step::Arrive`]. The last of all members combines what they gave in the order of the
    /// indices, before it releases them.
    Contribute {
        /// The owner of the counter.
        at: u32,
    },
    /// Copy what was combined at the counter of member `at`, which has released the members, to the
    /// accumulator.
    TakeCombined {
        /// The owner of the counter.
        at: u32,
    },
    /// Wait until the counter of member `at` releases the members.
    AwaitRelease {
        /// The owner of the counter.
        at: u32,
    },
    /// Combine `count` parts of `Source` of all members, in the order of the indices, and store the
    /// result in the same parts of `Dest` of all members. No member is signaled.
    ReduceDirect {
        /// The first part.
        first: u32,
        /// The number of parts, at least 1.
        count: u32,
    },
    /// Combine `count` parts of `Source` of the members in the order of the indices, and store in
    /// the same parts of `Dest` of each member what the members up to it combine to. No member
    /// is signaled.
    ScanDirect {
        /// The first part.
        first: u32,
        /// The number of parts, at least 1.
        count: u32,
        /// True if a member's own contribution is left out; then nothing is stored at member 0.
        exclusive: bool,
    },
    /// Combine the whole accumulator with a receive buffer, into the accumulator.
    Reduce {
        /// Number of the receive buffer.
        receive_buffer: u8,
        /// True if the receive buffer holds the contribution of the lower indices, and so is the
        /// left operand. All members then combine in the same order and agree to the last bit.
        receive_buffer_is_left: bool,
    },
}

impl Step {
    /// Puts parts, given as the first and the one after the last, to the same of `Dest` of `peer`.
    /// If there are none, what is left of it is a signal.
    pub(crate) const fn put_to_dest(peer: Partner, from: Buffer, (first, end): (u32, u32)) -> Step {
        match end - first {
            0 => Step::Signal { peer },
            count => Step::Put { peer, from: from.at(first), to: Buffer::Dest.at(first), count },
        }
    }

    /// Combines parts of `from` of `peer` with those of an own operand, into the same of the own
    /// `Dest`, if there are any.
    pub(crate) fn get_combined(
        peer: u32,
        from: Buffer,
        (first, end): (u32, u32),
        with: Operand,
    ) -> Option<Step> {
        let (from, to) = (from.at(first), Buffer::Dest.at(first));
        (first < end).then(|| Step::Get { peer, from, to, count: end - first, with: Some(with) })
    }

    /// Returns the same step with its peer, where it has one, under another number.
    pub fn with_peer(self, number: impl Fn(u32) -> u32) -> Step {
        self.renumbered(number, |edge| edge)
    }

    /// Returns the same step, with messages between the two alone.
    pub(crate) fn in_pairs(self, number: impl Fn(u32) -> u32) -> Step {
        self.renumbered(number, |_| Edge::Pair)
    }

    fn renumbered(self, number: impl Fn(u32) -> u32, along: impl Fn(Edge) -> Edge) -> Step {
        let other = |peer: Partner| Partner { index: number(peer.index), edge: along(peer.edge) };
        match self {
            Step::Put { peer, from, to, count } => Step::Put { peer: other(peer), from, to, count },
            Step::Signal { peer } => Step::Signal { peer: other(peer) },
            Step::Wait { peer } => Step::Wait { peer: other(peer) },
            Step::Get { peer, from, to, count, with } => {
                Step::Get { peer: number(peer), from, to, count, with }
            }
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

    /// Returns the same step of a plan for the parts from part `first` on.
    pub(crate) fn parts_after(self, first: u32) -> Step {
        let moved = |span: Span| span.buffer.at(first + span.first);
        match self {
            Step::Put { peer, from, to, count } => {
                Step::Put { peer, from: moved(from), to: moved(to), count }
            }
            Step::Get { peer, from, to, count, with } => {
                Step::Get { peer, from: moved(from), to: moved(to), count, with }
            }
            Step::Copy { from, to, count } => {
                Step::Copy { from: moved(from), to: moved(to), count }
            }
            _ => self,
        }
    }
}
