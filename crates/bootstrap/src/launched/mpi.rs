//! Determines whether the program's own MPI has opened the connection to the process manager that
//! both use, whether it still can, and how many processes it has started with.
//!
//! This crate does not link MPI; it looks its functions up in the program and in the libraries of
//! MPI that the process has loaded. Apart from the types of handles, the functions have the same
//! signature in every implementation of MPI.
#![allow(unsafe_code)]

use std::ffi::{CStr, CString, OsStr, c_char, c_int, c_void};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// The state of MPI in this process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mpi {
    /// The program has no MPI, or one that does not use the PMI socket.
    Absent,
    /// The program may call MPI_Init later.
    Later,
    /// MPI_Init has been called.
    Open,
}

/// Maximum length of the result of `MPI_Get_library_version` in any MPI.
const VERSION_LENGTH: usize = 8192;

/// Parts of the version strings of MPICH and of implementations that are derived from it.
const MPICH: [&str; 3] = ["MPICH", "Intel(R) MPI", "MVAPICH"];

/// The handle MPI_COMM_WORLD of MPICH.
const MPICH_COMM_WORLD: usize = 0x4400_0000;

/// The start of the version string of Open MPI.
const OPEN_MPI: &str = "Open MPI v";

/// Returns the state of MPI in this process now.
pub(crate) fn state() -> Mpi {
    let Some(version) = version() else {
        return Mpi::Absent;
    };
    // Open MPI uses only PMIx since version 4; older versions are not distinguished.
    if version.starts_with(OPEN_MPI) {
        return Mpi::Absent;
    }

    if is_true(c"MPI_Initialized") {
        Mpi::Open
    } else {
        Mpi::Later
    }
}

/// Returns true if the program's MPI has not started, and could not start after PMIx is
/// initialized: since version 5, Open MPI does not ask PMIx for its rank in that case, and MPI_Init
/// fails.
pub(super) fn must_precede_pmix() -> bool {
    let Some(version) = version() else {
        return false;
    };
    let Some(number) = version.strip_prefix(OPEN_MPI) else {
        return false;
    };
    let major = number.split('.').next().unwrap_or_default();
    major.parse().is_ok_and(|major: u32| major >= 5) && !is_true(c"MPI_Initialized")
}

/// The number of processes with which the MPI of this process runs, if it is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MpiWorld {
    /// The process has loaded no MPI. It may load one later, as Python does.
    Absent,
    /// MPI has been finalized, its handles are not known, or it does not return its size.
    Unknown,
    /// MPI_Init may be called later.
    Later,
    /// The number of processes of MPI_COMM_WORLD.
    Size(c_int),
}

/// Returns the number of processes with which the MPI of this process runs now.
pub fn world() -> MpiWorld {
    let Some(version) = version() else {
        return MpiWorld::Absent;
    };
    // The common binary interface of MPI 5 has other handles.
    if find(c"MPI_Abi_get_version").is_some() || is_true(c"MPI_Finalized") {
        return MpiWorld::Unknown;
    }
    if !is_true(c"MPI_Initialized") {
        return MpiWorld::Later;
    }

    let world = match find(c"ompi_mpi_comm_world") {
        Some(world) if version.starts_with(OPEN_MPI) => world.addr(),
        _ if MPICH.iter().any(|name| version.contains(name)) => MPICH_COMM_WORLD,
        _ => return MpiWorld::Unknown,
    };
    let Some(size) = find(c"MPI_Comm_size") else {
        return MpiWorld::Unknown;
    };

    // SAFETY: `size` points to `int MPI_Comm_size(MPI_Comm, int *)`, where a handle is a pointer in
    // Open MPI, and an int in MPICH, which the caller passes in the same register.
    let size: unsafe extern "C" fn(usize, *mut c_int) -> c_int =
        unsafe { std::mem::transmute(size) };
    let mut n = 0;
    // SAFETY: MPI is initialized and not finalized, so the handle is valid; `n` is writable.
    let failed = unsafe { size(world, &mut n) } != 0;
    if failed {
        MpiWorld::Unknown
    } else {
        MpiWorld::Size(n)
    }
}

/// Returns the version string of MPI; `None` if the program has no MPI, or the call fails.
fn version() -> Option<String> {
    let version = find(c"MPI_Get_library_version")?;
    // SAFETY: `version` points to a function that every MPI defines as
    // `int MPI_Get_library_version(char *, int *)`.
    let version: unsafe extern "C" fn(*mut c_char, *mut c_int) -> c_int =
        unsafe { std::mem::transmute(version) };

    let mut text = [0; VERSION_LENGTH];
    let mut length = 0;
    // SAFETY: `text` and `length` are writable, and `text` is as long as the limit of every MPI.
    // MPI allows the call at any time.
    let failed = unsafe { version(text.as_mut_ptr().cast(), &mut length) } != 0;
    if failed {
        return None;
    }

    let text = CStr::from_bytes_until_nul(&text).ok()?;
    Some(text.to_string_lossy().into_owned())
}

