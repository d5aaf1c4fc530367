//! Atomic memory operations (OpenSHMEM 1.6, 9.7), under their present and their deprecated names.

use core::ffi::c_int;

use rushmem_runtime::amo;

/// Defines operations that have a value and return nothing: `shmem_TYPENAME_atomic_OP`.
macro_rules! updates {
    ($name:ident, $t:ty, $($op:ident)+) => {
        on_contexts! {$(
            [$name _atomic_ $op](dest: *mut $t, value: $t, pe: c_int) => amo::$op;
        )+}
    };
}

/// Defines operations that return the previous value.
macro_rules! fetching_updates {
    ($name:ident, $t:ty, $($op:ident)+) => {
        on_contexts! {$(
            [$name _atomic_ $op](dest: *mut $t, value: $t, pe: c_int) -> $t => amo::$op;
        )+}
    };
}

/// Defines non-blocking operations, which write the previous value to `fetch` before the next quiet
/// returns.
macro_rules! nonblocking_updates {
    ($name:ident, $t:ty, $($op:ident)+) => {
        on_contexts! {$(
            [$name _atomic_ $op](fetch: *mut $t, dest: *mut $t, value: $t, pe: c_int) => amo::$op;
        )+}
    };
}

macro_rules! extended {
    ($name:ident, $t:ty) => {
        updates!($name, $t, set);
        fetching_updates!($name, $t, swap);
        nonblocking_updates!($name, $t, swap_nbi);
        on_contexts! {
            [$name _atomic_fetch](source: *const $t, pe: c_int) -> $t => amo::fetch;
            [$name _atomic_fetch_nbi](fetch: *mut $t, source: *const $t, pe: c_int)
                => amo::fetch_nbi;
        }
    };
}
for_each_extended_amo_type!(extended);

macro_rules! standard {
    ($name:ident, $t:ty) => {
        updates!($name, $t, add);
        fetching_updates!($name, $t, fetch_add);
        nonblocking_updates!($name, $t, fetch_add_nbi);
        on_contexts! {
            [$name _atomic_compare_swap](dest: *mut $t, cond: $t, value: $t, pe: c_int) -> $t
                => amo::compare_swap;
            [$name _atomic_compare_swap_nbi]
                (fetch: *mut $t, dest: *mut $t, cond: $t, value: $t, pe: c_int)
                => amo::compare_swap_nbi;
            [$name _atomic_inc](dest: *mut $t, pe: c_int) => amo::inc;
            [$name _atomic_fetch_inc](dest: *mut $t, pe: c_int) -> $t => amo::fetch_inc;
            [$name _atomic_fetch_inc_nbi](fetch: *mut $t, dest: *mut $t, pe: c_int)
                => amo::fetch_inc_nbi;
        }
    };
}
for_each_standard_amo_type!(standard);

macro_rules! bitwise {
    ($name:ident, $t:ty) => {
        updates!($name, $t, and or xor);
        fetching_updates!($name, $t, fetch_and fetch_or fetch_xor);
        nonblocking_updates!($name, $t, fetch_and_nbi fetch_or_nbi fetch_xor_nbi);
    };
}
for_each_bitwise_amo_type!(bitwise);

macro_rules! old_extended {
    ($name:ident, $t:ty) => {
        on_default_context! {
            [shmem_ $name _fetch](source: *const $t, pe: c_int) -> $t => amo::fetch;
            [shmem_ $name _set](dest: *mut $t, value: $t, pe: c_int) => amo::set;
            [shmem_ $name _swap](dest: *mut $t, value: $t, pe: c_int) -> $t => amo::swap;
        }
    };
}
for_each_old_extended_amo_type!(old_extended);

macro_rules! old {
    ($name:ident, $t:ty) => {
        on_default_context! {
            [shmem_ $name _cswap](dest: *mut $t, cond: $t, value: $t, pe: c_int) -> $t
                => amo::compare_swap;
            [shmem_ $name _finc](dest: *mut $t, pe: c_int) -> $t => amo::fetch_inc;
            [shmem_ $name _inc](dest: *mut $t, pe: c_int) => amo::inc;
            [shmem_ $name _fadd](dest: *mut $t, value: $t, pe: c_int) -> $t => amo::fetch_add;
            [shmem_ $name _add](dest: *mut $t, value: $t, pe: c_int) => amo::add;
        }
    };
}
for_each_old_amo_type!(old);
