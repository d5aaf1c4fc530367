//! What the collectives would take on machines too large to be had.
//!
//! It runs the very plans that the library carries out, of every member, under the LogGP model of a machine. `--doc DIR` writes
//! the table and the curves of `docs/scale.md` into a folder; without it the table is printed. It must never know how the
//! library carries a plan out: what it says is what the plan costs.
#![forbid(unsafe_code)]

mod chart;
mod machine;
mod operation;
mod run;
mod table;

use anyhow::{Context, Result, bail};
use lexopt::prelude::*;
use std::path::PathBuf;

const HELP: &str = "\
Run the collectives' plans under a model of a large machine.

Usage: rushmem-scale [--doc DIR] [--max-pes N]

Options:
  --doc DIR     write collectives.md and one curve per collective as SVG into DIR
  --max-pes N   the largest team, a power of two (default 1048576)
";

fn main() -> Result<()> {
    let mut folder: Option<PathBuf> = None;
    let mut max_pes: u32 = 1 << 20;
    let mut arguments = lexopt::Parser::from_env();
    while let Some(argument) = arguments.next()? {
        match argument {
            Long("doc") => folder = Some(arguments.value()?.into()),
            Long("max-pes") => max_pes = arguments.value()?.parse()?,
            Short('h') | Long("help") => {
                print!("{HELP}");
                return Ok(());
            }
            _ => return Err(argument.unexpected().into()),
        }
    }
    if !max_pes.is_power_of_two() || max_pes < 2 {
        bail!("--max-pes {max_pes}: a team of the curves has a power of two of PEs, 2 at least");
    }
    let rows = table::rows(max_pes)?;
    let text = table::markdown(&rows);
    let Some(folder) = folder else {
        print!("{text}");
        return Ok(());
    };
    let write = |name: &str, text: &str| {
        let path = folder.join(name);
        std::fs::write(&path, text).with_context(|| format!("cannot write {}", path.display()))
    };
    write("collectives.md", &text)?;
    for (name, title, curves) in table::charts(max_pes)? {
        write(&format!("scale-{name}.svg"), &chart::svg(&title, &curves)?)?;
    }
    Ok(())
}
