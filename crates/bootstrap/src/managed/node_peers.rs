//! The PEs of one node that have found each other, and what they exchange with the first of them.
//!
//! It does not interpret the parts of an exchange.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use serde::{Deserialize, Serialize};

use super::descriptors;
use super::watch::Lifeline;
use crate::error::Error;
use crate::link::Link;
use crate::nodes::NodeMap;
use crate::records::Records;

/// A message between the first PE of a node and another one.
#[derive(Debug, Serialize, Deserialize)]
enum NodeMessage {
    /// To the first: this PE's part of a gather.
    Part(Vec<u8>),
    /// From the first: the records of all.
    Whole(Records),
    /// From the first: the job has several nodes, so that the manager is needed to know them.
    Several(bool),
    /// From the first: who shares a node with whom.
    Nodes(NodeMap),
}

/// This PE's place on its node, with the connections that go with it.
#[derive(Debug)]
pub(super) enum Seat {
    First { pe: u32, others: Vec<(u32, Link)> },
    Other { first: u32, link: Link },
}

/// The PEs of a node that have met.
#[derive(Debug)]
pub(crate) struct NodePeers {
    seat: Seat,
    memory: Option<OwnedFd>,
    lifelines: Vec<Lifeline>,
}

impl NodePeers {
    pub(super) fn new(seat: Seat, memory: Option<OwnedFd>, lifelines: Vec<Lifeline>) -> NodePeers {
        NodePeers { seat, memory, lifelines }
    }

    /// The node's memfd, once; none where a PE is alone.
    pub(crate) fn take_memory(&mut self) -> Option<OwnedFd> {
        self.memory.take()
    }

    /// Connections to all other PEs of the node if this is the first of them, else to the first.
    /// Once; they are open as long as the processes live.
    pub(crate) fn take_lifelines(&mut self) -> Vec<Lifeline> {
        std::mem::take(&mut self.lifelines)
    }

    /// The PEs of the node in ascending order, if this is the first of them.
    pub(crate) fn led(&self) -> Option<Vec<u32>> {
        match &self.seat {
            Seat::First { pe, others } => {
                Some(std::iter::once(*pe).chain(others.iter().map(|(pe, _)| *pe)).collect())
            }
            Seat::Other { .. } => None,
        }
    }

    /// Gives each of the node's `n` PEs the files of all, in the order of the PEs; `own` is the
    /// file of this PE, if it has one.
    pub(crate) fn share_files(
        &self,
        own: Option<BorrowedFd<'_>>,
        n: usize,
    ) -> Result<Vec<Option<OwnedFd>>, Error> {
        let of = |line: &Lifeline| {
            let pe = line.pe;
            move |cause: io::Error| Error::NodePeer { pe, cause }
        };
        match &self.seat {
            Seat::First { pe, .. } => {
                let failed = |cause| Error::NodePeer { pe: *pe, cause };
                let own = own.map(|own| own.try_clone_to_owned()).transpose().map_err(failed)?;
                let mut files = vec![own];
                for line in &self.lifelines {
                    let theirs = descriptors::receive_files(&line.stream, 1).map_err(of(line))?;
                    files.extend(theirs);
                }
                let all: Vec<_> = files.iter().map(|file| file.as_ref().map(AsFd::as_fd)).collect();
                for line in &self.lifelines {
                    let sent = descriptors::send_files(&line.stream, &all);
                    sent.map_err(|errno| of(line)(errno.into()))?;
                }
                Ok(files)
            }
            Seat::Other { .. } => {
                let Some(first) = self.lifelines.first() else { return Ok(Vec::new()) };
                descriptors::make_room(n);
                let sent = descriptors::send_files(&first.stream, &[own]);
                sent.map_err(|errno| of(first)(errno.into()))?;
                descriptors::receive_files(&first.stream, n).map_err(of(first))
            }
        }
    }

    /// Gives the first PE the parts of all PEs in their order, and the others nothing.
    pub(crate) fn gather(&mut self, part: &[u8]) -> Result<Option<Records>, Error> {
        match &mut self.seat {
            Seat::First { others, .. } => {
                let mut parts = vec![part.to_vec()];
                for (pe, link) in others {
                    match receive(*pe, link)? {
                        NodeMessage::Part(part) => parts.push(part),
                        _ => return Err(Error::Unexpected("a message of another PE of the node")),
                    }
                }
                Ok(Some(parts.into_iter().collect()))
            }
            Seat::Other { first, link } => {
                send(*first, link, &NodeMessage::Part(part.to_vec()))?;
                Ok(None)
            }
        }
    }

    /// Gives all PEs the records that the first PE has; `whole` is some there and none elsewhere.
    pub(crate) fn spread(&mut self, whole: Option<Records>) -> Result<Records, Error> {
        match self.share(whole.map(NodeMessage::Whole))? {
            NodeMessage::Whole(parts) => Ok(parts),
            _ => Err(Error::Unexpected("a message of another PE of the node")),
        }
    }

    /// As [`NodePeers::spread`]: whether the job has several nodes.
    pub(crate) fn spread_several(&mut self, several: Option<bool>) -> Result<bool, Error> {
        match self.share(several.map(NodeMessage::Several))? {
            NodeMessage::Several(several) => Ok(several),
            _ => Err(Error::Unexpected("a message of another PE of the node")),
        }
    }

    /// As [`NodePeers::spread`]: the node map.
    pub(crate) fn spread_nodes(&mut self, nodes: Option<NodeMap>) -> Result<NodeMap, Error> {
        match self.share(nodes.map(NodeMessage::Nodes))? {
            NodeMessage::Nodes(nodes) => Ok(nodes),
            _ => Err(Error::Unexpected("a message of another PE of the node")),
        }
    }

    /// Sends the message of the first PE to the others; returns it on all of them.
    fn share(&mut self, message: Option<NodeMessage>) -> Result<NodeMessage, Error> {
        match (&mut self.seat, message) {
            (Seat::First { others, .. }, Some(message)) => {
                for (pe, link) in others {
                    send(*pe, link, &message)?;
                }
                Ok(message)
            }
            (Seat::Other { first, link }, None) => receive(*first, link),
            _ => Err(Error::Unexpected("a message of another PE of the node")),
        }
    }
}

fn send(pe: u32, link: &Link, message: &NodeMessage) -> Result<(), Error> {
    link.send(message).map_err(|error| of_node_peer(pe, error))
}

fn receive(pe: u32, link: &mut Link) -> Result<NodeMessage, Error> {
    link.receive().map_err(|error| of_node_peer(pe, error))
}

/// The error of a connection, said of a PE instead of oshrun.
fn of_node_peer(pe: u32, error: Error) -> Error {
    match error {
        Error::Lost(cause) => Error::NodePeer { pe, cause },
        Error::Frame(cause) => Error::NodePeer { pe, cause: io::Error::other(cause) },
        other => other,
    }
}
