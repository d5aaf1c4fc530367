//! How PEs describe themselves to each other: addresses and keys as bytes.

use crate::atomics::Amos;
use rushmem_transport::Key;

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
        let mut bytes = vec![u8::from(self.amos == Amos::Network)];
        for part in [self.provider.as_bytes(), self.host.as_bytes(), &self.name] {
            bytes.extend_from_slice(&(part.len() as u32).to_le_bytes());
            bytes.extend_from_slice(part);
        }
        bytes
    }

    pub(crate) fn decode(bytes: &[u8]) -> Option<Address> {
        let (network, mut bytes) = bytes.split_first()?;
        let amos = match network {
            0 => Amos::Software,
            1 => Amos::Network,
            _ => return None,
        };
        let mut part = || {
            let (nbytes, rest) = bytes.split_first_chunk::<4>()?;
            let (part, rest) = rest.split_at_checked(u32::from_le_bytes(*nbytes) as usize)?;
            bytes = rest;
            Some(part.to_vec())
        };
        let provider = String::from_utf8(part()?).ok()?;
        let host = String::from_utf8(part()?).ok()?;
        let name = part()?;
        bytes.is_empty().then_some(Address { provider, amos, host, name })
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
        Key([self.base, self.nbytes, self.key].iter().flat_map(|word| word.to_le_bytes()).collect())
    }

    pub(crate) fn decode(key: &Key) -> Option<Area> {
        let (words, []) = key.0.as_chunks::<8>() else { return None };
        let [base, nbytes, key] = *words else { return None };
        let [base, nbytes, key] = [base, nbytes, key].map(u64::from_le_bytes);
        Some(Area { base, nbytes, key })
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
            assert_eq!(Address::decode(&bytes), Some(address));
            assert_eq!(Address::decode(&bytes[..bytes.len() - 1]), None);
        }
        let area = Area { base: 1 << 47, nbytes: 5, key: u64::MAX };
        assert_eq!(Area::decode(&area.encode()), Some(area));
        assert_eq!(Area::decode(&Key(vec![0; 23])), None);
    }
}
