//! The orders by which a daemon starts the PEs of its host. Plain data.

use std::ffi::OsString;
use std::ops::Range;
use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::spawn::debugger::Debugged;
use crate::spawn::placement::PlacementRequest;

/// The program to start: the same on all hosts of a job.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct JobSpec {
    /// The program as the user named it.
    pub program: OsString,
    /// Its arguments.
    pub arguments: Vec<OsString>,
    /// Variables of the option -x.
    pub exported: Vec<(OsString, OsString)>,
    /// The environment of oshrun, for other hosts; empty if it is inherited.
    pub forwarded: Vec<(OsString, OsString)>,
    /// The working directory; `None` if it is inherited.
    pub dir: Option<PathBuf>,
    /// The requested placement.
    pub placement: PlacementRequest,
    /// True if to start the program without ASLR.
    pub no_aslr: bool,
    /// The directory for the output files of PEs; `None` if oshrun prints the output.
    pub output_files: Option<PathBuf>,
    /// PEs that run under a debugger.
    pub debugged: Option<Debugged>,
    /// True if PE 0 may prompt at oshrun's terminal.
    pub prompts: bool,
    /// Time within which the job ends everywhere when a host stops answering.
    pub host_limit: Duration,
}

/// The PEs of a host.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HostPes {
    /// The host, as the user named it.
    pub host: String,
    /// Its PEs.
    pub pes: Range<u32>,
}

/// The part of the job that one daemon starts.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct HostJob {
    /// The program and its environment.
    pub spec: JobSpec,
    /// The PEs of the daemon's host.
    pub own: HostPes,
}
