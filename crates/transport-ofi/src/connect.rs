//! What PEs tell each other to connect, as bytes, and what must be the same at both.
//!
//! It must never know what is sent to a PE once it is connected.

use crate::fabric::Fabric;
use crate::unconfirmed;
use libfabric_sys as fi;
use rushmem_transport::{Error, Key, Pe, Segment};
use rushmem_wire::{OFI_ADDRESS, OFI_KEY, decode, encode};
use std::net::SocketAddr;

/// What a PE needs to know of another before it inserts its address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Address {
    /// The provider: both sides must have the same.
    pub(crate) provider: String,
    pub(crate) host: String,
    /// The service endpoint's name, in the provider's format.
    pub(crate) name: Vec<u8>,
}

impl Address {
    pub(crate) fn encode(&self) -> Vec<u8> {
        encode(OFI_ADDRESS, &(&self.provider, &self.host, &self.name))
    }

    /// # Errors
    /// When the bytes are no address.
    pub(crate) fn decode(bytes: &[u8]) -> Result<Address, rushmem_wire::Error> {
        let (provider, host, name) = decode(OFI_ADDRESS, bytes)?;
        Ok(Address { provider, host, name })
    }
}

/// What addresses a segment of a PE.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct SegmentKey {
    /// What is added to offsets.
    pub(crate) base: u64,
    pub(crate) nbytes: u64,
    /// As the fabric has it.
    pub(crate) key: u64,
}

impl SegmentKey {
    pub(crate) fn encode(self) -> Key {
        Key(encode(OFI_KEY, &(self.base, self.nbytes, self.key)))
    }

    /// # Errors
    /// When the bytes are no key.
    pub(crate) fn decode(key: &Key) -> Result<SegmentKey, rushmem_wire::Error> {
        let (base, nbytes, key) = decode(OFI_KEY, &key.0)?;
        Ok(SegmentKey { base, nbytes, key })
    }
}

/// A PE as an origin sees it.
pub(crate) struct Peer {
    pub(crate) at: fi::fi_addr_t,
    pub(crate) host: String,
    pub(crate) keys: [SegmentKey; Segment::COUNT],
    /// Where its service listens, if that is a socket.
    pub(crate) socket: Option<SocketAddr>,
}

impl Peer {
    /// PE `pe` by what it told of itself, for PE `me`, which told `own`.
    ///
    /// # Errors
    /// When it told nothing that makes sense, when the two do not fit together, or when libfabric refuses.
    pub(crate) fn new(
        fabric: &Fabric,
        (me, own): (Pe, &Address),
        pe: Pe,
        address: &[u8],
        keys: &[(Segment, Key)],
    ) -> Result<Peer, Error> {
        let invalid = |error: rushmem_wire::Error| {
            Error::Invalid(format!("PE {pe} cannot be connected: {error}"))
        };
        let address = Address::decode(address).map_err(invalid)?;
        if address.provider != own.provider {
            return Err(Error::Invalid(format!(
                "PE {pe} uses libfabric's provider {}, PE {me} {}: set SHMEM_OFI_PROVIDER to one that both have",
                address.provider, own.provider
            )));
        }
        let mut of_segments = [SegmentKey::default(); Segment::COUNT];
        for (segment, key) in keys {
            of_segments[*segment as usize] = SegmentKey::decode(key).map_err(invalid)?;
        }
        let at = fabric.insert(&address.name).map_err(|code| {
            let (own, why) = (&own.provider, fabric.library.strerror(code));
            Error::Unavailable(format!("libfabric ({own}) refused the address of PE {pe}: {why}"))
        })?;
        let socket = unconfirmed::socket(&address.name);
        Ok(Peer { at, host: address.host, keys: of_segments, socket })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_encoded_is_decoded() {
        let address = Address { provider: "tcp".into(), host: "h".into(), name: vec![1, 2, 3] };
        let bytes = address.encode();
        assert_eq!(Address::decode(&bytes), Ok(address));
        assert!(Address::decode(&bytes[..bytes.len() - 1]).is_err());
        let key = SegmentKey { base: 1 << 47, nbytes: 5, key: u64::MAX };
        assert_eq!(SegmentKey::decode(&key.encode()), Ok(key));
        assert!(SegmentKey::decode(&Key(vec![0; 23])).is_err());
    }
}
