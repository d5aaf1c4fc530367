//! Order and completion (OpenSHMEM 1.6, memory ordering routines).
//!
//! On-node, an access has been performed when its call returns; only the processor and the compiler
//! may still reorder it. So a fence is a release fence, which pairs with the acquire loads of waits
//! and tests. A quiet is a sequentially consistent fence, since `put; quiet; get` needs the store
//! ordered before the load, even on x86-64. The endpoint of the context orders and completes the
//! operations of a network.
#![allow(unsafe_code)]

use crate::access::contexts::Context;
use crate::access::endpoints::{Endpoints, endpoints};
use crate::links::{self, Links};
use crate::net::network::{self, Network};
use crate::net::polls;
use crate::observers::{self, Action, Event};
use crate::status::WaitDescription;
use crate::sync::waits;
use core::ffi::c_int;
use rushmem_explain::status::{AwaitedObject, MAX_LISTED};
use rushmem_pe::call::Call;
use rushmem_pe::job;
use rushmem_pe::job::handle::ContextHandle;
use rushmem_pe::memory::address::{self, ExistingPe, PeNumber as _};
use rushmem_pe::memory::visibility::{complete, release};
use rushmem_transport::{Endpoint, Error, Pe};
use std::task::Waker;
use std::time::Duration;

/// `shmem_fence`, `shmem_ctx_fence` (§9.12.1): orders the earlier puts, AMOs and stores on the
/// context before its later ones, at each PE separately.
#[inline]
pub fn fence<C: Context>(call: Call, ctx: C) {
    polls::count_call();
    observers::during!(event(call, ctx, Action::Fence), order(call, ctx));
}

/// Returns the event of a routine on a context, for observers.
fn event<C: Context>(call: Call, ctx: C, action: Action) -> Event {
    Event {
        ctx: ctx.handle(),
        ..Event::new(call, action)
    }
}

#[inline(always)]
fn order<C: Context>(call: Call, ctx: C) {
    release();
    if ctx.is_valid(call) && network::is_open() {
        order_network(call, ctx.handle());
    }
}

/// Orders the operations of the network. If this CPU also changes memory of the PEs that a network
/// reaches, completes the operations: a fence of the network does not order them before stores of
/// this CPU.
#[cold]
fn order_network(call: Call, ctx: ContextHandle) {
    let Some(mut endpoint) = endpoints().used(call, ctx) else {
        return;
    };

    let has_cpu_stores = address::are_atomics_by_network() || address::some_statics_are_apart();
    let done = if has_cpu_stores {
        endpoint.quiet()
    } else {
        endpoint.fence()
    };
    network::or_fail(call, done);
}

/// `shmem_quiet`, `shmem_ctx_quiet` (§9.12.2): completes all operations on the context, at all PEs.
#[inline]
pub fn quiet<C: Context>(call: Call, ctx: C) {
    polls::count_call();
    complete_issued(network::of_process(), endpoints(), call, ctx, false);
}

/// `shmemx_quiet_timed`, `shmemx_ctx_quiet_timed`: performs a [`quiet`] for `limit` at the longest,
/// if there is one. Returns false if operations are not complete then.
pub fn quiet_within<C: Context>(call: Call, ctx: C, limit: Option<Duration>) -> bool {
    if limit.is_none() {
        quiet(call, ctx);
        return true;
    }
    polls::count_call();
    let observed = observers::call(|| event(call, ctx, Action::Quiet { is_part: false }));

    let is_quiet = !ctx.is_valid(call) || wait_for_quiet(call, ctx.handle(), limit);
    complete();

    // The end of the event would tell observers of a quiet.
    if !is_quiet && let Some(observed) = observed {
        observed.cancel();
    }
    is_quiet
}

