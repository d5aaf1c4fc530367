//! Contexts and sessions (OpenSHMEM 1.6, 9.5 and 9.9). Functions with a result argument write to
//! it, and return 0 on success.
#![allow(unsafe_code)]

use core::ffi::{c_int, c_long};

use rushmem_runtime::{Call, ContextHandle, TeamHandle, ctx};

/// `shmem_ctx_session_config_t`
#[repr(C)]
pub struct SessionConfig {
    /// The expected number of operations of the session. It is not used, because a session is never
    /// slower than none, not even for one operation (docs/performance/transports.md).
    total_ops: usize,
}

forward! {
    [shmem_ctx_destroy](ctx: ContextHandle) => ctx::destroy;
    [shmem_ctx_session_stop](ctx: ContextHandle) => ctx::session_stop;
}

export! {
    [shmem_ctx_create](options: c_long, ctx: *mut ContextHandle) -> c_int
        = |call| create(call, TeamHandle::WORLD, options, ctx);
    [shmem_team_create_ctx](team: TeamHandle, options: c_long, ctx: *mut ContextHandle) -> c_int
        = |call| create(call, team, options, ctx);

    [shmem_ctx_get_team](ctx: ContextHandle, team: *mut TeamHandle) -> c_int = |call| {
        let found = ctx::team_of(call, ctx);
        team.write(found.unwrap_or(TeamHandle::INVALID));
        c_int::from(found.is_none())
    };

    [shmem_ctx_session_start](
        ctx: ContextHandle, options: c_long, _config: *const SessionConfig, _config_mask: c_long,
    ) = |call| ctx::session_start(call, ctx, options);
}

/// Creates a context and writes its handle to `ctx`. For the invalid team, for unknown options, and
/// if there are too many contexts, writes `SHMEM_CTX_INVALID` and returns 1.
///
/// # Safety
/// `ctx` is valid for a write.
unsafe fn create(call: Call, team: TeamHandle, options: c_long, ctx: *mut ContextHandle) -> c_int {
    let made = ctx::create(call, team, options);
    // SAFETY: `ctx` is valid for a write, as this function requires.
    unsafe { ctx.write(made.unwrap_or(ContextHandle::INVALID)) };
    c_int::from(made.is_none())
}
