//! Raw keys: bytes that a target hands to its peers, longer than operations have room for. A peer maps them, and names in its
//! operations what that gave.
//!
//! It must never know what is registered, nor who asks.

use crate::gate::Gate;
use std::collections::HashMap;

/// How long they are, in words and in bytes.
const WORDS: usize = 4;
pub(crate) const NBYTES: usize = 8 * WORDS;

/// What they begin with.
const START: u64 = 0x7374_7269_6374_6B65;

/// The key that a registration has in its domain, with its base address, as bytes.
pub(crate) fn packed(key: u64, base: u64) -> [u8; NBYTES] {
    let mut bytes = [0; NBYTES];
    let words = [START, key, base, START ^ key ^ base.rotate_left(1)];
    for (chunk, word) in bytes.chunks_exact_mut(8).zip(words) {
        chunk.copy_from_slice(&word.to_le_bytes());
    }
    bytes
}

/// The key and the base address in a raw key, if it is one.
pub(crate) fn unpacked(bytes: &[u8]) -> Option<(u64, u64)> {
    let words: Vec<u64> =
        bytes.chunks(8).map(|chunk| chunk.try_into().map_or(0, u64::from_le_bytes)).collect();
    let &[_, key, base, _] = words.as_slice() else { return None };
    (bytes == packed(key, base)).then_some((key, base))
}

/// The raw keys that a domain has mapped.
#[derive(Default)]
pub(crate) struct MappedKeys(Gate<Names>);

#[derive(Default)]
struct Names {
    keys: HashMap<u64, u64>,
    /// How many there have been.
    n: u64,
}

impl MappedKeys {
    /// Maps one; what operations name it by, which no registration is named by, and no other is later.
    pub(crate) fn map(&self, key: u64) -> u64 {
        let mut names = self.0.enter();
        names.n += 1;
        let name = names.n.wrapping_mul(0x9E37_79B9_7F4A_7C15);
        names.keys.insert(name, key);
        name
    }

    /// What is mapped by this name.
    pub(crate) fn key(&self, name: u64) -> Option<u64> {
        self.0.enter().keys.get(&name).copied()
    }

    /// Forgets one; whether it was mapped.
    pub(crate) fn unmap(&self, name: u64) -> bool {
        self.0.enter().keys.remove(&name).is_some()
    }

    /// How many are mapped.
    pub(crate) fn n(&self) -> usize {
        self.0.enter().keys.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_packed_is_unpacked() {
        let raw = packed(5, 1 << 47);
        assert_eq!(unpacked(&raw), Some((5, 1 << 47)));
        for i in 0..NBYTES {
            let mut damaged = raw;
            damaged[i] ^= 1;
            assert_eq!(unpacked(&damaged), None, "byte {i}");
        }
        assert_eq!(unpacked(&raw[..NBYTES - 8]), None);
    }
}
