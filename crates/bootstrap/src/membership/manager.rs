//! The membership of a PE in a job of a process manager: Hydra, Slurm, PRRTE, Open MPI's mpirun.
//!
//! Managers are slow and store only short values. Therefore the first PE of a node gathers the
//! records of the others and exchanges them with the other nodes, and a job on one node uses the
//! manager only while it starts and to end. The meeting of a job counts as a manager here; it
//! exchanges the records of all PEs itself.

use std::os::fd::{BorrowedFd, OwnedFd};
use std::sync::Arc;

use crate::error::Error;
use crate::node::key::NodeKey;
use crate::node::map::NodeMap;
use crate::node::{NodeConnections, NodeExchange, NodeSockets};
use crate::process_manager::{Ender, ProcessManager};
use crate::proto::Receivers;
use crate::records::Records;
use crate::time_limit;
use crate::watch::{LivenessConnections, Notice};

/// The membership of this PE, by its process manager and the other PEs of its node.
#[derive(Debug)]
pub(crate) struct ManagerMembership {
    manager: Box<dyn ProcessManager>,
    peers: NodeExchange,
    watch: LivenessConnections,
    nodes: NodeMap,
    /// The shared memory of the node, until it is taken.
    memory: Option<OwnedFd>,
    /// The files of the node's PEs, in the order of the PEs, until they are taken.
    files: Vec<Option<OwnedFd>>,
    /// Number of the next exchange.
    round: u32,
}

impl ManagerMembership {
    /// Joins the job: connects to the PEs of this node, sends them `file`, and exchanges the node
    /// map with the other nodes.
    pub(crate) fn join(
        mut manager: Box<dyn ProcessManager>,
        file: Option<BorrowedFd<'_>>,
    ) -> Result<ManagerMembership, Error> {
        // The fence below, and the one in `agree`, take as long as the slowest process.
        let notice = Notice::after(time_limit::ANSWER, manager.pe(), manager.n_pes());
        let key = NodeKey::agree(&mut *manager)?;
        let sockets = NodeSockets::open(key, manager.pe(), time_limit::ANSWER)?;
        manager.fence()?;
        rushmem_system::log::trace!("all processes of the job have called shmem_init");
        drop(notice);

        // All PEs have their sockets now, so a PE without one on this node is on another node.
        let NodeConnections {
            mut peers,
            liveness,
            memory,
            files,
        } = sockets.connect_node(manager.n_pes(), file)?;

        let nodes = if files.len() < manager.n_pes() as usize {
            exchange_node_map(&mut *manager, &mut peers)?
        } else {
            NodeMap::one_node(manager.n_pes())
                .map_err(|_| Error::Unexpected("a job without processes"))?
        };

        // The first PE of the node watches the others, and the second one watches the first.
        let watches = nodes.local_index(manager.pe()) < 2;
        let watch = LivenessConnections::start(manager.pe(), liveness, watches, manager.ender());
        Ok(ManagerMembership {
            manager,
            peers,
            watch,
            nodes,
            memory,
            files,
            round: 0,
        })
    }

    pub(crate) fn pe(&self) -> u32 {
        self.manager.pe()
    }

    pub(crate) fn nodes(&self) -> &NodeMap {
        &self.nodes
    }

    pub(crate) fn take_memory(&mut self) -> Option<OwnedFd> {
        self.memory.take()
    }

    /// Takes the files of the node's PEs, in the order of the PEs.
    pub(crate) fn take_files(&mut self) -> Vec<Option<OwnedFd>> {
        std::mem::take(&mut self.files)
    }

    pub(crate) fn ender(&self) -> Arc<dyn Ender> {
        self.manager.ender()
    }

    /// Exchanges records with all PEs. Returns `None` if this PE is not among the receivers.
    pub(crate) fn exchange(
        &mut self,
        to: Receivers,
        record: &[u8],
    ) -> Result<Option<Records>, Error> {
        let has_other_nodes = self.nodes.n_nodes() > 1;
        if has_other_nodes && let Some(records) = self.manager.exchange(record) {
            let records = records?;
            let is_first = self.nodes.local_index(self.manager.pe()) == 0;
            return if to == Receivers::All || is_first {
                Ok(Some(records))
            } else {
                Ok(None)
            };
        }

        let records = match self.peers.gather(record)? {
            Some(own) if has_other_nodes => Some(self.exchange_nodes(&own)?),
            Some(own) => Some(own),
            None => {
                // A fence ends when all processes have called it, also those that put nothing. The
                // first PE of the node calls it in `exchange_nodes`.
                if has_other_nodes {
                    self.manager.fence()?;
                }
                None
            }
        };

        let records = match to {
            Receivers::All => Some(self.peers.broadcast(records)?),
            Receivers::FirstOfNode => records,
        };

        rushmem_system::log::trace!(round = self.round, "has the records of all PEs");
        self.round = self.round.wrapping_add(1);

        match &records {
            Some(all) if all.n_pes() != self.nodes.n_pes() => {
                Err(Error::Unexpected("the records of another job"))
            }
            _ => Ok(records),
        }
    }

