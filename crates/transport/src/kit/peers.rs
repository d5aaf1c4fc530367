//! The table of PEs, with what a provider keeps of each that was used. An entry is made at the first use and then read without
//! a lock; before, a PE takes no memory here.
//!
//! This file must never know how a PE is reached.
#![allow(unsafe_code)]

use crate::kit::lock::lock;
use crate::{AmoWidth, Directory, Error, Pe, PeRecord, RemoteAddr};
use std::alloc::{Layout, alloc_zeroed, dealloc, handle_alloc_error};
use std::ptr::{NonNull, null_mut};
use std::sync::atomic::{AtomicPtr, Ordering};
use std::sync::{Arc, Mutex, OnceLock};

/// Makes the entry of a PE from what it told.
type Find<T> = Box<dyn Fn(Pe, PeRecord<'_>) -> Result<T, Error> + Send + Sync>;

/// A table with one entry for each PE of the job.
///
/// Making an entry takes a lock, so what makes it must not wait for another lock.
pub struct Peers<T> {
    entries: Entries<T>,
    /// Set when the transport is connected.
    connected: OnceLock<(Arc<Directory>, Find<T>)>,
    /// Held while an entry is made.
    making: Mutex<()>,
}

impl<T: Send + Sync> Peers<T> {
    /// The table of a job of `n_pes` PEs, none of which is known.
    pub fn new(n_pes: u32) -> Peers<T> {
        let (connected, making) = (OnceLock::new(), Mutex::default());
        Peers { entries: Entries::new(n_pes as usize), connected, making }
    }

    /// How many PEs the job has.
    pub fn n_pes(&self) -> usize {
        self.entries.n
    }

    /// From now on `find` makes an entry at its first use, from what the directory has of the PE.
    ///
    /// # Errors
    /// When that was said before.
    pub fn connect(
        &self,
        directory: Arc<Directory>,
        find: impl Fn(Pe, PeRecord<'_>) -> Result<T, Error> + Send + Sync + 'static,
    ) -> Result<(), Error> {
        let again = |_| Error::Invalid("the transport is connected already".to_owned());
        self.connected.set((directory, Box::new(find))).map_err(again)
    }

    /// What a PE told of itself.
    pub fn record(&self, pe: Pe) -> Option<PeRecord<'_>> {
        self.connected.get().and_then(|(directory, _)| directory.of(pe))
    }

    /// The entry of a PE, which is made if this is its first use.
    ///
    /// # Errors
    /// [`Error::Unreachable`] for a PE that told nothing, or before the transport is connected; those of whoever makes entries.
    #[inline]
    pub fn get(&self, pe: Pe) -> Result<&T, Error> {
        match self.known(pe) {
            Some(peer) => Ok(peer),
            None => self.find(pe),
        }
    }

    /// The entry of a PE that was used.
    #[inline]
    pub fn known(&self, pe: Pe) -> Option<&T> {
        let entry = self.entries.get(pe.index())?.load(Ordering::Acquire);
        // SAFETY: null, or a box that `find` made and that lives as long as the table.
        unsafe { entry.as_ref() }
    }

    #[cold]
    #[inline(never)]
    fn find(&self, pe: Pe) -> Result<&T, Error> {
        let unreachable = || Error::Unreachable(pe);
        let (directory, find) = self.connected.get().ok_or_else(unreachable)?;
        let entry = self.entries.get(pe.index()).ok_or_else(unreachable)?;
        let _making = lock(&self.making);
        if let Some(peer) = self.known(pe) {
            return Ok(peer);
        }
        let made = find(pe, directory.of(pe).ok_or_else(unreachable)?)?;
        let made = Box::into_raw(Box::new(made));
        entry.store(made, Ordering::Release);
        // SAFETY: just made; it lives as long as the table.
        Ok(unsafe { &*made })
    }

    /// The PEs that were used.
    pub fn iter(&self) -> impl Iterator<Item = (Pe, &T)> {
        (0..self.n_pes() as u32).map(Pe).filter_map(|pe| Some((pe, self.known(pe)?)))
    }
}

/// Pointers of the table, all null at first, in memory of the kernel's that takes none until it is written.
struct Entries<T> {
    first: NonNull<AtomicPtr<T>>,
    n: usize,
}

// SAFETY: it owns what its pointers lead to, which may be sent and shared.
unsafe impl<T: Send + Sync> Send for Entries<T> {}
// SAFETY: as above.
unsafe impl<T: Send + Sync> Sync for Entries<T> {}

impl<T> Entries<T> {
    fn layout(n: usize) -> Layout {
        Layout::array::<AtomicPtr<T>>(n.max(1)).expect("a job's PEs are below 2^32")
    }

    fn new(n: usize) -> Entries<T> {
        let layout = Self::layout(n);
        // SAFETY: it has at least the size of one pointer. Zeros are null pointers.
        let first = unsafe { alloc_zeroed(layout) }.cast();
        let first = NonNull::new(first).unwrap_or_else(|| handle_alloc_error(layout));
        Entries { first, n }
    }

    #[inline]
    fn get(&self, index: usize) -> Option<&AtomicPtr<T>> {
        if index >= self.n {
            return None;
        }
        // SAFETY: one of the `n` pointers.
        let entry = unsafe { self.first.add(index) };
        // SAFETY: zeroed when it was allocated, and alive as long as this.
        Some(unsafe { entry.as_ref() })
    }
}

impl<T> Drop for Entries<T> {
    fn drop(&mut self) {
        for index in 0..self.n {
            let entry = self.get(index).map_or(null_mut(), |entry| entry.load(Ordering::Acquire));
            if !entry.is_null() {
                // SAFETY: a box of `find`, whose references have ended with the borrow of the table.
                drop(unsafe { Box::from_raw(entry) });
            }
        }
        // SAFETY: allocated by `new` with this layout, once.
        unsafe { dealloc(self.first.as_ptr().cast(), Self::layout(self.n)) };
    }
}

/// Requires that `nbytes` bytes at an address lie within a segment of PE `pe` that has `segment_bytes`.
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

/// Requires that the word of an atomic operation is aligned.
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

/// The error for an address or a key of PE `pe` that no PE of this build would send.
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
        assert_eq!(peers.get(Pe(1)), Err(Error::Unreachable(Pe(1))), "not connected");
        let records = [b"a", b"b"].map(|address| PeRecord { address, ..PeRecord::default() });
        let directory = Arc::new(Directory::new(Directory::encode(records.into_iter())));
        let made = Arc::new(Mutex::new(Vec::new()));
        let find = |made: Arc<Mutex<Vec<u32>>>| {
            move |pe: Pe, record: PeRecord<'_>| {
                lock(&made).push(pe.0);
                Ok(record.address.to_vec())
            }
        };
        peers.connect(Arc::clone(&directory), find(Arc::clone(&made))).expect("the first time");
        assert!(peers.connect(directory, find(Arc::clone(&made))).is_err(), "again");
        assert_eq!((peers.known(Pe(1)), peers.iter().count()), (None, 0));
        for _ in 0..2 {
            assert_eq!(peers.get(Pe(1)), Ok(&b"b".to_vec()));
        }
        assert_eq!(*lock(&made), [1], "once, and no other");
        assert!(peers.iter().eq([(Pe(1), &b"b".to_vec())]));
        assert_eq!(peers.get(Pe(2)), Err(Error::Unreachable(Pe(2))), "it told nothing");
        assert_eq!(peers.get(Pe(3)), Err(Error::Unreachable(Pe(3))), "no such PE");
    }

    #[test]
    fn what_cannot_be_used_is_tried_again() {
        let peers: Peers<u8> = Peers::new(1);
        let directory =
            Arc::new(Directory::new(Directory::encode([PeRecord::default()].into_iter())));
        peers.connect(directory, |pe, _| Err(damaged(pe, "key"))).expect("the first time");
        for _ in 0..2 {
            assert!(matches!(peers.get(Pe(0)), Err(Error::Invalid(_))));
        }
        assert_eq!(peers.known(Pe(0)), None);
    }

    #[test]
    fn only_what_lies_within_passes() {
        let at = |offset| RemoteAddr { segment: Segment::Heap, offset };
        assert_eq!(check_range(Pe(1), at(31), 1, 32), Ok(()));
        for (offset, nbytes) in [(31, 2), (u64::MAX, 2), (33, 0)] {
            let text = check_range(Pe(1), at(offset), nbytes, 32).expect_err("beyond").to_string();
            assert!(text.contains("32 bytes of segment Heap of PE 1"), "{text}");
        }
        assert_eq!(check_aligned(Pe(1), at(20), AmoWidth::Four), Ok(()));
        assert!(check_aligned(Pe(1), at(20), AmoWidth::Eight).is_err());
    }
}