/// Waits until all operations of the network on a context are complete, for `limit` at the longest.
/// Returns false if some are not. Other threads may use the context while this one yields or
/// sleeps.
#[cold]
fn wait_for_quiet(call: Call, ctx: ContextHandle, limit: Option<Duration>) -> bool {
    let links = links::require(call);
    if !links.network.is_open() {
        return true;
    }

    let describe = || {
        let in_flight = links.endpoints.in_flight().unwrap_or_default();
        WaitDescription {
            call,
            subject: AwaitedObject::Operations {
                peers: in_flight.keys().take(MAX_LISTED).map(|pe| pe.0).collect(),
            },
        }
    };
    waits::until_asked_within(
        links,
        limit,
        &describe,
        &mut || match links.endpoints.used(call, ctx) {
            Some(mut endpoint) => network::or_fail(call, endpoint.is_quiet()),
            None => true,
        },
    )
}

/// Performs a quiet of a PE as a part of another call.
#[inline]
pub fn complete_on<C: Context>(links: &Links, call: Call, ctx: C) {
    complete_issued(links.network, links.endpoints, call, ctx, true);
}

#[inline(always)]
fn complete_issued<C: Context>(
    network: &Network,
    endpoints: &Endpoints,
    call: Call,
    ctx: C,
    is_part: bool,
) {
    observers::during!(event(call, ctx, Action::Quiet { is_part }), {
        if ctx.is_valid(call)
            && network.is_open()
            && let Some(mut endpoint) = endpoints.used(call, ctx.handle())
        {
            network::or_fail(call, endpoint.quiet());
        }
        complete();
    });
}

/// `shmemx_fence_test`, `shmemx_ctx_fence_test`: 1 if earlier operations on the context are ordered
/// before later ones. Performs a fence, so the result is always 1.
#[inline]
pub fn fence_test<C: Context>(call: Call, ctx: C) -> c_int {
    fence(call, ctx);
    1
}

/// `shmemx_quiet_test`, `shmemx_ctx_quiet_test`: 1 if all operations on the context are complete,
/// as after a quiet, and 0 if some are not.
#[inline]
pub fn quiet_test<C: Context>(call: Call, ctx: C) -> c_int {
    c_int::from(is_quiet(call, ctx, |endpoint| endpoint.is_quiet()))
}

/// Returns true if all operations on the context are complete, as after a quiet; never waits. If it
/// returns false, a thread of the library, or one that calls it, wakes `task` once when the
/// operations are complete. The waker is dropped only then, so it may own memory that the
/// operations use.
#[inline]
pub fn when_quiet<C: Context>(call: Call, ctx: C, task: &Waker) -> bool {
    is_quiet(call, ctx, |endpoint| endpoint.when_quiet(task))
}

/// Returns what `test` returns for the endpoint of a context; true if it has none.
#[inline]
fn is_quiet<C: Context>(
    call: Call,
    ctx: C,
    test: impl FnOnce(&mut dyn Endpoint) -> Result<bool, Error>,
) -> bool {
    polls::count_call();
    let observed = observers::call(|| event(call, ctx, Action::QuietTest));

    let mut is_quiet = true;
    if ctx.is_valid(call)
        && network::is_open()
        && let Some(mut endpoint) = endpoints().used(call, ctx.handle())
    {
        is_quiet = network::or_fail(call, test(&mut *endpoint));
    }
    complete();

    // The end of the event would tell observers of a quiet.
    if !is_quiet && let Some(observed) = observed {
        observed.cancel();
    }
    is_quiet
}

/// `shmemx_flush`, `shmemx_ctx_flush`: waits until the sources of all puts on the context may be
/// reused. Completes and orders nothing.
#[inline]
pub fn flush<C: Context>(call: Call, ctx: C) {
    polls::count_call();
    if !ctx.is_valid(call) {
        return;
    }
    let _observed = observers::call(|| event(call, ctx, Action::Flush));

    free_sources(links::require(call), call, ctx, None);
}

