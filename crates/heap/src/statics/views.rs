//! Maps the static data of the node's other PEs into this process.

use super::program::{Statics, page};
use super::slots::StaticSlots;
use crate::error::{Error, Operation};
use crate::mapping::{Mapping, omit_from_core_files};
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::fs::{SealFlags, fcntl_get_seals, fstat};
use rustix::mm::ProtFlags;
use std::ffi::c_void;

/// The static data of a PE of the node in shared memory.
#[derive(Debug)]
pub struct PeerStatics {
    /// The offset in the PE's slot, or in `file`.
    pub in_slot: u64,
    /// The memfd of that PE alone; `None` if the static data are in its slot of the node's memory.
    pub file: Option<OwnedFd>,
}

/// The file that is a node's memory.
pub(crate) struct NodeFile<'a> {
    pub(crate) memory: BorrowedFd<'a>,
    /// Its size in bytes, which no process can make smaller.
    pub(crate) nbytes: u64,
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
    /// those whose static data are not in shared memory.
    ///
    /// # Errors
    /// When the kernel refuses, or a PE's static data cannot be at the location that it reports.
    pub(crate) fn map(
        node: NodeFile<'_>,
        statics: &Statics,
        peers: &[Option<PeerStatics>],
        own: u32,
    ) -> Result<Views, Error> {
        let mut views = Views {
            _mappings: Vec::new(),
            deltas: vec![None; peers.len()],
        };
        if statics.nbytes() == 0 {
            return Ok(views);
        }

        let mut slots = None;
        for (local, peer) in (0..).zip(peers) {
            let Some(peer) = peer else { continue };
            if local == own {
                continue;
            }

            let address = if let Some(file) = &peer.file {
                views.map_file(local, file, peer.in_slot, statics.nbytes())?
            } else {
                // One mapping for all slots, and only if a PE has its static data there.
                let slots = match &slots {
                    Some(mapped) => mapped,
                    None => slots.insert(views.map_slots(&node, statics, peers.len())?),
                };
                slots.address(local, peer.in_slot, statics.nbytes() as u64)?
            };
            views.deltas[local as usize] = Some(address.wrapping_sub(statics.start()) as isize);
        }
        Ok(views)
    }

    /// Maps the static data of a PE that has them in a file of its own, from offset `start` on.
    /// Returns their address.
    fn map_file(
        &mut self,
        local: u32,
        file: &OwnedFd,
        start: u64,
        nbytes: usize,
    ) -> Result<usize, Error> {
        match size_of_sealed(file) {
            Some(size) if is_within(start, nbytes as u64, size) => {}
            _ => return Err(Error::Misplaced(local)),
        }

        let mapped = self.add(file.as_fd(), start, nbytes)?;
        Ok(mapped.addr())
    }

    /// Maps the slots of all PEs of the node.
    fn map_slots(
        &mut self,
        node: &NodeFile<'_>,
        statics: &Statics,
        n_pes: usize,
    ) -> Result<MappedSlots, Error> {
        let slots = StaticSlots::of(statics).ok_or(Error::TooLarge)?;
        let nbytes = slots
            .nbytes()
            .checked_mul(n_pes as u64)
            .ok_or(Error::TooLarge)?;

        let mapped = self.add(node.memory, slots.first(), nbytes as usize)?;
        Ok(MappedSlots {
            slots,
            first: mapped.addr(),
            file_bytes: node.nbytes,
        })
    }

    /// Maps a part of a file. Returns its address.
    fn add(
        &mut self,
        file: BorrowedFd<'_>,
        start: u64,
        nbytes: usize,
    ) -> Result<*mut c_void, Error> {
        let mapped = Mapping::shared(file, start, nbytes, ProtFlags::READ | ProtFlags::WRITE)
            .map_err(|e| Error::Refused(Operation::MappingStatics, e))?;
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

/// The slots of all PEs of the node, mapped into this process.
struct MappedSlots {
    slots: StaticSlots,
    /// The address of the first slot.
    first: usize,
    file_bytes: u64,
}

impl MappedSlots {
    /// Returns the address of the static data of the PE with this number, which has them at offset
    /// `in_slot` of its slot.
    fn address(&self, local: u32, in_slot: u64, nbytes: u64) -> Result<usize, Error> {
        let start = self
            .slots
            .start(local)
            .and_then(|slot| slot.checked_add(in_slot))
            .filter(|&start| self.slots.contains(local, start, nbytes))
            .filter(|&start| is_within(start, nbytes, self.file_bytes))
            .ok_or(Error::Misplaced(local))?;
        Ok(self
            .first
            .wrapping_add((start - self.slots.first()) as usize))
    }
}

/// Returns true if static data at this offset lie within a file of `file_bytes` bytes and begin at
/// a page. An access beyond the end of the file would end this process by SIGBUS.
fn is_within(start: u64, nbytes: u64, file_bytes: u64) -> bool {
    start.is_multiple_of(page() as u64)
        && start
            .checked_add(nbytes)
            .is_some_and(|end| end <= file_bytes)
}

/// Returns the size of a file that is sealed, so that no process can make it shorter.
fn size_of_sealed(file: &OwnedFd) -> Option<u64> {
    let seals = fcntl_get_seals(file).ok()?;
    if !seals.contains(SealFlags::SHRINK) {
        return None;
    }
    u64::try_from(fstat(file).ok()?.st_size).ok()
}
