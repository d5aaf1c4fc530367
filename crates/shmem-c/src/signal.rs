//! Signals (OpenSHMEM 1.6, 9.8 and 9.11.15).

use core::ffi::c_int;

use rushmem_runtime::signal;

macro_rules! put_signal {
    ([$($before:tt)*] [$($after:tt)*] $type:ty) => {
        on_contexts! {
            [$($before)* put $($after)* _signal]
                (dest: *mut $type, source: *const $type, nelems: usize, sig_addr: *mut u64, signal: u64, sig_op: c_int, pe: c_int)
                => signal::put_signal;
            [$($before)* put $($after)* _signal_nbi]
                (dest: *mut $type, source: *const $type, nelems: usize, sig_addr: *mut u64, signal: u64, sig_op: c_int, pe: c_int)
                => signal::put_signal_nbi;
        }
    };
}

macro_rules! typed {
    ($name:ident, $type:ty) => {
        put_signal!([$name _] [] $type);
    };
}
for_each_rma_type!(typed);

macro_rules! sized {
    ($size:tt, $type:ty) => {
        put_signal!([] [$size] $type);
    };
}
for_each_size!(sized);

put_signal!([] [mem] u8);

on_contexts! {
    [signal_add](sig_addr: *mut u64, signal: u64, pe: c_int) => signal::add;
    [signal_set](sig_addr: *mut u64, signal: u64, pe: c_int) => signal::set;
}

forward! {
    [shmem_signal_fetch](sig_addr: *const u64) -> u64 => signal::fetch;
    [shmem_signal_wait_until](sig_addr: *mut u64, cmp: c_int, cmp_value: u64) -> u64 => signal::wait_until;
}
