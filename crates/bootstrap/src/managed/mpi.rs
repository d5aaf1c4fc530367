//! Determines whether the program's own MPI has opened the connection to the process manager that
//! both use.
//!
//! Nothing of MPI is linked: the program may contain it or not. The functions that are called have
//! the same signature in every MPI.
#![allow(unsafe_code)]

use std::ffi::{CStr, c_char, c_int, c_void};

/// The state of MPI in this process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mpi {
    /// None, or one that does not speak PMI over the socket.
    Absent,
    /// It may call MPI_Init later.
    Later,
    /// MPI_Init has been called.
    Open,
}

/// Longest text of `MPI_Get_library_version` in any MPI.
const TEXT: usize = 8192;

/// Returns the state of MPI in this process now.
pub(crate) fn present() -> Mpi {
    let (Some(initialized), Some(version)) =
        (find(c"MPI_Initialized"), find(c"MPI_Get_library_version"))
    else {
        return Mpi::Absent;
    };
    // SAFETY: a pointer to a function that every MPI defines as `int MPI_Get_library_version(char
    // *, int *)`.
    let version: unsafe extern "C" fn(*mut c_char, *mut c_int) -> c_int =
        unsafe { std::mem::transmute(version) };
    let mut text = [0; TEXT];
    let mut length = 0;
    // SAFETY: both are writable, the text longer than any MPI's limit; MPI allows the call at any
    // time.
    let failed = unsafe { version(text.as_mut_ptr().cast(), &mut length) } != 0;
    // Open MPI has spoken nothing but PMIx on its own since version 4.
    if failed || text.starts_with(b"Open MPI") {
        return Mpi::Absent;
    }
    // SAFETY: a pointer to a function that every MPI defines as `int MPI_Initialized(int *)`.
    let initialized: unsafe extern "C" fn(*mut c_int) -> c_int =
        unsafe { std::mem::transmute(initialized) };
    let mut flag = 0;
    // SAFETY: the flag is writable; MPI allows the call at any time.
    let failed = unsafe { initialized(&mut flag) } != 0;
    if !failed && flag != 0 { Mpi::Open } else { Mpi::Later }
}

fn find(name: &CStr) -> Option<*mut c_void> {
    // SAFETY: a text that ends; the lookup goes through what the program has loaded.
    let found = unsafe { libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr()) };
    (!found.is_null()).then_some(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_without_mpi_has_none() {
        assert_eq!(present(), Mpi::Absent);
    }
}
