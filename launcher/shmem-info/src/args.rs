//! The command line.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::builder::PossibleValuesParser;
use clap::{Args, Command, CommandFactory, Parser, Subcommand};
use rushmem_topology::{BindTo, MapBy};

use crate::doctor::Role;

/// The heading of the options of the map in the help.
const MAP: &str = "Options of --topology";

/// Show the settings of this OpenSHMEM library, the transports that work here, or the placement of
/// the PEs of a job. Without an option, print the version and the value of each setting.
#[derive(Debug, Parser)]
#[command(name = "shmem-info", version, args_conflicts_with_subcommands = true)]
#[command(disable_help_subcommand = true, max_term_width = 100)]
pub struct InfoFlags {
    #[command(subcommand)]
    pub command: Option<InfoCommand>,

    /// Print what the settings do: all, or those whose names contain this word
    #[arg(long, value_name = "WORD", num_args = 0..=1, default_missing_value = "")]
    #[arg(conflicts_with_all = ["doctor", "transports", "topology", "json", "markdown"])]
    pub describe: Option<String>,

    /// Print the transports of this build, and whether each of them works on this machine
    #[arg(long, conflicts_with = "topology")]
    pub transports: bool,

    /// Print whether jobs can run on this machine, and what its limits, memory, CPUs, NICs and
    /// transports are good for; the exit status is 1 if no job can run. `oshrun --doctor` examines
    /// all hosts of a job, and tries one
    #[arg(long, conflicts_with_all = ["transports", "topology", "markdown"])]
    pub doctor: bool,

    /// With --doctor, say why each part of a transport that jobs do not use is not used
    #[arg(long, requires = "doctor")]
    pub why: bool,

    /// Examine the job that this command of oshrun starts
    #[arg(long, hide = true, num_args = 1.., allow_hyphen_values = true, value_name = "WORD")]
    pub doctor_job: Vec<OsString>,

    /// Options of oshrun that distribute the PEs of that job
    #[arg(
        long,
        hide = true,
        default_value = "",
        allow_hyphen_values = true,
        value_name = "OPTIONS"
    )]
    pub doctor_layout: String,

    /// Examine a transport, or one of its parts, in this process, which a faulty library may crash
    #[arg(long, hide = true, num_args = 1..=2, value_names = ["TRANSPORT", "PART"])]
    pub doctor_transport: Vec<String>,

    /// Be a PE of a short job of the doctor
    #[arg(long, hide = true, value_enum, value_name = "ROLE")]
    pub doctor_pe: Option<Role>,

    /// Print the version, the settings that have a value, and the transports as JSON; with
    /// --doctor, its findings, without names and addresses of hosts
    #[arg(long, conflicts_with_all = ["transports", "markdown", "topology"])]
    pub json: bool,

    /// Print the settings as a page in Markdown
    #[arg(long, conflicts_with_all = ["transports", "topology"])]
    pub markdown: bool,

    /// Print a map of this machine: sockets, NUMA nodes, cores, NICs, and the PEs of a job
    #[arg(long)]
    pub topology: bool,

    /// Number of PEs; by default one per core
    #[arg(help_heading = MAP, short = 'n', long = "np", value_name = "N", requires = "topology")]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=1 << 20))]
    pub n_pes: Option<u32>,

    /// Mapping of PEs, as for oshrun: spread, slot, core, l3, numa, socket
    #[arg(help_heading = MAP, long, value_name = "PLACE", requires = "topology")]
    pub map_by: Option<MapBy>,

    /// Binding of PEs, as for oshrun: none, core, l3, numa, socket
    #[arg(help_heading = MAP, long, value_name = "PLACE", requires = "topology")]
    pub bind_to: Option<BindTo>,

    /// Read the description of another machine from this file, which lstopo --of xml wrote there
    #[arg(help_heading = MAP, long, value_name = "FILE", requires = "topology")]
    pub xml: Option<PathBuf>,

    /// Use a machine described in hwloc's notation, such as "package:2 l3:2 core:4 pu:2"
    #[arg(help_heading = MAP, long, value_name = "WORDS", requires = "topology", conflicts_with = "xml")]
    pub synthetic: Option<String>,

    /// Draw the map as SVG into this file; - stands for the standard output
    #[arg(help_heading = MAP, long, value_name = "FILE", requires = "topology")]
    pub svg: Option<PathBuf>,
}

/// Returns the command line for the man page and completions.
pub fn command() -> Command {
    // The help of the options names the words.
    let map_by = PossibleValuesParser::new(MapBy::WORDS.map(|(word, _)| word));
    let bind_to = PossibleValuesParser::new(BindTo::WORDS.map(|(word, _)| word));
    InfoFlags::command()
        .mut_arg("map_by", |arg| {
            arg.value_parser(map_by).hide_possible_values(true)
        })
        .mut_arg("bind_to", |arg| {
            arg.value_parser(bind_to).hide_possible_values(true)
        })
}

/// The other commands.
#[derive(Debug, Subcommand)]
pub enum InfoCommand {
    /// Make a trace for Perfetto (trace.json) and a page (trace.html: the bytes and the waits
    /// between PEs) from what the PEs of a job recorded for SHMEM_TRACE; also of a job that died
    Trace {
        /// The directory, with the files of all hosts
        #[arg(value_name = "DIR")]
        directory: PathBuf,
    },

    #[command(hide = true, override_usage = "shmem-perf tune [OPTIONS]")]
    Tune(TuneFlags),
}

/// Measure the algorithms of collectives in the job that it runs in, and write a file for
/// SHMEM_COLL_TUNING. Start it as the programs will be started that use the file, such as: oshrun
/// -n 8 shmem-perf tune -o FILE.
#[derive(Debug, Args)]
pub struct TuneFlags {
    /// Write the rows into this file; by default they are printed
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,

    /// The largest message, vector or result in bytes
    #[arg(long, value_name = "BYTES", default_value_t = 1 << 20)]
    #[arg(value_parser = clap::value_parser!(u64).range(8..=1 << 30))]
    pub max_bytes: u64,

    /// Measure each algorithm at each size five times, for about this number of milliseconds
    #[arg(long, value_name = "MS", default_value_t = 5)]
    #[arg(value_parser = clap::value_parser!(u64).range(0..=10_000))]
    pub time: u64,
}
