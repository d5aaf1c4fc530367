//! libfabric's domain: what all objects that are opened in it share.
//!
//! It must never know what these objects are.
#![allow(unsafe_code)]

use crate::gate::Gate;
use crate::known::Known;
use crate::profile::Profile;
use crate::raw;
use crate::rule::broken;
use crate::segment::{ENDPOINTS, REGIONS, Segment};
use libfabric_sys as fi;
use std::collections::HashMap;
use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::sync::Arc;

/// An open domain.
#[repr(C)]
pub(crate) struct Domain {
    _fid: fi::fid_domain,
    pub(crate) profile: &'static Profile,
    pub(crate) pid: u32,
    pub(crate) segment: Arc<Segment>,
    file: File,
    /// Segments by their process and descriptor.
    segments: Gate<HashMap<(u32, u32), Arc<Segment>>>,
    /// Numbers that nobody has.
    pub(crate) regions: Gate<Vec<u32>>,
    pub(crate) endpoints: Gate<Vec<u32>>,
    pub(crate) known: Known,
    pub(crate) mapped: raw::MappedKeys,
    _fabric: Arc<()>,
}

// SAFETY: what libfabric reads of it does not change; the rest can be shared.
unsafe impl Send for Domain {}
// SAFETY: as above.
unsafe impl Sync for Domain {}

impl Domain {
    /// A domain of a profile's, which keeps its fabric in use.
    ///
    /// # Errors
    /// The kernel's.
    pub(crate) fn new(
        fid: fi::fid_domain,
        profile: &'static Profile,
        fabric: &Arc<()>,
    ) -> io::Result<Domain> {
        let (segment, file) = Segment::create()?;
        let (pid, segment) = (std::process::id(), Arc::new(segment));
        let own = (pid, file.as_raw_fd().unsigned_abs());
        Ok(Domain {
            _fid: fid,
            profile,
            pid,
            segments: Gate::new(HashMap::from([(own, Arc::clone(&segment))])),
            segment,
            file,
            regions: Gate::new((0..REGIONS as u32).rev().collect()),
            endpoints: Gate::new((0..ENDPOINTS as u32).rev().collect()),
            known: Known::default(),
            mapped: raw::MappedKeys::default(),
            _fabric: Arc::clone(fabric),
        })
    }

    /// A rule was broken.
    pub(crate) fn broken(&self, rule: &str, what: impl std::fmt::Display) -> ! {
        broken(self.profile.text(), rule, what)
    }

    /// By which descriptor peers find the segment.
    pub(crate) fn fd(&self) -> u32 {
        self.file.as_raw_fd().unsigned_abs()
    }

    /// The segment of a process.
    pub(crate) fn segment_of(&self, pid: u32, fd: u32) -> io::Result<Arc<Segment>> {
        let mut segments = self.segments.enter();
        if let Some(segment) = segments.get(&(pid, fd)) {
            return Ok(Arc::clone(segment));
        }
        let segment = Arc::new(Segment::open(pid, fd)?);
        segments.insert((pid, fd), Arc::clone(&segment));
        Ok(segment)
    }
}
