//! A job that a launcher has started: how its processes reach `oshrun` or another process manager,
//! and get their numbers.
//!
//! [`oshrun`] speaks Rushmem's own protocol, [`pmi`] PMI-1 and PMI-2, and [`pmix`] PMIx.

pub(crate) mod inherited;
pub(crate) mod mpi;
pub(crate) mod oshrun;
pub(crate) mod pmi;
mod pmix;

use std::io::{self, ErrorKind};
use std::net::{TcpStream, ToSocketAddrs};

use crate::env;
use crate::error::Error;
use crate::membership::route::{JoinRoute, Protocol};
use crate::process_manager::ProcessManager;
use crate::time_limit;
use mpi::Mpi;
use pmi::wire::Dialect;
use pmi::{Identity, Opening, Pmi};
use pmix::PmixConnection;

/// Connects to the process manager on this route. Returns `None` if the route leads to none, or to
/// a meeting.
pub(crate) fn manager(
    route: JoinRoute,
    protocol: Protocol,
    opens_libraries: bool,
) -> Result<Option<Box<dyn ProcessManager>>, Error> {
    let dialect = if protocol == Protocol::Pmi2 {
        Dialect::Two
    } else {
        Dialect::One
    };

    let manager: Box<dyn ProcessManager> = match route {
        JoinRoute::Alone | JoinRoute::Meeting(_) => return Ok(None),
        JoinRoute::Pmix if !opens_libraries => return Err(Error::PmixStatic),
        JoinRoute::Pmix => Box::new(open_pmix()?),
        JoinRoute::Port { address, id } => Box::new(open_at_port(&address, id, dialect)?),
        JoinRoute::Inherited { fd, pe, n_pes } => Box::new(open_inherited(fd, pe, n_pes, dialect)?),
    };
    Ok(Some(manager))
}

fn open_pmix() -> Result<PmixConnection, Error> {
    // The variables are read first: if no server answers, the thread in PMIx_Init remains, and may
    // change the environment at the same time.
    let variables = assignments(&[env::PMIX_NAMESPACE, env::PMIX_RANK]);
    let who = format!("PE {}", std::env::var(env::PMIX_RANK).unwrap_or_default());

    let library = pmix::library()?;
    let initialized =
        pmix::init(library, time_limit::ANSWER).map_err(|cause| Error::NoManager {
            who,
            protocol: "PMIx",
            variables,
            cause: format!("PMIx_Init: {cause}"),
        })?;
    PmixConnection::new(initialized)
}

/// Connects to the manager at `address`, which identifies this process by `id`.
fn open_at_port(address: &str, id: u32, dialect: Dialect) -> Result<Pmi, Error> {
    // The manager keeps one connection for each process: the last one.
    if mpi::state() == Mpi::Open {
        return Err(Error::MpiBefore);
    }

    let who = format!("the process with {}={id}", env::PMI_ID);
    let no_manager = |error| no_manager(error, &who, &[env::PMI_PORT, env::PMI_ID]);
    let socket = connect(address).map_err(|error| no_manager(Error::ManagerLost(error)))?;

    Pmi::open(Opening {
        socket: socket.into(),
        dialect,
        identity: Identity::FromManager(id),
        job: job_of_manager(),
        is_open: false,
        limit: time_limit::ANSWER,
    })
    .map_err(no_manager)
}

/// Uses the socket to the manager that this process has inherited.
fn open_inherited(fd: i32, pe: u32, n_pes: u32, dialect: Dialect) -> Result<Pmi, Error> {
    let socket = inherited::shared_socket(fd, env::PMI_FD)?;

    let mpi = mpi::state();
    let job = job_of_manager();
    // Slurm sets PMI_JOBID, Hydra does not. Slurm accepts one opening of PMI.
    let opens_once = job.is_some();
    if mpi == Mpi::Later && opens_once {
        return Err(Error::MpiLater);
    }

    let variables = [env::PMI_FD, env::PMI_RANK, env::PMI_SIZE];
    Pmi::open(Opening {
        socket,
        dialect,
        identity: Identity::Known { pe, n_pes },
        job,
        is_open: mpi == Mpi::Open,
        limit: time_limit::ANSWER,
    })
    .map_err(|error| no_manager(error, &format!("PE {pe}"), &variables))
}

/// Returns the name that the manager has for the job, if it has set one.
fn job_of_manager() -> Option<String> {
    std::env::var(env::PMI_JOBID)
        .ok()
        .filter(|job| !job.is_empty())
}

/// Returns true if this process has joined its job by PMIx, so that its Open MPI, version 5 or
/// later, can no longer start.
pub fn is_open_mpi_shut_out() -> bool {
    pmix::is_initialized() && mpi::must_precede_pmix()
}

/// Connects to the manager at `address`, a host and a port.
fn connect(address: &str) -> io::Result<TcpStream> {
    let mut refused = ErrorKind::AddrNotAvailable.into();
    for address in address.to_socket_addrs()? {
        match rushmem_connect::connect(&address, time_limit::ANSWER) {
            Ok(stream) => return Ok(stream),
            Err(error) => refused = error,
        }
    }
    Err(refused)
}

/// Converts an error of the first request: a connection that fails or a manager that does not
/// answer means that the variables of the launcher are stale.
fn no_manager(error: Error, who: &str, variables: &[&str]) -> Error {
    let cause = match error {
        Error::ManagerLost(cause) if cause.kind() == ErrorKind::TimedOut => {
            format!("no answer within {} s", time_limit::ANSWER.as_secs())
        }
        Error::ManagerLost(cause) => cause.to_string(),
        Error::ManagerSilent { request, limit, .. } => {
            format!("no answer to {request} within {} s", limit.as_secs())
        }
        Error::Unexpected(what) => format!("it sent {what}"),
        error => return error,
    };
    Error::NoManager {
        who: who.to_owned(),
        protocol: "PMI",
        variables: assignments(variables),
        cause,
    }
}

/// Returns variables and their values, for a message.
fn assignments(names: &[&str]) -> String {
    let mut texts = Vec::new();
    for name in names {
        let value = std::env::var_os(name).unwrap_or_default();
        texts.push(format!("{name}={}", value.to_string_lossy()));
    }
    texts.join(" ")
}
