//! Raw keys (`FI_MR_RAW`): keys that are longer than those of operations. A peer maps a raw key to
//! a 64-bit key, which it uses in operations.

use parking_lot::Mutex;
use std::collections::HashMap;

/// The size of a raw key in bytes.
pub(crate) const NBYTES: usize = 32;

/// The first word of a raw key.
const MAGIC: u64 = 0x7374_7269_6374_6B65;

/// What a raw key says about a registration.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct RawKey {
    pub(crate) key: u64,
    pub(crate) base: u64,
}

impl RawKey {
    pub(crate) fn encode(&self) -> [u8; NBYTES] {
        let sum = MAGIC ^ self.key ^ self.base.rotate_left(1);
        let mut bytes = [0; NBYTES];
        for (chunk, word) in bytes
            .chunks_exact_mut(8)
            .zip([MAGIC, self.key, self.base, sum])
        {
            chunk.copy_from_slice(&word.to_le_bytes());
        }
        bytes
    }

    /// Decodes a raw key; `None` if it is invalid.
    pub(crate) fn decode(bytes: &[u8]) -> Option<RawKey> {
        let (words, []) = bytes.as_chunks() else {
            return None;
        };
        let &[_, key, base, _] = words else {
            return None;
        };
        let decoded = RawKey {
            key: u64::from_le_bytes(key),
            base: u64::from_le_bytes(base),
        };
        // Also compares the first word and the sum.
        if decoded.encode() != bytes {
            return None;
        }
        Some(decoded)
    }
}

/// The raw keys that a domain has mapped.
#[derive(Default)]
pub(crate) struct RawKeys(Mutex<Keys>);

#[derive(Default)]
struct Keys {
    /// The keys of registrations by the mapped ones.
    keys: HashMap<u64, u64>,
    /// The number of keys that have ever been mapped.
    n: u64,
}

impl RawKeys {
    /// Maps a key. Returns a new key, which is never reused and, in practice, differs from those of
    /// registrations.
    pub(crate) fn map(&self, key: u64) -> u64 {
        let mut keys = self.0.lock();
        keys.n += 1;
        // An odd factor: the product is another one for each number (the golden ratio).
        let mapped = keys.n.wrapping_mul(0x9E37_79B9_7F4A_7C15);
        keys.keys.insert(mapped, key);
        mapped
    }

    /// Returns the key of the registration for a mapped one.
    pub(crate) fn key(&self, mapped: u64) -> Option<u64> {
        self.0.lock().keys.get(&mapped).copied()
    }

    /// Unmaps a key. Returns whether it was mapped.
    pub(crate) fn unmap(&self, mapped: u64) -> bool {
        self.0.lock().keys.remove(&mapped).is_some()
    }

    /// Returns the number of mapped keys.
    pub(crate) fn n(&self) -> usize {
        self.0.lock().keys.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_encoded_and_decoded() {
        let key = RawKey {
            key: 5,
            base: 1 << 47,
        };
        let raw = key.encode();
        assert_eq!(RawKey::decode(&raw), Some(key));

        for i in 0..NBYTES {
            let mut damaged = raw;
            damaged[i] ^= 1;
            assert_eq!(RawKey::decode(&damaged), None, "byte {i}");
        }
        assert_eq!(RawKey::decode(&raw[..NBYTES - 8]), None);
    }
}
