//! `cargo xtask bench-fabric`: our library over libfabric, beside libfabric itself with the same provider.
//!
//! benches/fabric.c does both, in turn in the same two processes; here it is built, started and read. What
//! libfabric does alone is called the floor.

use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result};
use lexopt::{Arg, ValueExt};
use workbench::workspace::{Install, Workspace};
use workbench::{needs, process};

use crate::ours;

/// Of the one launch, with all of its runs.
const LIMIT: Duration = Duration::from_secs(300);
const PROVIDER: &str = "tcp;ofi_rxm";

/// What is compared: its title, the names that the program prints, and the most that ours may take of the
/// floor's time.
const ROWS: &[(&str, &str, &str, Option<f64>)] = &[
    ("put + quiet, 8 bytes", "put8_quiet", "floor_write8", Some(1.15)),
    ("put_nbi, 8 bytes, in a stream", "put8_nbi", "floor_stream8", Some(1.0 / 0.7)),
    ("get, 8 bytes", "get8", "floor_read8", Some(1.15)),
    ("put + quiet, 1 MiB", "put_large_quiet", "floor_write_large", Some(1.0 / 0.95)),
    ("get, 1 MiB", "get_large", "floor_read_large", Some(1.0 / 0.95)),
    ("fetch-add beside a read", "fetch_add", "floor_read8_again", None),
];

/// As a task, with its arguments.
///
/// # Errors
/// What failed, or an argument that there is not.
pub fn run(args: &[String], install: Install) -> Result<()> {
    let mut provider = PROVIDER.to_owned();
    let mut ours = None;
    let mut parser = lexopt::Parser::from_args(args);
    while let Some(arg) = parser.next()? {
        match arg {
            Arg::Long("provider") => provider = parser.value()?.string()?,
            Arg::Long("ours") => ours = Some(PathBuf::from(parser.value()?)),
            other => return Err(other.unexpected().into()),
        }
    }
    needs::ensure(&[&needs::LIBFABRIC])?;
    let workspace = Workspace::open()?;
    let folder = workspace.target.join("bench-fabric");
    let bin = ours::bin(ours, &workspace, &folder, install)?;
    std::fs::create_dir_all(&folder)?;
    let program = folder.join("fabric");
    process::run(
        Command::new(bin.join("oshcc"))
            .arg("-O2")
            .arg(workspace.root.join("benches/fabric.c"))
            .arg("-o")
            .arg(&program)
            .arg("-lfabric"),
    )?;
    let printed = process::capture(
        process::limited(LIMIT, bin.join("oshrun"))
            .args(["-n", "2"])
            .arg(&program)
            .env("SHMEM_ONNODE", "off")
            .env("SHMEM_TRANSPORT", "ofi")
            .env("SHMEM_OFI_PROVIDER", &provider),
    )?;
    println!("libfabric's {provider}: median (middle half) in microseconds\n");
    print!("{}", table(&printed)?);
    Ok(())
}

/// The median and the quartiles that stand behind a name, in nanoseconds.
fn reading(printed: &str, name: &str) -> Result<[f64; 3]> {
    let line = printed.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
    let line = line.with_context(|| format!("the program printed no {name}"))?;
    let numbers: Result<Vec<f64>, _> =
        line.replace(['[', ']'], "").split(' ').map(str::parse).collect();
    let numbers = numbers.with_context(|| format!("{name}: {line}"))?;
    numbers.try_into().ok().with_context(|| format!("{name}: {line}"))
}

fn table(printed: &str) -> Result<String> {
    let mut text = String::from("| | ours | floor | ours/floor | aim |\n|---|---|---|---|---|\n");
    let cell = |[median, low, high]: [f64; 3]| {
        format!("{:.2} ({:.2}-{:.2})", median / 1e3, low / 1e3, high / 1e3)
    };
    for &(title, ours, floor, aim) in ROWS {
        let (ours, floor) = (reading(printed, ours)?, reading(printed, floor)?);
        let ratio = ours[0] / floor[0];
        let aim = match aim {
            None => String::new(),
            Some(aim) => format!("<= {aim:.2} {}", if ratio <= aim { "met" } else { "missed" }),
        };
        text += &format!("| {title} | {} | {} | {ratio:.2} | {aim} |\n", cell(ours), cell(floor));
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_printed_becomes_a_table() {
        let mut printed = String::new();
        for (_, ours, floor, _) in ROWS {
            printed += &format!("{ours} 9000 [8000 10000]\n{floor} 8000 [7000 9000]\n");
        }
        let table = table(&printed).expect("every row");
        let missed =
            "| put + quiet, 1 MiB | 9.00 (8.00-10.00) | 8.00 (7.00-9.00) | 1.12 | <= 1.05 missed |";
        assert!(table.contains(missed), "{table}");
        assert!(table.contains("| 1.12 | <= 1.15 met |"), "{table}");
        assert!(reading("get8 1 [2", "get8").is_err());
    }
}
