//! Detects which launcher started this process, so that no PE ever mistakes itself for a job of
//! one.
//!
//! It is pure: it decides from a lookup function and reads no environment itself. If one launcher
//! was started inside a job of another one, variables of the outer one may still be set, so a
//! connection that works has precedence over one that is only named.

use crate::env;
use crate::error::Error;
use crate::meeting::{Attendance, attendance_by_variables};
use std::fmt;

/// The way by which this process joins its job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum JoinRoute {
    /// A job of one PE.
    Alone,
    /// PMI-1 or PMI-2 over an inherited socket.
    Inherited {
        /// The descriptor's number.
        fd: i32,
        /// This process's number.
        pe: u32,
        /// Number of processes.
        n_pes: u32,
    },
    /// PMI-1 or PMI-2 over a connection to be made.
    Port {
        /// Host and port.
        address: String,
        /// The manager's number for this process.
        id: u32,
    },
    /// PMIx.
    Pmix,
    /// The meeting that variables name.
    Meeting(Attendance),
}

impl fmt::Display for JoinRoute {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            JoinRoute::Alone => f.write_str("no process manager"),
            JoinRoute::Inherited { fd, pe, n_pes } => {
                write!(f, "PMI over descriptor {fd} for PE {pe} of {n_pes}")
            }
            JoinRoute::Port { address, id } => write!(f, "PMI at {address} for process {id}"),
            JoinRoute::Pmix => f.write_str("PMIx"),
            JoinRoute::Meeting(Attendance { place, pe, n_pes, .. }) => {
                write!(f, "the meeting at {place:?} for PE {pe} of {n_pes}")
            }
        }
    }
}

/// The protocol by which to join the job, where the variables of several launchers are set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protocol {
    /// Whichever the variables lead to.
    Any,
    /// PMI-1.
    Pmi1,
    /// PMI-2.
    Pmi2,
    /// PMIx.
    Pmix,
}

impl Protocol {
    /// The values of [`env::BOOTSTRAP`].
    pub const EXPECTED: &str = "auto, pmi1, pmi2 or pmix";

    /// Reads a value of [`env::BOOTSTRAP`]; `None` where it is not [`Protocol::EXPECTED`].
    pub fn parse(text: &str) -> Option<Protocol> {
        match text {
            "auto" => Some(Protocol::Any),
            "pmi1" => Some(Protocol::Pmi1),
            "pmi2" => Some(Protocol::Pmi2),
            "pmix" => Some(Protocol::Pmix),
            _ => None,
        }
    }
}

type Lookup<'a> = &'a dyn Fn(&str) -> Option<String>;

/// Returns the route that the variables show; `is_socket` checks whether a descriptor is a
/// connected socket.
///
/// # Errors
/// When they show several processes and no route to the others.
pub(crate) fn route(
    protocol: Protocol,
    lookup: Lookup<'_>,
    is_socket: impl Fn(i32) -> bool,
) -> Result<JoinRoute, Error> {
    if let Some(attendance) = attendance_by_variables(lookup)? {
        return Ok(JoinRoute::Meeting(attendance));
    }
    let number = |name: &str| lookup(name)?.trim().parse::<u32>().ok();
    let wire = protocol != Protocol::Pmix;
    if wire && let Some(fd) = number(env::PMI_FD).and_then(|fd| i32::try_from(fd).ok()) {
        let place = (number(env::PMI_RANK), number(env::PMI_SIZE));
        if let (true, (Some(pe), Some(n_pes))) = (is_socket(fd), place) {
            return Ok(JoinRoute::Inherited { fd, pe, n_pes });
        }
    }
    if wire && let (Some(address), Some(id)) = (lookup(env::PMI_PORT), number(env::PMI_ID)) {
        return Ok(JoinRoute::Port { address, id });
    }
    let has_pmix = lookup(env::PMIX_NAMESPACE).is_some() && lookup(env::PMIX_RANK).is_some();
    if matches!(protocol, Protocol::Any | Protocol::Pmix) && has_pmix {
        return Ok(JoinRoute::Pmix);
    }
    match several(protocol, lookup) {
        Some(error) => Err(error),
        None => Ok(JoinRoute::Alone),
    }
}

