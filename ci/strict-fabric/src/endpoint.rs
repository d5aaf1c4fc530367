//! libfabric's endpoints: what they are bound to, and when they are ready.
#![allow(unsafe_code)]

use crate::domain::Domain;
use crate::engine::Engine;
use crate::gate::Gate;
use crate::object::{fid, hand_over, held, operations, shared};
use crate::profile::Profile;
use crate::queue::{Inner, Queue};
use crate::table::{KIND, Name, Table};
use libfabric_sys as fi;
use std::ffi::{c_int, c_void};
use std::ptr::null_mut;
use std::sync::atomic::Ordering;
use std::sync::{Arc, OnceLock};

/// What an endpoint was bound to so far.
#[derive(Default)]
struct Bound {
    queue: Option<Arc<Queue>>,
    sends: bool,
    receives: bool,
    selective: bool,
    table: Option<Arc<Table>>,
}

/// Where an endpoint that is ready has its engine.
pub(crate) struct Ready {
    pub(crate) queue: Arc<Queue>,
    pub(crate) index: usize,
}

/// An endpoint.
#[repr(C)]
pub(crate) struct Endpoint {
    fid: fi::fid_ep,
    pub(crate) domain: Arc<Domain>,
    pub(crate) profile: &'static Profile,
    pub(crate) number: u32,
    /// Of operations that come without flags.
    pub(crate) op_flags: u64,
    tx_size: usize,
    bound: Gate<Bound>,
    pub(crate) ready: OnceLock<Ready>,
}

// SAFETY: what libfabric reads of it does not change; the rest can be shared.
unsafe impl Send for Endpoint {}
// SAFETY: as above.
unsafe impl Sync for Endpoint {}

static ENDPOINT: fi::fi_ops = operations(close, bind, control);

static OF_ENDPOINT: fi::fi_ops_ep = fi::fi_ops_ep {
    size: size_of::<fi::fi_ops_ep>(),
    cancel: None,
    getopt: None,
    setopt: None,
    tx_ctx: None,
    rx_ctx: None,
    rx_size_left: None,
    tx_size_left: None,
};

