//! Access to the registered memory of peers.
#![allow(unsafe_code)]

use crate::atomic::AtomicOp;
use crate::memory::{self, PageMapping, fetch, pointer, store};
use crate::profile::{Profile, violated};
use crate::segment::{ANY_ENDPOINT, MappedSegment, Region};
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

/// A cached registration of a peer.
struct Window {
    key: u64,
    index: usize,
    generation: u64,
    base: u64,
    nbytes: u64,
    access: u64,
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

/// Finds an enabled registration that an endpoint may use, by its key. Returns its index and
/// generation.
fn find(segment: &MappedSegment, key: u64, endpoint: u32) -> Option<(usize, u64)> {
    let used = segment.regions_used.load(Ordering::Acquire) as usize;
    let order = Ordering::Acquire;
    segment
        .regions
        .iter()
        .take(used)
        .enumerate()
        .find_map(|(index, region)| {
            let generation = region.generation.load(order);
            let owner = region.endpoint.load(order);
            let is_match = generation % 2 == 1
                && region.key.load(order) == key
                && (owner == ANY_ENDPOINT || owner == endpoint);
            is_match.then_some((index, generation))
        })
}

/// Returns the offset of a range in a registration, or an error code of libfabric.
fn offset_in(
    profile: &Profile,
    (base, size): (u64, u64),
    address: u64,
    nbytes: usize,
) -> Result<u64, i32> {
    let offset = match profile.requires(fi::FI_MR_VIRT_ADDR) {
        true => address.wrapping_sub(base),
        false => address,
    };
    match offset.checked_add(nbytes as u64) {
        Some(end) if end <= size => Ok(offset),
        _ => Err(fi::FI_EACCES),
    }
}

/// Returns the own memory that a peer's operation accesses, or an error code of libfabric.
pub(crate) fn own_memory(
    profile: &Profile,
    segment: &MappedSegment,
    endpoint: u32,
    key: u64,
    address: u64,
    (nbytes, access): (usize, u64),
) -> Result<*mut u8, i32> {
    let (index, _) = find(segment, key, endpoint).ok_or(fi::FI_ENOKEY as i32)?;
    let Region {
        base,
        nbytes: size,
        access: allowed,
        ..
    } = &segment.regions[index];
    let [base, size, allowed] = [base, size, allowed].map(|word| word.load(Ordering::Acquire));
    let offset = offset_in(profile, (base, size), address, nbytes)?;
    if allowed & access != access {
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
        key: u64,
        address: u64,
        (nbytes, access): (usize, u64),
    ) -> Result<RemoteRange, i32> {
        let segment = &self.peer.segment;
        let is_match = |window: &Window| {
            window.key == key && segment.regions[window.index].is_current(window.generation)
        };
        let window = match self.windows.iter().position(is_match) {
            Some(at) => &self.windows[at],
            None => self.open(profile, key)?,
        };
        if window.access & access != access {
            return Err(fi::FI_EACCES);
        }
        let offset = offset_in(profile, (window.base, window.nbytes), address, nbytes)?;
        let mapped = match window.mapped.is_null() {
            true => null_mut(),
            false => window.mapped.wrapping_add(offset as usize),
        };
        Ok(RemoteRange {
            address: window.base + offset,
            mapped,
        })
    }

    #[cold]
    fn open(&mut self, profile: &Profile, key: u64) -> Result<&Window, i32> {
        let PeerEndpoint {
            pid,
            endpoint,
            is_own,
            segment,
        } = &*self.peer;
        let order = Ordering::Acquire;
        self.windows
            .retain(|window| segment.regions[window.index].is_current(window.generation));
        let (index, generation) = find(segment, key, *endpoint).ok_or(fi::FI_ENOKEY as i32)?;
        let region = &segment.regions[index];
        let [base, nbytes, access] =
            [&region.base, &region.nbytes, &region.access].map(|word| word.load(order));
        let mapping = match profile.immediate && !is_own {
            true => PageMapping::of_process(*pid, base, nbytes as usize),
            false => None,
        };
        let mapped = match &mapping {
            Some(mapped) => mapped.base(),
            None if *is_own => pointer(base),
            None => null_mut(),
        };
        self.windows.push(Window {
            key,
            index,
            generation,
            base,
            nbytes,
            access,
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
            // SAFETY: valid by contract, and within a mapped registration.
            unsafe { memory::copy(to.mapped, from, nbytes) };
            return Ok(());
        }
        // SAFETY: valid for reads of `nbytes` bytes, by contract.
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
            // SAFETY: valid by contract, and within a mapped registration.
            unsafe { memory::copy(to, from.mapped, nbytes) };
            return Ok(());
        }
        // SAFETY: valid for writes of `nbytes` bytes, by contract.
        unsafe { fetch(self.peer.pid, from.address, to, nbytes) }.map_err(|_| fi::FI_ECONNRESET)
    }

    /// Performs an atomic operation on a word of a peer or of this process. Like those of a device,
    /// it is atomic only with respect to other such operations, not to those of a CPU.
    pub(crate) fn update(&self, at: RemoteRange, amo: &AtomicOp) -> Result<u64, i32> {
        if !at.address.is_multiple_of(amo.width as u64) {
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
        let old = self.update_by_copies(at, amo);
        lock.store(0, Ordering::Release);
        old
    }

    fn update_by_copies(&self, at: RemoteRange, amo: &AtomicOp) -> Result<u64, i32> {
        let mut old = 0u64;
        // SAFETY: a local variable of 8 bytes.
        unsafe { self.read(at, (&raw mut old).cast(), amo.width) }?;
        // Gives a CPU time to change the word between the read and the write: that change is lost.
        std::thread::yield_now();
        let new = amo.applied(old);
        // SAFETY: a local variable of 8 bytes.
        unsafe { self.write(at, (&raw const new).cast(), amo.width) }?;
        Ok(old)
    }
}
