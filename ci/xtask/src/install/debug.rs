//! Debug information of installed programs and libraries: a file of its own in a directory `.debug`
//! beside each, where gdb and valgrind look for it.
//!
//! It is larger than all the rest, and no program of the library needs it: messages name lines of
//! the user's program, whose compiler has written its own.

use anyhow::Result;
use task_support::process::run;

use super::files::Prefix;
use crate::toolchain::Toolchain;

/// Strips a file of the prefix, and keeps its debug information if these tools do.
pub fn separate(prefix: &Prefix, name: &str, tools: &Toolchain) -> Result<()> {
    let file = prefix.path(name);
    // A program that runs keeps the file that it has mapped.
    let new = file.with_extension("stripped");
    let mut strip = tools.binutil("objcopy");
    strip.arg("--strip-unneeded");
    if tools.keeps_debug_information {
        let (dir, own) = name.rsplit_once('/').unwrap_or((".", name));
        let debug = prefix.add(&format!("{dir}/.debug/{own}.debug"))?;
        let mut copy = tools.binutil("objcopy");
        copy.args(["--only-keep-debug", "--compress-debug-sections"]);
        run(copy.arg(&file).arg(&debug))?;
        let mut link = std::ffi::OsString::from("--add-gnu-debuglink=");
        link.push(&debug);
        strip.arg(link);
    }
    run(strip.arg(&file).arg(&new))?;
    Ok(std::fs::rename(&new, &file)?)
}
