//! Order and completion (OpenSHMEM 1.6, memory ordering routines).
//!
//! On-node, an access has been performed when its call returns; only the processor and the compiler
//! may still reorder it. A fence is a release, which pairs with the acquire of waits and tests. A
//! quiet is sequentially consistent, since `put; quiet; get` needs the store ordered before the
//! load, even on x86-64. With a network, the endpoint of the context does so for its operations.
#![allow(unsafe_code)]

use crate::call::Call;
use crate::job;
use crate::memory::address;
use crate::memory::visibility::{complete, release};
use crate::net::contexts::Context;
use crate::net::{endpoints, network};
use crate::observers::{self, Action, Event};
use core::ffi::c_int;
use rushmem_transport::{Endpoint, Error};

/// `shmem_fence`, `shmem_ctx_fence` (§9.12.1): orders the calling context's puts, AMOs and stores
/// towards each PE.
#[inline]
pub fn fence<C: Context>(call: Call, ctx: C) {
    network::count_call();
    observers::during!(event(call, ctx, Action::Fence), order(call, ctx));
}

/// Returns what observers see of a routine on a context.
fn event<C: Context>(call: Call, ctx: C, action: Action) -> Event {
    Event { ctx: ctx.handle(), ..Event::new(call, action) }
}

#[inline(always)]
fn order<C: Context>(call: Call, ctx: C) {
    release();
    if ctx.is_valid(call) && network::is_open() {
        endpoints::on_used(call, ctx.handle(), order_both_ways);
    }
}

/// If both the network and this CPU change memory of a PE, the operations of the network must be
/// complete before the next one of the CPU.
#[cold]
fn order_both_ways(endpoint: &mut dyn Endpoint) -> Result<(), Error> {
    let both = address::are_atomics_by_network() || address::some_statics_are_apart();
    if both { endpoint.quiet() } else { endpoint.fence() }
}

/// `shmem_quiet`, `shmem_ctx_quiet` (§9.12.2): completes what was issued on the context,
/// everywhere.
#[inline]
pub fn quiet<C: Context>(call: Call, ctx: C) {
    network::count_call();
    complete_issued(call, ctx, false);
}

/// Performs a quiet as a part of another call.
#[inline]
pub(crate) fn complete_on<C: Context>(call: Call, ctx: C) {
    complete_issued(call, ctx, true);
}

#[inline(always)]
fn complete_issued<C: Context>(call: Call, ctx: C, is_part: bool) {
    observers::during!(event(call, ctx, Action::Quiet { is_part }), {
        if ctx.is_valid(call) && network::is_open() {
            endpoints::on_used(call, ctx.handle(), |endpoint| endpoint.quiet());
        }
        complete();
    });
}

/// `shmemx_fence_test`, `shmemx_ctx_fence_test`: whether what was issued on the context is ordered
/// before what follows. A fence does not wait, so it always is.
#[inline]
pub fn fence_test<C: Context>(call: Call, ctx: C) -> c_int {
    fence(call, ctx);
    1
}

/// `shmemx_quiet_test`, `shmemx_ctx_quiet_test`: whether what was issued on the context is complete
/// everywhere, as after a quiet; 0 if it is not yet.
#[inline]
pub fn quiet_test<C: Context>(call: Call, ctx: C) -> c_int {
    network::count_call();
    let mut is_quiet = true;
    let observed = observers::call(|| event(call, ctx, Action::QuietTest));
    if ctx.is_valid(call) && network::is_open() {
        endpoints::on_used(call, ctx.handle(), |endpoint| {
            is_quiet = endpoint.is_quiet()?;
            Ok(())
        });
    }
    complete();
    if let Some(observed) = observed.filter(|_| !is_quiet) {
        observed.cancel();
    }
    c_int::from(is_quiet)
}

/// `shmemx_local_complete`: the sources of all nonblocking puts of this PE, on any context, may be
/// reused. With a network they also complete remotely, which is more than required.
pub fn local_complete(call: Call) {
    job::require(call);
    if network::is_open() {
        endpoints::complete(call);
    }
}

/// `shmem_pe_quiet`, `shmem_ctx_pe_quiet` (§9.12.3): a quiet towards the listed PEs; nothing on the
/// invalid context, although the standard says so only for the other two.
///
/// # Safety
/// `target_pes` is valid for reads of `npes` numbers, or anything when `npes` is 0.
pub unsafe fn pe_quiet<C: Context>(call: Call, ctx: C, target_pes: *const c_int, npes: usize) {
    if !ctx.is_valid(call) {
        return;
    }
    let _observed = observers::call(|| event(call, ctx, Action::QuietOfPes));
    for i in 0..npes {
        // SAFETY: `i` is below `npes`.
        let pe = unsafe { target_pes.wrapping_add(i).read() };
        let pe = ctx.world_pe(call, pe);
        job::require_pe(call, "target_pes", pe);
        let _observed = observers::call(|| Event { pe, ..event(call, ctx, Action::PeQuiet) });
        if network::is_open() {
            endpoints::on_used(call, ctx.handle(), |endpoint| endpoint.pe_quiet(network::pe(pe)));
        }
    }
    if npes > 0 {
        complete();
    }
    network::count_call();
}
