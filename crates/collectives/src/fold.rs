//! Runs an algorithm for a power of two of members on a team of any size: each surplus member is
//! folded onto its neighbor, which then takes part with the contributions of both.
//!
//! Since neighbors are folded, the members at a run of positions in the core have the contributions
//! of a run of neighboring indices.

use crate::Partner;

/// The members that take part in the rounds: a power of two of them. Each of the first `extra` also
/// has the contribution of the next index.
#[derive(Clone, Copy)]
pub(crate) struct FoldCore {
    size: u32,
    extra: u32,
}

impl FoldCore {
    pub(crate) const fn of(n: u32) -> Self {
        let size = 1 << n.ilog2();
        Self {
            size,
            extra: n - size,
        }
    }

    pub(crate) const fn rounds(self) -> u8 {
        self.size.ilog2() as u8
    }

    /// Returns the partner of the member at a position in round `k`.
    pub(crate) const fn partner(self, position: u32, k: u8) -> Partner {
        Partner::exchange(self.member(position ^ (1 << k)), k)
    }

    /// Returns the position of `me` in the core; `None` if it is folded onto another member.
    pub(crate) const fn position(self, me: u32) -> Option<u32> {
        if me >= 2 * self.extra {
            Some(me - self.extra)
        } else if me.is_multiple_of(2) {
            Some(me / 2)
        } else {
            None
        }
    }

    /// Returns the member at a position of the core.
    pub(crate) const fn member(self, position: u32) -> u32 {
        if position < self.extra {
            2 * position
        } else {
            position + self.extra
        }
    }

    /// Returns the member that is folded onto `me`, if there is one.
    pub(crate) const fn folded_onto(self, me: u32) -> Option<u32> {
        if me < 2 * self.extra && me.is_multiple_of(2) {
            Some(me + 1)
        } else {
            None
        }
    }
}
