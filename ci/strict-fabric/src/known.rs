//! The registrations of a domain as operations on own memory see them: by their descriptors.

use crate::gate::Gate;
use crate::segment::ANY;
use std::collections::HashMap;

/// A registration.
pub(crate) struct Own {
    pub(crate) base: u64,
    pub(crate) nbytes: u64,
    pub(crate) access: u64,
    /// Whom it belongs to.
    pub(crate) endpoint: u32,
    pub(crate) is_enabled: bool,
    /// Operations that use it.
    pub(crate) uses: usize,
}

impl Own {
    fn holds(&self, (base, nbytes): (u64, usize), access: u64, endpoint: u32) -> bool {
        let end = base + nbytes as u64;
        self.is_enabled
            && self.base <= base
            && end <= self.base + self.nbytes
            && self.access & access == access
            && (self.endpoint == ANY || self.endpoint == endpoint)
    }
}

/// All that are open.
#[derive(Default)]
pub(crate) struct Known(Gate<HashMap<usize, Own>>);

impl Known {
    pub(crate) fn add(&self, desc: usize, own: Own) {
        self.0.enter().insert(desc, own);
    }

    /// Forgets one; how many operations use it.
    pub(crate) fn forget(&self, desc: usize) -> usize {
        self.0.enter().remove(&desc).map_or(0, |own| own.uses)
    }

    pub(crate) fn change(&self, desc: usize, change: impl FnOnce(&mut Own)) {
        self.0.enter().get_mut(&desc).map(change);
    }

    /// One operation more uses so many bytes of one.
    ///
    /// # Errors
    /// What is wrong with it.
    pub(crate) fn begin_use(
        &self,
        desc: usize,
        range: (u64, usize),
        access: u64,
        endpoint: u32,
    ) -> Result<(), &'static str> {
        match self.0.enter().get_mut(&desc) {
            None => Err("memory of an operation comes without the descriptor of its registration"),
            Some(own) if own.holds(range, access, endpoint) => {
                own.uses += 1;
                Ok(())
            }
            Some(_) => Err("memory of an operation is not in the registration that comes with it"),
        }
    }

    /// One operation less uses it.
    pub(crate) fn end_use(&self, desc: usize) {
        self.change(desc, |own| own.uses -= 1);
    }
}
