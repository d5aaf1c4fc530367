//! Access to the registered memory of peers.
#![allow(unsafe_code)]

use crate::atomic::AtomicOp;
use crate::memory::{self, PageMapping, fetch, pointer, store};
use crate::profile::{Profile, violated};
use crate::segment::{ANY_ENDPOINT, MappedSegment};
use libfabric_sys as fi;
use std::ptr::null_mut;
use std::sync::Arc;
use std::sync::atomic::Ordering;

pub(crate) struct PeerEndpoint {
    pub(crate) pid: u32,
    pub(crate) endpoint: u32,
    /// True if it is in this process.
    pub(crate) is_own: bool,
    pub(crate) segment: Arc<MappedSegment>,
}

/// What an operation accesses in the memory of its target.
#[derive(Clone, Copy)]
pub(crate) struct TargetAccess {
    pub(crate) key: u64,
    pub(crate) address: u64,
    pub(crate) nbytes: usize,
    /// The rights that the registration must have.
    pub(crate) rights: u64,
}

/// An enabled registration in the table of a segment.
struct FoundRegion {
    index: usize,
    generation: u64,
}

/// A cached registration of a peer.
struct Window {
    key: u64,
    region: FoundRegion,
    base: u64,
    nbytes: u64,
    rights: u64,
    /// The mapping of this memory in this process, or null.
    mapped: *mut u8,
    _mapping: Option<PageMapping>,
}

/// A range of a peer's memory within a registration, which was checked.
#[derive(Clone, Copy)]
pub(crate) struct RemoteRange {
    /// The address in the peer.
    pub(crate) address: u64,
    /// The address in this process, or null.
    pub(crate) mapped: *mut u8,
}

/// A peer, and its registrations that this endpoint has used.
pub(crate) struct RemotePeer {
    pub(crate) peer: Arc<PeerEndpoint>,
    windows: Vec<Window>,
}

// SAFETY: the mapped addresses are valid on all threads.
unsafe impl Send for RemotePeer {}

impl TargetAccess {
    /// Returns true if a registration with these rights permits the access.
    #[inline]
    fn is_permitted_by(&self, rights: u64) -> bool {
        rights & self.rights == self.rights
    }
}

impl Window {
    #[inline]
    fn is_current(&self, segment: &MappedSegment) -> bool {
        segment.regions[self.region.index].is_current(self.region.generation)
    }
}

/// Finds an enabled registration that an endpoint may use, by its key. Returns an error code of
/// libfabric if there is none.
fn find(segment: &MappedSegment, key: u64, endpoint: u32) -> Result<FoundRegion, i32> {
    let n_used = segment.regions_used.load(Ordering::Acquire) as usize;
    for (index, region) in segment.regions.iter().take(n_used).enumerate() {
        // First: the other words are those of the registration that has this generation.
        let generation = region.generation.load(Ordering::Acquire);
        let is_enabled = generation % 2 == 1;

        let owner = region.endpoint.load(Ordering::Acquire);
        let is_usable = owner == ANY_ENDPOINT || owner == endpoint;

        if is_enabled && is_usable && region.key.load(Ordering::Acquire) == key {
            return Ok(FoundRegion { index, generation });
        }
    }
    Err(fi::FI_ENOKEY as i32)
}

/// Returns the offset of an access in a registration of `size` bytes at `base`, or an error code of
/// libfabric.
fn offset_in(profile: &Profile, base: u64, size: u64, access: TargetAccess) -> Result<u64, i32> {
    let offset = if profile.requires(fi::FI_MR_VIRT_ADDR) {
        // An address below the base becomes an offset beyond the end.
        access.address.wrapping_sub(base)
    } else {
        access.address
    };
    match offset.checked_add(access.nbytes as u64) {
        Some(end) if end <= size => Ok(offset),
        _ => Err(fi::FI_EACCES),
    }
}

/// Returns the own memory that a peer's operation accesses, or an error code of libfabric.
pub(crate) fn own_memory(
    profile: &Profile,
    segment: &MappedSegment,
    endpoint: u32,
    access: TargetAccess,
) -> Result<*mut u8, i32> {
    let found = find(segment, access.key, endpoint)?;
    let region = &segment.regions[found.index];

    let base = region.base.load(Ordering::Acquire);
    let size = region.nbytes.load(Ordering::Acquire);
    let offset = offset_in(profile, base, size, access)?;
    if !access.is_permitted_by(region.access.load(Ordering::Acquire)) {
        return Err(fi::FI_EACCES);
    }
    Ok(pointer(base + offset))
}

impl RemotePeer {
    pub(crate) fn new(peer: Arc<PeerEndpoint>) -> RemotePeer {
        RemotePeer {
            peer,
            windows: Vec::new(),
        }
    }