/// Returns the error that refuses a job of one PE, when the variables show more processes or leave
/// their number open.
pub(crate) fn several(protocol: Protocol, lookup: Lookup<'_>) -> Option<Error> {
    let refuse = |launcher, rank, name: &'static str, remedy: String| {
        let value = lookup(name).unwrap_or_default();
        let pe = lookup(rank).and_then(|rank| rank.trim().parse().ok());
        Some(Error::Foreign { launcher, pe, name, value, remedy })
    };
    // A value that is not a number is no proof of one process, so it counts as several.
    let more_than_one = |name: &str| lookup(name).map(|value| value.trim().parse() != Ok(1_u32));

    let mut known_single = false;
    match more_than_one(env::PMI_SIZE) {
        Some(true) => {
            let remedy = lost_socket(protocol, lookup);
            return refuse(
                "a PMI launcher such as Hydra or Slurm",
                env::PMI_RANK,
                env::PMI_SIZE,
                remedy,
            );
        }
        Some(false) => known_single = true,
        None => {}
    }
    match more_than_one(env::OMPI_SIZE) {
        Some(true) => {
            return refuse("Open MPI's launcher", env::OMPI_RANK, env::OMPI_SIZE, LOST_PMIX.into());
        }
        Some(false) => known_single = true,
        None => {}
    }
    if lookup(env::SLURM_PROCID).is_some() {
        let size = [env::SLURM_STEP_NUM_TASKS, env::SLURM_NTASKS]
            .into_iter()
            .find(|name| lookup(name).is_some());
        if let Some(name) = size {
            if more_than_one(name) == Some(true) {
                return refuse("Slurm", env::SLURM_PROCID, name, NO_PMI.into());
            }
            known_single = true;
        }
    }
    for (launcher, rank, size) in env::OTHERS {
        match more_than_one(size).filter(|_| lookup(rank).is_some()) {
            Some(true) => return refuse(launcher, rank, size, NO_PROTOCOL.into()),
            Some(false) => known_single = true,
            None => {}
        }
    }
    if lookup(env::PMIX_RANK).is_some() && !known_single {
        return refuse("a PMIx launcher", env::PMIX_RANK, env::PMIX_RANK, LOST_PMIX.into());
    }
    None
}

/// Explains why the socket of PMI cannot be used, with the remedy.
fn lost_socket(protocol: Protocol, lookup: Lookup<'_>) -> String {
    if protocol == Protocol::Pmix {
        return "but SHMEM_BOOTSTRAP=pmix asks for PMIx, and PMIX_NAMESPACE or PMIX_RANK is not set: unset \
                SHMEM_BOOTSTRAP"
            .to_owned();
    }
    let unset = [env::PMI_FD, env::PMI_RANK].into_iter().find(|name| lookup(name).is_none());
    let missing = match unset {
        Some(name) => format!("{name}, which belongs to it, is not set"),
        None => format!(
            "{}={} is not a connected socket",
            env::PMI_FD,
            lookup(env::PMI_FD).unwrap_or_default()
        ),
    };
    format!(
        "but {missing}: a program in between has closed its descriptors or changed its environment, MPI_Finalize came \
         before shmem_init, or the variables are left from another job; start the program with that launcher directly \
         or with oshrun, or unset PMI_FD, PMI_RANK and PMI_SIZE to run it alone"
    )
}

const LOST_PMIX: &str = "but PMIx cannot reach the others, since PMIX_NAMESPACE or PMIX_RANK is not set or \
                         SHMEM_BOOTSTRAP names another protocol: start the program with that launcher directly, with \
                         SHMEM_BOOTSTRAP unset, or with oshrun";
const NO_PROTOCOL: &str = "but offers neither PMI nor PMIx, so that each process would be a job of its own: enable one \
                           of them in that launcher, start the program with oshrun, or set SHMEM_JOB and SHMEM_JOB_SECRET";
const NO_PMI: &str = "but without a PMI: use srun --mpi=pmix or srun --mpi=pmi2, or set SHMEM_JOB and SHMEM_JOB_SECRET";

#[cfg(test)]
mod tests;
