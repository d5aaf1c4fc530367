//! The statuses of the PEs of this node, and the words that they wait for, in the node's memory.

use std::os::fd::OwnedFd;
use std::sync::Arc;

use rushmem_bootstrap::server::Statuses;
use rushmem_explain::place;
use rushmem_explain::status::{PLACE_BYTES, Status, Subject, Word};
use rushmem_explain::writes::{self, LastWrite, RING_BYTES};

/// The memory of this node, and where the statuses are in it.
#[derive(Clone, Debug)]
pub struct NodeStatuses {
    /// The memory.
    pub memory: Arc<OwnedFd>,
    /// Where the statuses are.
    pub places: Statuses,
}

impl NodeStatuses {
    /// The status of the PE with this local number.
    pub fn of(&self, local: u32) -> Option<Status> {
        let at = self.place(local)?;
        place::read(|nbytes| self.copy(nbytes, at))
    }

    /// The last writes of the PE with this local number, if it records them.
    pub fn writes(&self, local: u32) -> Option<Vec<LastWrite>> {
        let at = self.place(local)?.checked_add(PLACE_BYTES as u64)?;
        writes::read(|| self.copy(RING_BYTES, at))
    }

    fn place(&self, local: u32) -> Option<u64> {
        let stride = self.places.stride.checked_mul(local.into())?;
        self.places.at.checked_add(stride)
    }

    fn copy(&self, nbytes: usize, at: u64) -> Option<Vec<u8>> {
        let mut bytes = vec![0; nbytes];
        self.read(&mut bytes, at).then_some(bytes)
    }

    /// The values of the words of all waits, in their order.
    pub fn values(&self, status: &Status) -> Vec<Option<u64>> {
        let words = status.waits.iter().filter_map(|wait| match &wait.subject {
            Subject::Words(words) => Some(&words.words),
            _ => None,
        });
        words.flatten().map(|word| self.value(word)).collect()
    }

    fn value(&self, word: &Word) -> Option<u64> {
        let mut bytes = [0; 8];
        let nbytes = usize::from(word.nbytes);
        let is_read = self.read(bytes.get_mut(..nbytes)?, word.in_memfd?);
        // The low bytes come first on all machines that Rushmem supports.
        is_read.then(|| u64::from_le_bytes(bytes))
    }

    /// Whether all these bytes could be read.
    fn read(&self, bytes: &mut [u8], at: u64) -> bool {
        rustix::io::pread(&self.memory, &mut *bytes, at) == Ok(bytes.len())
    }
}
