//! What PEs tell each other to connect, as bytes, and what must be the same at both.
//!
//! It must never know what is sent to a PE once it is connected.

use crate::fabric::Fabric;
use libfabric_sys as fi;
use rushmem_transport::{Error, Key, Pe, PeRecord, Segment};
use rushmem_wire::{OFI_ADDRESS, OFI_KEY, decode, encode};

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
    pub(crate) fn decode(key: &[u8]) -> Result<SegmentKey, rushmem_wire::Error> {
        let (base, nbytes, key) = decode(OFI_KEY, key)?;
        Ok(SegmentKey { base, nbytes, key })
    }
}

/// A PE as an origin sees it that has used it.
pub(crate) struct Peer {
    pub(crate) at: fi::fi_addr_t,
    pub(crate) keys: [SegmentKey; Segment::COUNT],
}

fn invalid(pe: Pe) -> impl Fn(rushmem_wire::Error) -> Error {
    move |error| Error::Invalid(format!("PE {pe} cannot be connected: {error}"))
}

/// How to reach `pe`, from what it told.
///
/// # Errors
/// When no PE of this build would tell that.
pub(crate) fn address(pe: Pe, record: PeRecord<'_>) -> Result<Address, Error> {
    Address::decode(record.address).map_err(invalid(pe))
}

/// The keys of `pe`, from what it told.
fn keys(pe: Pe, record: PeRecord<'_>) -> Result<[SegmentKey; Segment::COUNT], Error> {
    let mut keys = [SegmentKey::default(); Segment::COUNT];
    for (key, bytes) in keys.iter_mut().zip(record.keys).filter(|(_, bytes)| !bytes.is_empty()) {
        *key = SegmentKey::decode(bytes).map_err(invalid(pe))?;
    }
    Ok(keys)
}

/// Whether `pe` can be used by what it told, by PE `me`, which told `own`.
///
/// # Errors
/// When it told nothing that makes sense, or when the two do not fit together.
pub(crate) fn check(
    (me, own): (Pe, &Address),
    pe: Pe,
    record: Option<PeRecord<'_>>,
) -> Result<(), Error> {
    let record = record.ok_or(Error::Unreachable(pe))?;
    let address = address(pe, record)?;
    if address.provider != own.provider {
        return Err(Error::Invalid(format!(
            "PE {pe} uses libfabric's provider {}, PE {me} {}: set SHMEM_OFI_PROVIDER to one that both have",
            address.provider, own.provider
        )));
    }
    keys(pe, record).map(|_| ())
}

impl Peer {
    /// PE `pe` by what it told, which was checked.
    ///
    /// # Errors
    /// When libfabric refuses.
    pub(crate) fn new(fabric: &Fabric, pe: Pe, record: PeRecord<'_>) -> Result<Peer, Error> {
        let at = fabric.insert(&address(pe, record)?.name).map_err(|code| {
            let (own, why) = (&fabric.facts.provider, fabric.library.strerror(code));
            Error::Unavailable(format!("libfabric ({own}) refused the address of PE {pe}: {why}"))
        })?;
        Ok(Peer { at, keys: keys(pe, record)? })
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
        assert_eq!(SegmentKey::decode(&key.encode().0), Ok(key));
        assert!(SegmentKey::decode(&[0; 23]).is_err());
    }
}
