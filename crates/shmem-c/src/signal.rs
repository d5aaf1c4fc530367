//! Signals (OpenSHMEM 1.6, 9.8 and 9.11.15).

use core::ffi::c_int;

use rushmem_runtime::signal;

macro_rules! put_signal {
    ([$($before:tt)*] [$($after:tt)*] $t:ty) => {
        on_contexts! {
            [$($before)* put $($after)* _signal]
                (
                    dest: *mut $t, source: *const $t, nelems: usize,
                    sig_addr: *mut u64, signal: u64, sig_op: c_int, pe: c_int,
                )
                => signal::put_signal;
            [$($before)* put $($after)* _signal_nbi]
                (
                    dest: *mut $t, source: *const $t, nelems: usize,
                    sig_addr: *mut u64, signal: u64, sig_op: c_int, pe: c_int,
                )
                => signal::put_signal_nbi;
        }
    };
}

macro_rules! typed {
    ($name:ident, $t:ty) => {
        put_signal!([$name _] [] $t);
    };
}
for_each_rma_type!(typed);

macro_rules! sized {
    ($size:tt, $t:ty) => {
        put_signal!([] [$size] $t);
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
    [shmem_signal_wait_until](sig_addr: *mut u64, cmp: c_int, cmp_value: u64) -> u64
        => signal::wait_until;
}
