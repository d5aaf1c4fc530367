//! Registered memory (memory regions of libfabric).
#![allow(unsafe_code)]

use crate::domain::Domain;
use crate::endpoint::StrictEp;
use crate::local_regions::LocalRegion;
use crate::memory::is_mapped;
use crate::object::{ObjectFid, base_ops, clone_ref, fid, return_object};
use crate::profile::Profile;
use crate::raw_key::{self, RawKey};
use crate::segment::{ANY_ENDPOINT, Region};
use libfabric_sys as fi;
use std::ffi::{c_int, c_void};
use std::ptr::null_mut;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// Registered memory.
#[repr(C)]
pub(crate) struct Registration {
    fid: ObjectFid<fi::fid_mr>,
    domain: Arc<Domain>,
    index: u32,
    /// The raw key, used with `FI_MR_RAW`.
    raw_key: [u8; raw_key::NBYTES],
    base: u64,
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
    // SAFETY: `domain` is the fid of an open domain of this provider, by the contract of libfabric.
    let domain = unsafe { clone_ref(domain.cast::<Domain>()) };
    let profile = domain.profile;
    if offset != 0 || flags != 0 || nbytes > profile.max_region_bytes {
        return -fi::FI_EINVAL;
    }

    let base = base.expose_provenance() as u64;
    check(&domain, base, nbytes, key);

    let Some(index) = domain.regions.lock().pop() else {
        return -fi::FI_ENOSPC;
    };
    let region = &domain.segment.regions[index as usize];
    let key = if profile.requires(fi::FI_MR_PROV_KEY) {
        unpredictable_key(profile, index, region.generation.load(Ordering::Relaxed))
    } else {
        key
    };

    // Peers read these words only once the generation is odd, which `activate` publishes.
    region.endpoint.store(ANY_ENDPOINT, Ordering::Relaxed);
    region.key.store(key, Ordering::Relaxed);
    region.base.store(base, Ordering::Relaxed);
    region.nbytes.store(nbytes as u64, Ordering::Relaxed);
    region.access.store(access, Ordering::Relaxed);
    domain
        .segment
        .regions_used
        .fetch_max(index + 1, Ordering::Release);

    let is_raw = profile.requires(fi::FI_MR_RAW);
    let registration = Arc::new(Registration {
        fid: ObjectFid(fi::fid_mr {
            fid: fid(fi::FI_CLASS_MR, context, &REGISTRATION),
            mem_desc: null_mut(),
            key: if is_raw { fi::KEY_NOTAVAIL } else { key },
        }),
        domain,
        index,
        raw_key: RawKey { key, base }.encode(),
        base,
    });

    // The descriptor of a registration is its address.
    let desc = Arc::as_ptr(&registration).addr();
    let local_region = LocalRegion {
        base,
        nbytes: nbytes as u64,
        access,
        endpoint: ANY_ENDPOINT,
        is_enabled: false,
        uses: 0,
    };
    registration.domain.local_regions.add(desc, local_region);
    if !profile.requires(fi::FI_MR_ENDPOINT) {
        registration.activate();
    }

    // SAFETY: `mr` is valid for writes, by the contract of libfabric, and a registration begins
    // with its fid.
    unsafe { return_object(registration, mr) };
    // SAFETY: `mr` is valid, and was written above.
    let mr = unsafe { *mr };
    // SAFETY: `mr` points to a new object, which no other thread can access yet.
    unsafe { (*mr).mem_desc = mr.cast() };
    0
}

/// Ends the process if the profile forbids to register this memory, or with this key.
fn check(domain: &Domain, base: u64, nbytes: usize, key: u64) {
    let profile = domain.profile;
    if profile.requires(fi::FI_MR_ALLOCATED) && !is_mapped(base, nbytes) {
        domain.violation(
            "FI_MR_ALLOCATED",
            "memory was registered that is not mapped",
        );
    }

    // With FI_MR_PROV_KEY, the application's key is ignored.
    let fits = profile.key_bytes >= 8 || key >> (8 * profile.key_bytes) == 0;
    if !profile.requires(fi::FI_MR_PROV_KEY) && !fits {
        domain.violation(
            "mr_key_size",
            format!("the key {key:#x} is longer than keys are"),
        );
    }
}

