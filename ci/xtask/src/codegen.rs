//! `cargo xtask codegen [--check]`: the headers of C and the include files of Fortran, written from
//! the tables of the standard and of its extensions; and what the documentation says about the
//! structure of the code, written from the code.
//!
//! They are committed, so that they can be read and installed without a build. Code is not
//! generated: crates/shmem-c declares the functions by itself, and its tests compare it with the
//! headers.

mod constants;
mod diagram;
pub mod exports;
pub mod fortran;
pub mod fortran_module;
mod generics;
mod header;
pub mod manual;
mod messages;
mod overloads;
pub mod table;
mod waiting;

use std::fs;

use anyhow::{Context, Result, bail};

use fortran::Fortran;
use table::SpecTable;
use workbench::workspace::Workspace;

/// The folder of the headers.
const INCLUDE: &str = "crates/shmem-c/include";

/// Writes the generated files, or with `check` says which of them are stale.
pub fn run(check: bool) -> Result<()> {
    let workspace = Workspace::open()?;
    let headers = headers()?.into_iter().map(|(name, text)| (format!("{INCLUDE}/{name}"), text));
    let mut files: Vec<(String, String)> = headers.collect();
    files.push(("docs/diagrams/crates.svg".into(), diagram::draw(&workspace.packages)));
    files.push(("docs/messages.md".into(), messages::page(&workspace.root)?));
    files.push(("docs/waiting.md".into(), waiting::page(&workspace.root)?));
    let mut stale = Vec::new();
    for (name, text) in files {
        let path = workspace.root.join(&name);
        if fs::read_to_string(&path).is_ok_and(|old| old == text) {
            continue;
        }
        stale.push(name);
        if !check {
            fs::write(&path, text)
                .with_context(|| format!("could not write {}", path.display()))?;
        }
    }
    match stale.as_slice() {
        [] => println!("The generated files are up to date."),
        names if check => bail!("stale: {}. Run cargo xtask codegen", names.join(", ")),
        names => println!("Written: {}", names.join(", ")),
    }
    Ok(())
}

fn headers() -> Result<Vec<(&'static str, String)>> {
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
    ])
}
