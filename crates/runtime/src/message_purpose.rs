//! The purposes for which PEs send each other messages in mailboxes.

/// The purpose of a message. Its number is the first word of the digest that becomes the tag of the
/// message, so that messages for different purposes have different tags.
#[derive(Clone, Copy)]
pub(crate) enum MessagePurpose {
    /// The agreement of `shmem_team_split_strided`.
    SplitStrided = 1,
    /// The agreement of `shmem_team_split_2d`.
    Split2d = 2,
    /// The agreement of the first call on an active set.
    ActiveSet = 3,
    /// The agreement of `shmemx_team_split_strided`, which only the members of the new team call.
    SplitByMembers = 4,
    /// The agreement of `shmemx_team_split_2d` and `shmemx_team_split_3d`.
    SplitGrid = 5,
    /// The agreement of `shmemx_team_split`.
    SplitColor = 6,
    /// The comparison of collectives with `SHMEM_CHECK`.
    SameCollective = 7,
    /// The offsets and sizes of `shmemx_alltoallv`.
    Alltoallv = 11,
}

impl MessagePurpose {
    /// Returns the number for a digest.
    pub(crate) fn word(self) -> u64 {
        self as u64
    }
}
