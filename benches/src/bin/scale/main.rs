//! Estimates the time of the collectives, and the messages of small operations, on machines that
//! are larger than any test machine.
//!
//! It runs the plans of the library's collectives, for every member, under the LogGP model of a
//! machine. `--doc DIR` writes the page and the charts of `docs/scale` into a directory; without
//! it the tables are printed. The model has the costs of the messages of a plan, not those of the
//! code by which the library executes it.
#![forbid(unsafe_code)]

mod machine;
mod operation;
mod run;
mod table;
mod updates;

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use clap::Parser;
use shmem_perf::report::by_team_picture;

/// Run the collectives' plans and count small operations under a model of a large machine.
///
/// Without --doc, print tables. Messages and KiB are those that the busiest member sends. The
/// factor after each time is its ratio to the lower bound, which docs/scale/collectives.md defines.
///
/// The machine `flat` has one PE on each node, and one latency between all nodes; `64 PEs per node`
/// has the same fabric; `dragonfly` is the machine of that page. Where the plans have a step for
/// each member, teams of more than 4,096 PEs have a time on `flat` alone, by a formula.
#[derive(Parser)]
struct ScaleFlags {
    /// Write collectives.md and a chart of each collective as SVG into DIR
    #[arg(long, value_name = "DIR")]
    doc: Option<PathBuf>,
    /// The largest team, a power of two
    #[arg(long, value_name = "N", default_value_t = 1 << 20)]
    max_pes: u32,
}

/// The introduction of the page.
const PAGE: &str = "\
# Collectives and small operations at scale

This page is for those who ask how Rushmem would do on machines that are larger than any test
machine. It estimates the time of the collectives, and of [small operations](#small-operations).
`cargo run --release -p benches --bin scale -- --doc docs/scale` writes it: it runs the plans that
the library executes, under the LogGP model. Without `--doc`, the command prints a table of the same
collectives with their messages and bytes, and also for two simpler machines.

The machine has 64 PEs per node and groups of 32 nodes, and a fabric of 200 Gbit/s. Between
nodes, a message takes 0.9 us within a group, and 1.7 us from group to group. The lower bound is the
time in which a word reaches all members, or in which each member sends and receives its bytes,
whichever is longer. Plans with a step for each member are run up to 4,096 PEs.

[Algorithms of collectives](../performance/collectives.md) describes which algorithm is used where.
Within one node, collectives use shared memory instead. In the model each PE of a node has a link of
its own, so the model shows less of the gain of two levels than a machine would.
";

/// The end of the page.
const END: &str = "
[Transports](../transports.md#small-operations) says how small operations are sent.
";

fn main() -> Result<()> {
    let ScaleFlags { doc, max_pes } = ScaleFlags::parse();
    if !max_pes.is_power_of_two() || max_pes < 2 {
        bail!("--max-pes {max_pes}: a team of the curves has a power of two of PEs, 2 at least");
    }

    let updates = updates::markdown(max_pes);
    let Some(directory) = doc else {
        println!("{updates}");
        print!("{}", table::markdown(&table::rows(max_pes)?));
        return Ok(());
    };

    let mut page = format!("{PAGE}\n");
    let note = "64 PEs to a node, 32 nodes to a group";
    for chart in table::charts(max_pes)? {
        let picture = by_team_picture(&chart.title, note, &chart.curves, &chart.bound);
        write(&directory.join(&chart.file), &picture)?;
        page.push_str(&format!("![{}]({})\n\n", chart.title, chart.file));
    }
    page.push_str(&updates);
    page.push_str(END);
    write(&directory.join("collectives.md"), &page)
}

fn write(path: &Path, text: &str) -> Result<()> {
    std::fs::write(path, text).with_context(|| format!("cannot write {}", path.display()))
}
