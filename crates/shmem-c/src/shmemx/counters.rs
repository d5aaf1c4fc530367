//! Sandia's performance counters of a context.

use rushmem_runtime::ContextHandle;
use rushmem_runtime::ctx::operations;

/// `shmemx_pcntr_t`. The numbers of issued writes and reads, which Sandia's library calls pending,
/// and of completed ones.
#[repr(C)]
pub struct PerformanceCounters {
    pending_put: u64,
    pending_get: u64,
    completed_put: u64,
    completed_get: u64,
    target: u64,
}

/// The number of operations of other PEs on this one. It is 0, because these are not counted, as in
/// most builds of Sandia's library.
const TARGET: u64 = 0;

export! {
    [shmemx_pcntr_get_issued_write](ctx: ContextHandle, cntr_value: *mut u64)
        = |call| {
            let [writes, _] = operations(call, ctx);
            cntr_value.write(writes.issued);
        };
    [shmemx_pcntr_get_issued_read](ctx: ContextHandle, cntr_value: *mut u64)
        = |call| {
            let [_, reads] = operations(call, ctx);
            cntr_value.write(reads.issued);
        };
    [shmemx_pcntr_get_completed_write](ctx: ContextHandle, cntr_value: *mut u64)
        = |call| {
            let [writes, _] = operations(call, ctx);
            cntr_value.write(writes.completed);
        };
    [shmemx_pcntr_get_completed_read](ctx: ContextHandle, cntr_value: *mut u64)
        = |call| {
            let [_, reads] = operations(call, ctx);
            cntr_value.write(reads.completed);
        };
    [shmemx_pcntr_get_completed_target](cntr_value: *mut u64)
        = |_call| cntr_value.write(TARGET);

    [shmemx_pcntr_get_all](ctx: ContextHandle, pcntr: *mut PerformanceCounters) = |call| {
        let [writes, reads] = operations(call, ctx);
        pcntr.write(PerformanceCounters {
            pending_put: writes.issued,
            pending_get: reads.issued,
            completed_put: writes.completed,
            completed_get: reads.completed,
            target: TARGET,
        });
    };
}
