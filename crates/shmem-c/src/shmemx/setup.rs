//! Thread levels under Cray's names, the program's own numbering of its threads, a clock, and the
//! transport of the job.

use core::ffi::{c_char, c_int};

use rushmem_providers::ALL;
use rushmem_runtime::{setup, start, thread, time};

export! {
    [shmemx_init_thread](requested: c_int, provided: *mut c_int) -> c_int
        = |call| match start::init_thread(call, ALL, requested) {
            Some(level) => {
                provided.write(level);
                0
            }
            None => 1,
        };
    [shmemx_query_thread](provided: *mut c_int) = |call| provided.write(setup::query_thread(call));
    [shmemx_register_gettid](gettid: thread::GetThread) = |call| thread::register(call, gettid);
    [shmemx_wtime]() -> f64 = |_call| time::wtime();
    [shmemx_transport]() -> *const c_char = |call| setup::transport(call).as_ptr();
}
