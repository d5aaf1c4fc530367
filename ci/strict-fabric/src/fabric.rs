//! Opening and closing fabrics and domains.
#![allow(unsafe_code)]

use crate::domain::Domain;
use crate::info::HEADERS;
use crate::object::{base_ops, fid, no_bind, no_control, ops_ptr, return_object};
use crate::profile::{ALL, Profile, violated};
use crate::raw_key::RawKey;
use crate::{address_vector, call, queue, registration};
use libfabric_sys as fi;
use std::ffi::{CStr, c_char, c_int, c_void};
use std::sync::Arc;

/// An open fabric. libfabric passes it as a pointer to its `fid`, so that is the first field.
#[repr(C)]
struct Fabric {
    fid: fi::fid_fabric,
    profile: &'static Profile,
    /// Each open domain has a clone, which shows whether the fabric is closed too early.
    domains: Arc<()>,
}

static FABRIC: fi::fi_ops = base_ops(close_fabric, no_bind, no_control);

static FABRIC_OPS: fi::fi_ops_fabric = fi::fi_ops_fabric {
    size: size_of::<fi::fi_ops_fabric>(),
    domain: Some(open),
    passive_ep: None,
    eq_open: None,
    wait_open: None,
    trywait: Some(trywait),
    domain2: None,
};

/// Implements `fi_fabric`.
pub(crate) unsafe extern "C" fn fabric(
    attr: *mut fi::fi_fabric_attr,
    fabric: *mut *mut fi::fid_fabric,
    context: *mut c_void,
) -> c_int {
    // SAFETY: `attr` points to valid attributes, by the contract of libfabric.
    let name: *const c_char = unsafe { (*attr).name };
    if name.is_null() {
        return -fi::FI_ENODATA;
    }
    // SAFETY: `name` is a C string, by the contract of libfabric.
    let name = unsafe { CStr::from_ptr(name) };
    let Some(profile) = ALL.iter().find(|profile| profile.name == name) else {
        return -fi::FI_ENODATA;
    };

    let opened = Box::new(Fabric {
        fid: fi::fid_fabric {
            fid: fid(fi::FI_CLASS_FABRIC, context, &FABRIC),
            ops: ops_ptr(&FABRIC_OPS),
            api_version: HEADERS,
        },
        profile,
        domains: Arc::new(()),
    });
    // SAFETY: `fabric` is valid for writes, by the contract of libfabric.
    unsafe { *fabric = Box::into_raw(opened).cast() };
    0
}

unsafe extern "C" fn close_fabric(fid: *mut fi::fid) -> c_int {
    // SAFETY: `fid` is that of an open fabric of this provider, which the application no longer
    // uses.
    let fabric = unsafe { Box::from_raw(fid.cast::<Fabric>()) };
    if Arc::strong_count(&fabric.domains) > 1 {
        violated(
            fabric.profile.text(),
            "close order",
            "a fabric was closed before its domain",
        );
    }
    0
}

unsafe extern "C" fn trywait(_: *mut fi::fid_fabric, _: *mut *mut fi::fid, _: c_int) -> c_int {
    -fi::FI_ENOSYS
}

static DOMAIN: fi::fi_ops = base_ops(close, no_bind, control);

static DOMAIN_OPS: fi::fi_ops_domain = fi::fi_ops_domain {
    size: size_of::<fi::fi_ops_domain>(),
    av_open: Some(address_vector::open),
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
    // SAFETY: `fabric` is an open fabric of this provider, by the contract of libfabric.
    let fabric = unsafe { &*fabric.cast::<Fabric>() };
    if fabric.profile.crashes {
        std::process::abort();
    }

    // SAFETY: `info` points to an entry of this provider, by the contract of libfabric.
    let attr = unsafe { (*info).domain_attr };
    // SAFETY: `attr` is not null: an entry of this provider has all attributes.
    let mr_mode = unsafe { (*attr).mr_mode };
    if mr_mode as u64 != fabric.profile.mr_mode {
        violated(
            fabric.profile.text(),
            "mr_mode",
            "a domain was opened with an mr_mode that was not offered",
        );
    }

    let fid = fi::fid_domain {
        fid: fid(fi::FI_CLASS_DOMAIN, context, &DOMAIN),
        ops: ops_ptr(&DOMAIN_OPS),
        mr: ops_ptr(&registration::MR_OPS),
    };
    let Ok(opened) = Domain::new(fid, fabric.profile, &fabric.domains) else {
        return -fi::FI_ENOMEM;
    };
    // SAFETY: `domain` is valid for writes, by the contract of libfabric, and a domain begins with
    // its fid.
    unsafe { return_object(Arc::new(opened), domain) }
}

unsafe extern "C" fn close(fid: *mut fi::fid) -> c_int {
    // SAFETY: `fid` is that of an open domain of this provider, which the application no longer
    // uses.
    let domain = unsafe { Arc::from_raw(fid.cast::<Domain>().cast_const()) };
    let n_objects = Arc::strong_count(&domain) - 1;
    if n_objects > 0 {
        domain.violation(
            "close order",
            format!("a domain was closed before {n_objects} objects in it"),
        );
    }

    let n_mapped = domain.mapped.n();
    if n_mapped > 0 {
        domain.violation(
            "fi_mr_unmap_key",
            format!("a domain was closed before {n_mapped} keys were unmapped"),
        );
    }
    0
}

/// Implements `fi_mr_map_raw` and `fi_mr_unmap_key`.
unsafe extern "C" fn control(fid: *mut fi::fid, command: c_int, what: *mut c_void) -> c_int {
    // SAFETY: `fid` is that of an open domain of this provider, by the contract of libfabric.
    let domain = unsafe { &*fid.cast::<Domain>() };
    match command {
        fi::MAP_RAW_MR if domain.profile.requires(fi::FI_MR_RAW) => {
            // SAFETY: `what` is the argument of this command, by the contract of libfabric.
            let map = unsafe { &*what.cast::<fi::fi_mr_map_raw>() };
            // SAFETY: `raw_key` points to `key_size` bytes, by the contract of libfabric.
            let bytes = unsafe { std::slice::from_raw_parts(map.raw_key, map.key_size) };
            let Some(raw) = RawKey::decode(bytes) else {
                domain.violation("fi_mr_map_raw", "what was mapped is not a raw key")
            };
            if raw.base != map.base_addr {
                domain.violation(
                    "fi_mr_map_raw",
                    "a raw key was mapped with another base address",
                );
            }
            // SAFETY: `map.key` is valid for writes, by the contract of libfabric.
            unsafe { *map.key = domain.mapped.map(raw.key) };
            0
        }
        fi::UNMAP_KEY if domain.profile.requires(fi::FI_MR_RAW) => {
            // SAFETY: `what` is the argument of this command, by the contract of libfabric.
            let key = unsafe { *what.cast::<u64>() };
            if !domain.mapped.unmap(key) {
                domain.violation("fi_mr_unmap_key", "a key was unmapped that is not mapped");
            }
            0
        }
        _ => -fi::FI_ENOSYS,
    }
}
