//! The functions that the compilers' `-fsanitize=thread` makes a program call: for each load, store
//! and atomic operation, and when a function begins or ends.
//!
//! The names and arguments are those of ThreadSanitizer's run time (compiler-rt/lib/tsan). An
//! access is identified by the address to which the call returns, which a stub adds as the last
//! argument.
#![allow(unsafe_code)]

use crate::atomic_operation::AtomicOperation;
use crate::synchronization::with;
use core::ffi::c_int;
use rushmem_race::access::ShadowKind;
use rushmem_race::process;
use rushmem_race::process::accesses::{access, access_range};
use rushmem_race::process::memory_order::MemoryOrder;
use std::sync::atomic::Ordering::SeqCst;
use std::sync::atomic::{AtomicU8, AtomicU16, AtomicU32, AtomicU64, fence};

/// Defines stubs with the names of functions that a program calls. Each calls a function of this
/// crate with its own arguments, at most five, and with its return address as the sixth argument.
macro_rules! with_return_address {
    ($($name:ident => $function:path;)*) => {$(
        /// A stub for the function of this name, with its arguments and its result.
        ///
        /// # Safety
        /// As that one.
        #[unsafe(no_mangle)]
        #[unsafe(naked)]
        pub unsafe extern "C" fn $name() {
            #[cfg(target_arch = "x86_64")]
            core::arch::naked_asm!("mov r9, [rsp]", "jmp {}", sym $function);
            #[cfg(target_arch = "aarch64")]
            core::arch::naked_asm!("mov x5, x30", "b {}", sym $function);
        }
    )*};
}
pub(crate) use with_return_address;

type Unused = usize;

extern "C" fn load<const N: usize, const IS_ALIGNED: bool>(
    addr: usize,
    _: Unused,
    _: Unused,
    _: Unused,
    _: Unused,
    return_address: usize,
) {
    access::<N, false, IS_ALIGNED>(addr, return_address.wrapping_sub(1));
}

extern "C" fn store<const N: usize, const IS_ALIGNED: bool>(
    addr: usize,
    _: Unused,
    _: Unused,
    _: Unused,
    _: Unused,
    return_address: usize,
) {
    access::<N, true, IS_ALIGNED>(addr, return_address.wrapping_sub(1));
}

extern "C" fn load_range(
    addr: usize,
    nbytes: usize,
    _: Unused,
    _: Unused,
    _: Unused,
    return_address: usize,
) {
    access_range(
        addr,
        nbytes,
        ShadowKind::LOAD,
        return_address.wrapping_sub(1),
    );
}

extern "C" fn store_range(
    addr: usize,
    nbytes: usize,
    _: Unused,
    _: Unused,
    _: Unused,
    return_address: usize,
) {
    access_range(
        addr,
        nbytes,
        ShadowKind::STORE,
        return_address.wrapping_sub(1),
    );
}

with_return_address! {
    __tsan_read1 => load::<1, true>;
    __tsan_read2 => load::<2, true>;
    __tsan_read4 => load::<4, true>;
    __tsan_read8 => load::<8, true>;
    __tsan_read16 => load::<16, true>;
    __tsan_write1 => store::<1, true>;
    __tsan_write2 => store::<2, true>;
    __tsan_write4 => store::<4, true>;
    __tsan_write8 => store::<8, true>;
    __tsan_write16 => store::<16, true>;
    __tsan_unaligned_read2 => load::<2, false>;
    __tsan_unaligned_read4 => load::<4, false>;
    __tsan_unaligned_read8 => load::<8, false>;
    __tsan_unaligned_read16 => load::<16, false>;
    __tsan_unaligned_write2 => store::<2, false>;
    __tsan_unaligned_write4 => store::<4, false>;
    __tsan_unaligned_write8 => store::<8, false>;
    __tsan_unaligned_write16 => store::<16, false>;
    __tsan_read_write1 => store::<1, true>;
    __tsan_read_write2 => store::<2, true>;
    __tsan_read_write4 => store::<4, true>;
    __tsan_read_write8 => store::<8, true>;
    __tsan_read_write16 => store::<16, true>;
    __tsan_unaligned_read_write2 => store::<2, false>;
    __tsan_unaligned_read_write4 => store::<4, false>;
    __tsan_unaligned_read_write8 => store::<8, false>;
    __tsan_unaligned_read_write16 => store::<16, false>;
    __tsan_volatile_read1 => load::<1, true>;
    __tsan_volatile_read2 => load::<2, true>;
    __tsan_volatile_read4 => load::<4, true>;
    __tsan_volatile_read8 => load::<8, true>;
    __tsan_volatile_read16 => load::<16, true>;
    __tsan_volatile_write1 => store::<1, true>;
    __tsan_volatile_write2 => store::<2, true>;
    __tsan_volatile_write4 => store::<4, true>;
    __tsan_volatile_write8 => store::<8, true>;
    __tsan_volatile_write16 => store::<16, true>;
    __tsan_vptr_read => load::<8, true>;
    __tsan_vptr_update => store::<8, true>;
    __tsan_read_range => load_range;
    __tsan_write_range => store_range;
}

