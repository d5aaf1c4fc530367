//! Numbers of PEs, as types that cannot be swapped for each other.

use std::fmt;

/// A PE's number in the world: 0 to `shmem_n_pes() - 1`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Pe(pub u32);

/// A PE's number in a team: 0 to `shmem_team_n_pes(team) - 1`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TeamPe(pub u32);

impl Pe {
    /// Returns it as an index of a table with one entry per PE.
    #[inline]
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

impl TeamPe {
    /// Returns it as an index of a table with one entry per member.
    #[inline]
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

impl fmt::Display for Pe {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl fmt::Display for TeamPe {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}
