//! The static data of the node's other PEs, as this process sees them.

use super::program::{Statics, page};
use super::slots::StaticSlots;
use crate::core_files;
use crate::error::Error;
use crate::mapping::Mapping;
use rustix::fd::BorrowedFd;
use rustix::mm::ProtFlags;

/// The mapped slots of the node's PEs, of which some hold static data.
#[derive(Debug)]
pub(crate) struct Views {
    /// None where nobody's are shared memory.
    slots: Option<Mapping>,
    /// Where in them those of each PE begin.
    offsets: Vec<Option<usize>>,
    /// The address of the own ones.
    start: usize,
}

impl Views {
    /// Maps the static data of the PEs with numbers `0..at.len()` on this node, except for `own`;
    /// `at` says where each has them in `memory`, which comes with its size, if there.
    ///
    /// # Errors
    /// When the kernel refuses, or a PE's cannot be where it says.
    pub(crate) fn map(
        (memory, size): (BorrowedFd<'_>, u64),
        statics: &Statics,
        at: &[Option<u64>],
        own: u32,
    ) -> Result<Views, Error> {
        let (start, span) = (statics.start(), statics.nbytes() as u64);
        let is_other = |local: u32| local != own && span > 0;
        let at = (0..).zip(at).map(|(local, at)| (local, at.filter(|_| is_other(local))));
        let at: Vec<(u32, Option<u64>)> = at.collect();
        let none = Views { slots: None, offsets: vec![None; at.len()], start };
        if at.iter().all(|(_, at)| at.is_none()) {
            return Ok(none);
        }
        let slots = StaticSlots::of(statics).ok_or(Error::TooLarge)?;
        let offset = |(local, at): (u32, Option<u64>)| {
            let Some(at) = at else { return Ok(None) };
            // What is not in the file would be lost at the first access.
            let is_right = slots.hold(local, at, span)
                && at + span <= size
                && at.is_multiple_of(page() as u64);
            if is_right {
                Ok(Some((at - slots.first()) as usize))
            } else {
                Err(Error::Misplaced(local))
            }
        };
        let nbytes = slots.nbytes().checked_mul(at.len() as u64).ok_or(Error::TooLarge)? as usize;
        let offsets = at.into_iter().map(offset).collect::<Result<_, _>>()?;
        let protection = ProtFlags::READ | ProtFlags::WRITE;
        let mapped = Mapping::shared(memory, slots.first(), nbytes, protection)
            .map_err(|e| Error::Refused("mapping peers' static data", e))?;
        core_files::omit(mapped.start(), nbytes);
        Ok(Views { slots: Some(mapped), offsets, ..none })
    }

    /// What to add to the address of an own static variable to get that of the PE with this number.
    pub(crate) fn delta(&self, local: u32) -> Option<isize> {
        let offset = (*self.offsets.get(local as usize)?)?;
        let there = self.slots.as_ref()?.start().addr() + offset;
        Some(there.wrapping_sub(self.start) as isize)
    }
}