/// Records that the program was compiled for the detector: each such object file calls this before
/// `main`.
#[unsafe(no_mangle)]
pub extern "C" fn __tsan_init() {
    process::mark_instrumented();
}

/// Ignores the begin of a function: the stack of a call is unwound instead.
#[unsafe(no_mangle)]
pub extern "C" fn __tsan_func_entry(_: usize) {}

/// Ignores the end of a function.
#[unsafe(no_mangle)]
pub extern "C" fn __tsan_func_exit() {}

/// Does nothing: accesses before [`__tsan_ignore_thread_end`] are recorded, too.
#[unsafe(no_mangle)]
pub extern "C" fn __tsan_ignore_thread_begin() {}

/// Does nothing, as [`__tsan_ignore_thread_begin`].
#[unsafe(no_mangle)]
pub extern "C" fn __tsan_ignore_thread_end() {}

/// Defines functions that load a word of a type and store to it, each by a method of the atomic
/// types.
macro_rules! updates {
    ($type:ty: $($name:ident by $method:ident;)*) => {$(
        pub extern "C" fn $name(
            addr: usize,
            value: $type,
            order: c_int,
            _: Unused,
            _: Unused,
            return_address: usize,
        ) -> $type {
            operation(addr, return_address).update(order, || word(addr).$method(value, SeqCst))
        }
    )*};
}

// The operation itself is sequentially consistent, whatever order the program asks for, which is
// at least as strong. `AtomicOperation` records the order that it asks for, so a program that
// relies on a stronger one is reported.
macro_rules! atomics {
    ($($type:ty, $atomic:ty, $functions:ident {
        $load:ident $store:ident $exchange:ident $add:ident $sub:ident $and:ident $or:ident
        $xor:ident $nand:ident $strong:ident $weak:ident $val:ident
    })*) => {$(
        mod $functions {
            use super::*;

            fn word(addr: usize) -> &'static $atomic {
                // SAFETY: the program makes an atomic operation of this size at the address, so it
                // is valid and aligned now; the callers use the reference at once.
                unsafe { <$atomic>::from_ptr(std::ptr::with_exposed_provenance_mut(addr)) }
            }

            fn operation(addr: usize, return_address: usize) -> AtomicOperation {
                AtomicOperation { addr, nbytes: size_of::<$type>(), return_address }
            }

            pub extern "C" fn load(
                addr: usize,
                order: c_int,
                _: Unused,
                _: Unused,
                _: Unused,
                return_address: usize,
            ) -> $type {
                operation(addr, return_address).load(order, || word(addr).load(SeqCst))
            }

            pub extern "C" fn store(
                addr: usize,
                value: $type,
                order: c_int,
                _: Unused,
                _: Unused,
                return_address: usize,
            ) {
                operation(addr, return_address).store(order, || word(addr).store(value, SeqCst));
            }

            updates! { $type:
                exchange by swap;
                add by fetch_add;
                sub by fetch_sub;
                and by fetch_and;
                or by fetch_or;
                xor by fetch_xor;
                nand by fetch_nand;
            }

            pub extern "C" fn compare_exchange(
                addr: usize,
                expected: *mut $type,
                value: $type,
                success: c_int,
                failure: c_int,
                return_address: usize,
            ) -> c_int {
                // SAFETY: `expected` points to a variable of the program of this type.
                let wanted = unsafe { expected.read() };
                let found =
                    compare_exchange_val(addr, wanted, value, success, failure, return_address);
                if found != wanted {
                    // SAFETY: as above; the program lets the operation write to the variable.
                    unsafe { expected.write(found) };
                }
                c_int::from(found == wanted)
            }

            pub extern "C" fn compare_exchange_val(
                addr: usize,
                wanted: $type,
                value: $type,
                success: c_int,
                failure: c_int,
                return_address: usize,
            ) -> $type {
                let load = || word(addr).load(SeqCst);
                let exchange = || word(addr).compare_exchange(wanted, value, SeqCst, SeqCst);
                operation(addr, return_address)
                    .compare_exchange(wanted, [success, failure], load, exchange)
                    .unwrap_or_else(|other| other)
            }
        }
        with_return_address! {
            $load => $functions::load;
            $store => $functions::store;
            $exchange => $functions::exchange;
            $add => $functions::add;
            $sub => $functions::sub;
            $and => $functions::and;
            $or => $functions::or;
            $xor => $functions::xor;
            $nand => $functions::nand;
            $strong => $functions::compare_exchange;
            $weak => $functions::compare_exchange;
            $val => $functions::compare_exchange_val;
        }
    )*};
}

