//! How an endpoint finds the memory that a peer has registered, and what it may do there.
#![allow(unsafe_code)]

use crate::memory::{Mapped, fetch, pointer, store};
use crate::profile::Profile;
use crate::segment::{ANY, Region, Segment};
use crate::word::Amo;
use crate::{memory, rule};
use libfabric_sys as fi;
use std::ptr::null_mut;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// Who is addressed.
pub(crate) struct Peer {
    pub(crate) pid: u32,
    pub(crate) endpoint: u32,
    /// It is in this process.
    pub(crate) is_own: bool,
    pub(crate) segment: Arc<Segment>,
}

/// Registered memory, as it was when it was found.
struct Window {
    key: u64,
    index: usize,
    life: u64,
    base: u64,
    nbytes: u64,
    access: u64,
    /// Where this process has the same pages; null where it has not.
    here: *mut u8,
    _mapped: Option<Mapped>,
}

/// Bytes of a peer's.
#[derive(Clone, Copy)]
pub(crate) struct Place {
    /// In the peer's process.
    pub(crate) address: u64,
    /// In this one, or null.
    pub(crate) here: *mut u8,
}

/// A peer with what is known of its memory.
pub(crate) struct Route {
    pub(crate) peer: Arc<Peer>,
    windows: Vec<Window>,
}

// SAFETY: addresses of memory that is used as a device's.
unsafe impl Send for Route {}

/// A registration that is in use, by its key; its index and its number.
fn find(segment: &Segment, key: u64, endpoint: u32) -> Option<(usize, u64)> {
    let used = segment.regions_used.load(Ordering::Acquire) as usize;
    let order = Ordering::Acquire;
    segment.regions.iter().take(used).enumerate().find_map(|(index, region)| {
        let life = region.life.load(order);
        let owner = region.endpoint.load(order);
        let is_it =
            life % 2 == 1 && region.key.load(order) == key && (owner == ANY || owner == endpoint);
        is_it.then_some((index, life))
    })
}

/// Where so many bytes begin in a registration, by libfabric's number of the rule that says that they are not in it.
fn within(
    profile: &Profile,
    (base, size): (u64, u64),
    address: u64,
    nbytes: usize,
) -> Result<u64, i32> {
    let offset = match profile.asks(fi::FI_MR_VIRT_ADDR) {
        true => address.wrapping_sub(base),
        false => address,
    };
    match offset.checked_add(nbytes as u64) {
        Some(end) if end <= size => Ok(offset),
        _ => Err(fi::FI_EACCES),
    }
}

/// Where a peer that asks this process finds memory of its own.
pub(crate) fn of_own(
    profile: &Profile,
    segment: &Segment,
    endpoint: u32,
    key: u64,
    address: u64,
    (nbytes, access): (usize, u64),
) -> Result<*mut u8, i32> {
    let (index, _) = find(segment, key, endpoint).ok_or(fi::FI_ENOKEY as i32)?;
    let Region { base, nbytes: size, access: allowed, .. } = &segment.regions[index];
    let [base, size, allowed] = [base, size, allowed].map(|word| word.load(Ordering::Acquire));
    let offset = within(profile, (base, size), address, nbytes)?;
    if allowed & access != access {
        return Err(fi::FI_EACCES);
    }
    Ok(pointer(base + offset))
}

impl Route {
    pub(crate) fn new(peer: Arc<Peer>) -> Route {
        Route { peer, windows: Vec::new() }
    }

    /// Where so many bytes are that an operation names.
    ///
    /// # Errors
    /// libfabric's number.
    #[inline]
    pub(crate) fn place(
        &mut self,
        profile: &Profile,
        key: u64,
        address: u64,
        (nbytes, access): (usize, u64),
    ) -> Result<Place, i32> {
        let segment = &self.peer.segment;
        let is_it = |window: &Window| {
            window.key == key
                && segment.regions[window.index].life.load(Ordering::Acquire) == window.life
        };
        let window = match self.windows.iter().position(is_it) {
            Some(at) => &self.windows[at],
            None => self.open(profile, key)?,
        };
        if window.access & access != access {
            return Err(fi::FI_EACCES);
        }
        let offset = within(profile, (window.base, window.nbytes), address, nbytes)?;
        let here = match window.here.is_null() {
            true => null_mut(),
            false => window.here.wrapping_add(offset as usize),
        };
        Ok(Place { address: window.base + offset, here })
    }

