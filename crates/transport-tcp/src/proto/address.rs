//! The addresses on which a PE listens, as the PE publishes them.

use rushmem_wire::{Error, TCP_ADDRESS, decode, encode};
use serde::{Deserialize, Serialize};
use std::net::SocketAddr;

/// The maximum number of addresses of a PE.
pub(crate) const MAX_ADDRESSES: usize = 16;

/// The host name and the socket addresses of a PE.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Address {
    /// For messages.
    pub(crate) host: String,
    /// In the order of preference.
    pub(crate) sockets: Vec<SocketAddr>,
}

impl Address {
    pub(crate) fn encode(&self) -> Vec<u8> {
        encode(TCP_ADDRESS, self)
    }

    pub(crate) fn decode(bytes: &[u8]) -> Result<Address, Error> {
        let address: Address = decode(TCP_ADDRESS, bytes)?;
        match address.sockets.len() {
            ..=MAX_ADDRESSES => Ok(address),
            _ => Err(Error::Damaged(TCP_ADDRESS)),
        }
    }
}
