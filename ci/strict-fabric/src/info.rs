//! `fi_getinfo`: offers the profiles that match the hints of an application.
#![allow(unsafe_code)]

use crate::profile::{ALL, Profile};
use crate::segment::ENDPOINTS;
use libfabric_sys as fi;
use libfabric_sys::Libfabric;
use std::ffi::{CStr, c_char};
use std::ptr::null_mut;
use std::sync::OnceLock;

/// The versions of this provider and of the API.
pub(crate) const VERSION: u32 = fi::version(1, 0);
pub(crate) const HEADERS: u32 = fi::version(1, 17);

/// The flags that an operation may have.
pub(crate) const OP_FLAGS: u64 = fi::FI_INJECT
    | fi::FI_COMPLETION
    | fi::FI_INJECT_COMPLETE
    | fi::FI_TRANSMIT_COMPLETE
    | fi::FI_DELIVERY_COMPLETE
    | fi::FI_MORE;

/// Returns the library that has loaded this one.
pub(crate) fn library() -> Option<&'static Libfabric> {
    static LIBRARY: OnceLock<Option<Libfabric>> = OnceLock::new();
    LIBRARY.get_or_init(|| Libfabric::open().ok()).as_ref()
}

/// Returns a part of an entry; `None` if it is absent.
///
/// # Safety
/// `part` is null, or valid for `'a`.
unsafe fn part<'a, T>(part: *const T) -> Option<&'a T> {
    // SAFETY: `part` is null or valid, by contract.
    unsafe { part.as_ref() }
}

/// Returns true if all flags of the first set are in the second one.
fn is_subset(flags: u64, of: u64) -> bool {
    flags & !of == 0
}

/// Returns true if a profile matches hints.
///
/// # Safety
/// The attributes and strings of the hints are null or valid.
unsafe fn matches_hints(profile: &Profile, hints: &fi::fi_info) -> bool {
    // Capabilities are requested, while modes are what the application is able to do.
    if !is_subset(hints.caps, profile.caps()) || !is_subset(profile.mode, hints.mode) {
        return false;
    }

    // SAFETY: `ep_attr` is null or valid, by contract.
    if let Some(ep) = unsafe { part(hints.ep_attr) } {
        let is_rdm = ep.type_ == fi::FI_EP_UNSPEC || ep.type_ == fi::FI_EP_RDM;
        if !is_rdm || ep.max_msg_size > profile.max_message {
            return false;
        }
    }

    // SAFETY: `domain_attr` is null or valid, by contract.
    if let Some(domain) = unsafe { part(hints.domain_attr) } {
        // SAFETY: the name is null or a C string, by contract.
        let is_named =
            domain.name.is_null() || unsafe { CStr::from_ptr(domain.name) } == profile.name;
        let has_mr_mode = is_subset(profile.mr_mode, u64::from(domain.mr_mode.cast_unsigned()));
        // Endpoints make progress only when their queue is read.
        let wants_progress = domain.control_progress == fi::FI_PROGRESS_AUTO
            || domain.data_progress == fi::FI_PROGRESS_AUTO;
        if !is_named || !has_mr_mode || wants_progress {
            return false;
        }
    }

    // SAFETY: `tx_attr` is null or valid, by contract.
    if let Some(tx) = unsafe { part(hints.tx_attr) } {
        let exceeds = tx.inject_size > profile.inject || tx.size > profile.tx_size;
        if exceeds || !is_subset(tx.op_flags, OP_FLAGS) || !is_subset(tx.msg_order, profile.order) {
            return false;
        }
    }

    // SAFETY: `rx_attr` is null or valid, by contract.
    match unsafe { part(hints.rx_attr) } {
        Some(rx) => rx.size <= profile.rx_size && is_subset(rx.msg_order, profile.order),
        None => true,
    }
}

