//! Makes the installed libraries from the static libraries that cargo built.
//!
//! An installed static library is one object file whose only global names are those for C and
//! Fortran. The output of rustc also has all Rust symbols, and its `shmem_x` is as strong as
//! `pshmem_x`, so that a profiling tool could not define a `shmem_x` of its own. GNU ld and objcopy
//! join it to one object in which the names of the standard are weak, the profiling names are
//! strong, and all others are local.
//!
//! The shared library is linked from the static library with a version script, which gives each C
//! and Fortran name a version and hides all others. rustc cannot make it: for a shared library it
//! passes a script without versions, and the linker accepts only one script.

use std::fs;
use std::path::Path;
use std::process::Command;

use crate::process::run;
use anyhow::{Context, Result};
use spec::Exports;

use super::Toolchain;

/// The name to which the linker redirects calls of the C library's `_Fork` in static programs
/// (`--wrap`).
pub const WRAPPED: &str = "__wrap__Fork";

/// Makes librushmem.a from the static library that cargo built.
///
/// # Errors
/// If binutils are missing or fail; the message shows the command.
pub fn pack(staticlib: &Path, out: &Path, tools: &Toolchain) -> Result<()> {
    let table = Exports::read();
    let mut kept = table.all();
    kept.push(WRAPPED.to_owned());
    join(staticlib, out, &kept, &table.names, tools)
}

/// The linker script that joins the sections of each kind. rustc makes a section for each function;
/// the table of all these sections would be as large as the code.
const SECTIONS: &str = "SECTIONS {
    .text 0 : { *(.text .text.*) }
    .rodata 0 : { *(.rodata .rodata.*) }
    .data.rel.ro 0 : { *(.data.rel.ro .data.rel.ro.*) }
    .data 0 : { *(.data .data.*) }
    .bss 0 : { *(.bss .bss.*) }
    .tdata 0 : { *(.tdata .tdata.*) }
    .tbss 0 : { *(.tbss .tbss.*) }
    .gcc_except_table 0 : { *(.gcc_except_table .gcc_except_table.*) }
    .eh_frame 0 : { KEEP(*(.eh_frame)) }
}
";

/// Makes the archive `out` from the static library that cargo built: one object with the functions
/// `kept` and the code that these use. Its only global names are `kept`, of which `are_weak` are
/// weak.
///
/// # Errors
/// If binutils are missing or fail; the message shows the command.
pub fn join(
    staticlib: &Path,
    out: &Path,
    kept: &[String],
    are_weak: &[String],
    tools: &Toolchain,
) -> Result<()> {
    let object = out.with_extension("o");
    let exports = out.with_extension("exports");
    let weak = out.with_extension("weak");
    let roots = out.with_extension("roots");
    let script = out.with_extension("ld");

    write_lines(&exports, kept)?;
    write_lines(&weak, are_weak)?;
    // ld keeps what is reachable from symbols that are named as undefined, and drops the rest.
    let options: Vec<String> = kept
        .iter()
        .map(|name| format!("--undefined={name}"))
        .collect();
    write_lines(&roots, &options)?;
    write(&script, SECTIONS)?;

    // Without `noexecstack`, ld would request an executable stack: the members with split debug
    // information have no note about the stack.
    run(tools
        .binutil("ld")
        .args(["-r", "-z", "noexecstack", "--gc-sections", "--script"])
        .arg(&script)
        .arg(format!("@{}", roots.display()))
        .arg("--whole-archive")
        .arg(staticlib)
        .arg("-o")
        .arg(&object))?;

    run(tools
        .binutil("objcopy")
        // The LLVM plug-in of binutils cannot read this bitcode.
        .args([
            "--remove-section=.llvmbc",
            "--remove-section=.llvmcmd",
            "--strip-unneeded",
        ])
        .arg(format!("--keep-global-symbols={}", exports.display()))
        .arg(format!("--weaken-symbols={}", weak.display()))
        .arg(&object))?;

    // `ar` would add the object to an existing archive.
    if out.exists() {
        fs::remove_file(out).with_context(|| format!("could not replace {}", out.display()))?;
    }
    run(tools.binutil("ar").arg("crs").arg(out).arg(&object))?;

    for path in [object, exports, roots, script, weak] {
        fs::remove_file(&path).with_context(|| format!("could not remove {}", path.display()))?;
    }
    Ok(())
}

fn write_lines(path: &Path, lines: &[String]) -> Result<()> {
    write(path, &(lines.join("\n") + "\n"))
}

fn write(path: &Path, text: &str) -> Result<()> {
    fs::write(path, text).with_context(|| format!("could not write {}", path.display()))
}

/// The version of all symbols. It changes together with the soname, if programs that were linked
/// with an older library no longer work; docs/installing.md has the policy.
pub const VERSION: &str = "RUSHMEM_1";

/// The flags for linking the shared library.
const SHARED: [&str; 6] = [
    "-Wl,-soname,librushmem.so.1",
    // dlclose must not unload the library: its threads run, and the static data stay remapped.
    "-Wl,-z,nodelete",
    // Each shmem_x jumps directly to pshmem_x of this library, and not through the PLT.
    "-Wl,-Bsymbolic",
    // The flags of rustc.
    "-Wl,-z,relro,-z,now,-z,noexecstack",
    "-Wl,--gc-sections,--as-needed,-O1",
    "-Wl,--no-undefined-version",
];

/// Links librushmem.so from the static library that cargo built.
///
/// # Errors
/// If the compiler is missing or fails; the message shows the command.
pub fn link(staticlib: &Path, out: &Path, compiler: &str) -> Result<()> {
    let script = out.with_extension("map");
    let mut text = format!("{VERSION} {{\nglobal:\n");
    for name in Exports::read().all() {
        text += &format!("  {name};\n");
    }
    text += "local:\n  *;\n};\n";
    write(&script, &text)?;

    let mut words = compiler.split_whitespace();
    let mut command = Command::new(words.next().unwrap_or("cc"));
    command.args(words);
    command.args(["-shared", "-Wl,--whole-archive"]);
    command.arg(staticlib);
    command.arg("-Wl,--no-whole-archive");
    command.args(SHARED);
    command.arg(format!("-Wl,--version-script={}", script.display()));

    // Another file, so that a running program keeps the library that it has mapped.
    let new = out.with_extension("new");
    command.arg("-o").arg(&new);
    command.args(["-lpthread", "-ldl", "-lm"]);
    run(&mut command)?;

    fs::remove_file(&script).with_context(|| format!("could not remove {}", script.display()))?;
    fs::rename(&new, out).with_context(|| format!("could not place {}", out.display()))
}
