//! Gives a routine its two Fortran names, and reads its arguments.
//!
//! As in C, the body has the profiling name `pshmem_x_`, and `shmem_x_` is a jump to it. Messages
//! name the routine `SHMEM_X`, as manuals and programs do.
#![allow(unsafe_code)]

use core::ffi::c_int;

use rushmem_runtime::Call;

/// Exports routines: `[parts of the name](arguments) -> result = |call| body;`
///
/// The parts are joined without anything between them. The body gets pointers unchanged, and the
/// values of arguments of the types [`In`] and [`Elements`].
macro_rules! fortran {
    ($(
        [$($part:tt)+] ($($arg:ident: $type:ty),* $(,)?) $(-> $result:ty)?
            = |$call:ident| $body:expr;
    )+) => {$(
        #[allow(unsafe_code, reason = "routines of Fortran; every call is proved below")]
        const _: () = {
            const LOWER: &str = concat!($(stringify!($part)),+);
            const NAME: [u8; LOWER.len()] = $crate::fortran::export::upper(LOWER);

            #[unsafe(export_name = concat!("p", $(stringify!($part)),+, "_"))]
            unsafe extern "C" fn body($($arg: $type),*) $(-> $result)? {
                let $call = rushmem_runtime::call!($crate::fortran::export::text(&NAME));
                $(
                    // SAFETY: Fortran passes a valid address for every argument.
                    let $arg = unsafe {
                        $crate::fortran::export::Argument::read($arg, $call, stringify!($arg))
                    };
                )*
                // SAFETY: the caller keeps the standard's contract of this routine, which is the
                // contract of the runtime's function.
                #[allow(unused_unsafe, reason = "some functions of the runtime are safe")]
                unsafe { $body }
            }

            jump!([$($part)+ _] => body);
        };
    )+};
}

/// The address of a value that the routine only reads.
#[repr(transparent)]
#[derive(Clone, Copy)]
pub struct In<T>(*const T);

/// The address of a number of elements: a default INTEGER that must not be negative.
#[repr(transparent)]
#[derive(Clone, Copy)]
pub struct Elements(*const c_int);

/// A dummy argument as a routine receives it.
pub trait Argument {
    /// The type that the body of the routine sees.
    type Value;
    /// Returns the value for the body; `name` is the name of the argument in messages.
    ///
    /// # Safety
    /// An address whose value is read here is valid for reads.
    unsafe fn read(self, call: Call, name: &str) -> Self::Value;
}

impl<T> Argument for *mut T {
    type Value = Self;
    unsafe fn read(self, _: Call, _: &str) -> Self {
        self
    }
}

impl<T> Argument for *const T {
    type Value = Self;
    unsafe fn read(self, _: Call, _: &str) -> Self {
        self
    }
}

/// The hidden length of a CHARACTER argument, which is passed by value.
impl Argument for usize {
    type Value = Self;
    unsafe fn read(self, _: Call, _: &str) -> Self {
        self
    }
}

impl<T: Copy> Argument for In<T> {
    type Value = T;
    #[inline(always)]
    unsafe fn read(self, _: Call, _: &str) -> T {
        // SAFETY: the address is valid for reads, as the trait requires. In a COMMON block, a value
        // may be aligned to less than its size.
        unsafe { self.0.read_unaligned() }
    }
}

impl Argument for Elements {
    type Value = usize;
    #[inline(always)]
    unsafe fn read(self, call: Call, name: &str) -> usize {
        // SAFETY: the address is valid for reads, as the trait requires.
        let given = unsafe { self.0.read_unaligned() };
        crate::active_set::count(call, name, given)
    }
}

/// Returns the name in capitals.
pub const fn upper<const N: usize>(lower: &str) -> [u8; N] {
    let mut name = [0; N];
    name.copy_from_slice(lower.as_bytes());
    name.make_ascii_uppercase();
    name
}

/// Returns the name as text.
pub const fn text(name: &'static [u8]) -> &'static str {
    match core::str::from_utf8(name) {
        Ok(name) => name,
        Err(_) => panic!("names are ASCII"),
    }
}
