//! Short numbers for long data: tags of messages, and digests of what must be the same on all PEs.
//!
//! It offers no protection against an attacker who constructs two inputs with the same digest.

/// Returns a tag or digest of some numbers (FNV-1a over their bytes).
pub(crate) fn digest(numbers: &[u64]) -> u64 {
    of_bytes(numbers.iter().flat_map(|n| n.to_le_bytes()))
}

/// Returns a digest of a text, which is not 0.
pub(crate) fn of_text(text: &str) -> u64 {
    of_bytes(text.bytes()).max(1)
}

fn of_bytes(bytes: impl Iterator<Item = u8>) -> u64 {
    bytes.fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}
