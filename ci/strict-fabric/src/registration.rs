//! Registered memory (memory regions of libfabric).
#![allow(unsafe_code)]

use crate::domain::Domain;
use crate::endpoint::StrictEp;
use crate::local_regions::LocalRegion;
use crate::memory::is_mapped;
use crate::object::{ObjectFid, base_ops, clone_ref, fid, return_object};
use crate::raw_key;
use crate::segment::ANY_ENDPOINT;
use libfabric_sys as fi;
use std::ffi::{c_int, c_void};
use std::ptr::null_mut;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

/// Registered memory.
#[repr(C)]
pub(crate) struct Registration {
    fid: ObjectFid<fi::fid_mr>,
    domain: Arc<Domain>,
    index: u32,
    /// The raw key, used with `FI_MR_RAW`.
    raw_key: [u8; raw_key::NBYTES],
    base: u64,
    endpoint: AtomicU32,
}

static REGISTRATION: fi::fi_ops = base_ops(close, bind, control);

/// The functions of a domain that register memory.
pub(crate) static MR_OPS: fi::fi_ops_mr = fi::fi_ops_mr {
    size: size_of::<fi::fi_ops_mr>(),
    reg: Some(register),
    regv: None,
    regattr: None,
};

unsafe extern "C" fn register(
    domain: *mut fi::fid,
    base: *const c_void,
    nbytes: usize,
    access: u64,
    offset: u64,
    key: u64,
    flags: u64,
    mr: *mut *mut fi::fid_mr,
    context: *mut c_void,
) -> c_int {
    // SAFETY: an open domain of this provider, by the contract of libfabric.
    let domain = unsafe { clone_ref(domain.cast::<Domain>()) };
    if offset != 0 || flags != 0 {
        return -fi::FI_EINVAL;
    }
    let (profile, base) = (domain.profile, base.expose_provenance() as u64);
    if nbytes > profile.max_region_bytes {
        return -fi::FI_EINVAL;
    }
    if profile.requires(fi::FI_MR_ALLOCATED) && !is_mapped(base, nbytes) {
        domain.violation(
            "FI_MR_ALLOCATED",
            "memory was registered that is not mapped",
        );
    }
    let fits = profile.key_bytes >= 8 || key >> (8 * profile.key_bytes) == 0;
    if !profile.requires(fi::FI_MR_PROV_KEY) && !fits {
        domain.violation(
            "mr_key_size",
            format!("the key {key:#x} is longer than keys are"),
        );
    }
    let Some(index) = domain.regions.lock().pop() else {
        return -fi::FI_ENOSPC;
    };
    let region = &domain.segment.regions[index as usize];
    let key = match profile.requires(fi::FI_MR_PROV_KEY) {
        // A different, unpredictable key each time.
        true => {
            let mixed = (u64::from(index) + (region.generation.load(Ordering::Relaxed) << 16))
                .wrapping_mul(0x9E37_79B9_7F4A_7C15);
            if profile.key_bytes >= 8 {
                mixed
            } else {
                mixed >> (64 - 8 * profile.key_bytes)
            }
        }
        false => key,
    };
    region.endpoint.store(ANY_ENDPOINT, Ordering::Relaxed);
    let words = [
        (&region.key, key),
        (&region.base, base),
        (&region.nbytes, nbytes as u64),
    ];
    words
        .into_iter()
        .for_each(|(place, word)| place.store(word, Ordering::Relaxed));
    region.access.store(access, Ordering::Relaxed);
    domain
        .segment
        .regions_used
        .fetch_max(index + 1, Ordering::Release);
    let is_raw = profile.requires(fi::FI_MR_RAW);
    let is_used = !profile.requires(fi::FI_MR_ENDPOINT);
    let fid = fid(fi::FI_CLASS_MR, context, &REGISTRATION);
    let registration = Arc::new(Registration {
        fid: ObjectFid(fi::fid_mr {
            fid,
            mem_desc: null_mut(),
            key: if is_raw { fi::KEY_NOTAVAIL } else { key },
        }),
        domain,
        index,
        raw_key: raw_key::encode(key, base),
        base,
        endpoint: AtomicU32::new(ANY_ENDPOINT),
    });
    let desc = Arc::as_ptr(&registration).addr();
    let region = LocalRegion {
        base,
        nbytes: nbytes as u64,
        access,
        endpoint: ANY_ENDPOINT,
        is_enabled: false,
        uses: 0,
    };
    registration.domain.local_regions.add(desc, region);
    if is_used {
        registration.activate();
    }
    // SAFETY: valid for writes, by the contract of libfabric, and a registration begins with its
    // fid.
    unsafe { return_object(registration, mr) };
    // SAFETY: valid, and initialized above.
    let mr = unsafe { *mr };
    // SAFETY: a new object, which no other thread can access yet.
    unsafe { (*mr).mem_desc = mr.cast() };
    0
}

