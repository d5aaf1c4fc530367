//! The tables of the standard and of its extensions, which are files of this crate, and the texts
//! that are made from them: the headers of C, the include files and the module of Fortran, and the
//! list of symbols.
//!
//! No header is in the repository: installations and tests make them. `abi-1.txt` lists the
//! interface that they must have; `cargo xtask symbols` compares it with the one that a compiler
//! reads in them. No code is generated: crates/shmem-c declares the functions itself, and its tests
//! compare these declarations with the headers.

mod constants;
mod fortran;
mod fortran_module;
mod generics;
mod header;
mod overloads;
pub mod table;

use std::fs;
use std::io;
use std::path::Path;

use anyhow::{Context, Result};

use fortran::Fortran;
use table::SpecTable;

/// Returns the names and the texts of the files in the directory `include` of an installation.
///
/// # Errors
/// If the tables contradict each other or the constants of the runtime.
pub fn headers() -> Result<Vec<(&'static str, String)>> {
    let table = SpecTable::read();
    let fortran = Fortran::read();
    let shmem_fh = fortran.shmem()?;
    let shmemx_fh = fortran.shmemx()?;
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

/// Writes all headers into a directory.
///
/// # Errors
/// As [`headers`], or if a file cannot be written.
pub fn write_headers(dir: &Path) -> Result<()> {
    for (name, text) in headers()? {
        let path = dir.join(name);
        write(&path, &text).with_context(|| format!("could not write {}", path.display()))?;
    }
    Ok(())
}

/// Writes a file, and makes its directory if there is none.
fn write(path: &Path, text: &str) -> io::Result<()> {
    if let Some(dir) = path.parent() {
        fs::create_dir_all(dir)?;
    }
    fs::write(path, text)
}

/// The symbols that the library exports, for C and for Fortran.
pub struct Exports {
    /// The names of the functions that programs call, sorted. A profiling tool may define each of
    /// them.
    pub names: Vec<String>,
}

impl Exports {
    /// Returns the symbols of the tables, which are compiled into the calling program.
    pub fn read() -> Self {
        let mut names = Vec::new();
        for function in SpecTable::read().all() {
            names.push(function.symbol.clone());
        }
        names.extend(Fortran::read().symbols());
        names.sort();
        Self { names }
    }

    /// Returns the profiling names: each name with `p` in front, such as `pshmem_put`, which a tool
    /// calls from its own `shmem_put`.
    pub fn profiling_names(&self) -> impl Iterator<Item = String> + '_ {
        self.names.iter().map(|name| format!("p{name}"))
    }

    /// Returns the names and the profiling names.
    pub fn all(&self) -> Vec<String> {
        let mut all = self.names.clone();
        all.extend(self.profiling_names());
        all
    }
}
