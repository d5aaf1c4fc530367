//! Control of profiling (OpenSHMEM 1.6, 10.1.1).

use core::ffi::c_int;

// Variadic in C. On x86-64 and aarch64 Linux, a caller may pass more arguments than the callee
// declares, because the caller places and removes them.
export! {
    [shmem_pcontrol](_level: c_int) = |_call| ();
}
