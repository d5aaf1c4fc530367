//! The parts that all objects of libfabric have in common: a table of functions and a reference
//! count.
//!
//! The address of an object is that of the contents of an [`Arc`], or of a `Box` for a fabric,
//! which begin with the `fid` structure.
#![allow(unsafe_code)]

use libfabric_sys as fi;
use std::ffi::{c_int, c_void};
use std::sync::Arc;

/// The structure of libfabric that an object begins with.
#[repr(transparent)]
pub(crate) struct ObjectFid<T>(pub(crate) T);

// SAFETY: its pointers lead to static tables and to opaque contexts; it is not changed after
// creation.
unsafe impl<T> Send for ObjectFid<T> {}
// SAFETY: its pointers lead to static tables and to opaque contexts; it is not changed after
// creation.
unsafe impl<T> Sync for ObjectFid<T> {}

/// Returns the table of the functions that all objects have.
pub(crate) const fn base_ops(
    close: unsafe extern "C" fn(*mut fi::fid) -> c_int,
    bind: unsafe extern "C" fn(*mut fi::fid, *mut fi::fid, u64) -> c_int,
    control: unsafe extern "C" fn(*mut fi::fid, c_int, *mut c_void) -> c_int,
) -> fi::fi_ops {
    fi::fi_ops {
        size: size_of::<fi::fi_ops>(),
        close: Some(close),
        bind: Some(bind),
        control: Some(control),
        ops_open: None,
        tostr: None,
        ops_set: None,
    }
}

/// Returns a table of functions in the type of libfabric, which only reads it.
pub(crate) fn ops_ptr<T>(base_ops: &'static T) -> *mut T {
    std::ptr::from_ref(base_ops).cast_mut()
}

pub(crate) unsafe extern "C" fn no_bind(_: *mut fi::fid, _: *mut fi::fid, _: u64) -> c_int {
    -fi::FI_ENOSYS
}

pub(crate) unsafe extern "C" fn no_control(_: *mut fi::fid, _: c_int, _: *mut c_void) -> c_int {
    -fi::FI_ENOSYS
}

/// Returns a new reference to an object of which libfabric has the address.
///
/// # Safety
/// `object` is an open object of this type, from [`return_object`].
pub(crate) unsafe fn clone_ref<T>(object: *const T) -> Arc<T> {
    // SAFETY: `object` is from `Arc::into_raw`, by contract, and was not released yet.
    unsafe { Arc::increment_strong_count(object) };
    // SAFETY: the count was incremented above for this reference.
    unsafe { Arc::from_raw(object) }
}

/// Stores a new object for the application, and returns success.
///
/// # Safety
/// `place` is valid for writes, and `T` begins with `F`.
pub(crate) unsafe fn return_object<T, F>(opened: Arc<T>, place: *mut *mut F) -> c_int {
    // SAFETY: `place` is valid for writes, by contract.
    unsafe { *place = Arc::into_raw(opened).cast_mut().cast() };
    0
}

/// Returns the first member of every object.
pub(crate) fn fid(class: u32, context: *mut c_void, ops: &'static fi::fi_ops) -> fi::fid {
    fi::fid {
        fclass: class as usize,
        context,
        ops: ops_ptr(ops),
    }
}
