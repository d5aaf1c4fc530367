//! Remote memory access (OpenSHMEM 1.6, §9.6).
//!
//! A routine looks up the PE's copy of the address. If that copy is mapped here, the CPU copies the
//! bytes before the call returns, also in the non-blocking forms. [`access`] reaches memory that is
//! not mapped.
#![allow(unsafe_code)]

use rushmem_communication::access::contexts::{Context, PeArgument};
use rushmem_communication::access::{self, Access, Blocking, ByValue, Form, Nonblocking};
use rushmem_communication::net::polls;
use rushmem_communication::observers::Argument;
use rushmem_communication::status::polled_calls;
use rushmem_explain::status::PolledObject;
use rushmem_pe::call::{Call, fail};
use rushmem_pe::memory::address::{mapped, mapped_polled, mapped_polled_word, mapped_word};
use rushmem_transport::mem;
pub use rushmem_transport::mem::Element;
use std::mem::MaybeUninit;

/// Defines the routines that transfer elements by the function `$transfer`, each in its form.
macro_rules! forms {
    ($($(#[$doc:meta])* $name:ident = $transfer:ident, $form:ident;)*) => {$(
        $(#[$doc])*
        #[inline(always)]
        pub unsafe fn $name<T: Element, C: Context>(
            call: Call,
            ctx: C,
            dest: *mut T,
            source: *const T,
            nelems: usize,
            pe: impl PeArgument,
        ) {
            // SAFETY: the caller promises that the local elements are valid for the transfer's
            // accesses until it is complete.
            unsafe { $transfer::<T, C, $form>(call, ctx, dest, source, nelems, pe) }
        }
    )*};
}

forms! {
    /// `shmem_put`: copies `nelems` elements from the local `source` to `dest` on `pe` (§9.6.1.1).
    ///
    /// # Safety
    /// `source` is valid for reads of `nelems` elements, which nothing writes during the call.
    put = put_in_form, Blocking;

    /// `shmem_put_nbi`: a put that the next quiet completes (§9.6.2.1).
    ///
    /// # Safety
    /// As [`put`], but until the next quiet.
    put_nbi = put_in_form, Nonblocking;

    /// `shmem_get`: copies `nelems` elements from `source` on `pe` to the local `dest` (§9.6.1.5).
    ///
    /// # Safety
    /// `dest` is valid for writes of `nelems` elements, which nothing else accesses during the
    /// call.
    get = get_in_form, Blocking;

    /// `shmem_get_nbi`: a get that the next quiet completes (§9.6.2.2).
    ///
    /// # Safety
    /// As [`get`], but until the next quiet.
    get_nbi = get_in_form, Nonblocking;
}

/// Performs a put, which the call or the next quiet completes, as `F` says.
///
/// # Safety
/// `source` is valid for reads of `nelems` elements until the put is complete.
#[inline(always)]
unsafe fn put_in_form<T: Element, C: Context, F: Form>(
    call: Call,
    ctx: C,
    dest: *mut T,
    source: *const T,
    nelems: usize,
    pe: impl PeArgument,
) {
    let pe = pe.of_world(call, ctx);
    if nelems == 0 {
        return;
    }

    let nbytes = bytes_of::<T>(nelems);
    match mapped(dest, nbytes, pe) {
        // SAFETY: `to` is mapped for `nelems` elements, and the caller promises that `source` is
        // valid for reads of as many.
        Some(to) => unsafe { copy::<mem::VolatileLoads, T>(to, source, nelems) },
        // SAFETY: the caller promises that `source` is valid for reads of `nelems` elements until
        // the put is complete.
        None => unsafe {
            access::put::<C, F>(ctx, dest.addr(), source.cast(), nbytes, pe.number(), call)
        },
    }
}

/// Performs a get, which the call or the next quiet completes, as `F` says.
///
/// # Safety
/// `dest` is valid for writes of `nelems` elements until the get is complete.
#[inline(always)]
unsafe fn get_in_form<T: Element, C: Context, F: Form>(
    call: Call,
    ctx: C,
    dest: *mut T,
    source: *const T,
    nelems: usize,
    pe: impl PeArgument,
) {
    let pe = pe.of_world(call, ctx);
    if nelems == 0 {
        return;
    }

    let nbytes = bytes_of::<T>(nelems);
    match mapped_polled(source, nbytes, pe) {
        // SAFETY: `from` is mapped for `nelems` elements, and the caller promises that `dest` is
        // valid for writes of as many.
        Some(from) => unsafe { copy::<mem::AtomicLoads, T>(dest, from, nelems) },
        // SAFETY: the caller promises that `dest` is valid for writes of `nelems` elements until
        // the get is complete.
        None => unsafe {
            access::get::<C, F>(ctx, dest.cast(), source.addr(), nbytes, pe.number(), call)
        },
    }
}

/// `shmem_p`: stores one element to `dest` on `pe` (§9.6.1.2).
///
/// # Safety
/// The precondition of all routines, which [the crate](crate#safety) states.
#[inline(always)]
pub unsafe fn p<T: Element, C: Context>(
    call: Call,
    ctx: C,
    dest: *mut T,
    value: T,
    pe: impl PeArgument,
) {
    let pe = pe.of_world(call, ctx);
    let to = match size_of::<T>() {
        1 | 2 | 4 | 8 => mapped_word(dest, pe),
        nbytes => mapped(dest, nbytes, pe),
    };
    match to {
        // SAFETY: `to` is mapped for an element.
        Some(to) => unsafe { mem::store(to, value) },
        None => p_elsewhere(call, dest, value, pe, ctx),
    }
}

/// Stores an element that is misaligned or not mapped here, or while accesses are observed. The
/// context is the last argument, so that the others stay in the registers in which programs pass
/// them on the default context.
#[cold]
#[inline(never)]
fn p_elsewhere<T: Element, C: Context>(
    call: Call,
    dest: *mut T,
    value: T,
    pe: impl PeArgument,
    ctx: C,
) {
    match mapped(dest, size_of::<T>(), pe) {
        // SAFETY: `to` is mapped for an element.
        Some(to) => unsafe { mem::store(to, value) },
        None => {
            let source = (&raw const value).cast();
            let nbytes = size_of::<T>();
            // SAFETY: the source is a local element, and the put is complete locally on return.
            unsafe {
                access::put::<C, ByValue>(ctx, dest.addr(), source, nbytes, pe.number(), call)
            }
        }
    }
}

/// `shmem_g`: loads one element from `source` on `pe` (§9.6.1.6).
///
/// # Safety
/// The precondition of all routines, which [the crate](crate#safety) states.
#[inline(always)]
pub unsafe fn g<T: Element, C: Context>(
    call: Call,
    ctx: C,
    source: *const T,
    pe: impl PeArgument,
) -> T {
    let pe = pe.of_world(call, ctx);
    let from = match size_of::<T>() {
        1 | 2 | 4 | 8 => mapped_polled_word(source, pe),
        nbytes => mapped_polled(source, nbytes, pe),
    };
    match from {
        // SAFETY: `from` is mapped for an element.
        Some(from) => unsafe { mem::load(from) },
        None => g_elsewhere(call, source, pe, ctx),
    }
}

/// Loads an element that is misaligned or not mapped here, or while accesses are observed or polls
/// are counted.
#[cold]
#[inline(never)]
fn g_elsewhere<T: Element, C: Context>(
    call: Call,
    source: *const T,
    pe: impl PeArgument,
    ctx: C,
) -> T {
    match mapped(source, size_of::<T>(), pe) {
        Some(from) => {
            // SAFETY: `from` is mapped for an element.
            let value = unsafe { mem::load(from) };
            polls::count_read();
            polled_calls::count(
                call,
                source.addr(),
                PolledObject::MemoryOf(pe.number() as u32),
            );
            value
        }
        None => {
            let mut value = MaybeUninit::<T>::uninit();
            let dest = value.as_mut_ptr().cast();
            let nbytes = size_of::<T>();
            // SAFETY: the destination is a local element, and the get is complete on return.
            unsafe {
                access::get::<C, ByValue>(ctx, dest, source.addr(), nbytes, pe.number(), call)
            };
            // SAFETY: the get has stored the bytes of a `T`.
            unsafe { value.assume_init() }
        }
    }
}

/// `shmem_ibput`: puts `nblocks` blocks of `bsize` elements (§9.6.1.4). The starts of two blocks
/// are `dst` elements apart at the PE and `sst` elements apart here.
///
/// # Safety
/// `source` is valid for reads of every block.
#[expect(clippy::too_many_arguments, reason = "the arguments of shmem_ibput")]
#[inline(always)]
pub unsafe fn ibput<T: Element, C: Context>(
    call: Call,
    ctx: C,
    dest: *mut T,
    source: *const T,
    dst: isize,
    sst: isize,
    bsize: usize,
    nblocks: usize,
    pe: impl PeArgument,
) {
    let pe = pe.of_world(call, ctx);
    if nblocks == 0 || bsize == 0 {
        return;
    }

    let spans = spans::<T>(call, dst, sst, bsize, nblocks);
    match mapped(dest, spans.dest, pe) {
        // SAFETY: the whole span of `to` is mapped, and the caller promises that `source` is valid
        // for reads of every block.
        Some(to) => unsafe {
            mem::copy_strided::<mem::VolatileLoads, T>(to, source, dst, sst, bsize, nblocks)
        },
        None => {
            let access = Access::of_bytes(call, ctx, Argument::Dest, pe.number());
            let dst = bytes_of::<T>(dst as usize);
            let sst = bytes_of::<T>(sst as usize);
            let block = bytes_of::<T>(bsize);
            // SAFETY: the caller promises that `source` is valid for reads of every block.
            unsafe { access.put_strided(dest.addr(), source.cast(), dst, sst, block, nblocks) }
        }
    }
}

/// `shmem_ibget`: gets `nblocks` blocks of `bsize` elements (§9.6.1.8). The starts of two blocks
/// are `sst` elements apart at the PE and `dst` elements apart here.
///
/// # Safety
/// `dest` is valid for writes of every block.
#[expect(clippy::too_many_arguments, reason = "the arguments of shmem_ibget")]
#[inline(always)]
pub unsafe fn ibget<T: Element, C: Context>(
    call: Call,
    ctx: C,
    dest: *mut T,
    source: *const T,
    dst: isize,
    sst: isize,
    bsize: usize,
    nblocks: usize,
    pe: impl PeArgument,
) {
    let pe = pe.of_world(call, ctx);
    if nblocks == 0 || bsize == 0 {
        return;
    }

    let spans = spans::<T>(call, dst, sst, bsize, nblocks);
    match mapped(source, spans.source, pe) {
        // SAFETY: the whole span of `from` is mapped, and the caller promises that `dest` is valid
        // for writes of every block.
        Some(from) => unsafe {
            mem::copy_strided::<mem::AtomicLoads, T>(dest, from, dst, sst, bsize, nblocks)
        },
        None => {
            let access = Access::of_bytes(call, ctx, Argument::Source, pe.number());
            let dst = bytes_of::<T>(dst as usize);
            let sst = bytes_of::<T>(sst as usize);
            let block = bytes_of::<T>(bsize);
            // SAFETY: the caller promises that `dest` is valid for writes of every block.
            unsafe { access.get_strided(dest.cast(), source.addr(), dst, sst, block, nblocks) }
        }
    }
}

/// `shmem_iput`: puts `nelems` elements, which are `dst` elements apart at the PE and `sst`
/// elements apart here (§9.6.1.3).
///
/// # Safety
/// As [`ibput`] with blocks of one element.
#[expect(clippy::too_many_arguments, reason = "the arguments of shmem_iput")]
#[inline(always)]
pub unsafe fn iput<T: Element, C: Context>(
    call: Call,
    ctx: C,
    dest: *mut T,
    source: *const T,
    dst: isize,
    sst: isize,
    nelems: usize,
    pe: impl PeArgument,
) {
    // SAFETY: the caller keeps the contract of `ibput` for blocks of one element.
    unsafe { ibput(call, ctx, dest, source, dst, sst, 1, nelems, pe) }
}

/// `shmem_iget`: gets `nelems` elements, which are `sst` elements apart at the PE and `dst`
/// elements apart here (§9.6.1.7).
///
/// # Safety
/// As [`ibget`] with blocks of one element.
#[expect(clippy::too_many_arguments, reason = "the arguments of shmem_iget")]
#[inline(always)]
pub unsafe fn iget<T: Element, C: Context>(
    call: Call,
    ctx: C,
    dest: *mut T,
    source: *const T,
    dst: isize,
    sst: isize,
    nelems: usize,
    pe: impl PeArgument,
) {
    // SAFETY: the caller keeps the contract of `ibget` for blocks of one element.
    unsafe { ibget(call, ctx, dest, source, dst, sst, 1, nelems, pe) }
}

/// Returns the size of `nelems` elements in bytes. If it overflows, returns `usize::MAX`, which
/// fits no segment.
#[inline(always)]
pub(crate) fn bytes_of<T>(nelems: usize) -> usize {
    nelems.saturating_mul(size_of::<T>())
}

/// Copies elements, or bytes whose type is not known.
///
/// # Safety
/// `dest` is valid for writes and `source` for loads of the kind `L`, of `nelems` elements each.
#[inline(always)]
pub(crate) unsafe fn copy<L: mem::Loads, T: Element>(
    dest: *mut T,
    source: *const T,
    nelems: usize,
) {
    if size_of::<T>() == 1 {
        // SAFETY: an element is a byte, and by contract both sides are valid for `nelems` elements.
        unsafe { mem::copy_bytes::<L>(dest.cast(), source.cast(), nelems) }
    } else {
        // SAFETY: by contract, both sides are valid for `nelems` elements.
        unsafe { mem::copy_elements::<L, T>(dest, source, nelems) }
    }
}

/// The number of bytes from the first block of a transfer to the end of the last one.
struct Spans {
    dest: usize,
    source: usize,
}

/// Returns the spans of a strided transfer. Ends the job with an error if a stride is too small.
fn spans<T>(call: Call, dst: isize, sst: isize, bsize: usize, nblocks: usize) -> Spans {
    let span = |name: &str, stride: isize| {
        if stride < 1 || (stride as usize) < bsize {
            fail!(
                call,
                "argument {name} is {stride}, but a stride is at least {bsize} here"
            );
        }
        // A span that overflows fits no segment.
        (stride as usize)
            .saturating_mul(nblocks - 1)
            .saturating_add(bsize)
            .saturating_mul(size_of::<T>())
    };
    Spans {
        dest: span("dst", dst),
        source: span("sst", sst),
    }
}
