//! Raw keys: the keys of providers whose keys are longer than 64 bits, or need work at a peer. The
//! peer maps a raw key at its first use, and passes the mapped key to operations.
#![allow(unsafe_code)]

use crate::fid::{Fid, succeeded};
use libfabric_sys as fi;
use rushmem_transport::thread::lock;
use std::ptr::null_mut;
use std::sync::Mutex;

/// A raw key, with the base address that the provider returns with it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RawKey {
    pub(crate) base: u64,
    pub(crate) bytes: Vec<u8>,
}

impl RawKey {
    /// Returns the raw key of a registration.
    pub(crate) fn of(mr: &Fid<fi::fid_mr>) -> Result<RawKey, i32> {
        let (mut base, mut nbytes) = (0, 0);
        // SAFETY: an open registration, and room for no bytes: it says how many there are.
        match unsafe { fi::fi_raw_key(mr.raw(), &mut base, null_mut(), &mut nbytes) } {
            code if code == -(fi::FI_ETOOSMALL as i32) => {}
            0 => return Err(-fi::FI_EINVAL),
            code => return Err(code),
        }
        let mut bytes = vec![0; nbytes];
        // SAFETY: an open registration, and room for `nbytes` bytes.
        let code = unsafe { fi::fi_raw_key(mr.raw(), &mut base, bytes.as_mut_ptr(), &mut nbytes) };
        succeeded(code)?;
        bytes.truncate(nbytes);
        Ok(RawKey { base, bytes })
    }
}

/// The mapped keys of a domain.
#[derive(Default)]
pub(crate) struct MappedKeys(Mutex<Vec<u64>>);

impl MappedKeys {
    /// Maps a raw key. Returns the key for operations.
    pub(crate) fn add(&self, domain: &Fid<fi::fid_domain>, raw: &RawKey) -> Result<u64, i32> {
        let mut key = fi::KEY_NOTAVAIL;
        let (bytes, nbytes) = (raw.bytes.as_ptr(), raw.bytes.len());
        // SAFETY: an open domain and as many bytes as `nbytes` says.
        succeeded(unsafe { fi::fi_map_raw_key(domain.raw(), raw.base, bytes, nbytes, &mut key) })?;
        lock(&self.0).push(key);
        Ok(key)
    }

    /// Unmaps all keys, which libfabric requires before the domain is closed.
    pub(crate) fn clear(&self, domain: &Fid<fi::fid_domain>) {
        for key in lock(&self.0).drain(..) {
            // SAFETY: an open domain and a key that was mapped in it, once. Where unmapping fails
            // there is nothing left to do.
            unsafe { fi::fi_unmap_key(domain.raw(), key) };
        }
    }
}