static NAMES: fi::fi_ops_cm = fi::fi_ops_cm {
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

/// The calls that post operations.
pub(crate) struct Calls {
    pub(crate) messages: &'static fi::fi_ops_msg,
    pub(crate) remote: &'static fi::fi_ops_rma,
    pub(crate) atomic: &'static fi::fi_ops_atomic,
}

/// `fi_endpoint`, of an endpoint with these calls.
///
/// # Safety
/// libfabric's contract.
pub(crate) unsafe fn open(
    calls: &Calls,
    domain: *mut fi::fid_domain,
    info: *mut fi::fi_info,
    ep: *mut *mut fi::fid_ep,
    context: *mut c_void,
) -> c_int {
    // SAFETY: an open domain of this provider.
    let domain = unsafe { shared(domain.cast::<Domain>()) };
    // SAFETY: an entry that this provider made, by libfabric's contract.
    let attr = unsafe { (*info).tx_attr };
    // SAFETY: as above.
    let &fi::fi_tx_attr { op_flags, size, .. } = unsafe { &*attr };
    let profile = domain.profile;
    if size > profile.tx_size {
        domain.broken("tx_attr.size", format!("{size} is more than {}", profile.tx_size));
    }
    let Some(number) = domain.endpoints.enter().pop() else { return -fi::FI_ENOSPC };
    let endpoint = Arc::new(Endpoint {
        fid: fi::fid_ep {
            fid: fid(fi::FI_CLASS_EP, context, &ENDPOINT),
            ops: held(&OF_ENDPOINT),
            cm: held(&NAMES),
            msg: held(calls.messages),
            rma: held(calls.remote),
            tagged: null_mut(),
            atomic: held(calls.atomic),
            collective: null_mut(),
        },
        domain,
        profile,
        number,
        op_flags,
        tx_size: if size == 0 { profile.tx_size } else { size },
        bound: Gate::new(Bound::default()),
        ready: OnceLock::new(),
    });
    // SAFETY: room for a pointer, by libfabric's contract.
    unsafe { hand_over(endpoint, ep) }
}

unsafe extern "C" fn close(fid: *mut fi::fid) -> c_int {
    // SAFETY: an open endpoint of this provider, which libfabric gives back.
    let endpoint = unsafe { Arc::from_raw(fid.cast::<Endpoint>().cast_const()) };
    if let Some(Ready { queue, index }) = endpoint.ready.get() {
        let mut inner = queue.inner.enter();
        let Inner { done, engines } = &mut *inner;
        if let Some(mut engine) = engines[*index].take() {
            engine.leave(done);
        }
    }
    if endpoint.domain.segment.regions.iter().any(|region| region.is_of(endpoint.number)) {
        endpoint.domain.broken("FI_MR_ENDPOINT", "an endpoint was closed before its registrations");
    }
    endpoint.domain.endpoints.enter().push(endpoint.number);
    0
}

unsafe extern "C" fn bind(fid: *mut fi::fid, to: *mut fi::fid, flags: u64) -> c_int {
    // SAFETY: an open endpoint of this provider.
    let endpoint = unsafe { &*fid.cast::<Endpoint>() };
    // SAFETY: an open object.
    let class = unsafe { (*to).fclass } as u32;
    if endpoint.ready.get().is_some() {
        endpoint.domain.broken("fi_ep_bind", "an endpoint was bound after it was enabled");
    }
    let mut bound = endpoint.bound.enter();
    match class {
        fi::FI_CLASS_CQ => {
            // SAFETY: an open queue, by its class.
            let queue = unsafe { shared(to.cast::<Queue>()) };
            let other = bound.queue.replace(Arc::clone(&queue));
            if other.is_some_and(|other| !Arc::ptr_eq(&other, &queue)) {
                return -fi::FI_ENOSYS;
            }
            bound.sends |= flags & fi::FI_TRANSMIT != 0;
            bound.receives |= flags & fi::FI_RECV != 0;
            bound.selective |= flags & fi::FI_SELECTIVE_COMPLETION != 0;
            0
        }
        fi::FI_CLASS_AV => {
            // SAFETY: an open table, by its class.
            bound.table = Some(unsafe { shared(to.cast::<Table>()) });
            0
        }
        _ => -fi::FI_ENOSYS,
    }
}

unsafe extern "C" fn control(fid: *mut fi::fid, command: c_int, _: *mut c_void) -> c_int {
    // SAFETY: an open endpoint of this provider.
    let endpoint = unsafe { &*fid.cast::<Endpoint>() };
    if command != fi::ENABLE {
        return -fi::FI_ENOSYS;
    }
    let mut bound = endpoint.bound.enter();
    let Bound { queue: Some(queue), table: Some(table), sends: true, receives: true, selective } =
        std::mem::take(&mut *bound)
    else {
        endpoint.domain.broken("fi_enable", "an endpoint was enabled without a queue and a table")
    };
    let engine = Engine::new(&endpoint.domain, endpoint.number, table, selective, endpoint.tx_size);
    let mut inner = queue.inner.enter();
    let index = inner.engines.len();
    inner.engines.push(Some(engine));
    drop(inner);
    match endpoint.ready.set(Ready { queue, index }) {
        Ok(()) => 0,
        Err(_) => -(fi::FI_EOPBADSTATE as i32),
    }
}

unsafe extern "C" fn getname(fid: *mut fi::fid, to: *mut c_void, nbytes: *mut usize) -> c_int {
    // SAFETY: an open endpoint of this provider.
    let endpoint = unsafe { &*fid.cast::<Endpoint>() };
    let domain = &endpoint.domain;
    let nonce = domain.segment.nonce.load(Ordering::Acquire);
    let (pid, fd) = (domain.pid, domain.fd());
    let name = Name { kind: KIND, pid, fd, endpoint: endpoint.number, reserved: 0, nonce };
    // SAFETY: a number, by libfabric's contract.
    let room = unsafe { std::mem::replace(&mut *nbytes, size_of::<Name>()) };
    if room < size_of::<Name>() {
        return -(fi::FI_ETOOSMALL as i32);
    }
    // SAFETY: room for so many bytes, by libfabric's contract.
    unsafe { to.cast::<Name>().write_unaligned(name) };
    0
}

impl Endpoint {
    /// Where its engine is.
    #[inline]
    pub(crate) fn ready(&self) -> &Ready {
        match self.ready.get() {
            Some(ready) => ready,
            None => self.domain.broken("fi_enable", "an operation was posted before it"),
        }
    }
}