    /// Exchanges the records of this node with the first PEs of the other nodes. Returns those of
    /// all PEs.
    fn exchange_nodes(&mut self, own: &Records) -> Result<Records, Error> {
        let key = format!("rushmem-{}-", self.round);
        let me = self.manager.pe();
        let bytes = postcard::to_stdvec(own).expect("plain data and memory does not refuse");
        self.manager.put(&format!("{key}{me}"), &bytes)?;
        self.manager.fence()?;

        // The record of each PE, in the order of PEs.
        let mut whole = vec![Vec::new(); self.nodes.n_pes() as usize];
        for node in 0..self.nodes.n_nodes() {
            let pes: Vec<u32> = self.nodes.members(node).collect();
            let first = pes[0];
            let records = if first == me {
                own.clone()
            } else {
                let bytes = self.manager.get(first, &format!("{key}{first}"))?;
                postcard::from_bytes::<Records>(&bytes)
                    .ok()
                    .filter(|records| records.n_pes() as usize == pes.len())
                    .ok_or(Error::Unexpected("records that cannot be read"))?
            };

            for (pe, record) in pes.into_iter().zip(records.iter()) {
                whole[pe as usize].clone_from(record);
            }
        }
        Ok(whole.into_iter().collect())
    }

    /// Waits until every PE of the job has called this function.
    pub(crate) fn barrier(&mut self) -> Result<(), Error> {
        if self.nodes.n_nodes() > 1 {
            self.manager.fence()
        } else {
            self.exchange(Receivers::All, &[]).map(drop)
        }
    }

    /// Reports that the last finalize is done.
    pub(crate) fn report_finalize(&self) -> Result<(), Error> {
        self.watch.report_finalize();
        self.manager.report_finalize()
    }

    /// Records that initialization is entered again.
    pub(crate) fn report_resumption(&self) {
        self.watch.report_resumption();
        self.manager.report_resumption();
    }

    /// Reports to the manager that this process is about to exit without an error.
    pub(crate) fn leave(&mut self) {
        self.manager.leave();
    }
}

/// Exchanges the node map: the first PE of each node puts the PEs of its node, and passes the map
/// on to them.
fn exchange_node_map(
    manager: &mut dyn ProcessManager,
    peers: &mut NodeExchange,
) -> Result<NodeMap, Error> {
    let Some(node_pes) = peers.node_pes() else {
        manager.fence()?;
        return peers.broadcast(None);
    };

    let bytes: Vec<u8> = node_pes.iter().flat_map(|pe| pe.to_le_bytes()).collect();
    manager.put(&key_of_list(manager.pe()), &bytes)?;
    manager.fence()?;
    let nodes = node_map(manager)?;
    peers.broadcast(Some(nodes))
}

/// Builds the node map from the lists of PEs that the first PE of each node has put. The lowest PE
/// that no list has contained so far is the first of its node.
fn node_map(manager: &mut dyn ProcessManager) -> Result<NodeMap, Error> {
    let n_pes = manager.n_pes() as usize;
    // For each PE, the first PE of its node, once a list has contained the PE.
    let mut firsts: Vec<Option<u32>> = vec![None; n_pes];
    while let Some(first) = firsts.iter().position(Option::is_none) {
        let unexpected = Error::Unexpected("a node with the PEs of another one");

        let first = first as u32;
        let bytes = manager.get(first, &key_of_list(first))?;
        let (pes, rest) = bytes.as_chunks::<4>();
        // If the list did not begin with that PE, this loop might have no end.
        if !rest.is_empty() || pes.first() != Some(&first.to_le_bytes()) {
            return Err(unexpected);
        }

        for pe in pes {
            match firsts.get_mut(u32::from_le_bytes(*pe) as usize) {
                Some(known @ None) => *known = Some(first),
                _ => return Err(unexpected),
            }
        }
    }
    NodeMap::from_marks(firsts).map_err(|_| Error::Unexpected("a job without processes"))
}

/// Returns the key under which the first PE of a node puts the list of the node's PEs.
fn key_of_list(first: u32) -> String {
    format!("rushmem-node-{first}")
}

#[cfg(test)]
mod tests;
