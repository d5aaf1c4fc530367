//! Atomic memory operations (OpenSHMEM 1.6, 9.7), under their present and their deprecated names.

use core::ffi::c_int;

use rushmem_runtime::amo;
use rushmem_runtime::ctx::World;

macro_rules! extended {
    ($name:ident, $type:ty) => {
        on_contexts! {
            [$name _atomic_fetch](source: *const $type, pe: c_int) -> $type => amo::fetch;
            [$name _atomic_set](dest: *mut $type, value: $type, pe: c_int) => amo::set;
            [$name _atomic_swap](dest: *mut $type, value: $type, pe: c_int) -> $type => amo::swap;

            [$name _atomic_fetch_nbi](fetch: *mut $type, source: *const $type, pe: c_int) => amo::fetch_nbi;
            [$name _atomic_swap_nbi](fetch: *mut $type, dest: *mut $type, value: $type, pe: c_int)
                => amo::swap_nbi;
        }
    };
}
for_each_extended_amo_type!(extended);

macro_rules! standard {
    ($name:ident, $type:ty) => {
        on_contexts! {
            [$name _atomic_compare_swap](dest: *mut $type, cond: $type, value: $type, pe: c_int) -> $type
                => amo::compare_swap;
            [$name _atomic_fetch_inc](dest: *mut $type, pe: c_int) -> $type => amo::fetch_inc;
            [$name _atomic_inc](dest: *mut $type, pe: c_int) => amo::inc;
            [$name _atomic_fetch_add](dest: *mut $type, value: $type, pe: c_int) -> $type => amo::fetch_add;
            [$name _atomic_add](dest: *mut $type, value: $type, pe: c_int) => amo::add;

            [$name _atomic_compare_swap_nbi]
                (fetch: *mut $type, dest: *mut $type, cond: $type, value: $type, pe: c_int)
                => amo::compare_swap_nbi;
            [$name _atomic_fetch_inc_nbi](fetch: *mut $type, dest: *mut $type, pe: c_int)
                => amo::fetch_inc_nbi;
            [$name _atomic_fetch_add_nbi](fetch: *mut $type, dest: *mut $type, value: $type, pe: c_int)
                => amo::fetch_add_nbi;
        }
    };
}
for_each_standard_amo_type!(standard);

macro_rules! bitwise {
    ($name:ident, $type:ty) => {
        on_contexts! {
            [$name _atomic_fetch_and](dest: *mut $type, value: $type, pe: c_int) -> $type => amo::fetch_and;
            [$name _atomic_and](dest: *mut $type, value: $type, pe: c_int) => amo::and;
            [$name _atomic_fetch_or](dest: *mut $type, value: $type, pe: c_int) -> $type => amo::fetch_or;
            [$name _atomic_or](dest: *mut $type, value: $type, pe: c_int) => amo::or;
            [$name _atomic_fetch_xor](dest: *mut $type, value: $type, pe: c_int) -> $type => amo::fetch_xor;
            [$name _atomic_xor](dest: *mut $type, value: $type, pe: c_int) => amo::xor;

            [$name _atomic_fetch_and_nbi](fetch: *mut $type, dest: *mut $type, value: $type, pe: c_int)
                => amo::fetch_and_nbi;
            [$name _atomic_fetch_or_nbi](fetch: *mut $type, dest: *mut $type, value: $type, pe: c_int)
                => amo::fetch_or_nbi;
            [$name _atomic_fetch_xor_nbi](fetch: *mut $type, dest: *mut $type, value: $type, pe: c_int)
                => amo::fetch_xor_nbi;
        }
    };
}
for_each_bitwise_amo_type!(bitwise);

macro_rules! old_extended {
    ($name:ident, $type:ty) => {
        export! {
            [shmem_ $name _fetch](source: *const $type, pe: c_int) -> $type
                = |call| amo::fetch(call, World, source, pe);
            [shmem_ $name _set](dest: *mut $type, value: $type, pe: c_int)
                = |call| amo::set(call, World, dest, value, pe);
            [shmem_ $name _swap](dest: *mut $type, value: $type, pe: c_int) -> $type
                = |call| amo::swap(call, World, dest, value, pe);
        }
    };
}
for_each_old_extended_amo_type!(old_extended);

macro_rules! old {
    ($name:ident, $type:ty) => {
        export! {
            [shmem_ $name _cswap](dest: *mut $type, cond: $type, value: $type, pe: c_int) -> $type
                = |call| amo::compare_swap(call, World, dest, cond, value, pe);
            [shmem_ $name _finc](dest: *mut $type, pe: c_int) -> $type
                = |call| amo::fetch_inc(call, World, dest, pe);
            [shmem_ $name _inc](dest: *mut $type, pe: c_int)
                = |call| amo::inc(call, World, dest, pe);
            [shmem_ $name _fadd](dest: *mut $type, value: $type, pe: c_int) -> $type
                = |call| amo::fetch_add(call, World, dest, value, pe);
            [shmem_ $name _add](dest: *mut $type, value: $type, pe: c_int)
                = |call| amo::add(call, World, dest, value, pe);
        }
    };
}
for_each_old_amo_type!(old);
