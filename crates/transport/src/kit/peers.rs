//! The table of connected PEs, with what a provider knows of each. An entry is set once and then read without a lock.
//!
//! This file must never know how a PE is reached.

use crate::{AmoWidth, Error, Pe, RemoteAddr};
use std::sync::OnceLock;

/// A table with one entry for each PE of the job.
pub struct Peers<T>(Box<[OnceLock<T>]>);

impl<T> Peers<T> {
    /// The table of a job of `n_pes` PEs, none of which is connected.
    pub fn new(n_pes: u32) -> Peers<T> {
        Peers((0..n_pes).map(|_| OnceLock::new()).collect())
    }

    /// How many PEs the job has.
    pub fn n_pes(&self) -> usize {
        self.0.len()
    }

    /// The entry of a PE.
    ///
    /// # Errors
    /// [`Error::Unreachable`] for one that is not connected.
    #[inline]
    pub fn get(&self, pe: Pe) -> Result<&T, Error> {
        self.0.get(pe.index()).and_then(OnceLock::get).ok_or(Error::Unreachable(pe))
    }

    /// Connects a PE.
    ///
    /// # Errors
    /// When there is no such PE, or when it is connected already.
    pub fn connect(&self, pe: Pe, peer: T) -> Result<(), Error> {
        let entry = self.0.get(pe.index()).ok_or(Error::Unreachable(pe))?;
        let again = |_| Error::Invalid(format!("PE {pe} is connected already"));
        entry.set(peer).map_err(again)
    }

    /// The connected PEs.
    pub fn iter(&self) -> impl Iterator<Item = (Pe, &T)> {
        let peers = self.0.iter().enumerate();
        peers.filter_map(|(pe, entry)| Some((Pe(pe as u32), entry.get()?)))
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
    fn a_pe_is_connected_once() {
        let peers = Peers::new(2);
        assert_eq!(peers.get(Pe(1)), Err(Error::Unreachable(Pe(1))));
        assert_eq!(peers.connect(Pe(1), 'a'), Ok(()));
        assert!(matches!(peers.connect(Pe(1), 'b'), Err(Error::Invalid(_))));
        assert_eq!(peers.connect(Pe(2), 'c'), Err(Error::Unreachable(Pe(2))));
        assert_eq!(peers.get(Pe(1)), Ok(&'a'));
        assert!(peers.iter().eq([(Pe(1), &'a')]));
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