unsafe extern "C" fn close(fid: *mut fi::fid) -> c_int {
    // SAFETY: an open registration of this provider, which the application no longer uses.
    let registration = unsafe { Arc::from_raw(fid.cast::<Registration>().cast_const()) };
    if registration.domain.local_regions.remove(fid.addr()) > 0 {
        registration.domain.violation(
            "fi_close",
            "a registration was closed before its operations completed",
        );
    }
    let region = registration.region();
    let generation = region.generation.load(Ordering::Relaxed);
    region
        .generation
        .store(generation + 1 + (generation + 1) % 2, Ordering::Release);
    registration.domain.regions.lock().push(registration.index);
    0
}

unsafe extern "C" fn bind(fid: *mut fi::fid, to: *mut fi::fid, _flags: u64) -> c_int {
    // SAFETY: an open registration of this provider, by the contract of libfabric.
    let registration = unsafe { &*fid.cast::<Registration>() };
    // SAFETY: an open object, by the contract of libfabric.
    if unsafe { (*to).fclass } != fi::FI_CLASS_EP as usize {
        return -fi::FI_EINVAL;
    }
    // SAFETY: an open endpoint, by its class.
    let number = unsafe { (*to.cast::<StrictEp>()).number };
    registration.endpoint.store(number, Ordering::Relaxed);
    registration
        .region()
        .endpoint
        .store(number, Ordering::Relaxed);
    registration
        .domain
        .local_regions
        .change(fid.addr(), |region| region.endpoint = number);
    0
}

unsafe extern "C" fn control(fid: *mut fi::fid, command: c_int, what: *mut c_void) -> c_int {
    // SAFETY: an open registration of this provider, by the contract of libfabric.
    let registration = unsafe { &*fid.cast::<Registration>() };
    match command {
        fi::ENABLE => registration.enable(),
        fi::GET_RAW_MR if registration.domain.profile.requires(fi::FI_MR_RAW) => {
            // SAFETY: the argument of this command, by the contract of libfabric.
            let attr = unsafe { &*what.cast() };
            // SAFETY: the argument of this command, by the contract of libfabric.
            unsafe { registration.raw_attr(attr) }
        }
        _ => -fi::FI_ENOSYS,
    }
}

impl Registration {
    fn region(&self) -> &crate::segment::Region {
        &self.domain.segment.regions[self.index as usize]
    }

    /// Implements `fi_mr_enable`.
    fn enable(&self) -> c_int {
        let is_required = self.domain.profile.requires(fi::FI_MR_ENDPOINT);
        if is_required && self.endpoint.load(Ordering::Relaxed) == ANY_ENDPOINT {
            self.domain.violation(
                "FI_MR_ENDPOINT",
                "a registration was enabled before it was bound",
            );
        }
        self.activate();
        0
    }

    /// Implements `fi_mr_raw_attr`.
    ///
    /// # Safety
    /// The pointers are valid for writes, `raw_key` for `key_size` bytes.
    unsafe fn raw_attr(&self, attr: &fi::fi_mr_raw_attr) -> c_int {
        // SAFETY: valid for writes, by contract.
        let room = unsafe { std::mem::replace(&mut *attr.key_size, raw_key::NBYTES) };
        if room < raw_key::NBYTES {
            return -(fi::FI_ETOOSMALL as c_int);
        }
        // SAFETY: valid for writes, by contract.
        unsafe { *attr.base_addr = self.base };
        // SAFETY: valid for enough bytes, as checked above.
        unsafe {
            attr.raw_key
                .copy_from_nonoverlapping(self.raw_key.as_ptr(), raw_key::NBYTES)
        };
        0
    }

    /// Makes the registration usable by operations.
    fn activate(&self) {
        let generation = self.region().generation.load(Ordering::Relaxed);
        self.region()
            .generation
            .store(generation | 1, Ordering::Release);
        let desc = std::ptr::from_ref(self).addr();
        self.domain
            .local_regions
            .change(desc, |region| region.is_enabled = true);
    }
}
