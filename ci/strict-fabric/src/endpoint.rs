//! Endpoints: creating, binding, enabling and closing them.
#![allow(unsafe_code)]

use crate::address_vector::{AddressVector, EndpointAddress, MAGIC};
use crate::domain::Domain;
use crate::engine::Engine;
use crate::object::{ObjectFid, base_ops, clone_ref, fid, ops_ptr, return_object};
use crate::profile::Profile;
use crate::queue::{Queue, QueueState};
use libfabric_sys as fi;
use parking_lot::Mutex;
use std::ffi::{c_int, c_void};
use std::ptr::null_mut;
use std::sync::atomic::Ordering;
use std::sync::{Arc, OnceLock};

/// The objects that an endpoint has been bound to.
#[derive(Default)]
struct Bindings {
    queue: Option<Arc<Queue>>,
    sends: bool,
    receives: bool,
    selective: bool,
    av: Option<Arc<AddressVector>>,
}

/// The location of an enabled endpoint's engine.
pub(crate) struct Ready {
    pub(crate) queue: Arc<Queue>,
    pub(crate) index: usize,
}

/// An endpoint.
#[repr(C)]
pub(crate) struct StrictEp {
    fid: ObjectFid<fi::fid_ep>,
    pub(crate) domain: Arc<Domain>,
    pub(crate) profile: &'static Profile,
    pub(crate) number: u32,
    /// The flags of operations that are posted without flags.
    pub(crate) op_flags: u64,
    tx_size: usize,
    bindings: Mutex<Bindings>,
    pub(crate) ready: OnceLock<Ready>,
}

static ENDPOINT: fi::fi_ops = base_ops(close, bind, control);

static EP_OPS: fi::fi_ops_ep = fi::fi_ops_ep {
    size: size_of::<fi::fi_ops_ep>(),
    cancel: None,
    getopt: None,
    setopt: None,
    tx_ctx: None,
    rx_ctx: None,
    rx_size_left: None,
    tx_size_left: None,
};

static CM_OPS: fi::fi_ops_cm = fi::fi_ops_cm {
    size: size_of::<fi::fi_ops_cm>(),
    setname: None,
    getname: Some(getname),
    getpeer: None,
    connect: None,
    listen: None,
    accept: None,
    reject: None,
    shutdown: None,
    join: None,
};

/// The tables of the data transfer functions.
pub(crate) struct Calls {
    pub(crate) messages: &'static fi::fi_ops_msg,
    pub(crate) remote: &'static fi::fi_ops_rma,
    pub(crate) atomic: &'static fi::fi_ops_atomic,
}

/// Implements `fi_endpoint`, with these data transfer functions.
///
/// # Safety
/// The contract of `fi_endpoint`.
pub(crate) unsafe fn open(
    calls: &Calls,
    domain: *mut fi::fid_domain,
    info: *mut fi::fi_info,
    ep: *mut *mut fi::fid_ep,
    context: *mut c_void,
) -> c_int {
    // SAFETY: `domain` is an open domain of this provider, by contract.
    let domain = unsafe { clone_ref(domain.cast::<Domain>()) };
    // SAFETY: `info` points to an entry of this provider, by contract.
    let attr = unsafe { (*info).tx_attr };
    // SAFETY: `attr` is not null: an entry of this provider has all attributes.
    let &fi::fi_tx_attr { op_flags, size, .. } = unsafe { &*attr };

    let profile = domain.profile;
    if size > profile.tx_size {
        domain.violation(
            "tx_attr.size",
            format!("{size} is more than {}", profile.tx_size),
        );
    }

    let Some(number) = domain.endpoints.lock().pop() else {
        return -fi::FI_ENOSPC;
    };
    let endpoint = Arc::new(StrictEp {
        fid: ObjectFid(fi::fid_ep {
            fid: fid(fi::FI_CLASS_EP, context, &ENDPOINT),
            ops: ops_ptr(&EP_OPS),
            cm: ops_ptr(&CM_OPS),
            msg: ops_ptr(calls.messages),
            rma: ops_ptr(calls.remote),
            tagged: null_mut(),
            atomic: ops_ptr(calls.atomic),
            collective: null_mut(),
        }),
        domain,
        profile,
        number,
        op_flags,
        tx_size: if size == 0 { profile.tx_size } else { size },
        bindings: Mutex::new(Bindings::default()),
        ready: OnceLock::new(),
    });
    // SAFETY: `ep` is valid for writes, by contract, and an endpoint begins with its fid.
    unsafe { return_object(endpoint, ep) }
}

