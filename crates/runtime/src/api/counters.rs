//! Counters of operations in the form of SOS, which count while `SHMEM_STATS` is set.

use crate::call::Call;
use crate::job;
use crate::job::handle::ContextHandle;
use crate::net::{contexts, endpoints, network};
use crate::observers::counters::{self, ContextCounters};

/// Operations of one direction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Operations {
    /// Issued so far.
    pub issued: u64,
    /// The number of these that are known to be complete.
    pub completed: u64,
}

/// Writes and reads of a context so far: puts and atomic operations without a result, and gets and
/// those with one. All are zero without `SHMEM_STATS`.
pub fn of_context(call: Call, ctx: ContextHandle) -> [Operations; 2] {
    job::require(call);
    contexts::require_for_network(call, ctx);
    let Some(counters) = counters::get() else { return Default::default() };
    let counters = counters.context(ctx);
    let issued = counters.issued();
    update_completed(call, ctx, counters, issued);
    let [writes, reads] = counters.completed();
    [
        Operations { issued: issued[0], completed: writes },
        Operations { issued: issued[1], completed: reads },
    ]
}

/// Records what is issued as complete if nothing of the context is in flight.
fn update_completed(call: Call, ctx: ContextHandle, counters: &ContextCounters, issued: [u64; 2]) {
    let mut is_quiet = true;
    if network::is_open() {
        endpoints::on_used(call, ctx, |endpoint| {
            is_quiet = endpoint.is_quiet()?;
            Ok(())
        });
    }
    if is_quiet {
        counters.complete(issued);
    }
}
