//! Raw keys (`FI_MR_RAW`): keys that are longer than those of operations. A peer maps a raw key to
//! a 64-bit key, which it uses in operations.

use parking_lot::Mutex;
use std::collections::HashMap;

/// The size of a raw key in bytes.
pub(crate) const NBYTES: usize = 32;

/// The first word of a raw key.
const MAGIC: u64 = 0x7374_7269_6374_6B65;

/// Encodes the key of a registration and its base address.
pub(crate) fn encode(key: u64, base: u64) -> [u8; NBYTES] {
    let mut bytes = [0; NBYTES];
    let words = [MAGIC, key, base, MAGIC ^ key ^ base.rotate_left(1)];
    for (chunk, word) in bytes.chunks_exact_mut(8).zip(words) {
        chunk.copy_from_slice(&word.to_le_bytes());
    }
    bytes
}

/// Decodes a raw key to the key and the base address; `None` if it is invalid.
pub(crate) fn decode(bytes: &[u8]) -> Option<(u64, u64)> {
    let words: Vec<u64> = bytes
        .chunks(8)
        .map(|chunk| chunk.try_into().map_or(0, u64::from_le_bytes))
        .collect();
    let &[_, key, base, _] = words.as_slice() else {
        return None;
    };
    (bytes == encode(key, base)).then_some((key, base))
}

/// The raw keys that a domain has mapped.
#[derive(Default)]
pub(crate) struct RawKeys(Mutex<Keys>);

#[derive(Default)]
struct Keys {
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
        let mapped = keys.n.wrapping_mul(0x9E37_79B9_7F4A_7C15);
        keys.keys.insert(mapped, key);
        mapped
    }

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
        let raw = encode(5, 1 << 47);
        assert_eq!(decode(&raw), Some((5, 1 << 47)));
        for i in 0..NBYTES {
            let mut damaged = raw;
            damaged[i] ^= 1;
            assert_eq!(decode(&damaged), None, "byte {i}");
        }
        assert_eq!(decode(&raw[..NBYTES - 8]), None);
    }
}
