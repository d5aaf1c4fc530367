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

impl LocalRegion {
    fn permits(&self, (base, nbytes): (u64, usize), access: u64, endpoint: u32) -> bool {
        let end = base + nbytes as u64;
        self.is_enabled
            && self.base <= base
            && end <= self.base + self.nbytes
            && self.access & access == access
            && (self.endpoint == ANY_ENDPOINT || self.endpoint == endpoint)
    }
}

/// All open registrations.
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
        self.0.lock().get_mut(&desc).map(change);
    }

    /// Records that an operation of an endpoint uses a range, an address and its number of bytes,
    /// of a registration. Returns the reason if it must not, since it would read or write without
    /// the right.
    pub(crate) fn begin_use(
        &self,
        desc: usize,
        range: (u64, usize),
        access: u64,
        endpoint: u32,
    ) -> Result<(), &'static str> {
        let mut regions = self.0.lock();
        let Some(region) = regions.get_mut(&desc) else {
            return Err("memory of an operation comes without the descriptor of its registration");
        };
        if !region.permits(range, access, endpoint) {
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