atomics! {
    u8, AtomicU8, of_8 {
        __tsan_atomic8_load __tsan_atomic8_store __tsan_atomic8_exchange __tsan_atomic8_fetch_add
        __tsan_atomic8_fetch_sub __tsan_atomic8_fetch_and __tsan_atomic8_fetch_or __tsan_atomic8_fetch_xor
        __tsan_atomic8_fetch_nand __tsan_atomic8_compare_exchange_strong
        __tsan_atomic8_compare_exchange_weak __tsan_atomic8_compare_exchange_val
    }
    u16, AtomicU16, of_16 {
        __tsan_atomic16_load __tsan_atomic16_store __tsan_atomic16_exchange __tsan_atomic16_fetch_add
        __tsan_atomic16_fetch_sub __tsan_atomic16_fetch_and __tsan_atomic16_fetch_or __tsan_atomic16_fetch_xor
        __tsan_atomic16_fetch_nand __tsan_atomic16_compare_exchange_strong
        __tsan_atomic16_compare_exchange_weak __tsan_atomic16_compare_exchange_val
    }
    u32, AtomicU32, of_32 {
        __tsan_atomic32_load __tsan_atomic32_store __tsan_atomic32_exchange __tsan_atomic32_fetch_add
        __tsan_atomic32_fetch_sub __tsan_atomic32_fetch_and __tsan_atomic32_fetch_or __tsan_atomic32_fetch_xor
        __tsan_atomic32_fetch_nand __tsan_atomic32_compare_exchange_strong
        __tsan_atomic32_compare_exchange_weak __tsan_atomic32_compare_exchange_val
    }
    u64, AtomicU64, of_64 {
        __tsan_atomic64_load __tsan_atomic64_store __tsan_atomic64_exchange __tsan_atomic64_fetch_add
        __tsan_atomic64_fetch_sub __tsan_atomic64_fetch_and __tsan_atomic64_fetch_or __tsan_atomic64_fetch_xor
        __tsan_atomic64_fetch_nand __tsan_atomic64_compare_exchange_strong
        __tsan_atomic64_compare_exchange_weak __tsan_atomic64_compare_exchange_val
    }
}

/// Executes a fence between threads, which is at least as strong as the program's, and records it.
#[unsafe(no_mangle)]
pub extern "C" fn __tsan_atomic_thread_fence(order: c_int) {
    with(|process| process.fence(MemoryOrder::of(order)));
    fence(SeqCst);
}

/// Keeps the compiler from moving accesses over this call, for the sake of signal handlers.
#[unsafe(no_mangle)]
pub extern "C" fn __tsan_atomic_signal_fence(_: c_int) {
    std::sync::atomic::compiler_fence(SeqCst);
}
