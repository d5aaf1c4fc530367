//! The steps of plans, and the buffers that they read and write.

use crate::edge::{Edge, Partner};
use std::ops::Range;

/// A buffer that a step reads or writes. Every member has one of each.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Buffer {
    /// The caller's source array. Peers read it in [`Step::Get`] and [`DirectWork`] alone.
    Source,
    /// The caller's destination array. OpenSHMEM requires that the arrays of all members are ready
    /// before any member calls (1.6, collective routines), so a peer may write to it at once. A
    /// plan writes to a part again only after the first write, and all reads of it, are complete.
    Dest,
    /// Private memory of the member. It has the partial result as one part, the whole vector, or in
    /// an all-to-all the blocks that are sent together.
    Accumulator,
    /// The receive buffer of this number, in the internal area. One peer writes to it once, and the
    /// data are read once: see [`receive_buffer`](crate::receive_buffer).
    Receive(u8),
}

impl Buffer {
    /// Returns the run of parts of this buffer that starts with part `first`.
    pub const fn at(self, first: u32) -> Span {
        Span {
            buffer: self,
            first,
        }
    }
}

/// A run of consecutive parts of a buffer. The executor defines what a part is (an element, a PE's
/// block, the whole vector). The sizes of parts may differ, and be zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Span {
    /// The buffer.
    pub buffer: Buffer,
    /// The first part.
    pub first: u32,
}

/// The operand of a combination that is in this member's memory; the other operand is a peer's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Operand {
    /// The own buffer that contains the operand, at the same parts as those of the destination to
    /// which the result is written.
    pub buffer: Buffer,
    /// True if this is the contribution of the lower indices, and so the left operand.
    pub is_left: bool,
}

/// The destinations of a direct reduction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Receivers {
    /// `Dest` of all members, at the parts that were combined.
    All,
    /// `Dest` of one member, from a part on.
    One {
        /// The member.
        member: u32,
        /// The first part.
        first: u32,
    },
    /// `Dest` of each member, at part 0: the member of index `k` gets part `k` of those that were
    /// combined.
    Each,
}

/// The parts of `Source` that [`Step::PutToOthers`] copies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SentParts {
    /// Part 0, for all receivers.
    First,
    /// Part `k` for member `k`.
    OfReceiver,
}

impl SentParts {
    /// Returns the part that member `receiver` gets.
    pub const fn of(self, receiver: u32) -> u32 {
        match self {
            Self::First => 0,
            Self::OfReceiver => receiver,
        }
    }
}

/// Work on the arrays of all members, which one of them does. No member is signaled.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum DirectWork {
    /// Combine `count` parts of `Source` of all members, in the order of the indices, and store the
    /// result in `Dest` of the receivers.
    Reduce {
        /// The first part.
        first: u32,
        /// The number of parts, at least 1.
        count: u32,
        /// Where the result is stored.
        to: Receivers,
    },
    /// Combine `count` parts of `Source` of the members in the order of the indices, and store the
    /// combination of the members up to each member in the same parts of its `Dest`.
    Scan {
        /// The first part.
        first: u32,
        /// The number of parts, at least 1.
        count: u32,
        /// True if the combination for a member leaves out its own contribution. Then nothing is
        /// stored at member 0.
        exclusive: bool,
    },
}

/// One step of a plan.
///
/// On each edge from one member to another messages are matched in order: the k-th `Put` or
/// `Signal` of `a` on an edge to `b` is matched with the k-th `Wait` of `b` on that edge. On
/// [`Edge::Any`](crate::Edge::Any) a `Wait` is matched with a message of any member, so the data of
/// a given member are certain to have arrived only after the last `Wait`. The signal of a `Put` is
/// never visible before its data. Every plan waits for as many signals as its peers' plans send, so
/// that plans can follow one another on the same counters without an agreement between them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Step {
    /// Copy `count` parts of the own `from` to `to` of `peer`, then signal the peer. An accumulator
    /// may change as soon as the step is done; parts of `Source` and `Dest` that were put do not
    /// change until the plan ends.
    Put {
        /// The receiver.
        peer: Partner,
        /// The position of the parts here.
        from: Span,
        /// Their position at the receiver.
        to: Span,
        /// The number of parts, at least 1.
        count: u32,
    },
    /// Copy `count` parts of `Source` to `Dest` of another member. This step signals no member: the
    /// data are complete when it ends.
    PutDirect {
        /// The receiver.
        peer: u32,
        /// The position of the parts here.
        from: Span,
        /// Their position at the receiver.
        to: Span,
        /// The number of parts, at least 1.
        count: u32,
    },
    /// Copy a part of `Source` to part `to` of `Dest` of each other member. Like
    /// [`PutDirect`](Step::PutDirect), this step signals no member. It replaces a step for each of
    /// them, which would take longer than a short copy.
    PutToOthers {
        /// The parts that are copied.
        sent: SentParts,
        /// The position of the part at each receiver.
        to: u32,
    },
    /// Signal `peer` without data.
    Signal {
        /// The receiver.
        peer: Partner,
    },
    /// Wait for the next signal of `peer`.
    Wait {
        /// The sender.
        peer: Partner,
    },
    /// Copy `count` parts of `Source` or `Dest` of another member to the own `to`, or combine them
    /// with an own operand and store the result in `to`. This step signals no member. Before it,
    /// the plan waits for a signal that the parts are complete. After it, the plan signals their
    /// owner, which waits for that before it ends the plan or writes to the parts.
    Get {
        /// The owner of the parts.
        peer: u32,
        /// The position of the parts at their owner.
        from: Span,
        /// Their position here.
        to: Span,
        /// The number of parts, at least 1.
        count: u32,
        /// The operand that they are combined with, if there is one.
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
    /// Increment the counter of member `owner`, which may be this one. The last of all members to
    /// do so does `work`, if there is any, and then releases all of them.
    Arrive {
        /// The owner of the counter.
        owner: u32,
        /// The work for all members, the same on each.
        work: Option<DirectWork>,
    },
    /// Store the accumulator beside the counter of member `owner`, and increment the counter as
    /// [`Step::Arrive`] does. The last of all members combines the stored contributions, in the
    /// order of the indices, before it releases the members.
    Contribute {
        /// The owner of the counter.
        owner: u32,
    },
    /// Copy the combined contributions to the accumulator, after the counter of member `owner` has
    /// released the members.
    TakeCombined {
        /// The owner of the counter.
        owner: u32,
    },
    /// Wait until the counter of member `owner` releases the members.
    AwaitRelease {
        /// The owner of the counter.
        owner: u32,
    },
    /// Do this work on the arrays of all members.
    Direct(DirectWork),
    /// Combine the whole accumulator with a receive buffer, into the accumulator.
    Reduce {
        /// The number of the receive buffer.
        receive_buffer: u8,
        /// True if the receive buffer holds the contribution of the lower indices, and so is the
        /// left operand. All members then combine in the same order and agree to the last bit.
        receive_buffer_is_left: bool,
    },
}

