//! What all of libfabric's objects have: a table of operations, and references that are counted. An object's address is that of
//! what an [`Arc`] holds, and begins with what libfabric knows of it.
#![allow(unsafe_code)]

use libfabric_sys as fi;
use std::ffi::{c_int, c_void};
use std::sync::Arc;

/// An empty table of operations, with what every object has.
pub(crate) const fn operations(
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

/// A table of operations as libfabric holds it, which never writes to it.
pub(crate) fn held<T>(operations: &'static T) -> *mut T {
    std::ptr::from_ref(operations).cast_mut()
}

pub(crate) unsafe extern "C" fn no_bind(_: *mut fi::fid, _: *mut fi::fid, _: u64) -> c_int {
    -fi::FI_ENOSYS
}

pub(crate) unsafe extern "C" fn no_control(_: *mut fi::fid, _: c_int, _: *mut c_void) -> c_int {
    -fi::FI_ENOSYS
}

/// A reference to an object of which libfabric has the address.
///
/// # Safety
/// The address of an open object of this type, which came from an [`Arc`].
pub(crate) unsafe fn shared<T>(object: *const T) -> Arc<T> {
    // SAFETY: by contract.
    unsafe { Arc::increment_strong_count(object) };
    // SAFETY: one reference more, above.
    unsafe { Arc::from_raw(object) }
}

/// What every call that opens something ends with.
///
/// # Safety
/// `place` has room for a pointer, and `T` begins with what `F` is.
pub(crate) unsafe fn hand_over<T, F>(opened: Arc<T>, place: *mut *mut F) -> c_int {
    // SAFETY: by contract.
    unsafe { *place = Arc::into_raw(opened).cast_mut().cast() };
    0
}

/// What every object begins with.
pub(crate) fn fid(class: u32, context: *mut c_void, ops: &'static fi::fi_ops) -> fi::fid {
    fi::fid { fclass: class as usize, context, ops: held(ops) }
}