    #[cold]
    fn open(&mut self, profile: &Profile, key: u64) -> Result<&Window, i32> {
        let Peer { pid, endpoint, is_own, segment } = &*self.peer;
        let order = Ordering::Acquire;
        self.windows.retain(|window| segment.regions[window.index].life.load(order) == window.life);
        let (index, life) = find(segment, key, *endpoint).ok_or(fi::FI_ENOKEY as i32)?;
        let region = &segment.regions[index];
        let [base, nbytes, access] =
            [&region.base, &region.nbytes, &region.access].map(|word| word.load(order));
        let mapped = match profile.at_once && !is_own {
            true => Mapped::of_process(*pid, base, nbytes as usize),
            false => None,
        };
        let here = match &mapped {
            Some(mapped) => mapped.base(),
            None if *is_own => pointer(base),
            None => null_mut(),
        };
        self.windows.push(Window { key, index, life, base, nbytes, access, here, _mapped: mapped });
        self.windows.last().ok_or(fi::FI_ENOKEY as i32)
    }

    /// Writes to a place.
    ///
    /// # Safety
    /// The source is valid for reads of so many bytes, which are in the place.
    ///
    /// # Errors
    /// When the peer is gone.
    #[inline]
    pub(crate) unsafe fn write(
        &self,
        to: Place,
        from: *const u8,
        nbytes: usize,
    ) -> Result<(), i32> {
        if !to.here.is_null() {
            // SAFETY: by contract, and registered memory of the peer's.
            unsafe { memory::copy(to.here, from, nbytes) };
            return Ok(());
        }
        // SAFETY: by contract.
        unsafe { store(self.peer.pid, to.address, from, nbytes) }.map_err(|_| fi::FI_ECONNRESET)
    }

    /// Reads from a place.
    ///
    /// # Safety
    /// The target is valid for writes of so many bytes, which are in the place.
    ///
    /// # Errors
    /// When the peer is gone.
    #[inline]
    pub(crate) unsafe fn read(&self, from: Place, to: *mut u8, nbytes: usize) -> Result<(), i32> {
        if !from.here.is_null() {
            // SAFETY: by contract, and registered memory of the peer's.
            unsafe { memory::copy(to, from.here, nbytes) };
            return Ok(());
        }
        // SAFETY: by contract.
        unsafe { fetch(self.peer.pid, from.address, to, nbytes) }.map_err(|_| fi::FI_ECONNRESET)
    }

    /// Carries out an atomic operation on a word at a place, as a device does: atomic only with respect to others like it.
    ///
    /// # Errors
    /// When the peer is gone, or the word is not aligned.
    pub(crate) fn update(&self, at: Place, amo: &Amo) -> Result<u64, i32> {
        if !at.address.is_multiple_of(amo.width as u64) {
            rule::broken(
                "any",
                "alignment",
                "an atomic operation is on a word that is not aligned",
            );
        }
        let lock = &self.peer.segment.amo;
        while lock.swap(1, Ordering::Acquire) != 0 {
            std::thread::yield_now();
        }
        let done = if at.here.is_null() {
            self.update_afar(at, amo)
        } else {
            // SAFETY: registered memory of the peer's, aligned as above.
            Ok(unsafe { amo.carry_out(at.here) })
        };
        lock.store(0, Ordering::Release);
        done
    }

    fn update_afar(&self, at: Place, amo: &Amo) -> Result<u64, i32> {
        let mut old = 0u64;
        // SAFETY: a local of 8 bytes.
        unsafe { self.read(at, (&raw mut old).cast(), amo.width) }?;
        let new = amo.applied(old);
        // SAFETY: a local of 8 bytes.
        unsafe { self.write(at, (&raw const new).cast(), amo.width) }?;
        Ok(old)
    }
}
