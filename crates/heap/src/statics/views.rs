//! Maps the static data of the node's other PEs into this process.

use super::program::{Statics, page};
use super::slots::StaticSlots;
use crate::error::Error;
use crate::mapping::{Mapping, omit_from_core_files};
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::fs::{SealFlags, fcntl_get_seals, fstat};
use rustix::mm::ProtFlags;

/// The static data of a PE of the node in shared memory.
#[derive(Debug)]
pub struct PeerStatics {
    /// The offset in the PE's slot, or in `file`.
    pub in_slot: u64,
    /// The memfd of that PE alone; `None` if the static data are in its slot of the node's memory.
    pub file: Option<OwnedFd>,
}

/// The mapped static data of the node's PEs.
#[derive(Debug)]
pub(crate) struct Views {
    /// The mappings of the slots in the node's memory, if a PE has one, and of each PE's own file.
    _mappings: Vec<Mapping>,
    /// The difference to the own addresses, for each PE whose static data are mapped.
    deltas: Vec<Option<isize>>,
}

impl Views {
    /// Maps the static data of the PEs with numbers `0..peers.len()` on this node, except `own` and
    /// those whose static data are not in shared memory. `memory` is the node's memory, with its
    /// size in bytes.
    ///
    /// # Errors
    /// When the kernel refuses, or a PE's static data cannot be at the location that it reports.
    pub(crate) fn map(
        (memory, size): (BorrowedFd<'_>, u64),
        statics: &Statics,
        peers: &[Option<PeerStatics>],
        own: u32,
    ) -> Result<Views, Error> {
        let mut views = Views {
            _mappings: Vec::new(),
            deltas: vec![None; peers.len()],
        };
        let (start, nbytes) = (statics.start(), statics.nbytes() as u64);
        let others = (0..)
            .zip(peers)
            .filter(|&(local, _)| local != own && nbytes > 0)
            .filter_map(|(local, peer)| Some((local, peer.as_ref()?)));
        let mut slots: Option<(StaticSlots, *mut std::ffi::c_void)> = None;
        for (local, peer) in others {
            // Checked here, since an access beyond the end of the file would end this process by
            // SIGBUS.
            let is_within = |at: u64, size: u64| {
                at.is_multiple_of(page() as u64)
                    && at.checked_add(nbytes).is_some_and(|end| end <= size)
            };
            let there = if let Some(file) = &peer.file {
                let size = size_of_sealed(file).filter(|&size| is_within(peer.in_slot, size));
                size.ok_or(Error::Misplaced(local))?;
                views.add(file.as_fd(), peer.in_slot, nbytes as usize)?
            } else {
                let (slots, first) = match slots {
                    Some(mapped) => mapped,
                    None => {
                        let found = StaticSlots::of(statics).ok_or(Error::TooLarge)?;
                        let nbytes = found.nbytes().checked_mul(peers.len() as u64);
                        let nbytes = nbytes.ok_or(Error::TooLarge)? as usize;
                        *slots.insert((found, views.add(memory, found.first(), nbytes)?))
                    }
                };
                let at = slots
                    .start(local)
                    .and_then(|slot| slot.checked_add(peer.in_slot));
                let is_right = |&at: &u64| slots.contains(local, at, nbytes) && is_within(at, size);
                let at = at.filter(is_right).ok_or(Error::Misplaced(local))?;
                first.wrapping_byte_add((at - slots.first()) as usize)
            };
            views.deltas[local as usize] = Some(there.addr().wrapping_sub(start) as isize);
        }
        Ok(views)
    }

    /// Maps a part of a file. Returns its address.
    fn add(
        &mut self,
        file: BorrowedFd<'_>,
        at: u64,
        nbytes: usize,
    ) -> Result<*mut std::ffi::c_void, Error> {
        let mapped = Mapping::shared(file, at, nbytes, ProtFlags::READ | ProtFlags::WRITE)
            .map_err(|e| Error::Refused("mapping peers' static data", e))?;
        let start = mapped.start();
        omit_from_core_files(start, nbytes);
        self._mappings.push(mapped);
        Ok(start)
    }

    /// Returns the number that, added to the address of a static variable of this PE, gives the
    /// address of the variable of the PE with this number; `None` if that is not mapped.
    pub(crate) fn delta(&self, local: u32) -> Option<isize> {
        *self.deltas.get(local as usize)?
    }
}

/// Returns the size of a file that is sealed, so that no process can make it shorter.
fn size_of_sealed(file: &OwnedFd) -> Option<u64> {
    let is_sealed = fcntl_get_seals(file).is_ok_and(|seals| seals.contains(SealFlags::SHRINK));
    u64::try_from(fstat(file).ok()?.st_size)
        .ok()
        .filter(|_| is_sealed)
}
