//! The registrations of a domain by their descriptors, for checking the local buffers of
//! operations.

use crate::segment::ANY_ENDPOINT;
use parking_lot::Mutex;
use std::collections::HashMap;

pub(crate) struct LocalRegion {
    pub(crate) base: u64,
    pub(crate) nbytes: u64,
    pub(crate) access: u64,
    pub(crate) endpoint: u32,
    pub(crate) is_enabled: bool,
    /// The number of operations that use it.
    pub(crate) uses: usize,
}

/// The use of a registration by an operation.
pub(crate) struct LocalUse {
    pub(crate) base: u64,
    pub(crate) nbytes: usize,
    pub(crate) access: u64,
    pub(crate) endpoint: u32,
}

impl LocalRegion {
    fn permits(&self, by: &LocalUse) -> bool {
        let end = by.base + by.nbytes as u64;
        self.is_enabled
            && self.base <= by.base
            && end <= self.base + self.nbytes
            && self.access & by.access == by.access
            && (self.endpoint == ANY_ENDPOINT || self.endpoint == by.endpoint)
    }
}

/// All open registrations, by their descriptors.
#[derive(Default)]
pub(crate) struct LocalRegions(Mutex<HashMap<usize, LocalRegion>>);

impl LocalRegions {
    pub(crate) fn add(&self, desc: usize, region: LocalRegion) {
        self.0.lock().insert(desc, region);
    }

    /// Removes a registration. Returns how many operations use it.
    pub(crate) fn remove(&self, desc: usize) -> usize {
        self.0.lock().remove(&desc).map_or(0, |region| region.uses)
    }

    pub(crate) fn change(&self, desc: usize, change: impl FnOnce(&mut LocalRegion)) {
        if let Some(region) = self.0.lock().get_mut(&desc) {
            change(region);
        }
    }

    /// Records that an operation uses a registration. Returns the reason if the registration does
    /// not permit it.
    pub(crate) fn begin_use(&self, desc: usize, by: &LocalUse) -> Result<(), &'static str> {
        let mut regions = self.0.lock();
        let Some(region) = regions.get_mut(&desc) else {
            return Err("memory of an operation comes without the descriptor of its registration");
        };
        if !region.permits(by) {
            return Err("memory of an operation is not in the registration that comes with it");
        }

        region.uses += 1;
        Ok(())
    }

    /// Records the end of an operation that used a registration.
    pub(crate) fn end_use(&self, desc: usize) {
        self.change(desc, |region| region.uses -= 1);
    }
}
