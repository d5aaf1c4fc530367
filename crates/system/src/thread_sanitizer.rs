//! ThreadSanitizer, whose functions a process has if its program was compiled with
//! `-fsanitize=thread`. It does not see how threads synchronize through this library, whose code is
//! not compiled for it, so the library tells it by these functions.
#![allow(unsafe_code)]

use std::ffi::{CStr, c_void};
use std::sync::OnceLock;

type SyncCall = unsafe extern "C" fn(*mut c_void);

/// The functions by which a program tells ThreadSanitizer of a synchronization that it does not
/// see.
#[derive(Clone, Copy, Debug)]
pub struct ThreadSanitizer {
    acquire: SyncCall,
    release: SyncCall,
}

impl ThreadSanitizer {
    /// Returns the functions; `None` if the program was not compiled for ThreadSanitizer.
    pub fn find() -> Option<ThreadSanitizer> {
        static FOUND: OnceLock<Option<ThreadSanitizer>> = OnceLock::new();
        *FOUND.get_or_init(|| {
            Some(ThreadSanitizer {
                acquire: function(c"__tsan_acquire")?,
                release: function(c"__tsan_release")?,
            })
        })
    }

    /// Orders the calling thread after all threads that have released this object.
    pub fn acquire<T>(self, object: *const T) {
        // SAFETY: the function uses the address of memory of this process as a number, and does not
        // access the memory.
        unsafe { (self.acquire)(object.cast_mut().cast()) }
    }

    /// Orders what the calling thread has done before all threads that acquire this object later.
    pub fn release<T>(self, object: *const T) {
        // SAFETY: as in `acquire`.
        unsafe { (self.release)(object.cast_mut().cast()) }
    }
}

fn function(name: &CStr) -> Option<SyncCall> {
    // SAFETY: the name ends with a null byte.
    let found = unsafe { libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr()) };
    if found.is_null() {
        return None;
    }

    // SAFETY: both functions of these names have this type.
    Some(unsafe { std::mem::transmute::<*mut c_void, SyncCall>(found) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_function_that_the_process_has_is_found() {
        // It has the type of those of ThreadSanitizer.
        assert!(function(c"free").is_some());
        assert!(function(c"free_of_no_library").is_none());
    }
}
