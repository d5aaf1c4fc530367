//! Control of profiling (OpenSHMEM 1.6, 10.1.1).

use core::ffi::c_int;

// Variadic in C. A C caller may pass more arguments than the callee looks at: on x86-64 and aarch64
// Linux the caller alone places and removes them.
export! {
    [shmem_pcontrol](_level: c_int) = |_call| ();
}
