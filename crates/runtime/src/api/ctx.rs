//! Contexts (OpenSHMEM 1.6, §9.5): creating and destroying them, and queries about them.

use crate::own_pe::{self, OwnPe};
use core::ffi::c_long;
use rushmem_communication::access::contexts::{Context, contexts};
use rushmem_communication::access::endpoints::endpoints;
use rushmem_communication::access::order;
use rushmem_communication::links;
use rushmem_communication::net::network;
use rushmem_communication::observers::counters::{self, ContextCounters, OperationCounts};
use rushmem_pe::call::{Call, fail};
use rushmem_pe::constants::{
    SHMEM_CTX_NOSTORE, SHMEM_CTX_PRIVATE, SHMEM_CTX_SERIALIZED, SHMEM_CTX_SESSION_BATCH,
};
use rushmem_pe::job;
use rushmem_pe::job::handle::{ContextHandle, TeamHandle};
use rushmem_pe::job::permission;

/// `shmem_ctx_create` (§9.5.1) on the world team, `shmem_team_create_ctx` (§9.5.2) on any team. Not
/// a collective. Returns `None` for the invalid team, for unknown options, and if there are too
/// many contexts.
pub fn create(call: Call, team: TeamHandle, options: c_long) -> Option<ContextHandle> {
    let pe = own_pe::require(call);
    let job = pe.job();
    permission::check(call, job);
    let known = SHMEM_CTX_SERIALIZED | SHMEM_CTX_PRIVATE | SHMEM_CTX_NOSTORE;
    if team == TeamHandle::INVALID || options & !known != 0 {
        return None;
    }

    let found = pe.teams.find(call, "team", team);
    let members = found.members().clone();
    let checks = job.settings.checks();
    contexts().add(team, found.root(), members, options, job.n_pes, checks)
}

/// `shmem_ctx_destroy` (§9.5.3): completes the operations on the context first. The invalid context
/// is ignored.
pub fn destroy(call: Call, ctx: ContextHandle) {
    let links = links::require(call);
    if ctx == ContextHandle::INVALID {
        return;
    }
    if ctx == ContextHandle::DEFAULT {
        fail!(
            call,
            "argument ctx is SHMEM_CTX_DEFAULT, which cannot be destroyed"
        );
    }

    contexts().require(call, ctx);
    order::complete_on(links, call, ctx);
    // Before the endpoint is dropped: otherwise another thread could create a new one.
    contexts().remove(ctx);
    links.endpoints.remove(ctx);
}

/// Destroys the contexts of a team that is being destroyed (§9.4.8), or of all teams if `team` is
/// `None`. With `SHMEM_CHECK`, ends the job with an error if one of them is private, since only its
/// thread may destroy it.
pub(crate) fn destroy_of(pe: &OwnPe, call: Call, team: Option<TeamHandle>) {
    let checks = pe.job().settings.checks();
    for context in contexts().of_team(team) {
        if checks && context.is_private {
            fail!(
                call,
                "a private context is left, which the thread that created it must destroy first"
            );
        }

        // A context that was never used has no endpoint. Unlike the quiet of `destroy`, this one is
        // not by the program's order, so observers do not see it.
        let ctx = context.handle;
        if pe.links.network.is_open()
            && let Some(mut endpoint) = pe.links.endpoints.used(call, ctx)
        {
            network::or_fail(call, endpoint.quiet());
        }
        // In this order, as in `destroy`.
        contexts().remove(ctx);
        pe.links.endpoints.remove(ctx);
    }
}

/// `shmem_ctx_get_team` (§9.5.4): the team of a context; `None` for the invalid context.
pub fn team_of(call: Call, ctx: ContextHandle) -> Option<TeamHandle> {
    job::require(call);
    match ctx {
        ContextHandle::INVALID => None,
        ContextHandle::DEFAULT => Some(TeamHandle::WORLD),
        _ => {
            contexts().require(call, ctx);
            contexts().team_of(ctx)
        }
    }
}

/// `shmem_ctx_session_start` (§9.9.2). A session is a hint, which changes neither order nor
/// completion: with `SHMEM_CTX_SESSION_BATCH`, small operations on the context over a network are
/// batched. It has no other effect.
pub fn session_start(call: Call, ctx: ContextHandle, options: c_long) {
    job::require(call);
    if ctx.is_valid(call) && options & SHMEM_CTX_SESSION_BATCH != 0 {
        set_session(call, ctx, true);
    }
}

/// `shmem_ctx_session_stop` (§9.9.3). Has no effect if no session was started.
pub fn session_stop(call: Call, ctx: ContextHandle) {
    job::require(call);
    if ctx.is_valid(call) {
        set_session(call, ctx, false);
    }
}

fn set_session(call: Call, ctx: ContextHandle, is_open: bool) {
    // With SHMEM_AGGREGATE=on, every context is in a session all the time.
    if network::is_open() && !job::require(call).settings.aggregate {
        let done = endpoints().of_context(call, ctx).session(is_open);
        network::or_fail(call, done);
    }
}

/// The numbers of operations of one direction on a context.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Operations {
    /// The operations that were issued so far.
    pub issued: u64,
    /// The operations that are known to be complete.
    pub completed: u64,
}

/// Returns the numbers of writes and of reads on a context so far. Writes are puts and atomic
/// operations without a result, reads are gets and the other atomic operations. All numbers are 0
/// without `SHMEM_STATS`.
pub fn operations(call: Call, ctx: ContextHandle) -> [Operations; 2] {
    job::require(call);
    contexts().require_for_network(call, ctx);
    let Some(counters) = counters::get() else {
        return Default::default();
    };

    let counters = counters.context(ctx);
    let issued = counters.issued();
    update_completed(call, ctx, counters, issued);
    let completed = counters.completed();
    let writes = Operations {
        issued: issued.writes,
        completed: completed.writes,
    };
    let reads = Operations {
        issued: issued.reads,
        completed: completed.reads,
    };
    [writes, reads]
}

/// Records that all operations on the context are complete, if none is in flight.
fn update_completed(
    call: Call,
    ctx: ContextHandle,
    counters: &ContextCounters,
    issued: OperationCounts,
) {
    let mut is_quiet = true;
    if network::is_open()
        && let Some(mut endpoint) = endpoints().used(call, ctx)
    {
        is_quiet = network::or_fail(call, endpoint.is_quiet());
    }
    if is_quiet {
        counters.complete(issued);
    }
}
