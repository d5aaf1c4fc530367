//! Address vectors, which give each inserted peer the number that an application uses for it.
#![allow(unsafe_code)]

use crate::domain::Domain;
use crate::object::{
    ObjectFid, base_ops, clone_ref, fid, no_bind, no_control, ops_ptr, return_object,
};
use crate::remote::PeerEndpoint;
use libfabric_sys as fi;
use parking_lot::Mutex;
use std::ffi::{c_int, c_void};
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// The address of an endpoint, which peers insert.
#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct EndpointAddress {
    pub(crate) magic: u64,
    pub(crate) pid: u32,
    pub(crate) fd: u32,
    pub(crate) endpoint: u32,
    pub(crate) reserved: u32,
    pub(crate) nonce: u64,
}

/// The first word of an address.
pub(crate) const MAGIC: u64 = u64::from_ne_bytes(*b"strict: ");

/// Added to indices with `FI_AV_MAP`, where numbers are not indices.
const MAP_OFFSET: u64 = 0x5700_0000_0000;

/// An open address vector.
#[repr(C)]
pub(crate) struct AddressVector {
    fid: ObjectFid<fi::fid_av>,
    domain: Arc<Domain>,
    is_map: bool,
    peers: Mutex<Vec<Arc<PeerEndpoint>>>,
}

static AV: fi::fi_ops = base_ops(close, no_bind, no_control);

static AV_OPS: fi::fi_ops_av = fi::fi_ops_av {
    size: size_of::<fi::fi_ops_av>(),
    insert: Some(insert),
    insertsvc: None,
    insertsym: None,
    remove: None,
    lookup: None,
    straddr: None,
    av_set: None,
};

/// Implements `fi_av_open`.
pub(crate) unsafe extern "C" fn open(
    domain: *mut fi::fid_domain,
    attr: *mut fi::fi_av_attr,
    av: *mut *mut fi::fid_av,
    context: *mut c_void,
) -> c_int {
    // SAFETY: `domain` is an open domain of this provider, by the contract of libfabric.
    let domain = unsafe { clone_ref(domain.cast::<Domain>()) };
    // SAFETY: `attr` points to valid attributes, by the contract of libfabric.
    let requested = unsafe { (*attr).type_ };
    let offered = domain.profile.av_type;
    if offered != fi::FI_AV_UNSPEC && requested != fi::FI_AV_UNSPEC && requested != offered {
        domain.violation(
            "av_type",
            "an address vector was opened with another than was offered",
        );
    }

    let vector = Arc::new(AddressVector {
        fid: ObjectFid(fi::fid_av {
            fid: fid(fi::FI_CLASS_AV, context, &AV),
            ops: ops_ptr(&AV_OPS),
        }),
        is_map: offered == fi::FI_AV_MAP || requested == fi::FI_AV_MAP,
        domain,
        peers: Mutex::new(Vec::new()),
    });
    // SAFETY: `av` is valid for writes, by the contract of libfabric, and an address vector begins
    // with its fid.
    unsafe { return_object(vector, av) }
}

unsafe extern "C" fn close(fid: *mut fi::fid) -> c_int {
    // SAFETY: `fid` is that of an open address vector of this provider, which the application no
    // longer uses.
    let vector = unsafe { Arc::from_raw(fid.cast::<AddressVector>().cast_const()) };
    if Arc::strong_count(&vector) > 1 {
        vector.domain.violation(
            "close order",
            "an address vector was closed before its endpoints",
        );
    }
    0
}

unsafe extern "C" fn insert(
    av: *mut fi::fid_av,
    addresses: *const c_void,
    count: usize,
    numbers: *mut fi::fi_addr_t,
    _flags: u64,
    _context: *mut c_void,
) -> c_int {
    // SAFETY: `av` is an open address vector of this provider, by the contract of libfabric.
    let vector = unsafe { &*av.cast::<AddressVector>() };
    let mut inserted = 0;
    for i in 0..count {
        let address = addresses.cast::<EndpointAddress>().wrapping_add(i);
        // SAFETY: there are `count` addresses, by the contract of libfabric.
        let address = unsafe { address.read_unaligned() };

        let number = match vector.insert(&address) {
            Some(number) => {
                inserted += 1;
                number
            }
            None => fi::ADDR_NOTAVAIL,
        };
        if !numbers.is_null() {
            // SAFETY: there is room for `count` numbers, by the contract of libfabric.
            unsafe { *numbers.wrapping_add(i) = number };
        }
    }
    inserted
}

impl AddressVector {
    /// Adds a peer. Returns its number, or `None` if the peer does not exist any more.
    fn insert(&self, address: &EndpointAddress) -> Option<fi::fi_addr_t> {
        if address.magic != MAGIC {
            self.domain.violation(
                "fi_av_insert",
                "what was inserted is not an address of this provider",
            );
        }

        let segment = self.domain.segment_of(address.pid, address.fd).ok()?;
        if segment.nonce.load(Ordering::Acquire) != address.nonce {
            return None;
        }
        let peer = PeerEndpoint {
            pid: address.pid,
            endpoint: address.endpoint,
            is_own: address.pid == self.domain.pid,
            segment,
        };

        let mut peers = self.peers.lock();
        let index = peers.len();
        peers.push(Arc::new(peer));
        Some(self.first_number() + index as u64)
    }

    /// Returns the number of the peer that was inserted first.
    fn first_number(&self) -> fi::fi_addr_t {
        if self.is_map { MAP_OFFSET } else { 0 }
    }

    /// Returns the index of a peer by its number.
    pub(crate) fn index(&self, number: fi::fi_addr_t) -> usize {
        number.wrapping_sub(self.first_number()) as usize
    }

    pub(crate) fn peer(&self, index: usize) -> Arc<PeerEndpoint> {
        match self.peers.lock().get(index) {
            Some(peer) => Arc::clone(peer),
            None => self
                .domain
                .violation("fi_addr_t", "an operation was posted to an unknown peer"),
        }
    }
}