/// Returns the key that the provider selects for a registration. It differs from those of earlier
/// registrations with this index, so that an application which keeps a key of a closed registration
/// fails.
fn unpredictable_key(profile: &Profile, index: u32, generation: u64) -> u64 {
    // An index has less than 16 bits. The factor is the golden ratio, which spreads the numbers
    // over all 64 bits, of which the highest are the best.
    let number = u64::from(index) + (generation << 16);
    let spread = number.wrapping_mul(0x9E37_79B9_7F4A_7C15);
    if profile.key_bytes >= 8 {
        spread
    } else {
        spread >> (64 - 8 * profile.key_bytes)
    }
}

unsafe extern "C" fn close(fid: *mut fi::fid) -> c_int {
    // SAFETY: `fid` is that of an open registration of this provider, which the application no
    // longer uses.
    let registration = unsafe { Arc::from_raw(fid.cast::<Registration>().cast_const()) };
    if registration.domain.local_regions.remove(fid.addr()) > 0 {
        registration.domain.violation(
            "fi_close",
            "a registration was closed before its operations completed",
        );
    }

    // The next even generation, also for a registration that was never enabled, whose is even.
    let region = registration.region();
    let generation = region.generation.load(Ordering::Relaxed);
    let next = generation + 1 + (generation + 1) % 2;
    region.generation.store(next, Ordering::Release);

    // Last: from now on a new registration may have the entry.
    registration.domain.regions.lock().push(registration.index);
    0
}

unsafe extern "C" fn bind(fid: *mut fi::fid, to: *mut fi::fid, _flags: u64) -> c_int {
    // SAFETY: `fid` is that of an open registration of this provider, by the contract of libfabric.
    let registration = unsafe { &*fid.cast::<Registration>() };
    // SAFETY: `to` is the fid of an open object, by the contract of libfabric.
    if unsafe { (*to).fclass } != fi::FI_CLASS_EP as usize {
        return -fi::FI_EINVAL;
    }
    // SAFETY: `to` is the fid of an open endpoint, by its class.
    let number = unsafe { (*to.cast::<StrictEp>()).number };

    // Relaxed: with FI_MR_ENDPOINT, a registration is bound before it is enabled, and `activate`
    // publishes this word.
    let region = registration.region();
    region.endpoint.store(number, Ordering::Relaxed);
    registration
        .domain
        .local_regions
        .change(fid.addr(), |region| region.endpoint = number);
    0
}

unsafe extern "C" fn control(fid: *mut fi::fid, command: c_int, what: *mut c_void) -> c_int {
    // SAFETY: `fid` is that of an open registration of this provider, by the contract of libfabric.
    let registration = unsafe { &*fid.cast::<Registration>() };
    match command {
        fi::ENABLE => registration.enable(),
        fi::GET_RAW_MR if registration.domain.profile.requires(fi::FI_MR_RAW) => {
            // SAFETY: `what` is the argument of this command, by the contract of libfabric.
            let attr = unsafe { &*what.cast() };
            // SAFETY: the pointers of `attr` are valid for writes, by the contract of libfabric.
            unsafe { registration.raw_attr(attr) }
        }
        _ => -fi::FI_ENOSYS,
    }
}

impl Registration {
    /// Returns its entry in the table that peers read.
    fn region(&self) -> &Region {
        &self.domain.segment.regions[self.index as usize]
    }

    /// Implements `fi_mr_enable`.
    fn enable(&self) -> c_int {
        let is_required = self.domain.profile.requires(fi::FI_MR_ENDPOINT);
        let endpoint = self.region().endpoint.load(Ordering::Relaxed);
        if is_required && endpoint == ANY_ENDPOINT {
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
        // SAFETY: `key_size` is valid for writes, by contract.
        let room = unsafe { std::mem::replace(&mut *attr.key_size, raw_key::NBYTES) };
        if room < raw_key::NBYTES {
            return -(fi::FI_ETOOSMALL as c_int);
        }
        // SAFETY: `base_addr` is valid for writes, by contract.
        unsafe { *attr.base_addr = self.base };
        // SAFETY: `raw_key` is valid for enough bytes, as checked above.
        unsafe {
            attr.raw_key
                .copy_from_nonoverlapping(self.raw_key.as_ptr(), raw_key::NBYTES)
        };
        0
    }

    /// Makes the registration usable by operations.
    fn activate(&self) {
        let region = self.region();
        let generation = region.generation.load(Ordering::Relaxed);
        // Odd, also if the application enables it twice.
        region.generation.store(generation | 1, Ordering::Release);

        let desc = std::ptr::from_ref(self).addr();
        self.domain
            .local_regions
            .change(desc, |region| region.is_enabled = true);
    }
}