impl Step {
    /// Returns the step that puts `parts` of the own `from` to the same parts of `Dest` of `peer`.
    /// If there are none, the step only signals.
    pub(crate) const fn put_to_dest(peer: Partner, from: Buffer, parts: Range<u32>) -> Step {
        match parts.end - parts.start {
            0 => Step::Signal { peer },
            count => Step::Put {
                peer,
                from: from.at(parts.start),
                to: Buffer::Dest.at(parts.start),
                count,
            },
        }
    }

    /// Returns the step that combines `parts` of `from` of `peer` with the same parts of an own
    /// operand, and stores the result in the same parts of the own `Dest`. `None` if there are no
    /// parts.
    pub(crate) fn get_combined(
        peer: u32,
        from: Buffer,
        parts: Range<u32>,
        with: Operand,
    ) -> Option<Step> {
        if parts.is_empty() {
            return None;
        }
        Some(Step::Get {
            peer,
            from: from.at(parts.start),
            to: Buffer::Dest.at(parts.start),
            count: parts.end - parts.start,
            with: Some(with),
        })
    }

    /// Returns the step with the index of its peer, or of the owner of its counter, replaced by the
    /// result of `number` for that index. Returns a step that has neither unchanged.
    pub fn with_peer(self, number: impl Fn(u32) -> u32) -> Step {
        self.renumbered(number, |edge| edge)
    }

    /// Returns the step with the index replaced as by [`with_peer`](Step::with_peer), and the edge
    /// of a message by [`Edge::Pair`].
    pub(crate) fn in_pairs(self, number: impl Fn(u32) -> u32) -> Step {
        self.renumbered(number, |_| Edge::Pair)
    }

    fn renumbered(self, number: impl Fn(u32) -> u32, along: impl Fn(Edge) -> Edge) -> Step {
        let other = |peer: Partner| Partner {
            index: number(peer.index),
            edge: along(peer.edge),
        };

        match self {
            Step::Put {
                peer,
                from,
                to,
                count,
            } => Step::Put {
                peer: other(peer),
                from,
                to,
                count,
            },
            Step::PutDirect {
                peer,
                from,
                to,
                count,
            } => Step::PutDirect {
                peer: number(peer),
                from,
                to,
                count,
            },
            Step::Signal { peer } => Step::Signal { peer: other(peer) },
            Step::Wait { peer } => Step::Wait { peer: other(peer) },
            Step::Get {
                peer,
                from,
                to,
                count,
                with,
            } => Step::Get {
                peer: number(peer),
                from,
                to,
                count,
                with,
            },
            Step::Arrive { owner, work } => Step::Arrive {
                owner: number(owner),
                work,
            },
            Step::AwaitRelease { owner } => Step::AwaitRelease {
                owner: number(owner),
            },
            Step::Contribute { owner } => Step::Contribute {
                owner: number(owner),
            },
            Step::TakeCombined { owner } => Step::TakeCombined {
                owner: number(owner),
            },
            Step::Copy { .. }
            | Step::PutToOthers { .. }
            | Step::Reduce { .. }
            | Step::Direct(_) => self,
        }
    }

    /// Returns a put, get or copy with `first` added to the numbers of its parts, or another step
    /// unchanged.
    pub(crate) fn parts_after(self, first: u32) -> Step {
        let moved = |span: Span| span.buffer.at(first + span.first);
        match self {
            Step::Put {
                peer,
                from,
                to,
                count,
            } => Step::Put {
                peer,
                from: moved(from),
                to: moved(to),
                count,
            },
            Step::Get {
                peer,
                from,
                to,
                count,
                with,
            } => Step::Get {
                peer,
                from: moved(from),
                to: moved(to),
                count,
                with,
            },
            Step::Copy { from, to, count } => Step::Copy {
                from: moved(from),
                to: moved(to),
                count,
            },
            _ => self,
        }
    }
}