/// Creates the entry of a profile, which libfabric frees.
fn new_info(
    library: &Libfabric,
    profile: &Profile,
    hints: Option<&fi::fi_info>,
) -> *mut fi::fi_info {
    // SAFETY: `dupinfo` takes null, for which it makes an empty entry.
    let first = unsafe { library.dupinfo(std::ptr::null()) };
    // SAFETY: `first` is null or a new entry, to which there is no other reference.
    let Some(info) = (unsafe { first.as_mut() }) else {
        return null_mut();
    };

    info.caps = profile.caps();
    info.mode = profile.mode;
    info.addr_format = profile.address_format;

    // SAFETY: `tx_attr` is not null: a new entry has all attributes.
    let tx = unsafe { &mut *info.tx_attr };
    tx.caps = profile.caps();
    tx.mode = profile.mode;
    tx.msg_order = profile.order;
    tx.inject_size = profile.inject;
    tx.size = profile.tx_size;
    tx.iov_limit = profile.iov_limit;
    tx.rma_iov_limit = 1;

    // SAFETY: `rx_attr` is not null: a new entry has all attributes.
    let rx = unsafe { &mut *info.rx_attr };
    rx.caps = profile.caps();
    rx.mode = profile.mode;
    rx.msg_order = profile.order;
    rx.size = profile.rx_size;
    rx.iov_limit = 1;

    // SAFETY: `ep_attr` is not null: a new entry has all attributes.
    let ep = unsafe { &mut *info.ep_attr };
    ep.type_ = fi::FI_EP_RDM;
    ep.protocol = profile.protocol;
    ep.protocol_version = 1;
    ep.max_msg_size = profile.max_message;
    ep.tx_ctx_cnt = 1;
    ep.rx_ctx_cnt = 1;
    ep.max_order_raw_size = profile.ordered_up_to(fi::FI_ORDER_RAW);
    ep.max_order_war_size = profile.ordered_up_to(fi::FI_ORDER_WAR);
    ep.max_order_waw_size = profile.ordered_up_to(fi::FI_ORDER_WAW);

    // SAFETY: `domain_attr` is not null: a new entry has all attributes.
    let domain = unsafe { &mut *info.domain_attr };
    // SAFETY: the name of a profile is a C string.
    domain.name = unsafe { libc::strdup(profile.name.as_ptr()) };
    domain.threading = fi::FI_THREAD_SAFE;
    domain.control_progress = fi::FI_PROGRESS_MANUAL;
    domain.data_progress = fi::FI_PROGRESS_MANUAL;
    domain.resource_mgmt = profile.resource_mgmt;
    domain.av_type = profile.av_type;
    domain.mr_mode = profile.mr_mode as i32;
    domain.mr_key_size = profile.key_bytes;
    domain.mr_cnt = profile.max_regions;
    domain.mr_iov_limit = 1;
    domain.cq_cnt = ENDPOINTS;
    domain.ep_cnt = ENDPOINTS;
    domain.tx_ctx_cnt = ENDPOINTS;
    domain.rx_ctx_cnt = ENDPOINTS;
    domain.max_ep_tx_ctx = 1;
    domain.max_ep_rx_ctx = 1;
    domain.caps = fi::FI_LOCAL_COMM | fi::FI_REMOTE_COMM;

    if let Some(hints) = hints {
        // SAFETY: `tx_attr` is null or valid, by the contract of libfabric.
        if let Some(requested) = unsafe { part(hints.tx_attr) } {
            tx.op_flags = requested.op_flags;
        }
        // SAFETY: `domain_attr` is null or valid, by the contract of libfabric.
        if let Some(requested) = unsafe { part(hints.domain_attr) } {
            if requested.av_type != fi::FI_AV_UNSPEC {
                domain.av_type = requested.av_type;
            }
            // Like opx, which accepts resource management if requested, but does not implement it.
            domain.resource_mgmt = domain.resource_mgmt.max(requested.resource_mgmt);
        }
    }

    // SAFETY: `fabric_attr` is not null: a new entry has all attributes.
    let fabric = unsafe { &mut *info.fabric_attr };
    // SAFETY: the name of a profile is a C string.
    fabric.name = unsafe { libc::strdup(profile.name.as_ptr()) };
    fabric.prov_version = VERSION;
    first
}

/// Implements `fi_getinfo`.
pub(crate) unsafe extern "C" fn getinfo(
    _version: u32,
    _node: *const c_char,
    _service: *const c_char,
    _flags: u64,
    hints: *const fi::fi_info,
    info: *mut *mut fi::fi_info,
) -> i32 {
    let Some(library) = library() else {
        return -fi::FI_ENOSYS;
    };
    // SAFETY: `hints` are null or valid, by the contract of libfabric.
    let hints = unsafe { part(hints) };

    // Last to first, since each entry is put before those that follow it.
    let mut first = null_mut();
    for profile in ALL.iter().rev() {
        if let Some(hints) = hints {
            // SAFETY: the parts of `hints` are null or valid, by the contract of libfabric.
            let is_match = unsafe { matches_hints(profile, hints) };
            if !is_match {
                continue;
            }
        }
        let entry = new_info(library, profile, hints);
        // SAFETY: `entry` is null or a new entry, to which there is no other reference.
        if let Some(entry) = unsafe { entry.as_mut() } {
            entry.next = first;
            first = entry;
        }
    }

    // SAFETY: `info` is valid for writes, by the contract of libfabric.
    unsafe { *info = first };
    if first.is_null() { -fi::FI_ENODATA } else { 0 }
}
