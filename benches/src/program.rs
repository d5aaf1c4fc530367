//! The programs that drivers run: installs our own, builds those of benches/, and parses their
//! output.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};
use task_support::workspace::Workspace;
use task_support::{installation, process};

/// Returns the directory of our own programs: `named` if there is one, otherwise that of a release
/// which is built and installed below `dir`.
pub fn installed(named: Option<PathBuf>, workspace: &Workspace, dir: &Path) -> Result<PathBuf> {
    if let Some(bin) = named {
        return Ok(bin);
    }
    let prefix = dir.join("prefix");
    installation::into(workspace, &prefix)?;
    Ok(prefix.join("bin"))
}

/// Compiles `source` with the `oshcc` in `bin`, optimized and with `flags`, to the file `program`,
/// whose directory is created. Returns the path of the program.
pub fn build(bin: &Path, source: &Path, flags: &[&str], program: PathBuf) -> Result<PathBuf> {
    if let Some(dir) = program.parent() {
        fs::create_dir_all(dir)?;
    }

    let mut compiler = Command::new(bin.join("oshcc"));
    compiler.arg("-O2").args(flags).arg(source);
    process::run(compiler.arg("-o").arg(&program))?;
    Ok(program)
}

/// Returns the names and values of the lines `name value` that a benchmark prints.
pub fn values(printed: &str) -> Result<Vec<(&str, f64)>> {
    let mut values = Vec::new();
    for line in printed.lines() {
        let value = named_value(line).with_context(|| format!("the benchmark printed `{line}`"))?;
        values.push(value);
    }
    Ok(values)
}

/// Returns the number on the line that begins with `name`.
pub fn value(printed: &str, name: &str) -> Result<f64> {
    let mut values = printed.lines().filter_map(named_value);
    let (_, number) = values
        .find(|(found, _)| *found == name)
        .with_context(|| format!("the benchmark printed no {name}:\n{printed}"))?;
    Ok(number)
}

fn named_value(line: &str) -> Option<(&str, f64)> {
    let (name, number) = line.split_once(' ')?;
    Some((name, number.trim().parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_found_by_their_names() {
        let printed = "private 2048.000\ntables_touched 3.5\ntables 1\n";
        assert_eq!(value(printed, "tables").unwrap(), 1.0);
        assert_eq!(value(printed, "tables_touched").unwrap(), 3.5);
        assert!(value(printed, "slice").is_err());
        assert_eq!(
            values("put8 2.5\np8 1.75\n").unwrap(),
            [("put8", 2.5), ("p8", 1.75)]
        );
        assert!(values("Segmentation fault\n").is_err());
    }
}
