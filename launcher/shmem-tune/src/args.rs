//! The command line.

use std::path::PathBuf;

use clap::Parser;

/// Measure the algorithms of collectives in the job that it runs in, and write a file for
/// SHMEM_COLL_TUNING. Start it as the programs will be started that use the file, such as: oshrun
/// -n 8 shmem-tune -o FILE.
#[derive(Debug, Parser)]
#[command(name = "shmem-tune", version)]
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
