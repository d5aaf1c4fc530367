//! libfabric's address vector: peers by the numbers that an application has for them.
#![allow(unsafe_code)]

use crate::domain::Domain;
use crate::gate::Gate;
use crate::object::{fid, hand_over, held, no_bind, no_control, operations, shared};
use crate::reach::Peer;
use libfabric_sys as fi;
use std::ffi::{c_char, c_int, c_void};
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// An endpoint's name, as its peers insert it.
#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct Name {
    pub(crate) kind: u64,
    pub(crate) pid: u32,
    pub(crate) fd: u32,
    pub(crate) endpoint: u32,
    pub(crate) reserved: u32,
    /// That of the segment.
    pub(crate) nonce: u64,
}

/// What names begin with.
pub(crate) const KIND: u64 = u64::from_ne_bytes(*b"strict: ");

/// What is added to numbers where they are no indices (`FI_AV_MAP`).
const MAP: u64 = 0x5700_0000_0000;

/// An open address vector.
#[repr(C)]
pub(crate) struct Table {
    fid: fi::fid_av,
    domain: Arc<Domain>,
    is_map: bool,
    peers: Gate<Vec<Arc<Peer>>>,
}

// SAFETY: what libfabric reads of it does not change; the rest can be shared.
unsafe impl Send for Table {}
// SAFETY: as above.
unsafe impl Sync for Table {}

static TABLE: fi::fi_ops = operations(close, no_bind, no_control);

static OF_TABLE: fi::fi_ops_av = fi::fi_ops_av {
    size: size_of::<fi::fi_ops_av>(),
    insert: Some(insert),
    insertsvc: None,
    insertsym: None,
    remove: Some(remove),
    lookup: None,
    straddr: Some(straddr),
    av_set: None,
};

/// `fi_av_open`.
pub(crate) unsafe extern "C" fn open(
    domain: *mut fi::fid_domain,
    attr: *mut fi::fi_av_attr,
    av: *mut *mut fi::fid_av,
    context: *mut c_void,
) -> c_int {
    // SAFETY: an open domain of this provider.
    let domain = unsafe { shared(domain.cast::<Domain>()) };
    // SAFETY: attributes, by libfabric's contract.
    let asked = unsafe { (*attr).type_ };
    let own = domain.profile.av_type;
    if own != fi::FI_AV_UNSPEC && asked != fi::FI_AV_UNSPEC && asked != own {
        domain.broken("av_type", "an address vector was opened with another than was offered");
    }
    let table = Arc::new(Table {
        fid: fi::fid_av { fid: fid(fi::FI_CLASS_AV, context, &TABLE), ops: held(&OF_TABLE) },
        is_map: own == fi::FI_AV_MAP || asked == fi::FI_AV_MAP,
        domain,
        peers: Gate::new(Vec::new()),
    });
    // SAFETY: room for a pointer, by libfabric's contract.
    unsafe { hand_over(table, av) }
}

unsafe extern "C" fn close(fid: *mut fi::fid) -> c_int {
    // SAFETY: an open table of this provider, which libfabric gives back.
    let table = unsafe { Arc::from_raw(fid.cast::<Table>().cast_const()) };
    if Arc::strong_count(&table) > 1 {
        table.domain.broken("close order", "an address vector was closed before its endpoints");
    }
    0
}

unsafe extern "C" fn insert(
    av: *mut fi::fid_av,
    names: *const c_void,
    count: usize,
    numbers: *mut fi::fi_addr_t,
    _flags: u64,
    _context: *mut c_void,
) -> c_int {
    // SAFETY: an open table of this provider.
    let table = unsafe { &*av.cast::<Table>() };
    let mut inserted = 0;
    for i in 0..count {
        let name = names.cast::<Name>().wrapping_add(i);
        // SAFETY: so many names, by libfabric's contract.
        let name = unsafe { name.read_unaligned() };
        let number = table.insert(&name);
        if !numbers.is_null() {
            // SAFETY: room for so many numbers, by libfabric's contract.
            unsafe { *numbers.wrapping_add(i) = number.unwrap_or(fi::ADDR_NOTAVAIL) };
        }
        inserted += c_int::from(number.is_some());
    }
    inserted
}

unsafe extern "C" fn remove(_: *mut fi::fid_av, _: *mut fi::fi_addr_t, _: usize, _: u64) -> c_int {
    0
}

unsafe extern "C" fn straddr(
    _: *mut fi::fid_av,
    _: *const c_void,
    text: *mut c_char,
    nbytes: *mut usize,
) -> *const c_char {
    // SAFETY: a number, by libfabric's contract.
    unsafe { *nbytes = 0 };
    text
}

impl Table {
    fn insert(&self, name: &Name) -> Option<fi::fi_addr_t> {
        if name.kind != KIND {
            self.domain.broken("fi_av_insert", "what was inserted is no name of this provider's");
        }
        let segment = self.domain.segment_of(name.pid, name.fd).ok()?;
        if segment.nonce.load(Ordering::Acquire) != name.nonce {
            return None;
        }
        let is_own = name.pid == self.domain.pid;
        let peer = Peer { pid: name.pid, endpoint: name.endpoint, is_own, segment };
        let mut peers = self.peers.enter();
        peers.push(Arc::new(peer));
        Some((peers.len() - 1) as u64 + if self.is_map { MAP } else { 0 })
    }

    /// Which place a number stands for.
    pub(crate) fn index(&self, number: fi::fi_addr_t) -> usize {
        (if self.is_map { number.wrapping_sub(MAP) } else { number }) as usize
    }

    /// Who is at a place.
    pub(crate) fn peer(&self, index: usize) -> Arc<Peer> {
        match self.peers.enter().get(index) {
            Some(peer) => Arc::clone(peer),
            None => self.domain.broken("fi_addr_t", "an operation was posted to nobody"),
        }
    }
}
