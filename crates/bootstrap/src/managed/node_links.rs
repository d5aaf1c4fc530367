//! Exchanges between the PEs of a node and the first of them.

use std::io;

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::error::Error;
use crate::link::Link;
use crate::records::Records;

/// The connections of this PE to others of its node.
#[derive(Debug)]
pub(super) enum NodeLinks {
    /// The links of the node's first PE to all others, in their order.
    First { pe: u32, others: Vec<(u32, Link)> },
    /// The link of another PE to the first.
    Other { first: u32, link: Link },
}

impl NodeLinks {
    /// Returns the PEs of the node in ascending order, if this is the first of them.
    pub(super) fn node_pes(&self) -> Option<Vec<u32>> {
        match self {
            NodeLinks::First { pe, others } => {
                Some(std::iter::once(*pe).chain(others.iter().map(|(pe, _)| *pe)).collect())
            }
            NodeLinks::Other { .. } => None,
        }
    }

    /// Gathers the parts of all PEs, in their order, at the first PE. The others get `None`.
    pub(super) fn gather(&mut self, part: &[u8]) -> Result<Option<Records>, Error> {
        match self {
            NodeLinks::First { others, .. } => {
                let mut parts = vec![part.to_vec()];
                for (pe, link) in others {
                    parts.push(link.receive().map_err(|error| of_node_peer(*pe, error))?);
                }
                Ok(Some(parts.into_iter().collect()))
            }
            NodeLinks::Other { first, link } => {
                link.send(&part).map_err(|error| of_node_peer(*first, error))?;
                Ok(None)
            }
        }
    }

    /// Sends the value of the first PE to all PEs. `value` is `Some` there and `None` elsewhere.
    pub(super) fn broadcast<T: Serialize + DeserializeOwned>(
        &mut self,
        value: Option<T>,
    ) -> Result<T, Error> {
        match (self, value) {
            (NodeLinks::First { others, .. }, Some(value)) => {
                for (pe, link) in others {
                    link.send(&value).map_err(|error| of_node_peer(*pe, error))?;
                }
                Ok(value)
            }
            (NodeLinks::Other { first, link }, None) => {
                link.receive().map_err(|error| of_node_peer(*first, error))
            }
            _ => Err(Error::Unexpected("a message of another PE of the node")),
        }
    }
}

/// Returns the error of a connection, said of a PE instead of oshrun.
fn of_node_peer(pe: u32, error: Error) -> Error {
    match error {
        Error::Lost(cause) => Error::NodePeer { pe, cause },
        Error::Frame(cause) => Error::NodePeer { pe, cause: io::Error::other(cause) },
        other => other,
    }
}
