//! The domain of libfabric: the state that all objects opened in it share.

use crate::connections::ConnectionCounts;
use crate::local_regions::LocalRegions;
use crate::object::ObjectFid;
use crate::profile::{Profile, violated};
use crate::raw_key;
use crate::segment::{ENDPOINTS, MappedSegment};
use libfabric_sys as fi;
use parking_lot::Mutex;
use std::collections::HashMap;
use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::sync::Arc;

/// An open domain.
#[repr(C)]
pub(crate) struct Domain {
    _fid: ObjectFid<fi::fid_domain>,
    pub(crate) profile: &'static Profile,
    pub(crate) pid: u32,
    pub(crate) segment: Arc<MappedSegment>,
    file: File,
    /// Open segments by process and descriptor.
    segments: Mutex<HashMap<(u32, u32), Arc<MappedSegment>>>,
    /// The unused numbers of registrations.
    pub(crate) regions: Mutex<Vec<u32>>,
    /// The unused numbers of endpoints.
    pub(crate) endpoints: Mutex<Vec<u32>>,
    pub(crate) local_regions: LocalRegions,
    pub(crate) mapped: raw_key::RawKeys,
    pub(crate) connections: Mutex<ConnectionCounts>,
    /// Shows that the fabric is in use.
    _fabric: Arc<()>,
}

impl Domain {
    /// Creates a domain, which keeps its fabric in use.
    pub(crate) fn new(
        fid: fi::fid_domain,
        profile: &'static Profile,
        fabric: &Arc<()>,
    ) -> io::Result<Domain> {
        let (segment, file) = MappedSegment::create()?;
        let segment = Arc::new(segment);
        let pid = std::process::id();

        // An endpoint may be its own peer.
        let own = (pid, file.as_raw_fd().unsigned_abs());
        let segments = HashMap::from([(own, Arc::clone(&segment))]);

        Ok(Domain {
            _fid: ObjectFid(fid),
            profile,
            pid,
            segments: Mutex::new(segments),
            segment,
            file,
            regions: Mutex::new((0..profile.max_regions as u32).rev().collect()),
            endpoints: Mutex::new((0..ENDPOINTS as u32).rev().collect()),
            local_regions: LocalRegions::default(),
            mapped: raw_key::RawKeys::default(),
            connections: Mutex::default(),
            _fabric: Arc::clone(fabric),
        })
    }

    pub(crate) fn violation(&self, rule: &str, what: impl std::fmt::Display) -> ! {
        violated(self.profile.text(), rule, what)
    }

    /// Returns the descriptor through which peers open the segment.
    pub(crate) fn fd(&self) -> u32 {
        self.file.as_raw_fd().unsigned_abs()
    }

    /// Returns the segment of a process; opens it on first use.
    pub(crate) fn segment_of(&self, pid: u32, fd: u32) -> io::Result<Arc<MappedSegment>> {
        let mut segments = self.segments.lock();
        if let Some(segment) = segments.get(&(pid, fd)) {
            return Ok(Arc::clone(segment));
        }

        let segment = Arc::new(MappedSegment::open(pid, fd)?);
        segments.insert((pid, fd), Arc::clone(&segment));
        Ok(segment)
    }
}
