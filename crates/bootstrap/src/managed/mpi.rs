//! Determines whether the program's own MPI has opened the connection to the process manager that
//! both use, whether it still can, and how many processes it has started with.
//!
//! This crate does not link MPI; it looks its functions up in the program, which may not have them.
//! The functions have the same signature in every implementation of MPI.
#![allow(unsafe_code)]

use std::ffi::{CStr, c_char, c_int, c_void};

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
const TEXT: usize = 8192;

/// Returns the state of MPI in this process now.
pub(crate) fn present() -> Mpi {
    match version() {
        // Open MPI uses only PMIx, since version 4.
        Some(version) if !version.starts_with(OPEN_MPI) => match is(c"MPI_Initialized") {
            true => Mpi::Open,
            false => Mpi::Later,
        },
        _ => Mpi::Absent,
    }
}

/// Returns true if the program's MPI has not started, and could not start after PMIx is
/// initialized: since version 5, Open MPI does not ask PMIx for its rank in that case, and MPI_Init
/// fails.
pub(super) fn must_precede_pmix() -> bool {
    let version = version();
    let number = version.as_deref().and_then(|version| version.strip_prefix(OPEN_MPI));
    let major = number.and_then(|number| number.split('.').next()?.parse().ok());
    major.is_some_and(|major: u32| major >= 5) && !is(c"MPI_Initialized")
}

/// The processes of the MPI of this process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MpiWorld {
    /// There is no MPI that runs or will run, or none whose handles are known.
    Unknown,
    /// MPI_Init may be called later.
    Later,
    /// The number of processes of MPI_COMM_WORLD.
    Of(c_int),
}

/// Returns the processes of the MPI of this process now.
pub fn world() -> MpiWorld {
    let Some(version) = version() else { return MpiWorld::Unknown };
    // In the common interface of MPI 5, the handles are others.
    if find(c"MPI_Abi_get_version").is_some() || is(c"MPI_Finalized") {
        return MpiWorld::Unknown;
    }
    if !is(c"MPI_Initialized") {
        return MpiWorld::Later;
    }
    let world = match find(c"ompi_mpi_comm_world") {
        Some(world) if version.starts_with(OPEN_MPI) => world.addr(),
        _ if MPICH.iter().any(|name| version.contains(name)) => MPICH_COMM_WORLD,
        _ => return MpiWorld::Unknown,
    };
    let Some(size) = find(c"MPI_Comm_size") else { return MpiWorld::Unknown };
    // SAFETY: a pointer to `int MPI_Comm_size(MPI_Comm, int *)`, where a handle is a pointer in Open
    // MPI, and an int in MPICH, which the caller passes in the same register.
    let size: unsafe extern "C" fn(usize, *mut c_int) -> c_int =
        unsafe { std::mem::transmute(size) };
    let mut n = 0;
    // SAFETY: MPI is initialized and not finalized, so the handle is valid; `n` is writable.
    let failed = unsafe { size(world, &mut n) } != 0;
    if failed { MpiWorld::Unknown } else { MpiWorld::Of(n) }
}

/// Parts of the versions of MPICH and of those that are made from it.
const MPICH: [&str; 3] = ["MPICH", "Intel(R) MPI", "MVAPICH"];

/// The handle MPI_COMM_WORLD of MPICH.
const MPICH_COMM_WORLD: usize = 0x4400_0000;

/// The start of the version of Open MPI.
const OPEN_MPI: &str = "Open MPI v";

/// Returns the version string of MPI; `None` if the program has no MPI.
fn version() -> Option<String> {
    let version = find(c"MPI_Get_library_version")?;
    // SAFETY: a pointer to a function that every MPI defines as `int MPI_Get_library_version(char
    // *, int *)`.
    let version: unsafe extern "C" fn(*mut c_char, *mut c_int) -> c_int =
        unsafe { std::mem::transmute(version) };
    let mut text = [0; TEXT];
    let mut length = 0;
    // SAFETY: both are writable, and the text is as long as the limit of every MPI. MPI allows the
    // call at any time.
    let failed = unsafe { version(text.as_mut_ptr().cast(), &mut length) } != 0;
    let text = CStr::from_bytes_until_nul(&text).ok().filter(|_| !failed)?;
    Some(text.to_string_lossy().into_owned())
}

/// Returns what `MPI_Initialized` or `MPI_Finalized` says: whether MPI_Init or MPI_Finalize has been
/// called. Returns false without such a function.
fn is(question: &CStr) -> bool {
    let Some(function) = find(question) else { return false };
    // SAFETY: a pointer to a function that every MPI defines as `int MPI_Initialized(int *)` or
    // `int MPI_Finalized(int *)`.
    let function: unsafe extern "C" fn(*mut c_int) -> c_int =
        unsafe { std::mem::transmute(function) };
    let mut flag = 0;
    // SAFETY: the flag is writable; MPI allows the call at any time.
    let failed = unsafe { function(&mut flag) } != 0;
    !failed && flag != 0
}

/// Looks a function up in the program and the libraries that it has loaded.
fn find(name: &CStr) -> Option<*mut c_void> {
    // SAFETY: the name has a null character at its end.
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
        assert_eq!(world(), MpiWorld::Unknown);
    }
}
