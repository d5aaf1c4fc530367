//! libfabric's objects, which are closed when they are dropped, and the codes that its calls
//! return.
#![allow(unsafe_code)]

use libfabric_sys as fi;
use std::mem::ManuallyDrop;
use std::ptr::NonNull;

/// An open object. The structures of all kinds of objects begin with a `fid`.
pub(crate) struct Fid<T>(NonNull<T>);

// SAFETY: objects are opened with FI_THREAD_SAFE, so any thread may use them.
unsafe impl<T> Send for Fid<T> {}
// SAFETY: with FI_THREAD_SAFE several threads may use them at the same time.
unsafe impl<T> Sync for Fid<T> {}

impl<T> Fid<T> {
    /// Returns the object that a call has opened, or the error of the call.
    ///
    /// # Safety
    /// `opened` was stored by a call that opens objects and returned `code`. The result owns the
    /// object.
    pub(crate) unsafe fn opened(code: i32, opened: *mut T) -> Result<Fid<T>, i32> {
        match NonNull::new(opened) {
            Some(object) if code == 0 => Ok(Fid(object)),
            _ if code == 0 => Err(-fi::FI_ENOSYS),
            _ => Err(code),
        }
    }

    /// Closes the object. Returns true if libfabric has closed it, and so accesses no memory of it
    /// any more.
    pub(crate) fn close(self) -> bool {
        let object = ManuallyDrop::new(self);
        // SAFETY: open, given away here, and not closed by a drop.
        unsafe { fi::fi_close(object.fid()) == 0 }
    }

    pub(crate) fn raw(&self) -> *mut T {
        self.0.as_ptr()
    }

    pub(crate) fn fid(&self) -> *mut fi::fid {
        self.0.as_ptr().cast()
    }
}

impl<T> Drop for Fid<T> {
    fn drop(&mut self) {
        // SAFETY: open, and not used any more. Where closing fails there is nothing left to
        // do.
        unsafe { fi::fi_close(self.fid()) };
    }
}

/// Returns the result for a code of libfabric.
pub(crate) fn succeeded(code: i32) -> Result<(), i32> {
    if code == 0 { Ok(()) } else { Err(code) }
}
