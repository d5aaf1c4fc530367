//! The command line.

use std::path::PathBuf;

use clap::Parser;
use rushmem_topology::{BindTo, MapBy};

/// Show what this OpenSHMEM is, what it can use here, and where the PEs of a job would be. Without an
/// option: the version, the settings, and the value of each.
#[derive(Debug, Parser)]
#[command(name = "shmem-info", version)]
pub struct Flags {
    /// The transports of this build, and whether each can work here
    #[arg(long, conflicts_with = "topology")]
    pub transports: bool,

    /// The settings as a page in Markdown
    #[arg(long, conflicts_with_all = ["transports", "topology"])]
    pub markdown: bool,

    /// The map of this machine: sockets, NUMA nodes, cores, NICs, and the PEs of a job
    #[arg(long)]
    pub topology: bool,

    /// Number of PEs on the map; by default one for each core
    #[arg(short = 'n', long = "np", value_name = "N", requires = "topology")]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=1 << 20))]
    pub n_pes: Option<u32>,

    /// How they are dealt, as for oshrun: spread, slot, core, l3, numa, socket
    #[arg(long, value_name = "PLACE", requires = "topology")]
    pub map_by: Option<MapBy>,

    /// What they are bound to, as for oshrun: none, core, l3, numa, socket
    #[arg(long, value_name = "PLACE", requires = "topology")]
    pub bind_to: Option<BindTo>,

    /// Another machine: what lstopo --of xml wrote there
    #[arg(long, value_name = "FILE", requires = "topology")]
    pub xml: Option<PathBuf>,

    /// A machine in hwloc's notation, such as "package:2 l3:2 core:4 pu:2"
    #[arg(long, value_name = "WORDS", requires = "topology", conflicts_with = "xml")]
    pub synthetic: Option<String>,

    /// Draw the map into this file as SVG; - is the standard output
    #[arg(long, value_name = "FILE", requires = "topology")]
    pub svg: Option<PathBuf>,
}
