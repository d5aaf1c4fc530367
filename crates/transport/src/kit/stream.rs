//! The description that a request gives of itself: its stream, its place there, and the atomic
//! operation that it carries.

use crate::{AmoOp, AmoRequest, AmoWidth, OldValue, Pe, RemoteAddr};

/// No origin has more requests of a stream in flight.
pub const MAX_IN_FLIGHT: u32 = 1 << 16;
/// A PE has fewer origins.
pub const MAX_ORIGINS: u32 = 1 << 16;

/// Returns true if a count has reached another one.
pub(super) fn has_reached(count: u32, other: u32) -> bool {
    count.wrapping_sub(other) as i32 >= 0
}

/// The identity of a stream at its target.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Stream {
    /// The PE that issues it.
    pub pe: Pe,
    /// The origin, by its number on that PE.
    pub origin: u32,
}

/// The place of a request in its stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StreamPosition {
    /// Its number; the first is 1.
    pub number: u32,
    /// The number of requests that are carried out before it.
    pub after: u32,
    /// The target acknowledges it by a message once it is carried out.
    pub asks: bool,
}

/// An atomic operation, as a request carries it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Update {
    /// The operation.
    pub op: AmoOp,
    /// The width of the word.
    pub width: AmoWidth,
    /// The word.
    pub dest: RemoteAddr,
    /// The operand.
    pub operand: u64,
    /// The value with which the word is compared.
    pub condition: u64,
}

impl Update {
    /// Returns the update that an operation makes.
    pub fn of(request: &AmoRequest) -> Update {
        let &AmoRequest { dest, width, op, operand, condition, .. } = request;
        Update { op, width, dest, operand, condition }
    }

    /// Returns the operation, at its target.
    pub fn at_target(self) -> AmoRequest {
        let Update { op, width, dest, operand, condition } = self;
        AmoRequest { dest, width, op, operand, condition, old: OldValue::Returned }
    }
}
