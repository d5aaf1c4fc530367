//! The membership of a PE in a job that `oshrun` has started: the PE's side of the
//! [protocol](crate::proto).

use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::sync::Arc;

use crate::connection::{Connection, Sender};
use crate::error::Error;
use crate::node::map::NodeMap;
use crate::proto::{FromLauncher, FromPe, Receivers};
use crate::records::Records;

/// The connection of this PE to `oshrun`.
#[derive(Debug)]
pub(crate) struct OshrunMembership {
    connection: Connection,
    pe: u32,
    nodes: NodeMap,
    /// The shared memory of the node, until it is taken.
    memory: Option<OwnedFd>,
    /// Number of the next exchange.
    round: u32,
}

impl OshrunMembership {
    /// Joins the job: reports this process to `oshrun`, which answers with the number of the PE.
    /// `memory` is that of the node.
    pub(crate) fn join(socket: UnixStream, memory: OwnedFd) -> Result<OshrunMembership, Error> {
        let mut connection = Connection::new(socket);
        connection.send(&hello())?;

        match connection.receive()? {
            FromLauncher::Welcome { pe, nodes } if pe < nodes.n_pes() => Ok(OshrunMembership {
                connection,
                pe,
                nodes,
                memory: Some(memory),
                round: 0,
            }),
            FromLauncher::Welcome { .. } => Err(Error::Unexpected("a PE number beyond the job")),
            FromLauncher::Gathered { .. } => Err(Error::Unexpected("records")),
            _ => Err(Error::Unexpected("a message of a meeting")),
        }
    }

    pub(crate) fn pe(&self) -> u32 {
        self.pe
    }

    pub(crate) fn nodes(&self) -> &NodeMap {
        &self.nodes
    }

    pub(crate) fn take_memory(&mut self) -> Option<OwnedFd> {
        self.memory.take()
    }

    /// Returns the sending half, which any thread may use.
    pub(crate) fn sender(&self) -> &Arc<Sender> {
        self.connection.sender()
    }

    pub(crate) fn send(&self, message: &FromPe) -> Result<(), Error> {
        self.connection.send(message)
    }

    /// Exchanges records with all PEs. Returns `None` if this PE is not among the receivers.
    pub(crate) fn exchange(
        &mut self,
        to: Receivers,
        record: &[u8],
    ) -> Result<Option<Records>, Error> {
        let round = self.round;
        self.send(&FromPe::Exchange {
            round,
            to,
            record: record.to_vec(),
        })?;
        self.round = round.wrapping_add(1);
        if to == Receivers::FirstOfNode && self.nodes.local_index(self.pe) != 0 {
            return Ok(None);
        }

        match self.connection.receive()? {
            FromLauncher::Gathered { round: of, records }
                if of == round && records.n_pes() == self.nodes.n_pes() =>
            {
                let received = self.connection.received();
                rushmem_system::log::trace!(round, received, "has the records of all PEs");
                Ok(Some(records))
            }
            FromLauncher::Gathered { .. } => {
                Err(Error::Unexpected("the records of another exchange"))
            }
            FromLauncher::Welcome { .. } => Err(Error::Unexpected("a second welcome")),
            _ => Err(Error::Unexpected("a message of a meeting")),
        }
    }
}

/// Returns the sending half of a connection to `oshrun`, to which this process has reported itself
/// without waiting for the number of the PE; `None` if `oshrun` cannot be reached.
pub(crate) fn report_only(socket: UnixStream) -> Option<Arc<Sender>> {
    let connection = Connection::new(socket);
    connection.send(&hello()).ok()?;
    Some(connection.sender().clone())
}

fn hello() -> FromPe {
    FromPe::Hello {
        pid: std::process::id(),
    }
}
