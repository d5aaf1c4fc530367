//! Short numbers for long data: tags of messages, and digests of what must be the same on all PEs.
//!
//! It offers no protection against an attacker who constructs two inputs with the same digest.

/// Returns a tag or digest of some numbers (FNV-1a over their bytes).
pub(crate) fn digest(numbers: &[u64]) -> u64 {
    let bytes = numbers.iter().flat_map(|n| n.to_le_bytes());
    bytes.fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}
