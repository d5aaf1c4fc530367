//! The data that PEs exchange once, before they connect: a PE's address and its segments' keys.

use rushmem_wire::{Error, UCX_ADDRESS, UCX_KEY, decode, encode};

/// The address of a PE.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Address {
    /// Its host, for messages.
    pub(crate) host: String,
    /// Its service worker, in UCX's words.
    pub(crate) worker: Vec<u8>,
}

impl Address {
    pub(crate) fn encode(&self) -> Vec<u8> {
        encode(UCX_ADDRESS, &(&self.host, &self.worker))
    }

    /// # Errors
    /// When the bytes are no address.
    pub(crate) fn decode(bytes: &[u8]) -> Result<Address, Error> {
        let (host, worker) = decode(UCX_ADDRESS, bytes)?;
        Ok(Address { host, worker })
    }
}

/// A registered segment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct MemoryKey {
    /// Its address in its owner's process.
    pub(crate) base: u64,
    /// Its size.
    pub(crate) nbytes: u64,
    /// The packed key that UCX needs for an access.
    pub(crate) packed: Vec<u8>,
    /// Bytes of the beginning that this is for.
    pub(crate) covered: u64,
}

impl MemoryKey {
    pub(crate) fn encode(&self) -> Vec<u8> {
        encode(UCX_KEY, &(self.base, self.nbytes, &self.packed, self.covered))
    }

    /// # Errors
    /// When the bytes are no key.
    pub(crate) fn decode(bytes: &[u8]) -> Result<MemoryKey, Error> {
        let (base, nbytes, packed, covered): (u64, u64, _, _) = decode(UCX_KEY, bytes)?;
        base.checked_add(nbytes).ok_or(Error::Damaged(UCX_KEY))?;
        Ok(MemoryKey { base, nbytes, packed, covered })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_comes_as_it_was_sent() {
        let address = Address { host: "a-host".into(), worker: vec![7; 99] };
        let bytes = address.encode();
        assert_eq!(Address::decode(&bytes), Ok(address));
        assert!(Address::decode(&bytes[..7]).is_err());
        assert!(Address::decode(&[]).is_err());
    }

    #[test]
    fn a_key_comes_as_it_was_sent() {
        let key = MemoryKey { base: 4096, nbytes: 100, packed: vec![1, 2, 3], covered: 64 };
        assert_eq!(MemoryKey::decode(&key.encode()), Ok(key.clone()));
        assert!(MemoryKey::decode(&[0; 15]).is_err());
        let beyond = MemoryKey { base: u64::MAX, nbytes: 2, packed: Vec::new(), covered: 2 };
        assert_eq!(MemoryKey::decode(&beyond.encode()), Err(Error::Damaged(UCX_KEY)));
    }
}
