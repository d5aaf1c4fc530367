//! The unique id of a job whose processes no launcher has started.

use rushmem_runtime::start;
use std::fmt;
use std::io;
use std::str::FromStr;

/// The unique id of a job (`shmemx_uniqueid_t`, an extension after NVSHMEM's and rocSHMEM's). It is
/// a printable text, which one process makes and passes to the others: in a file, a message, or an
/// environment variable. A process that has the id can join the job, so it is as secret as the
/// job's data.
///
/// ```no_run
/// use shmem::{Init, UniqueId};
///
/// // The process with rank 0 makes the id, and starts the other one.
/// let id: UniqueId = match std::env::args().nth(1) {
///     Some(text) => text.parse().expect("an id"),
///     None => UniqueId::new().expect("an address to listen at"),
/// };
/// let rank = usize::from(std::env::args().len() > 1);
/// if rank == 0 {
///     let this = std::env::current_exe().expect("a program");
///     std::process::Command::new(this).arg(id.to_string()).spawn().expect("it starts");
/// }
/// let shmem = Init::new().by_id(&id, rank, 2).start().expect("the first initialization");
/// assert_eq!((shmem.my_pe(), shmem.n_pes()), (rank, 2));
/// ```
#[derive(Clone, PartialEq, Eq)]
pub struct UniqueId([u8; start::UNIQUE_ID_BYTES]);

impl UniqueId {
    /// Makes an id (`shmemx_get_uniqueid`), for [`Init::by_id`](crate::Init::by_id). A thread of
    /// this process serves the processes that join the job, so this process must live as long as
    /// the job; it need not be one of its PEs.
    ///
    /// ```
    /// let id = shmem::UniqueId::new()?;
    /// let text = id.to_string();              // for the other processes
    /// assert_eq!(text.parse(), Ok(id));
    /// # Ok::<(), std::io::Error>(())
    /// ```
    ///
    /// # Errors
    /// If this process cannot listen at any address.
    #[doc(alias = "shmemx_get_uniqueid")]
    pub fn new() -> io::Result<UniqueId> {
        let id = start::unique_id(call!("UniqueId::new"));
        id.map(UniqueId).map_err(io::Error::other)
    }

    pub(crate) fn bytes(&self) -> &[u8; start::UNIQUE_ID_BYTES] {
        &self.0
    }
}

impl fmt::Display for UniqueId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(String::from_utf8_lossy(&self.0).trim_end_matches('\0'))
    }
}

/// Formats the type only, since the text is a secret.
impl fmt::Debug for UniqueId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("UniqueId")
    }
}

/// The error for a text that is too long for a unique id.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UniqueIdError(());

impl fmt::Display for UniqueIdError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("this text is too long for the unique id of a job")
    }
}

impl std::error::Error for UniqueIdError {}

impl FromStr for UniqueId {
    type Err = UniqueIdError;

    /// Returns the id with this text. Whether it is the id of a job is checked by
    /// [`Init::by_id`](crate::Init::by_id) only.
    fn from_str(text: &str) -> Result<UniqueId, UniqueIdError> {
        let mut bytes = [0; start::UNIQUE_ID_BYTES];
        let room = bytes.get_mut(..text.len()).ok_or(UniqueIdError(()))?;
        room.copy_from_slice(text.as_bytes());
        Ok(UniqueId(bytes))
    }
}

/// A job with a unique id, and the place of this process in it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Place<'a> {
    pub(crate) id: &'a UniqueId,
    pub(crate) rank: usize,
    pub(crate) n_ranks: usize,
}
