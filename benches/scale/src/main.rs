//! Estimates the time of the collectives on machines that are larger than any test machine.
//!
//! It runs the plans that the library executes, of every member, under the LogGP model of a
//! machine. `--doc DIR` writes the table and the curves of `docs/scale.md` into a folder; without
//! it the table is printed. It does not depend on how the library executes a plan: it reports the
//! cost of the plan.
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
  --doc DIR     write collectives.md and a chart of each collective as SVG into DIR
  --max-pes N   the largest team, a power of two (default 1048576)
";

/// What the page begins with.
const PAGE: &str = "\
# Collectives at scale

What the plans of the collectives would take on machines that nobody here has: `cargo run --release -p rushmem-scale -- --doc
docs/scale` runs the very plans that the library carries out under the LogGP model, and writes this page. *flat* has one PE on a node
and a fabric of 200 Gbit/s with 0.9 us; the others have 64 PEs on a node; *dragonfly* has groups of 32 nodes, between which a message takes
1.7 us. The charts are of the last one. Messages and KiB are what the busiest member sends. Behind each time stands how many times
the lower bound it is: of a word that reaches all members, or of the bytes that each member must take in and give out, whichever is longer.
Plans of as many steps as members are run up to 4,096 PEs; beyond, a closed form that is checked against them says what they take.

Which of them is used where is told in [collectives.md](../collectives.md). What shares one node's memory has faster ways. In the
model the PEs of a node do not share its link, so it shows less of what two levels gain.
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
    let mut page = format!("{PAGE}\n{text}\n");
    for (name, title, curves) in table::charts(max_pes)? {
        let file = format!("{name}.svg");
        write(&file, &chart::svg(&title, &curves)?)?;
        page.push_str(&format!("![{title}]({file})\n\n"));
    }
    write("collectives.md", page.trim_end())
}
