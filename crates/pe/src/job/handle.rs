//! The handles of teams, contexts and requests as C programs have them: numbers, which the tables
//! of `teams::registry`, `access::contexts` and `coll::requests` interpret.

/// `shmem_team_t`: a slot and a generation, so that the handle of a destroyed team is recognized.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(transparent)]
pub struct TeamHandle(pub usize);

impl TeamHandle {
    /// `SHMEM_TEAM_INVALID`
    pub const INVALID: TeamHandle = TeamHandle(0);
    /// `SHMEM_TEAM_WORLD`
    pub const WORLD: TeamHandle = TeamHandle(1);
    /// `SHMEM_TEAM_SHARED`
    pub const SHARED: TeamHandle = TeamHandle(2);
    /// `SHMEM_TEAM_NODE` of the extensions.
    pub const NODE: TeamHandle = TeamHandle(3);

    const SLOT_BITS: u32 = 11;

    /// Makes the handle of the team in this slot.
    pub fn new(slot: u16, generation: u64) -> TeamHandle {
        TeamHandle((generation as usize) << Self::SLOT_BITS | (slot as usize + 1))
    }

    /// Returns the slot of the team; `None` for `SHMEM_TEAM_INVALID`.
    pub fn slot(self) -> Option<usize> {
        (self.0 & ((1 << Self::SLOT_BITS) - 1)).checked_sub(1)
    }
}

/// `shmemx_req_t`: a number that no other request of the process has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(transparent)]
pub struct RequestHandle(pub usize);

impl RequestHandle {
    /// `SHMEMX_REQ_NULL`
    pub const NULL: RequestHandle = RequestHandle(0);
}

/// `shmem_ctx_t`. The lower half says how the context numbers PEs. The upper half has the index of
/// the context and a generation, so that the handle of a destroyed context is recognized.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(transparent)]
pub struct ContextHandle(pub usize);

const _: () = assert!(
    size_of::<usize>() == 8,
    "a handle has two halves of 32 bits"
);

impl ContextHandle {
    /// `SHMEM_CTX_INVALID`
    pub const INVALID: ContextHandle = ContextHandle(0);
    /// `SHMEM_CTX_DEFAULT`
    pub const DEFAULT: ContextHandle = ContextHandle(1);

    /// The lower half of the handle of a context that is known to number PEs as the world does.
    const WORLD: u32 = 1;
    /// The lower half of the handle of any other context. With `SHMEM_CHECK` these are all but the
    /// default one.
    const TEAM: u32 = 2;
    const INDEX_BITS: u32 = 17;

    /// Makes a handle. A generation is stored modulo 2^15.
    pub fn new(generation: u32, index: u32, is_of_world: bool) -> ContextHandle {
        let upper = generation << Self::INDEX_BITS | index;
        let lower = if is_of_world { Self::WORLD } else { Self::TEAM };
        ContextHandle((upper as usize) << 32 | lower as usize)
    }

    /// Returns true if the context is known to number PEs as the world does.
    #[inline(always)]
    pub fn is_of_world(self) -> bool {
        self.0 as u32 == Self::WORLD
    }

    /// Returns the index of the context: 0 for the default one, any number for an invalid handle.
    #[inline(always)]
    pub fn index(self) -> usize {
        self.0 >> 32 & ((1 << Self::INDEX_BITS) - 1)
    }

    /// Returns true if this is the handle of the context with this generation at its index.
    #[inline(always)]
    pub fn is_of_generation(self, generation: u32) -> bool {
        let index = self.index() as u32;
        self == Self::new(generation, index, true) || self == Self::new(generation, index, false)
    }
}
