//! The addresses and keys that PEs publish, in the encoding of this provider, and the check that
//! two PEs fit together.

use crate::fabric::{Fabric, RawKey};
use crate::silent_peer;
use libfabric_sys as fi;
use rushmem_system::codec::{decode, encode};
use rushmem_transport::segments::heap_blocks::HeapBlock;
use rushmem_transport::{Error, Pe};
use std::sync::atomic::{AtomicU64, Ordering};

/// The address of a PE.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Address {
    /// The provider, which must be the same on both PEs.
    pub(crate) provider: String,
    /// The service endpoint's name, in the provider's format.
    pub(crate) name: Vec<u8>,
}

impl Address {
    pub(crate) fn encode(&self) -> Vec<u8> {
        encode(&(&self.provider, &self.name))
    }

    /// Decodes the address of `pe`.
    pub(crate) fn decode(pe: Pe, bytes: &[u8]) -> Result<Address, Error> {
        let (provider, name) = decode(bytes).map_err(|_| Error::damaged(pe, "address"))?;
        Ok(Address { provider, name })
    }

    /// Checks that PE `me`, whose address this is, can use PE `pe` at `there`.
    ///
    /// # Errors
    /// If the two PEs use different providers.
    pub(crate) fn check(&self, me: Pe, pe: Pe, there: &Address) -> Result<(), Error> {
        if there.provider == self.provider {
            return Ok(());
        }
        Err(Error::Invalid(format!(
            "PE {pe} uses libfabric's provider {}, PE {me} {}: set SHMEM_OFI_PROVIDER to one that both have",
            there.provider, self.provider
        )))
    }

    /// Returns the service endpoint's name as a user can read it: a socket address, a text, or the
    /// bytes in hexadecimal.
    pub(crate) fn shown(&self) -> String {
        let text = self.name.strip_suffix(&[0]).unwrap_or(&self.name);
        match silent_peer::socket(&self.name) {
            Some(socket) => socket.to_string(),
            None if text.iter().all(u8::is_ascii_graphic) => text.escape_ascii().to_string(),
            None => self.name.iter().map(|byte| format!("{byte:02x}")).collect(),
        }
    }
}

/// The number of a PE in the address vector, into which the PE is inserted at its first use.
pub(crate) struct OfiPeer(AtomicU64);

impl OfiPeer {
    /// Returns a PE that is not in the address vector.
    pub(crate) fn new() -> OfiPeer {
        OfiPeer(fi::ADDR_NOTAVAIL.into())
    }

    /// Returns the number; libfabric refuses it before the PE is inserted.
    #[inline(always)]
    pub(crate) fn fi_addr(&self) -> fi::fi_addr_t {
        // Relaxed: the number is all that this publishes. libfabric, opened with FI_THREAD_SAFE,
        // orders the accesses to its own table.
        self.0.load(Ordering::Relaxed)
    }

    pub(crate) fn is_inserted(&self) -> bool {
        self.fi_addr() != fi::ADDR_NOTAVAIL
    }

    /// Inserts the PE, number `pe`, by its address. One thread at a time calls this.
    pub(crate) fn insert(&self, fabric: &Fabric, pe: Pe, address: &Address) -> Result<(), Error> {
        let inserted = fabric.insert(&address.name);
        let fi_addr = inserted.map_err(refused(fabric, "the address", pe))?;
        self.0.store(fi_addr, Ordering::Relaxed);
        Ok(())
    }
}

/// A key of the memory of a peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct OfiKey {
    /// The remote address of offset 0 of the segment: the address in the peer's process, or 0 if
    /// the provider counts from the start of the registration.
    base: u64,
    /// The key that operations pass: that of the peer's registration, or the one that the mapping
    /// of the peer's raw key has returned.
    pub(crate) key: u64,
}

impl OfiKey {
    /// Decodes the key of a block of a segment of `pe`. Maps a raw key.
    pub(crate) fn decode(
        fabric: &Fabric,
        pe: Pe,
        block: HeapBlock,
        bytes: &[u8],
    ) -> Result<OfiKey, Error> {
        let published = PublishedKey::decode(pe, bytes)?;
        let key = match &published.raw {
            None => published.key,
            Some(raw) => fabric.map(raw).map_err(refused(fabric, "a key", pe))?,
        };

        Ok(OfiKey {
            base: published.base.wrapping_sub(block.start),
            key,
        })
    }

    /// Returns the address of an offset in the segment, as operations pass it.
    #[inline(always)]
    pub(crate) fn address(&self, offset: u64) -> u64 {
        self.base.wrapping_add(offset)
    }
}

/// A key as a PE publishes it.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct PublishedKey {
    /// The start of the memory, as operations address it.
    pub(crate) base: u64,
    /// The key of the registration; unused if there is a raw key.
    pub(crate) key: u64,
    pub(crate) raw: Option<RawKey>,
}

impl PublishedKey {
    pub(crate) fn encode(self) -> Vec<u8> {
        let raw = self.raw.map(|raw| (raw.base, raw.bytes));
        encode(&(self.base, self.key, raw))
    }

    /// Decodes a key of `pe`.
    fn decode(pe: Pe, bytes: &[u8]) -> Result<PublishedKey, Error> {
        let decoded = decode::<(_, _, Option<_>)>(bytes);
        let (base, key, raw) = decoded.map_err(|_| Error::damaged(pe, "key"))?;
        Ok(PublishedKey {
            base,
            key,
            raw: raw.map(|(base, bytes)| RawKey { base, bytes }),
        })
    }
}

/// Returns a function that makes the error for libfabric's code when it refused an address or a key
/// of a PE, named by `what`.
fn refused(fabric: &Fabric, what: &'static str, pe: Pe) -> impl Fn(i32) -> Error {
    move |code| {
        let provider = &fabric.info.provider;
        let why = fabric.library.strerror(code);
        Error::Unavailable(format!(
            "libfabric ({provider}) refused {what} of PE {pe}: {why}"
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PE: Pe = Pe(1);

    #[test]
    fn what_is_encoded_is_decoded() {
        let address = Address {
            provider: "tcp".into(),
            name: vec![1, 2, 3],
        };
        let bytes = address.encode();
        assert_eq!(Address::decode(PE, &bytes), Ok(address));
        assert!(Address::decode(PE, &bytes[..bytes.len() - 1]).is_err());

        let raw_key = RawKey {
            base: 7,
            bytes: vec![1; 32],
        };
        for raw in [None, Some(raw_key)] {
            let key = || PublishedKey {
                base: 1 << 47,
                key: u64::MAX,
                raw: raw.clone(),
            };
            let bytes = key().encode();
            assert_eq!(PublishedKey::decode(PE, &bytes), Ok(key()));
        }
        assert!(PublishedKey::decode(PE, &[0; 23]).is_err());
    }
}
