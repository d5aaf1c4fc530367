//! How PEs describe themselves to each other: addresses and keys as bytes.

use rushmem_transport::Key;
use rushmem_transport::kit::amos::Amos;
use rushmem_wire::{Error, OFI_ADDRESS, OFI_KEY, decode, encode};

/// What a PE needs to know of another before it inserts its address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Address {
    /// The provider: both sides must have the same.
    pub(crate) provider: String,
    /// Who carries out atomic operations: both sides must agree.
    pub(crate) amos: Amos,
    pub(crate) host: String,
    /// The service endpoint's name, in the provider's format.
    pub(crate) name: Vec<u8>,
}

impl Address {
    pub(crate) fn encode(&self) -> Vec<u8> {
        encode(OFI_ADDRESS, &(self.amos as u8, &self.provider, &self.host, &self.name))
    }

    /// # Errors
    /// When the bytes are no address.
    pub(crate) fn decode(bytes: &[u8]) -> Result<Address, Error> {
        let (amos, provider, host, name) = decode(OFI_ADDRESS, bytes)?;
        let amos = Amos::from_number(amos).ok_or(Error::Damaged(OFI_ADDRESS))?;
        Ok(Address { provider, amos, host, name })
    }
}

/// A segment of a PE as its peers address it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Area {
    /// What is added to offsets.
    pub(crate) base: u64,
    pub(crate) nbytes: u64,
    pub(crate) key: u64,
}

impl Area {
    pub(crate) fn encode(self) -> Key {
        Key(encode(OFI_KEY, &(self.base, self.nbytes, self.key)))
    }

    /// # Errors
    /// When the bytes are no key.
    pub(crate) fn decode(key: &Key) -> Result<Area, Error> {
        let (base, nbytes, key) = decode(OFI_KEY, &key.0)?;
        Ok(Area { base, nbytes, key })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn descriptions_survive_the_way() {
        for amos in [Amos::Software, Amos::Network] {
            let (provider, host) = ("tcp".into(), "h".into());
            let address = Address { provider, amos, host, name: vec![1, 2, 3] };
            let bytes = address.encode();
            assert_eq!(Address::decode(&bytes), Ok(address));
            assert!(Address::decode(&bytes[..bytes.len() - 1]).is_err());
        }
        let area = Area { base: 1 << 47, nbytes: 5, key: u64::MAX };
        assert_eq!(Area::decode(&area.encode()), Ok(area));
        assert!(Area::decode(&Key(vec![0; 23])).is_err());
    }
}
