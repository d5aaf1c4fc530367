//! A PE as an origin sees it: how to reach it and what it lets others use, as it said when it was connected.
//!
//! It must never know when UCX connects a worker to that PE.

use crate::proto::{Address, MemoryKey};
use rushmem_transport::kit::peers::check_range;
use rushmem_transport::{Error, Key, Pe, RemoteAddr, Segment};
use std::collections::HashSet;
use std::sync::Arc;

/// How to reach a PE and what it lets others use.
pub(crate) struct Peer {
    pub(crate) host: String,
    /// The address of its service worker.
    pub(crate) worker: Vec<u8>,
    pub(crate) keys: [Option<MemoryKey>; Segment::COUNT],
}

/// Keys, each once: on many networks all PEs have the same.
#[derive(Default)]
pub(crate) struct Keys(HashSet<Arc<[u8]>>);

impl Keys {
    /// The only copy of these bytes.
    fn only(&mut self, packed: Arc<[u8]>) -> Arc<[u8]> {
        match self.0.get(&packed) {
            Some(same) => Arc::clone(same),
            None => {
                self.0.insert(Arc::clone(&packed));
                packed
            }
        }
    }
}

impl Peer {
    /// From what `pe` sent.
    ///
    /// # Errors
    /// When no PE of this build would send that.
    pub(crate) fn decode(
        pe: Pe,
        address: &[u8],
        keys: &[(Segment, Key)],
        known: &mut Keys,
    ) -> Result<Peer, Error> {
        let invalid = |error: rushmem_wire::Error| {
            Error::Invalid(format!("PE {pe} cannot be connected: {error}"))
        };
        let Address { host, worker } = Address::decode(address).map_err(invalid)?;
        let mut peer = Peer { host, worker, keys: [const { None }; Segment::COUNT] };
        for (segment, key) in keys {
            let mut key = MemoryKey::decode(&key.0).map_err(invalid)?;
            key.packed = known.only(key.packed);
            peer.keys[*segment as usize] = Some(key);
        }
        Ok(peer)
    }

    /// The key to a segment of `pe`, which this is.
    #[inline]
    pub(crate) fn key(&self, pe: Pe, segment: Segment) -> Result<&MemoryKey, Error> {
        self.keys[segment as usize].as_ref().ok_or_else(|| {
            Error::Invalid(format!("PE {pe} has no segment {segment:?} that others may use"))
        })
    }

    /// The address of so many bytes in the process of `pe`, which this is.
    #[inline]
    pub(crate) fn address(&self, pe: Pe, at: RemoteAddr, nbytes: usize) -> Result<u64, Error> {
        let key = self.key(pe, at.segment)?;
        check_range(pe, at, nbytes, key.nbytes)?;
        Ok(key.base + at.offset)
    }
}
