//! The tables of the standard and of its extensions, which are the files beside this crate, and
//! what is made of them: the headers of C, the include files and the module of Fortran, and the
//! list of symbols.
//!
//! No header is in the repository: installations and tests make them. What they must contain is
//! `abi-1.txt`, with which `cargo xtask symbols` compares what a compiler reads in them.
//! Code is not generated: crates/shmem-c declares the functions by itself, and its tests compare it
//! with the headers.

mod constants;
mod exports;
mod fortran;
mod fortran_module;
mod generics;
mod header;
mod overloads;
pub mod table;

use std::fs;
use std::path::Path;

use anyhow::{Context, Result};

pub use exports::Exports;

use fortran::Fortran;
use table::SpecTable;

/// Returns the files of an installation's directory `include`: their names and texts.
///
/// # Errors
/// If the tables contradict each other or the constants of the runtime.
pub fn headers() -> Result<Vec<(&'static str, String)>> {
    let table = SpecTable::read();
    let fortran = Fortran::read();
    let (shmem_fh, shmemx_fh) = (fortran.shmem()?, fortran.shmemx()?);
    Ok(vec![
        ("shmem.h", header::shmem(&table)?),
        ("shmemx.h", header::shmemx(&table)?),
        ("pshmem.h", header::pshmem(&table)?),
        ("pshmemx.h", header::pshmemx(&table)?),
        ("mpp/shmem.h", header::deprecated("shmem.h")),
        ("mpp/shmemx.h", header::deprecated("shmemx.h")),
        ("mpp/pshmem.h", header::deprecated("pshmem.h")),
        ("mpp/pshmemx.h", header::deprecated("pshmemx.h")),
        ("shmem.fh", shmem_fh.clone()),
        ("shmemx.fh", shmemx_fh.clone()),
        // Compilers disagree about where they look for a file that an included one includes.
        ("mpp/shmem.fh", shmem_fh),
        ("mpp/shmemx.fh", shmemx_fh),
        ("shmem.f90", fortran_module::text()?),
    ])
}

/// Writes all of them into a directory.
///
/// # Errors
/// As [`headers`], or if a file cannot be written.
pub fn write_headers(dir: &Path) -> Result<()> {
    for (name, text) in headers()? {
        let path = dir.join(name);
        let written =
            fs::create_dir_all(path.parent().unwrap_or(dir)).and_then(|()| fs::write(&path, text));
        written.with_context(|| format!("could not write {}", path.display()))?;
    }
    Ok(())
}
