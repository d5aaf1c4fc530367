//! What is exchanged once, before PEs connect: a PE's address and its segments' keys.

use super::{u32_of, u64_of};
use crate::tuning::Amos;
use std::sync::Arc;

/// How to reach a PE.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Address {
    /// Its host, for messages.
    pub(crate) host: String,
    /// Who carries out atomic operations on its heap.
    pub(crate) amos: Amos,
    /// Its service worker, in UCX's words.
    pub(crate) worker: Vec<u8>,
}

impl Address {
    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut bytes = vec![self.amos as u8];
        bytes.extend((self.host.len() as u32).to_le_bytes());
        bytes.extend(self.host.as_bytes());
        bytes.extend(&self.worker);
        bytes
    }

    pub(crate) fn decode(bytes: &[u8]) -> Option<Address> {
        let (amos, mut rest) = bytes.split_first()?;
        let amos = [Amos::Software, Amos::Network].into_iter().find(|a| *a as u8 == *amos)?;
        let nbytes = u32_of(&mut rest)? as usize;
        let (host, worker) = rest.split_at_checked(nbytes)?;
        let host = String::from_utf8(host.to_vec()).ok()?;
        Some(Address { host, amos, worker: worker.to_vec() })
    }
}

/// A registered segment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct MemoryKey {
    /// Its address in its owner's process.
    pub(crate) base: u64,
    /// Its size.
    pub(crate) nbytes: u64,
    /// What UCX wants to have for an access.
    pub(crate) packed: Arc<[u8]>,
}

impl MemoryKey {
    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut bytes = self.base.to_le_bytes().to_vec();
        bytes.extend(self.nbytes.to_le_bytes());
        bytes.extend(&*self.packed);
        bytes
    }

    pub(crate) fn decode(mut bytes: &[u8]) -> Option<MemoryKey> {
        let base = u64_of(&mut bytes)?;
        let nbytes = u64_of(&mut bytes)?;
        base.checked_add(nbytes)?;
        Some(MemoryKey { base, nbytes, packed: bytes.into() })
    }

    /// The address of so many bytes at an offset, when they are within.
    pub(crate) fn address(&self, offset: u64, nbytes: usize) -> Option<u64> {
        let end = offset.checked_add(nbytes as u64)?;
        (end <= self.nbytes).then(|| self.base + offset)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_survives_the_way() {
        let address = Address { host: "a-host".into(), amos: Amos::Network, worker: vec![7; 99] };
        let bytes = address.encode();
        assert_eq!(Address::decode(&bytes), Some(address));
        assert_eq!(Address::decode(&bytes[..7]), None);
        assert_eq!(Address::decode(&[]), None);
        assert_eq!(Address::decode(&[2, 0, 0, 0, 0]), None);
    }

    #[test]
    fn a_key_survives_the_way_and_knows_its_bounds() {
        let key = MemoryKey { base: 4096, nbytes: 100, packed: [1, 2, 3].into() };
        assert_eq!(MemoryKey::decode(&key.encode()), Some(key.clone()));
        assert_eq!(MemoryKey::decode(&[0; 15]), None);
        assert_eq!(key.address(92, 8), Some(4188));
        assert_eq!(key.address(93, 8), None);
        assert_eq!(key.address(u64::MAX, 8), None);
        let beyond = MemoryKey { base: u64::MAX, nbytes: 2, packed: [].into() };
        assert_eq!(MemoryKey::decode(&beyond.encode()), None);
    }
}
