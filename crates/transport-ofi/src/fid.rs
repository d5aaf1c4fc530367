//! libfabric's objects, closed when they are dropped, and what its calls return.
#![allow(unsafe_code)]

use libfabric_sys as fi;
use std::mem::ManuallyDrop;
use std::ptr::NonNull;

/// An open object: every kind of them begins with a `fid`.
pub(crate) struct Fid<T>(NonNull<T>);

// SAFETY: objects are opened with FI_THREAD_SAFE, so any thread may use them.
unsafe impl<T> Send for Fid<T> {}
// SAFETY: with FI_THREAD_SAFE several threads may use them at the same time.
unsafe impl<T> Sync for Fid<T> {}

impl<T> Fid<T> {
    /// Returns what an opening call returned and stored.
    ///
    /// # Safety
    /// `opened` was stored by a call that opens objects and returned `code`; it is given away here.
    pub(crate) unsafe fn opened(code: i32, opened: *mut T) -> Result<Fid<T>, i32> {
        match NonNull::new(opened) {
            Some(object) if code == 0 => Ok(Fid(object)),
            _ if code == 0 => Err(-fi::FI_ENOSYS),
            _ => Err(code),
        }
    }

    /// Closes it; whether libfabric did, and uses nothing of it any more.
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

/// Converts a code of libfabric's to a result. Functions whose error is a number return such a
/// code.
pub(crate) fn succeeded(code: i32) -> Result<(), i32> {
    if code == 0 { Ok(()) } else { Err(code) }
}