    /// Returns the memory that an operation accesses, or an error code of libfabric.
    #[inline]
    pub(crate) fn target(
        &mut self,
        profile: &Profile,
        access: TargetAccess,
    ) -> Result<RemoteRange, i32> {
        let segment = &self.peer.segment;
        let known = self
            .windows
            .iter()
            .position(|window| window.key == access.key && window.is_current(segment));
        let window = match known {
            Some(index) => &self.windows[index],
            None => self.open(profile, access.key)?,
        };
        if !access.is_permitted_by(window.rights) {
            return Err(fi::FI_EACCES);
        }

        let offset = offset_in(profile, window.base, window.nbytes, access)?;
        let mapped = if window.mapped.is_null() {
            null_mut()
        } else {
            window.mapped.wrapping_add(offset as usize)
        };
        Ok(RemoteRange {
            address: window.base + offset,
            mapped,
        })
    }

    /// Caches the registration of this key, and removes those from the cache that are closed.
    #[cold]
    fn open(&mut self, profile: &Profile, key: u64) -> Result<&Window, i32> {
        let peer = &*self.peer;
        self.windows
            .retain(|window| window.is_current(&peer.segment));

        let found = find(&peer.segment, key, peer.endpoint)?;
        let region = &peer.segment.regions[found.index];
        let base = region.base.load(Ordering::Acquire);
        let nbytes = region.nbytes.load(Ordering::Acquire);

        // A mapping is fast, which only the immediate profiles have to be. The others copy through
        // the kernel.
        let mapping = if profile.immediate && !peer.is_own {
            PageMapping::of_process(peer.pid, base, nbytes as usize)
        } else {
            None
        };
        let mapped = match &mapping {
            Some(mapping) => mapping.base(),
            None if peer.is_own => pointer(base),
            None => null_mut(),
        };

        self.windows.push(Window {
            key,
            region: found,
            base,
            nbytes,
            rights: region.access.load(Ordering::Acquire),
            mapped,
            _mapping: mapping,
        });
        self.windows.last().ok_or(fi::FI_ENOKEY as i32)
    }

    /// Writes to a peer. Fails if the peer has ended and the range is not mapped here.
    ///
    /// # Safety
    /// `from` is valid for reads of `nbytes` bytes, and `to` comes from [`RemotePeer::target`] for
    /// a range that includes them.
    #[inline]
    pub(crate) unsafe fn write(
        &self,
        to: RemoteRange,
        from: *const u8,
        nbytes: usize,
    ) -> Result<(), i32> {
        if !to.mapped.is_null() {
            // SAFETY: `from` is valid for these bytes, by contract, and `to` is within a mapped
            // registration.
            unsafe { memory::copy(to.mapped, from, nbytes) };
            return Ok(());
        }
        // SAFETY: `from` is valid for reads of `nbytes` bytes, by contract.
        unsafe { store(self.peer.pid, to.address, from, nbytes) }.map_err(|_| fi::FI_ECONNRESET)
    }

    /// Reads from a peer. Fails if the peer has ended and the range is not mapped here.
    ///
    /// # Safety
    /// `to` is valid for writes of `nbytes` bytes, and `from` comes from [`RemotePeer::target`] for
    /// a range that includes them.
    #[inline]
    pub(crate) unsafe fn read(
        &self,
        from: RemoteRange,
        to: *mut u8,
        nbytes: usize,
    ) -> Result<(), i32> {
        if !from.mapped.is_null() {
            // SAFETY: `to` is valid for these bytes, by contract, and `from` is within a mapped
            // registration.
            unsafe { memory::copy(to, from.mapped, nbytes) };
            return Ok(());
        }
        // SAFETY: `to` is valid for writes of `nbytes` bytes, by contract.
        unsafe { fetch(self.peer.pid, from.address, to, nbytes) }.map_err(|_| fi::FI_ECONNRESET)
    }

    /// Performs an atomic operation on a word of a peer or of this process. Like those of a device,
    /// it is atomic only with respect to other such operations, not to those of a CPU.
    pub(crate) fn update(&self, word: RemoteRange, amo: &AtomicOp) -> Result<u64, i32> {
        if !word.address.is_multiple_of(amo.width as u64) {
            violated(
                "any",
                "alignment",
                "an atomic operation is on a word that is not aligned",
            );
        }

        let lock = &self.peer.segment.amo;
        while lock.swap(1, Ordering::Acquire) != 0 {
            std::thread::yield_now();
        }
        let old = self.update_locked(word, amo);
        lock.store(0, Ordering::Release);
        old
    }

    /// Performs an atomic operation by a read and a write, which need the lock of the device.
    fn update_locked(&self, word: RemoteRange, amo: &AtomicOp) -> Result<u64, i32> {
        let mut old = 0u64;
        // SAFETY: `old` has 8 bytes, and the width is at most 8.
        unsafe { self.read(word, (&raw mut old).cast(), amo.width) }?;

        // Gives a CPU time to change the word between the read and the write: that change is lost.
        std::thread::yield_now();

        let new = amo.applied(old);
        // SAFETY: `new` has 8 bytes, and the width is at most 8.
        unsafe { self.write(word, (&raw const new).cast(), amo.width) }?;
        Ok(old)
    }
}