unsafe extern "C" fn close(fid: *mut fi::fid) -> c_int {
    // SAFETY: `fid` is that of an open endpoint of this provider, which the application no longer
    // uses.
    let endpoint = unsafe { Arc::from_raw(fid.cast::<StrictEp>().cast_const()) };
    if let Some(Ready { queue, index }) = endpoint.ready.get() {
        let mut inner = queue.inner.lock();
        let QueueState {
            completions,
            engines,
        } = &mut *inner;
        if let Some(mut engine) = engines[*index].take() {
            engine.close(completions);
        }
    }

    let mut regions = endpoint.domain.segment.regions.iter();
    if regions.any(|region| region.is_bound_to(endpoint.number)) {
        endpoint.domain.violation(
            "FI_MR_ENDPOINT",
            "an endpoint was closed before its registrations",
        );
    }

    // Last: from now on a new endpoint may have the number.
    endpoint.domain.endpoints.lock().push(endpoint.number);
    0
}

unsafe extern "C" fn bind(fid: *mut fi::fid, to: *mut fi::fid, flags: u64) -> c_int {
    // SAFETY: `fid` is that of an open endpoint of this provider, by the contract of libfabric.
    let endpoint = unsafe { &*fid.cast::<StrictEp>() };
    // SAFETY: `to` is the fid of an open object, by the contract of libfabric.
    let class = unsafe { (*to).fclass } as u32;
    if endpoint.ready.get().is_some() {
        endpoint
            .domain
            .violation("fi_ep_bind", "an endpoint was bound after it was enabled");
    }

    let mut bindings = endpoint.bindings.lock();
    match class {
        fi::FI_CLASS_CQ => {
            // SAFETY: `to` is the fid of an open queue, by its class.
            let queue = unsafe { clone_ref(to.cast::<Queue>()) };
            // A queue for sends and another one for receives are not supported.
            let previous = bindings.queue.replace(Arc::clone(&queue));
            if previous.is_some_and(|previous| !Arc::ptr_eq(&previous, &queue)) {
                return -fi::FI_ENOSYS;
            }
            bindings.sends |= flags & fi::FI_TRANSMIT != 0;
            bindings.receives |= flags & fi::FI_RECV != 0;
            bindings.selective |= flags & fi::FI_SELECTIVE_COMPLETION != 0;
            0
        }
        fi::FI_CLASS_AV => {
            // SAFETY: `to` is the fid of an open address vector, by its class.
            bindings.av = Some(unsafe { clone_ref(to.cast::<AddressVector>()) });
            0
        }
        _ => -fi::FI_ENOSYS,
    }
}

unsafe extern "C" fn control(fid: *mut fi::fid, command: c_int, _: *mut c_void) -> c_int {
    // SAFETY: `fid` is that of an open endpoint of this provider, by the contract of libfabric.
    let endpoint = unsafe { &*fid.cast::<StrictEp>() };
    if command != fi::ENABLE {
        return -fi::FI_ENOSYS;
    }

    let bindings = std::mem::take(&mut *endpoint.bindings.lock());
    let Bindings {
        queue: Some(queue),
        av: Some(av),
        sends: true,
        receives: true,
        selective,
    } = bindings
    else {
        endpoint.domain.violation(
            "fi_enable",
            "an endpoint was enabled without a queue and an address vector",
        )
    };

    let engine = Engine::new(
        &endpoint.domain,
        endpoint.number,
        av,
        selective,
        endpoint.tx_size,
    );
    let mut inner = queue.inner.lock();
    let index = inner.engines.len();
    inner.engines.push(Some(engine));
    drop(inner);

    match endpoint.ready.set(Ready { queue, index }) {
        Ok(()) => 0,
        Err(_) => -(fi::FI_EOPBADSTATE as i32),
    }
}

unsafe extern "C" fn getname(fid: *mut fi::fid, to: *mut c_void, nbytes: *mut usize) -> c_int {
    // SAFETY: `fid` is that of an open endpoint of this provider, by the contract of libfabric.
    let endpoint = unsafe { &*fid.cast::<StrictEp>() };
    let domain = &endpoint.domain;
    let address = EndpointAddress {
        magic: MAGIC,
        pid: domain.pid,
        fd: domain.fd(),
        endpoint: endpoint.number,
        reserved: 0,
        nonce: domain.segment.nonce.load(Ordering::Acquire),
    };

    // The length is stored even if there is no room, so that the application can ask for it.
    // SAFETY: `nbytes` is valid for reads and writes, by the contract of libfabric.
    let room = unsafe { std::mem::replace(&mut *nbytes, size_of::<EndpointAddress>()) };
    if room < size_of::<EndpointAddress>() {
        return -(fi::FI_ETOOSMALL as i32);
    }
    // SAFETY: `to` has room for an address, as checked above.
    unsafe { to.cast::<EndpointAddress>().write_unaligned(address) };
    0
}

impl StrictEp {
    /// Returns the location of the engine. It is a violation if the endpoint is not enabled.
    #[inline]
    pub(crate) fn ready(&self) -> &Ready {
        match self.ready.get() {
            Some(ready) => ready,
            None => self
                .domain
                .violation("fi_enable", "an operation was posted before it"),
        }
    }
}
