//! libfabric's C API as Rushmem uses it: types and constants of its headers, the few functions that
//! its library exports, which are looked up at run time, and in `calls` those that the headers
//! define inline.
//!
//! There is no logic here: every function is one call. The library is never closed, since its
//! providers leave threads and handlers behind.
#![allow(unsafe_code)]

mod bindings;
mod calls;

pub use bindings::*;
pub use calls::*;

use core::ffi::{c_char, c_int, c_void};
use libloading::os::unix::Library;
use std::mem::ManuallyDrop;

/// The version of the API that Rushmem requests: the oldest with everything that it uses.
pub const API_VERSION: u32 = version(1, 11);
/// The oldest version of the library that has this API.
pub const OLDEST: u32 = API_VERSION;

/// Returns a version as libfabric encodes it.
pub const fn version(major: u32, minor: u32) -> u32 {
    major << 16 | minor
}

/// The symbol version of the functions whose `fi_info` has the layout of the bindings.
const LAYOUT: &[u8] = b"FABRIC_1.3\0";

type Getinfo = unsafe extern "C" fn(
    u32,
    *const c_char,
    *const c_char,
    u64,
    *const fi_info,
    *mut *mut fi_info,
) -> c_int;

/// The opened library, with its exported functions.
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
    /// Opens `libfabric.so.1`, as the dynamic linker finds it.
    ///
    /// # Errors
    /// If the library or a function is missing; the text names it.
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
            getinfo: versioned_symbol(handle, c"fi_getinfo")?,
            freeinfo: versioned_symbol(handle, c"fi_freeinfo")?,
            dupinfo: versioned_symbol(handle, c"fi_dupinfo")?,
            fabric: symbol(handle, c"fi_fabric")?,
            strerror: symbol(handle, c"fi_strerror")?,
            version: symbol(handle, c"fi_version")?,
            // SAFETY: the handle was opened above, and nothing else owns it.
            _library: ManuallyDrop::new(unsafe { Library::from_raw(handle) }.into()),
        })
    }

    /// Returns the library's version, as [`version`] encodes it.
    pub fn version(&self) -> u32 {
        // SAFETY: it takes and reads nothing.
        unsafe { (self.version)() }
    }

    /// `fi_getinfo` for [`API_VERSION`], without a node or service.
    ///
    /// # Safety
    /// `hints` is null or valid. The caller frees the result by [`Libfabric::freeinfo`].
    pub unsafe fn getinfo(&self, hints: *const fi_info, info: &mut *mut fi_info) -> c_int {
        let none = core::ptr::null();
        // SAFETY: `hints` is null or valid by contract; null for the node and the service means
        // any.
        unsafe { (self.getinfo)(API_VERSION, none, none, 0, hints, info) }
    }

    /// `fi_getinfo` with `FI_PROV_ATTR_ONLY`: the providers that are installed, whether or not they
    /// have devices here. Their entries have only the part `fabric_attr`.
    ///
    /// # Safety
    /// The caller frees the result by [`Libfabric::freeinfo`].
    pub unsafe fn installed(&self, info: &mut *mut fi_info) -> c_int {
        let none = core::ptr::null();
        let flags = FI_PROV_ATTR_ONLY;
        // SAFETY: null for the node and the service means any, and null for the hints means none.
        unsafe { (self.getinfo)(API_VERSION, none, none, flags, core::ptr::null(), info) }
    }

    /// `fi_freeinfo`.
    ///
    /// # Safety
    /// `info` is null or a list that this library has made and that is not used any more.
    pub unsafe fn freeinfo(&self, info: *mut fi_info) {
        // SAFETY: by contract, `info` is null or a list of this library that is not used any more.
        unsafe { (self.freeinfo)(info) }
    }

    /// `fi_dupinfo`, which returns an empty entry for null, as `fi_allocinfo` does.
    ///
    /// # Safety
    /// `info` is null or valid.
    pub unsafe fn dupinfo(&self, info: *const fi_info) -> *mut fi_info {
        // SAFETY: `info` is null or valid by contract.
        unsafe { (self.dupinfo)(info) }
    }

    /// `fi_fabric`.
    ///
    /// # Safety
    /// `attr` is a part of an entry that `getinfo` has returned.
    pub unsafe fn fabric(&self, attr: *mut fi_fabric_attr, fabric: &mut *mut fid_fabric) -> c_int {
        // SAFETY: by contract, `attr` is a part of an entry that `getinfo` has returned.
        unsafe { (self.fabric)(attr, fabric, core::ptr::null_mut()) }
    }

    /// `fi_strerror`, of an error number of either sign.
    pub fn strerror(&self, error: c_int) -> String {
        // SAFETY: it takes any number.
        let text = unsafe { (self.strerror)(error.saturating_abs()) };
        // SAFETY: it returns a constant string.
        unsafe { core::ffi::CStr::from_ptr(text) }
            .to_string_lossy()
            .into_owned()
    }
}

/// Returns an exported function whose argument has a layout that depends on the symbol version: the
/// one with the layout of the bindings, or the library's default if it lacks that version.
fn versioned_symbol<F: Copy>(handle: *mut c_void, name: &core::ffi::CStr) -> Result<F, String> {
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

/// Converts the address of a symbol to a function pointer of type `F`.
fn function<F: Copy>(address: *mut c_void) -> F {
    const { assert!(size_of::<F>() == size_of::<*mut c_void>()) };
    // SAFETY: `F` has the size of a pointer, and callers pass the type that the headers give to the
    // symbol.
    unsafe { core::mem::transmute_copy(&address) }
}