/// Calls `MPI_Initialized` or `MPI_Finalized`. Returns true if MPI_Init or MPI_Finalize has been
/// called, and false if there is no such function.
fn is_true(question: &CStr) -> bool {
    let Some(function) = find(question) else {
        return false;
    };
    // SAFETY: `function` points to a function that every MPI defines as
    // `int MPI_Initialized(int *)` or `int MPI_Finalized(int *)`.
    let function: unsafe extern "C" fn(*mut c_int) -> c_int =
        unsafe { std::mem::transmute(function) };

    let mut flag = 0;
    // SAFETY: the flag is writable; MPI allows the call at any time.
    let failed = unsafe { function(&mut flag) } != 0;
    !failed && flag != 0
}

/// Looks a symbol up in the program and the libraries that it can see, then in the libraries of MPI
/// that are visible only to what has loaded them (`RTLD_LOCAL`), such as a module of Python.
/// Returns `None` if none of them has it.
fn find(name: &CStr) -> Option<*mut c_void> {
    if let Some(found) = symbol(libc::RTLD_DEFAULT, name) {
        return Some(found);
    }
    loaded_libraries()
        .into_iter()
        .find_map(|library| symbol(library, name))
}

fn symbol(library: *mut c_void, name: &CStr) -> Option<*mut c_void> {
    // SAFETY: the library is open, or is RTLD_DEFAULT, and the name has a null character at its
    // end.
    let found = unsafe { libc::dlsym(library, name.as_ptr()) };
    if found.is_null() { None } else { Some(found) }
}

/// Returns handles of the libraries of MPI that the process has loaded. The handles are never
/// closed, so the libraries stay loaded.
fn loaded_libraries() -> Vec<*mut c_void> {
    let mut paths: Vec<CString> = Vec::new();
    // The result is the last one of `note_library`, which is always 0.
    // SAFETY: `note_library` gets a pointer to a `Vec<CString>`, as it expects, and keeps none of
    // its arguments.
    unsafe { libc::dl_iterate_phdr(Some(note_library), (&raw mut paths).cast()) };

    // The libraries are opened here and not in `note_library`, since the loader is locked during
    // `dl_iterate_phdr`.
    let mut libraries = Vec::new();
    for path in paths {
        // SAFETY: the path has a null character at its end. With RTLD_NOLOAD nothing is loaded, so
        // no initializer runs.
        let library = unsafe { libc::dlopen(path.as_ptr(), libc::RTLD_LAZY | libc::RTLD_NOLOAD) };
        if !library.is_null() {
            libraries.push(library);
        }
    }
    libraries
}

/// Adds the path of a loaded library to the `Vec<CString>` at `paths` if the library is one of MPI.
/// Returns 0, so that `dl_iterate_phdr` goes on with the next library.
unsafe extern "C" fn note_library(
    library: *mut libc::dl_phdr_info,
    _: usize,
    paths: *mut c_void,
) -> c_int {
    // SAFETY: the C library passes a valid description.
    let path = unsafe { (*library).dlpi_name };
    if path.is_null() {
        return 0;
    }

    // SAFETY: the path has a null character at its end, and stays during this call.
    let path = unsafe { CStr::from_ptr(path) };
    if is_mpi_library(path) {
        // SAFETY: `loaded_libraries` passes this pointer, and does not use the list meanwhile.
        let paths = unsafe { &mut *paths.cast::<Vec<CString>>() };
        paths.push(path.to_owned());
    }
    0
}

/// Returns true if a library of this path may be one of MPI, such as `libmpi.so.40` or
/// `libmpich.so.12`.
fn is_mpi_library(path: &CStr) -> bool {
    let file = Path::new(OsStr::from_bytes(path.to_bytes())).file_name();
    file.is_some_and(|file| file.as_bytes().starts_with(b"libmpi"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_without_mpi_has_none() {
        assert_eq!(state(), Mpi::Absent);
        assert!(!must_precede_pmix());
        assert_eq!(world(), MpiWorld::Absent);
    }

    #[test]
    fn libraries_of_mpi_have_its_name() {
        for path in [
            c"/usr/lib/libmpi.so.40",
            c"libmpich.so.12",
            c"/opt/cray/libmpi_gnu_123.so",
        ] {
            assert!(is_mpi_library(path), "{path:?}");
        }
        for path in [c"", c"/usr/lib/libmpi/other.so", c"/usr/lib/libm.so.6"] {
            assert!(!is_mpi_library(path), "{path:?}");
        }
    }
}
