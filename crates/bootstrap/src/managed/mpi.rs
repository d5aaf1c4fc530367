//! Determines whether the program's own MPI has opened the connection to the process manager that
//! both use, and whether it still can.
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
    match version() {
        // Open MPI has spoken nothing but PMIx on its own since version 4.
        Some(version) if !version.starts_with(OPEN_MPI) => match is_initialized() {
            true => Mpi::Open,
            false => Mpi::Later,
        },
        _ => Mpi::Absent,
    }
}

/// Returns true if the MPI of this process has not started, and cannot once PMIx is initialized:
/// from version 5 on, Open MPI does not ask PMIx who it is then, and MPI_Init fails.
pub(super) fn must_precede_pmix() -> bool {
    let version = version();
    let number = version.as_deref().and_then(|version| version.strip_prefix(OPEN_MPI));
    let major = number.and_then(|number| number.split('.').next()?.parse().ok());
    major.is_some_and(|major: u32| major >= 5) && !is_initialized()
}

/// The start of the version of Open MPI.
const OPEN_MPI: &str = "Open MPI v";

/// Returns the version of MPI; `None` if the program has no MPI.
fn version() -> Option<String> {
    let version = find(c"MPI_Get_library_version")?;
    // SAFETY: a pointer to a function that every MPI defines as `int MPI_Get_library_version(char
    // *, int *)`.
    let version: unsafe extern "C" fn(*mut c_char, *mut c_int) -> c_int =
        unsafe { std::mem::transmute(version) };
    let mut text = [0; TEXT];
    let mut length = 0;
    // SAFETY: both are writable, the text longer than any MPI's limit; MPI allows the call at any
    // time.
    let failed = unsafe { version(text.as_mut_ptr().cast(), &mut length) } != 0;
    let text = CStr::from_bytes_until_nul(&text).ok().filter(|_| !failed)?;
    Some(text.to_string_lossy().into_owned())
}

/// Returns true if MPI_Init has been called.
fn is_initialized() -> bool {
    let Some(initialized) = find(c"MPI_Initialized") else { return false };
    // SAFETY: a pointer to a function that every MPI defines as `int MPI_Initialized(int *)`.
    let initialized: unsafe extern "C" fn(*mut c_int) -> c_int =
        unsafe { std::mem::transmute(initialized) };
    let mut flag = 0;
    // SAFETY: the flag is writable; MPI allows the call at any time.
    let failed = unsafe { initialized(&mut flag) } != 0;
    !failed && flag != 0
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
        assert!(!must_precede_pmix());
    }
}
