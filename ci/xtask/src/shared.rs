//! The shared library as it is installed: linked from the static library that cargo built, by a
//! script that gives each C and Fortran name a version and hides all others.
//!
//! rustc passes a script without versions for its own shared libraries, beside which the linker
//! allows no other.

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result};
use spec::Exports;
use task_support::process::run;

/// The version of all symbols. It changes with the soname, when a program that was linked with an
/// older library would no longer work; docs/installing.md has the policy.
pub const VERSION: &str = "RUSHMEM_1";

/// The flags of the library for the linker.
const FLAGS: [&str; 6] = [
    "-Wl,-soname,librushmem.so.1",
    // Threads run in it, and what it did to the program's static data outlives any dlclose.
    "-Wl,-z,nodelete",
    // Every shmem_x jumps to pshmem_x of this library directly instead of through the PLT.
    "-Wl,-Bsymbolic",
    // As rustc links.
    "-Wl,-z,relro,-z,now,-z,noexecstack",
    "-Wl,--gc-sections,--as-needed,-O1",
    "-Wl,--no-undefined-version",
];

/// Links librushmem.so.
///
/// # Errors
/// When the compiler is missing or refuses; the message shows the command.
pub fn link(staticlib: &Path, out: &Path, compiler: &str) -> Result<()> {
    let (script, new) = (out.with_extension("map"), out.with_extension("new"));
    let names: String = Exports::read().all().iter().map(|name| format!("  {name};\n")).collect();
    let text = format!("{VERSION} {{\nglobal:\n{names}local:\n  *;\n}};\n");
    fs::write(&script, text).with_context(|| format!("could not write {}", script.display()))?;
    let mut words = compiler.split_whitespace();
    let mut command = Command::new(words.next().unwrap_or("cc"));
    command.args(words).args(["-shared", "-Wl,--whole-archive"]).arg(staticlib);
    command.arg("-Wl,--no-whole-archive").args(FLAGS);
    command.arg(format!("-Wl,--version-script={}", script.display()));
    run(command.arg("-o").arg(&new).args(["-lpthread", "-ldl", "-lm"]))?;
    let placed = fs::remove_file(&script).and_then(|()| fs::rename(&new, out));
    placed.with_context(|| format!("could not place {}", out.display()))
}
