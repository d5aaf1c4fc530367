//! libfabric's memory regions.
#![allow(unsafe_code)]

use crate::domain::Domain;
use crate::endpoint::Endpoint;
use crate::known::Own;
use crate::memory::is_mapped;
use crate::object::{fid, hand_over, operations, shared};
use crate::raw;
use crate::segment::ANY;
use libfabric_sys as fi;
use std::ffi::{c_int, c_void};
use std::ptr::null_mut;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

/// Registered memory.
#[repr(C)]
pub(crate) struct Registration {
    fid: fi::fid_mr,
    domain: Arc<Domain>,
    index: u32,
    /// For peers, where keys are raw.
    raw: [u8; raw::NBYTES],
    /// The base address.
    base: u64,
    /// The endpoint that it was bound to.
    endpoint: AtomicU32,
}

// SAFETY: what libfabric reads of it does not change; the rest can be shared.
unsafe impl Send for Registration {}
// SAFETY: as above.
unsafe impl Sync for Registration {}

static REGISTRATION: fi::fi_ops = operations(close, bind, control);

/// What a domain has for registering.
pub(crate) static OF_DOMAIN: fi::fi_ops_mr = fi::fi_ops_mr {
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
    // SAFETY: an open domain of this provider.
    let domain = unsafe { shared(domain.cast::<Domain>()) };
    if offset != 0 || flags != 0 {
        return -fi::FI_EINVAL;
    }
    let (profile, base) = (domain.profile, base.expose_provenance() as u64);
    if profile.asks(fi::FI_MR_ALLOCATED) && !is_mapped(base, nbytes) {
        domain.broken("FI_MR_ALLOCATED", "memory was registered that is not there");
    }
    let fits = profile.key_bytes >= 8 || key >> (8 * profile.key_bytes) == 0;
    if !profile.asks(fi::FI_MR_PROV_KEY) && !fits {
        domain.broken("mr_key_size", format!("the key {key:#x} is longer than keys are"));
    }
    let Some(index) = domain.regions.enter().pop() else { return -fi::FI_ENOSPC };
    let region = &domain.segment.regions[index as usize];
    let key = match profile.asks(fi::FI_MR_PROV_KEY) {
        // Nobody guesses it, and it is another each time.
        true => {
            let mixed = (u64::from(index) + (region.life.load(Ordering::Relaxed) << 16))
                .wrapping_mul(0x9E37_79B9_7F4A_7C15);
            if profile.key_bytes >= 8 { mixed } else { mixed >> (64 - 8 * profile.key_bytes) }
        }
        false => key,
    };
    region.endpoint.store(ANY, Ordering::Relaxed);
    let words = [(&region.key, key), (&region.base, base), (&region.nbytes, nbytes as u64)];
    words.into_iter().for_each(|(place, word)| place.store(word, Ordering::Relaxed));
    region.access.store(access, Ordering::Relaxed);
    domain.segment.regions_used.fetch_max(index + 1, Ordering::Release);
    let is_raw = profile.asks(fi::FI_MR_RAW);
    let is_used = !profile.asks(fi::FI_MR_ENDPOINT);
    let fid = fid(fi::FI_CLASS_MR, context, &REGISTRATION);
    let made = Arc::new(Registration {
        fid: fi::fid_mr {
            fid,
            mem_desc: null_mut(),
            key: if is_raw { fi::KEY_NOTAVAIL } else { key },
        },
        domain,
        index,
        raw: raw::packed(key, base),
        base,
        endpoint: AtomicU32::new(ANY),
    });
    let desc = Arc::as_ptr(&made).addr();
    let own =
        Own { base, nbytes: nbytes as u64, access, endpoint: ANY, is_enabled: false, uses: 0 };
    made.domain.known.add(desc, own);
    if is_used {
        made.begin();
    }
    // SAFETY: room for a pointer, by libfabric's contract.
    unsafe { hand_over(made, mr) };
    // SAFETY: stored above.
    let mr = unsafe { *mr };
    // SAFETY: an object that nobody else has.
    unsafe { (*mr).mem_desc = mr.cast() };
    0
}

unsafe extern "C" fn close(fid: *mut fi::fid) -> c_int {
    // SAFETY: an open registration of this provider, which libfabric gives back.
    let made = unsafe { Arc::from_raw(fid.cast::<Registration>().cast_const()) };
    if made.domain.known.forget(fid.addr()) > 0 {
        made.domain.broken("fi_close", "a registration was closed before its operations were over");
    }
    let region = made.region();
    let life = region.life.load(Ordering::Relaxed);
    region.life.store(life + 1 + (life + 1) % 2, Ordering::Release);
    made.domain.regions.enter().push(made.index);
    0
}

unsafe extern "C" fn bind(fid: *mut fi::fid, to: *mut fi::fid, _flags: u64) -> c_int {
    // SAFETY: an open registration of this provider.
    let made = unsafe { &*fid.cast::<Registration>() };
    // SAFETY: an open object.
    if unsafe { (*to).fclass } != fi::FI_CLASS_EP as usize {
        return -fi::FI_EINVAL;
    }
    // SAFETY: an open endpoint, by its class.
    let number = unsafe { (*to.cast::<Endpoint>()).number };
    made.endpoint.store(number, Ordering::Relaxed);
    made.region().endpoint.store(number, Ordering::Relaxed);
    made.domain.known.change(fid.addr(), |own| own.endpoint = number);
    0
}

unsafe extern "C" fn control(fid: *mut fi::fid, command: c_int, what: *mut c_void) -> c_int {
    // SAFETY: an open registration of this provider.
    let made = unsafe { &*fid.cast::<Registration>() };
    match command {
        fi::ENABLE => made.enable(),
        fi::GET_RAW_MR if made.domain.profile.asks(fi::FI_MR_RAW) => {
            // SAFETY: what the command comes with.
            let attr = unsafe { &*what.cast() };
            // SAFETY: libfabric's contract.
            unsafe { made.tell(attr) }
        }
        _ => -fi::FI_ENOSYS,
    }
}

impl Registration {
    fn region(&self) -> &crate::segment::Region {
        &self.domain.segment.regions[self.index as usize]
    }

    /// `fi_mr_enable`.
    fn enable(&self) -> c_int {
        let asks = self.domain.profile.asks(fi::FI_MR_ENDPOINT);
        if asks && self.endpoint.load(Ordering::Relaxed) == ANY {
            self.domain.broken("FI_MR_ENDPOINT", "a registration was enabled before it was bound");
        }
        self.begin();
        0
    }

    /// `fi_mr_raw_attr`.
    ///
    /// # Safety
    /// libfabric's contract: room for what is told, and for as many bytes of the key as it says.
    unsafe fn tell(&self, attr: &fi::fi_mr_raw_attr) -> c_int {
        // SAFETY: by contract.
        let room = unsafe { std::mem::replace(&mut *attr.key_size, raw::NBYTES) };
        if room < raw::NBYTES {
            return -(fi::FI_ETOOSMALL as c_int);
        }
        // SAFETY: by contract.
        unsafe { *attr.base_addr = self.base };
        // SAFETY: by contract, enough bytes as was seen above.
        unsafe { attr.raw_key.copy_from_nonoverlapping(self.raw.as_ptr(), raw::NBYTES) };
        0
    }

    /// From now on it is in use.
    fn begin(&self) {
        let life = self.region().life.load(Ordering::Relaxed);
        self.region().life.store(life | 1, Ordering::Release);
        let desc = std::ptr::from_ref(self).addr();
        self.domain.known.change(desc, |own| own.is_enabled = true);
    }
}