/// `shmemx_ctx_pe_flush`: performs a [`flush`] of the puts to the listed PEs, which are numbered as
/// in the context's team.
///
/// # Safety
/// `target_pes` is valid for reads of `npes` numbers, or anything when `npes` is 0.
pub unsafe fn pe_flush<C: Context>(call: Call, ctx: C, target_pes: *const c_int, npes: usize) {
    polls::count_call();
    if !ctx.is_valid(call) {
        return;
    }
    let _observed = observers::call(|| event(call, ctx, Action::FlushOfPes));

    let links = links::require(call);
    // SAFETY: the caller promises that `target_pes` is valid for reads of `npes` numbers.
    unsafe {
        for_each_pe(call, ctx, target_pes, npes, |pe| {
            let _observed = observers::call(|| Event {
                pe,
                ..event(call, ctx, Action::PeFlush)
            });
            free_sources(links, call, ctx, Some(network::pe(pe)));
        });
    }
}

/// Waits until the sources of all puts, or of those to one PE, may be reused.
fn free_sources<C: Context>(links: &Links, call: Call, ctx: C, pe: Option<Pe>) {
    if links.network.is_open()
        && let Some(mut endpoint) = links.endpoints.used(call, ctx.handle())
    {
        network::or_fail(call, endpoint.free_sources(pe));
    }
}

/// `shmemx_local_complete`: performs a [`flush`] of all contexts.
pub fn local_complete(call: Call) {
    let links = links::require(call);
    let _observed = observers::call(|| Event::new(call, Action::LocalComplete));
    if links.network.is_open() {
        links.endpoints.free_sources(call);
    }
}

/// Completes all operations of this PE, on any context.
pub fn complete_all(call: Call) {
    complete_all_of(links::require(call), call);
}

/// Completes all operations of the PE with these links, on any context.
pub fn complete_all_of(links: &Links, call: Call) {
    let _observed = observers::call(|| Event::new(call, Action::QuietOfAll));
    if links.network.is_open() {
        links.endpoints.complete(call);
    }
}

/// `shmem_pe_quiet`, `shmem_ctx_pe_quiet` (§9.12.3): completes the operations on the listed PEs,
/// which are numbered as in the context's team. Has no effect on `SHMEM_CTX_INVALID`, although the
/// standard says so only for fence and quiet.
///
/// # Safety
/// `target_pes` is valid for reads of `npes` numbers, or anything when `npes` is 0.
pub unsafe fn pe_quiet<C: Context>(call: Call, ctx: C, target_pes: *const c_int, npes: usize) {
    if !ctx.is_valid(call) {
        return;
    }
    let _observed = observers::call(|| event(call, ctx, Action::QuietOfPes));

    // SAFETY: the caller promises that `target_pes` is valid for reads of `npes` numbers.
    unsafe {
        for_each_pe(call, ctx, target_pes, npes, |pe| {
            quiet_of_one(call, ctx, pe)
        })
    };

    if npes > 0 {
        complete();
    }
    polls::count_call();
}

/// Calls `work` with the number in the world of each listed PE.
///
/// # Safety
/// `target_pes` is valid for reads of `npes` numbers, or anything when `npes` is 0.
unsafe fn for_each_pe<C: Context>(
    call: Call,
    ctx: C,
    target_pes: *const c_int,
    npes: usize,
    work: impl Fn(c_int),
) {
    for i in 0..npes {
        // SAFETY: the caller promises that `target_pes` is valid for reads of `npes` numbers, and
        // `i` is below `npes`.
        let pe = unsafe { target_pes.wrapping_add(i).read() };
        let pe = ctx.world_pe(call, pe);
        job::require_pe(call, "target_pes", pe);
        work(pe);
    }
}

/// Completes the operations on a PE of the world (an extension).
pub fn quiet_of<C: Context>(call: Call, ctx: C, pe: ExistingPe) {
    quiet_of_one(call, ctx, pe.number());
    complete();
    polls::count_call();
}

fn quiet_of_one<C: Context>(call: Call, ctx: C, pe: c_int) {
    let _observed = observers::call(|| Event {
        pe,
        ..event(call, ctx, Action::PeQuiet)
    });
    if network::is_open()
        && let Some(mut endpoint) = endpoints().used(call, ctx.handle())
    {
        network::or_fail(call, endpoint.pe_quiet(network::pe(pe)));
    }
}
