//! Opening libfabric's fabric and domain, and what can be opened in a domain.
#![allow(unsafe_code)]

use crate::domain::Domain;
use crate::object::{fid, hand_over, held, no_bind, no_control, operations};
use crate::offer::HEADERS;
use crate::profile::{ALL, Profile};
use crate::rule::broken;
use crate::{call, queue, raw, registration, table};
use libfabric_sys as fi;
use std::ffi::{CStr, c_char, c_int, c_void};
use std::sync::Arc;

/// An open fabric.
#[repr(C)]
struct Fabric {
    fid: fi::fid_fabric,
    profile: &'static Profile,
    domains: Arc<()>,
}

static FABRIC: fi::fi_ops = operations(close_fabric, no_bind, no_control);

static OF_FABRIC: fi::fi_ops_fabric = fi::fi_ops_fabric {
    size: size_of::<fi::fi_ops_fabric>(),
    domain: Some(open),
    passive_ep: None,
    eq_open: None,
    wait_open: None,
    trywait: Some(trywait),
    domain2: None,
};

/// `fi_fabric` of this provider.
pub(crate) unsafe extern "C" fn fabric(
    attr: *mut fi::fi_fabric_attr,
    fabric: *mut *mut fi::fid_fabric,
    context: *mut c_void,
) -> c_int {
    // SAFETY: attributes, by libfabric's contract.
    let name: *const c_char = unsafe { (*attr).name };
    // SAFETY: null, or a string that ends with a zero.
    let name = (!name.is_null()).then(|| unsafe { CStr::from_ptr(name) });
    let Some(profile) = ALL.iter().find(|profile| Some(profile.name) == name) else {
        return -fi::FI_ENODATA;
    };
    let fid = fid(fi::FI_CLASS_FABRIC, context, &FABRIC);
    let fid = fi::fid_fabric { fid, ops: held(&OF_FABRIC), api_version: HEADERS };
    let opened = Box::new(Fabric { fid, profile, domains: Arc::new(()) });
    // SAFETY: room for a pointer, by libfabric's contract.
    unsafe { *fabric = Box::into_raw(opened).cast() };
    0
}

unsafe extern "C" fn close_fabric(fid: *mut fi::fid) -> c_int {
    // SAFETY: an open fabric of this provider.
    let fabric = unsafe { Box::from_raw(fid.cast::<Fabric>()) };
    if Arc::strong_count(&fabric.domains) > 1 {
        broken(fabric.profile.text(), "close order", "a fabric was closed before its domain");
    }
    0
}

unsafe extern "C" fn trywait(_: *mut fi::fid_fabric, _: *mut *mut fi::fid, _: c_int) -> c_int {
    -fi::FI_ENOSYS
}

static DOMAIN: fi::fi_ops = operations(close, no_bind, control);

static OF_DOMAIN: fi::fi_ops_domain = fi::fi_ops_domain {
    size: size_of::<fi::fi_ops_domain>(),
    av_open: Some(table::open),
    cq_open: Some(queue::open),
    endpoint: Some(call::open),
    scalable_ep: None,
    cntr_open: None,
    poll_open: None,
    stx_ctx: None,
    srx_ctx: None,
    query_atomic: None,
    query_collective: None,
    endpoint2: None,
};

unsafe extern "C" fn open(
    fabric: *mut fi::fid_fabric,
    info: *mut fi::fi_info,
    domain: *mut *mut fi::fid_domain,
    context: *mut c_void,
) -> c_int {
    // SAFETY: an open fabric of this provider.
    let fabric = unsafe { &*fabric.cast::<Fabric>() };
    // SAFETY: an entry that this provider made, by libfabric's contract.
    let attr = unsafe { (*info).domain_attr };
    // SAFETY: as above.
    let mr_mode = unsafe { (*attr).mr_mode };
    if mr_mode as u64 != fabric.profile.mr_mode {
        broken(
            fabric.profile.text(),
            "mr_mode",
            "a domain was opened with another than was offered",
        );
    }
    let fid = fid(fi::FI_CLASS_DOMAIN, context, &DOMAIN);
    let fid = fi::fid_domain { fid, ops: held(&OF_DOMAIN), mr: held(&registration::OF_DOMAIN) };
    let Ok(opened) = Domain::new(fid, fabric.profile, &fabric.domains) else {
        return -fi::FI_ENOMEM;
    };
    let opened = Arc::new(opened);
    // SAFETY: room for a pointer, by libfabric's contract.
    unsafe { hand_over(opened, domain) }
}

unsafe extern "C" fn close(fid: *mut fi::fid) -> c_int {
    // SAFETY: an open domain of this provider, which libfabric gives back.
    let domain = unsafe { Arc::from_raw(fid.cast::<Domain>().cast_const()) };
    let users = Arc::strong_count(&domain) - 1;
    if users > 0 {
        domain.broken("close order", format!("a domain was closed before {users} objects in it"));
    }
    let mapped = domain.mapped.n();
    if mapped > 0 {
        let what = format!("a domain was closed before {mapped} keys were unmapped");
        domain.broken("fi_mr_unmap_key", what);
    }
    0
}

/// `fi_mr_map_raw` and `fi_mr_unmap_key`.
unsafe extern "C" fn control(fid: *mut fi::fid, command: c_int, what: *mut c_void) -> c_int {
    // SAFETY: an open domain of this provider.
    let domain = unsafe { &*fid.cast::<Domain>() };
    match command {
        fi::MAP_RAW_MR if domain.profile.asks(fi::FI_MR_RAW) => {
            // SAFETY: what the command comes with.
            let map = unsafe { &*what.cast::<fi::fi_mr_map_raw>() };
            // SAFETY: so many bytes, by libfabric's contract.
            let bytes = unsafe { std::slice::from_raw_parts(map.raw_key, map.key_size) };
            let Some((key, base)) = raw::unpacked(bytes) else {
                domain.broken("fi_mr_map_raw", "what was mapped is no raw key")
            };
            if base != map.base_addr {
                domain.broken("fi_mr_map_raw", "a raw key was mapped with another base address");
            }
            // SAFETY: room for a key, by libfabric's contract.
            unsafe { *map.key = domain.mapped.map(key) };
            0
        }
        fi::UNMAP_KEY if domain.profile.asks(fi::FI_MR_RAW) => {
            // SAFETY: what the command comes with.
            if !domain.mapped.unmap(unsafe { *what.cast::<u64>() }) {
                domain.broken("fi_mr_unmap_key", "a key was unmapped that was not mapped");
            }
            0
        }
        _ => -fi::FI_ENOSYS,
    }
}
