//! The standard's type tables (OpenSHMEM 1.6, tables 3 to 9), each as a macro that calls another
//! one with `NAME, TYPE` for every row.
//!
//! The Rust types are those of 64-bit Linux, where `size_t` is `u64` and `ptrdiff_t` is `i64`, so
//! that the runtime meets few distinct types.
//!
//! A new type is also in the rows of `crates/shmem-c/spec/symbols-1.6.csv`, or in `shmemx.csv` of
//! an extension.
#![allow(unsafe_code)]

use core::mem::MaybeUninit;

const _: () = assert!(size_of::<usize>() == 8 && size_of::<core::ffi::c_long>() == 8);

/// C's `long double`, which has 16 bytes on x86-64 and aarch64 and is opaque to Rust. Some of its
/// bytes may be padding.
#[repr(C, align(16))]
#[derive(Clone, Copy)]
pub struct LongDouble([MaybeUninit<u64>; 2]);

// SAFETY: the type may have padding, as `PADDED` says, and its size is 16.
unsafe impl rushmem_runtime::rma::Element for LongDouble {
    const PADDED: bool = true;
}

/// Standard AMO types.
macro_rules! for_each_standard_amo_type {
    ($each:ident) => {
        $each!(int, core::ffi::c_int);
        $each!(long, core::ffi::c_long);
        $each!(longlong, core::ffi::c_longlong);
        $each!(uint, core::ffi::c_uint);
        $each!(ulong, core::ffi::c_ulong);
        $each!(ulonglong, core::ffi::c_ulonglong);
        $each!(int32, i32);
        $each!(int64, i64);
        $each!(uint32, u32);
        $each!(uint64, u64);
        $each!(size, u64);
        $each!(ptrdiff, i64);
    };
}

/// Extended AMO types.
macro_rules! for_each_extended_amo_type {
    ($each:ident) => {
        $each!(float, f32);
        $each!(double, f64);
        for_each_standard_amo_type!($each);
    };
}

/// Bitwise AMO types.
macro_rules! for_each_bitwise_amo_type {
    ($each:ident) => {
        $each!(uint, core::ffi::c_uint);
        $each!(ulong, core::ffi::c_ulong);
        $each!(ulonglong, core::ffi::c_ulonglong);
        $each!(int32, i32);
        $each!(int64, i64);
        $each!(uint32, u32);
        $each!(uint64, u64);
    };
}

/// Types of the AMOs' deprecated names.
macro_rules! for_each_old_amo_type {
    ($each:ident) => {
        $each!(int, core::ffi::c_int);
        $each!(long, core::ffi::c_long);
        $each!(longlong, core::ffi::c_longlong);
    };
}

/// Types of the deprecated names of the AMOs fetch, set and swap.
macro_rules! for_each_old_extended_amo_type {
    ($each:ident) => {
        $each!(float, f32);
        $each!(double, f64);
        for_each_old_amo_type!($each);
    };
}

/// Point-to-point synchronization types: the standard AMO types and two deprecated ones.
macro_rules! for_each_wait_type {
    ($each:ident) => {
        for_each_standard_amo_type!($each);
        $each!(short, core::ffi::c_short);
        $each!(ushort, core::ffi::c_ushort);
    };
}

/// Types of the deprecated `shmem_TYPENAME_wait`.
macro_rules! for_each_old_wait_type {
    ($each:ident) => {
        $each!(short, core::ffi::c_short);
        for_each_old_amo_type!($each);
    };
}

/// Types of bitwise reductions over teams.
macro_rules! for_each_bitwise_reduce_type {
    ($each:ident) => {
        $each!(uchar, core::ffi::c_uchar);
        $each!(ushort, core::ffi::c_ushort);
        $each!(uint, core::ffi::c_uint);
        $each!(ulong, core::ffi::c_ulong);
        $each!(ulonglong, core::ffi::c_ulonglong);
        $each!(int8, i8);
        $each!(int16, i16);
        $each!(int32, i32);
        $each!(int64, i64);
        $each!(uint8, u8);
        $each!(uint16, u16);
        $each!(uint32, u32);
        $each!(uint64, u64);
        $each!(size, u64);
    };
}

/// Standard RMA types, which are also those of the other collectives and of MAX and MIN over teams.
macro_rules! for_each_rma_type {
    ($each:ident) => {
        for_each_bitwise_reduce_type!($each);
        $each!(char, core::ffi::c_char);
        $each!(schar, core::ffi::c_schar);
        $each!(short, core::ffi::c_short);
        $each!(int, core::ffi::c_int);
        $each!(long, core::ffi::c_long);
        $each!(longlong, core::ffi::c_longlong);
        $each!(ptrdiff, i64);
        $each!(float, f32);
        $each!(double, f64);
        $each!(longdouble, crate::types::LongDouble);
    };
}

/// Types of SUM and PROD over teams.
macro_rules! for_each_arithmetic_reduce_type {
    ($each:ident) => {
        for_each_rma_type!($each);
        for_each_complex_type!($each);
    };
}

/// Complex types.
macro_rules! for_each_complex_type {
    ($each:ident) => {
        $each!(complexf, rushmem_runtime::combine::Complex<f32>);
        $each!(complexd, rushmem_runtime::combine::Complex<f64>);
    };
}

/// Types of MAX and MIN over active sets. The types of bitwise reductions over active sets are
/// those of `for_each_old_wait_type`.
macro_rules! for_each_ordered_to_all_type {
    ($each:ident) => {
        for_each_old_wait_type!($each);
        $each!(float, f32);
        $each!(double, f64);
        $each!(longdouble, crate::types::LongDouble);
    };
}

/// Types of SUM and PROD over active sets.
macro_rules! for_each_arithmetic_to_all_type {
    ($each:ident) => {
        for_each_ordered_to_all_type!($each);
        for_each_complex_type!($each);
    };
}

/// Element types of functions whose name ends in a number of bits.
macro_rules! for_each_size {
    ($each:ident) => {
        $each!(8, u8);
        $each!(16, u16);
        $each!(32, u32);
        $each!(64, u64);
        $each!(128, [u64; 2]);
    };
}
