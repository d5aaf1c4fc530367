//! libfabric's C API as Rushmem uses it: types and constants of its headers, the few functions that
//! its library exports, found at run time, and the calls that the headers define inline, which go
//! through the tables of operations in the objects themselves.
//!
//! There is no logic here: every function is one call. The library is never closed, since its
//! providers leave threads and handlers behind.
#![allow(unsafe_code)]

#[expect(
    missing_docs,
    non_camel_case_types,
    clippy::type_complexity,
    reason = "made by a program from headers that have a manual"
)]
mod bindings;
mod calls;

pub use bindings::*;
pub use calls::*;

use core::ffi::{c_char, c_int, c_void};
use libloading::os::unix::Library;
use std::mem::ManuallyDrop;

/// The version of the interface that is requested: the oldest with everything that is used.
pub const API_VERSION: u32 = version(1, 11);
/// The oldest library that has it.
pub const OLDEST: u32 = API_VERSION;

/// Returns a version as libfabric has it.
pub const fn version(major: u32, minor: u32) -> u32 {
    major << 16 | minor
}

/// The layout of `fi_info` and its parts in the headers that the bindings were made of.
const LAYOUT: &[u8] = b"FABRIC_1.3\0";

type Getinfo = unsafe extern "C" fn(
    u32,
    *const c_char,
    *const c_char,
    u64,
    *const fi_info,
    *mut *mut fi_info,
) -> c_int;

/// The library.
pub struct Libfabric {
    _library: ManuallyDrop<libloading::Library>,
    getinfo: Getinfo,
    freeinfo: unsafe extern "C" fn(*mut fi_info),
    dupinfo: unsafe extern "C" fn(*const fi_info) -> *mut fi_info,
    fabric: unsafe extern "C" fn(*mut fi_fabric_attr, *mut *mut fid_fabric, *mut c_void) -> c_int,
    strerror: unsafe extern "C" fn(c_int) -> *const c_char,
    version: unsafe extern "C" fn() -> u32,
}

impl Libfabric {
    /// Open `libfabric.so.1`, as the dynamic linker finds it.
    ///
    /// # Errors
    /// What is missing, in words.
    pub fn open() -> Result<Libfabric, String> {
        // SAFETY: libfabric's initializers are those that every program linked with it runs.
        let library = unsafe { Library::new("libfabric.so.1") }.map_err(|error| {
            let source = std::error::Error::source(&error).map(ToString::to_string);
            let why = source.unwrap_or(error.to_string());
            format!(
                "libfabric.so.1 cannot be opened: {why}; install libfabric 1.11 or newer, or name its directory in LD_LIBRARY_PATH"
            )
        })?;
        let handle = library.into_raw();
        Ok(Libfabric {
            getinfo: sized(handle, c"fi_getinfo")?,
            freeinfo: sized(handle, c"fi_freeinfo")?,
            dupinfo: sized(handle, c"fi_dupinfo")?,
            fabric: symbol(handle, c"fi_fabric")?,
            strerror: symbol(handle, c"fi_strerror")?,
            version: symbol(handle, c"fi_version")?,
            // SAFETY: the handle was opened above, and nothing else owns it.
            _library: ManuallyDrop::new(unsafe { Library::from_raw(handle) }.into()),
        })
    }

    /// Returns the library's version, as [`version`] makes it.
    pub fn version(&self) -> u32 {
        // SAFETY: it takes and reads nothing.
        unsafe { (self.version)() }
    }

    /// `fi_getinfo` for [`API_VERSION`] and no node or service.
    ///
    /// # Safety
    /// `hints` is null or a valid list; what is returned is freed by [`Libfabric::freeinfo`].
    pub unsafe fn getinfo(&self, hints: *const fi_info, info: &mut *mut fi_info) -> c_int {
        let none = core::ptr::null();
        // SAFETY: the same contract; null means any.
        unsafe { (self.getinfo)(API_VERSION, none, none, 0, hints, info) }
    }

    /// `fi_getinfo` with `FI_PROV_ATTR_ONLY`: the providers that are installed, whether or not they
    /// have devices here. Of their entries only `fabric_attr` is there.
    ///
    /// # Safety
    /// What is returned is freed by [`Libfabric::freeinfo`].
    pub unsafe fn installed(&self, info: &mut *mut fi_info) -> c_int {
        let none = core::ptr::null();
        let flags = FI_PROV_ATTR_ONLY;
        // SAFETY: null means any, and no hints.
        unsafe { (self.getinfo)(API_VERSION, none, none, flags, core::ptr::null(), info) }
    }

    /// `fi_freeinfo`.
    ///
    /// # Safety
    /// `info` is null or a list that this library made and nobody uses any more.
    pub unsafe fn freeinfo(&self, info: *mut fi_info) {
        // SAFETY: the same contract.
        unsafe { (self.freeinfo)(info) }
    }

    /// `fi_dupinfo`; of null an empty one, as `fi_allocinfo` makes it.
    ///
    /// # Safety
    /// `info` is null or valid.
    pub unsafe fn dupinfo(&self, info: *const fi_info) -> *mut fi_info {
        // SAFETY: the same contract.
        unsafe { (self.dupinfo)(info) }
    }

    /// `fi_fabric`.
    ///
    /// # Safety
    /// `attr` is that of an entry which `getinfo` returned.
    pub unsafe fn fabric(&self, attr: *mut fi_fabric_attr, fabric: &mut *mut fid_fabric) -> c_int {
        // SAFETY: the same contract.
        unsafe { (self.fabric)(attr, fabric, core::ptr::null_mut()) }
    }

    /// `fi_strerror`, of an error number of either sign.
    pub fn strerror(&self, error: c_int) -> String {
        // SAFETY: it takes any number.
        let text = unsafe { (self.strerror)(error.saturating_abs()) };
        // SAFETY: it returns a constant string.
        unsafe { core::ffi::CStr::from_ptr(text) }.to_string_lossy().into_owned()
    }
}

/// Returns a function whose argument's layout has versions: that of the bindings, else the
/// library's own.
fn sized<F: Copy>(handle: *mut c_void, name: &core::ffi::CStr) -> Result<F, String> {
    // SAFETY: an open library and two strings that end with zeros.
    let found = unsafe { libc::dlvsym(handle, name.as_ptr(), LAYOUT.as_ptr().cast()) };
    match found.is_null() {
        true => symbol(handle, name),
        false => Ok(function(found)),
    }
}

fn symbol<F: Copy>(handle: *mut c_void, name: &core::ffi::CStr) -> Result<F, String> {
    // SAFETY: an open library and a string that ends with a zero.
    let found = unsafe { libc::dlsym(handle, name.as_ptr()) };
    match found.is_null() {
        true => Err(format!("libfabric.so.1 has no {}", name.to_string_lossy())),
        false => Ok(function(found)),
    }
}

/// Returns a symbol's address as the function that it is by libfabric's headers.
fn function<F: Copy>(address: *mut c_void) -> F {
    const { assert!(size_of::<F>() == size_of::<*mut c_void>()) };
    // SAFETY: of a pointer's size, and the callers name the type that the headers give to the
    // symbol.
    unsafe { core::mem::transmute_copy(&address) }
}
