//! The table of peers: a provider's entry for each PE, made at the first use of that PE from its
//! record in the job's directory. Also the checks of remote addresses.

pub(crate) mod directory;
pub mod loss;

use crate::{AmoWidth, Directory, Error, Pe, PeRecord, RemoteAddr, SharedPeMap};
use rushmem_system::lock::lock;
use std::sync::{Arc, Mutex, OnceLock};

/// The function that makes the entry of a PE from its record.
type Find<T> = Box<dyn Fn(Pe, PeRecord<'_>) -> Result<T, Error> + Send + Sync>;

/// A table with one entry for each PE of the job that was used.
///
/// An entry is made under a lock, so the function that makes it must not wait for another lock.
pub struct Peers<T> {
    entries: SharedPeMap<T>,
    /// The directory and the function that makes entries; set when the transport is connected.
    connected: OnceLock<(Arc<Directory>, Find<T>)>,
    /// The lock under which an entry is made.
    making: Mutex<()>,
}

impl<T: Send + Sync> Peers<T> {
    /// Returns a table without entries for a job of `n_pes` PEs.
    pub fn new(n_pes: u32) -> Peers<T> {
        let (connected, making) = (OnceLock::new(), Mutex::default());
        Peers {
            entries: SharedPeMap::new(n_pes as usize),
            connected,
            making,
        }
    }

    /// Returns the number of PEs of the job.
    pub fn n_pes(&self) -> usize {
        self.entries.n_pes()
    }

    /// Sets the directory, and the function `find` that makes the entry of a PE from its record
    /// there.
    ///
    /// # Errors
    /// If the peers are connected already.
    pub fn connect(
        &self,
        directory: Arc<Directory>,
        find: impl Fn(Pe, PeRecord<'_>) -> Result<T, Error> + Send + Sync + 'static,
    ) -> Result<(), Error> {
        let again = |_| Error::Invalid("the transport is connected already".to_owned());
        self.connected
            .set((directory, Box::new(find)))
            .map_err(again)
    }

    /// Returns the record of a PE; `None` if it has none, or before the transport is connected.
    pub fn record(&self, pe: Pe) -> Option<PeRecord<'_>> {
        self.connected
            .get()
            .and_then(|(directory, _)| directory.of(pe))
    }

    /// Returns the entry of a PE. Makes it at the first use.
    ///
    /// # Errors
    /// [`Error::Unreachable`] for a PE without a record, or before the transport is connected; the
    /// errors of the function that makes the entry.
    #[inline]
    pub fn get(&self, pe: Pe) -> Result<&T, Error> {
        match self.known(pe) {
            Some(peer) => Ok(peer),
            None => self.find(pe),
        }
    }

    /// Returns the entry of a PE, if the PE was used.
    #[inline]
    pub fn known(&self, pe: Pe) -> Option<&T> {
        self.entries.get(pe)
    }

    #[cold]
    #[inline(never)]
    fn find(&self, pe: Pe) -> Result<&T, Error> {
        let unreachable = || Error::Unreachable(pe);
        let (directory, find) = self.connected.get().ok_or_else(unreachable)?;
        let _making = lock(&self.making);
        if let Some(peer) = self.known(pe) {
            return Ok(peer);
        }
        let made = find(pe, directory.of(pe).ok_or_else(unreachable)?)?;
        rushmem_system::log::debug!(peer = pe.0, "a peer is used for the first time");
        self.entries
            .get_or_insert_with(pe, || made)
            .ok_or_else(unreachable)
    }

    /// Returns the PEs that were used, with their entries.
    pub fn iter(&self) -> impl Iterator<Item = (Pe, &T)> {
        self.entries.iter()
    }
}

/// Checks that `nbytes` bytes at an address lie within a segment of PE `pe` of `segment_bytes`
/// bytes.
///
/// # Errors
/// [`Error::Invalid`] when they do not.
#[inline]
pub fn check_range(pe: Pe, at: RemoteAddr, nbytes: usize, segment_bytes: u64) -> Result<(), Error> {
    match at.offset.checked_add(nbytes as u64) {
        Some(end) if end <= segment_bytes => Ok(()),
        _ => Err(beyond(pe, at, nbytes, segment_bytes)),
    }
}

#[cold]
#[inline(never)]
fn beyond(pe: Pe, at: RemoteAddr, nbytes: usize, segment_bytes: u64) -> Error {
    Error::Invalid(format!(
        "{nbytes} bytes at offset {} reach beyond the {segment_bytes} bytes of segment {:?} of PE {pe}",
        at.offset, at.segment
    ))
}

/// Checks that the word of an atomic operation is aligned.
///
/// # Errors
/// [`Error::Invalid`] when it is not.
#[inline]
pub fn check_aligned(pe: Pe, at: RemoteAddr, width: AmoWidth) -> Result<(), Error> {
    match at.offset.is_multiple_of(width.nbytes() as u64) {
        true => Ok(()),
        false => Err(misaligned(pe, at, width)),
    }
}

#[cold]
#[inline(never)]
fn misaligned(pe: Pe, at: RemoteAddr, width: AmoWidth) -> Error {
    Error::Invalid(format!(
        "offset {} of an atomic operation at PE {pe} is not a multiple of {}",
        at.offset,
        width.nbytes()
    ))
}

/// Returns the error for malformed data, such as a key, from PE `pe`.
pub fn damaged(pe: Pe, what: &str) -> Error {
    Error::Invalid(format!("the {what} of PE {pe} is damaged"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Segment;

    #[test]
    fn a_pe_is_known_once_it_is_used() {
        let peers = Peers::new(3);
        assert_eq!(
            peers.get(Pe(1)),
            Err(Error::Unreachable(Pe(1))),
            "not connected"
        );
        let records = [b"a", b"b"].map(|address| PeRecord {
            address,
            ..PeRecord::default()
        });
        let directory = Arc::new(Directory::new(Directory::encode(records.into_iter())));
        let made = Arc::new(Mutex::new(Vec::new()));
        let find = |made: Arc<Mutex<Vec<u32>>>| {
            move |pe: Pe, record: PeRecord<'_>| {
                lock(&made).push(pe.0);
                Ok(record.address.to_vec())
            }
        };
        peers
            .connect(Arc::clone(&directory), find(Arc::clone(&made)))
            .expect("the first time");
        assert!(
            peers.connect(directory, find(Arc::clone(&made))).is_err(),
            "again"
        );
        assert_eq!((peers.known(Pe(1)), peers.iter().count()), (None, 0));
        for _ in 0..2 {
            assert_eq!(peers.get(Pe(1)), Ok(&b"b".to_vec()));
        }
        assert_eq!(*lock(&made), [1], "once, and no other");
        assert!(peers.iter().eq([(Pe(1), &b"b".to_vec())]));
        assert_eq!(
            peers.get(Pe(2)),
            Err(Error::Unreachable(Pe(2))),
            "it published nothing"
        );
        assert_eq!(
            peers.get(Pe(3)),
            Err(Error::Unreachable(Pe(3))),
            "no such PE"
        );
    }

    #[test]
    fn what_cannot_be_used_is_tried_again() {
        let peers: Peers<u8> = Peers::new(1);
        let directory = Arc::new(Directory::new(Directory::encode(
            [PeRecord::default()].into_iter(),
        )));
        peers
            .connect(directory, |pe, _| Err(damaged(pe, "key")))
            .expect("the first time");
        for _ in 0..2 {
            assert!(matches!(peers.get(Pe(0)), Err(Error::Invalid(_))));
        }
        assert_eq!(peers.known(Pe(0)), None);
    }

    #[test]
    fn only_what_lies_within_passes() {
        let at = |offset| RemoteAddr {
            segment: Segment::Heap,
            offset,
        };
        assert_eq!(check_range(Pe(1), at(31), 1, 32), Ok(()));
        for (offset, nbytes) in [(31, 2), (u64::MAX, 2), (33, 0)] {
            let text = check_range(Pe(1), at(offset), nbytes, 32)
                .expect_err("beyond")
                .to_string();
            assert!(text.contains("32 bytes of segment Heap of PE 1"), "{text}");
        }
        assert_eq!(check_aligned(Pe(1), at(20), AmoWidth::Four), Ok(()));
        assert!(check_aligned(Pe(1), at(20), AmoWidth::Eight).is_err());
    }
}
