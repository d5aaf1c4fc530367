//! `fi_getinfo`: offers the profiles that match the hints of an application.
#![allow(unsafe_code)]

use crate::profile::{ALL, Profile};
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
    // SAFETY: null or valid, by contract.
    unsafe { part.as_ref() }
}

/// Returns true if a profile matches hints.
///
/// # Safety
/// The attributes and strings of the hints are null or valid.
unsafe fn matches_hints(profile: &Profile, hints: &fi::fi_info) -> bool {
    let is_subset = |requested: u64, offered: u64| requested & !offered == 0;
    if !is_subset(hints.caps, profile.caps()) || !is_subset(profile.mode, hints.mode) {
        return false;
    }
    // SAFETY: null or valid, by contract.
    if let Some(ep) = unsafe { part(hints.ep_attr) } {
        let is_rdm = ep.type_ == fi::FI_EP_UNSPEC || ep.type_ == fi::FI_EP_RDM;
        if !is_rdm || ep.max_msg_size > profile.max_message {
            return false;
        }
    }
    // SAFETY: null or valid, by contract.
    if let Some(domain) = unsafe { part(hints.domain_attr) } {
        // SAFETY: a C string if it is not null, by contract.
        let name = (!domain.name.is_null()).then(|| unsafe { CStr::from_ptr(domain.name) });
        if name.is_some_and(|name| name != profile.name)
            || !is_subset(profile.mr_mode, u64::from(domain.mr_mode.cast_unsigned()))
            || domain.control_progress == fi::FI_PROGRESS_AUTO
            || domain.data_progress == fi::FI_PROGRESS_AUTO
        {
            return false;
        }
    }
    // SAFETY: null or valid, by contract.
    if let Some(tx) = unsafe { part(hints.tx_attr) } {
        let exceeds = tx.inject_size > profile.inject || tx.size > profile.tx_size;
        if exceeds || !is_subset(tx.op_flags, OP_FLAGS) || !is_subset(tx.msg_order, profile.order) {
            return false;
        }
    }
    // SAFETY: null or valid, by contract.
    let rx = unsafe { part(hints.rx_attr) };
    rx.is_none_or(|rx| rx.size <= profile.rx_size && is_subset(rx.msg_order, profile.order))
}

/// Creates the entry of a profile, which libfabric frees.
fn new_info(
    library: &Libfabric,
    profile: &Profile,
    hints: Option<&fi::fi_info>,
) -> *mut fi::fi_info {
    // SAFETY: null requests an empty entry.
    let first = unsafe { library.dupinfo(std::ptr::null()) };
    // SAFETY: null, or a new entry.
    let Some(info) = (unsafe { first.as_mut() }) else {
        return null_mut();
    };
    info.caps = profile.caps();
    info.mode = profile.mode;
    info.addr_format = profile.address_format;
    // SAFETY: a new entry has all attributes.
    let tx = unsafe { &mut *info.tx_attr };
    (tx.caps, tx.mode, tx.msg_order) = (profile.caps(), profile.mode, profile.order);
    (tx.inject_size, tx.size) = (profile.inject, profile.tx_size);
    (tx.iov_limit, tx.rma_iov_limit) = (profile.iov_limit, 1);
    // SAFETY: a new entry has all attributes.
    let rx = unsafe { &mut *info.rx_attr };
    (rx.caps, rx.mode, rx.msg_order) = (profile.caps(), profile.mode, profile.order);
    (rx.size, rx.iov_limit) = (profile.rx_size, 1);
    // SAFETY: a new entry has all attributes.
    let ep = unsafe { &mut *info.ep_attr };
    (ep.type_, ep.protocol, ep.protocol_version) = (fi::FI_EP_RDM, profile.protocol, 1);
    (ep.max_msg_size, ep.tx_ctx_cnt, ep.rx_ctx_cnt) = (profile.max_message, 1, 1);
    let up_to = |order| {
        if profile.order & order != 0 {
            profile.order_up_to
        } else {
            0
        }
    };
    ep.max_order_raw_size = up_to(fi::FI_ORDER_RAW);
    ep.max_order_war_size = up_to(fi::FI_ORDER_WAR);
    ep.max_order_waw_size = up_to(fi::FI_ORDER_WAW);
    // SAFETY: a new entry has all attributes.
    let domain = unsafe { &mut *info.domain_attr };
    // SAFETY: a C string.
    domain.name = unsafe { libc::strdup(profile.name.as_ptr()) };
    domain.threading = fi::FI_THREAD_SAFE;
    (domain.control_progress, domain.data_progress) =
        (fi::FI_PROGRESS_MANUAL, fi::FI_PROGRESS_MANUAL);
    (domain.resource_mgmt, domain.av_type) = (profile.resource_mgmt, profile.av_type);
    (domain.mr_mode, domain.mr_key_size) = (profile.mr_mode as i32, profile.key_bytes);
    (domain.cq_cnt, domain.ep_cnt, domain.mr_cnt) = (64, 64, profile.max_regions);
    (
        domain.tx_ctx_cnt,
        domain.rx_ctx_cnt,
        domain.max_ep_tx_ctx,
        domain.max_ep_rx_ctx,
    ) = (64, 64, 1, 1);
    (domain.mr_iov_limit, domain.caps) = (1, fi::FI_LOCAL_COMM | fi::FI_REMOTE_COMM);
    if let Some(hints) = hints {
        // SAFETY: null or valid, by the contract of libfabric.
        if let Some(requested) = unsafe { part(hints.tx_attr) } {
            tx.op_flags = requested.op_flags;
        }
        // SAFETY: a new entry has all attributes.
        if let Some(requested) = unsafe { part(hints.domain_attr) } {
            if requested.av_type != fi::FI_AV_UNSPEC {
                domain.av_type = requested.av_type;
            }
            // Like opx, which accepts resource management if requested, but does not implement it.
            domain.resource_mgmt = domain.resource_mgmt.max(requested.resource_mgmt);
        }
    }
    // SAFETY: a new entry has all attributes.
    let fabric = unsafe { &mut *info.fabric_attr };
    // SAFETY: a C string.
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
    // SAFETY: null or valid, by the contract of libfabric.
    let hints = unsafe { part(hints) };
    let mut first = null_mut();
    for profile in ALL.iter().rev() {
        // SAFETY: valid hints, by the contract of libfabric.
        if hints.is_some_and(|hints| unsafe { !matches_hints(profile, hints) }) {
            continue;
        }
        let entry = new_info(library, profile, hints);
        // SAFETY: null, or a new entry.
        if let Some(entry) = unsafe { entry.as_mut() } {
            entry.next = first;
            first = entry;
        }
    }
    // SAFETY: valid for writes, by the contract of libfabric.
    unsafe { *info = first };
    if first.is_null() { -fi::FI_ENODATA } else { 0 }
}
