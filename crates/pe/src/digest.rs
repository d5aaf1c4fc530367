//! Digests of numbers, texts and stacks (FNV-1a): for tags of messages, for names, and for
//! comparing values that must be equal on all PEs. Inputs can be constructed that collide.

/// The digest of the bytes that were added.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Digest(u64);

impl Digest {
    /// The digest of no bytes.
    pub const EMPTY: Digest = Digest(0xcbf2_9ce4_8422_2325);

    /// Adds bytes.
    pub fn add(&mut self, bytes: impl IntoIterator<Item = u8>) {
        for byte in bytes {
            self.0 = (self.0 ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
        }
    }

    /// Returns the digest as a number.
    pub fn value(self) -> u64 {
        self.0
    }
}

/// Returns the digest of bytes.
pub fn digest_of_bytes(bytes: impl IntoIterator<Item = u8>) -> u64 {
    let mut digest = Digest::EMPTY;
    digest.add(bytes);
    digest.value()
}

/// Returns the digest of the bytes of numbers.
pub fn digest(numbers: &[u64]) -> u64 {
    digest_of_bytes(numbers.iter().flat_map(|n| n.to_le_bytes()))
}

/// Returns the digest of a text, or 1 if that is 0.
pub fn digest_of_text(text: &str) -> u64 {
    digest_of_bytes(text.bytes()).max(1)
}
