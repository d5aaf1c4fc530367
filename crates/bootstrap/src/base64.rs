//! Bytes as text of letters, digits, `-` and `_` (RFC 4648, base64url without padding).
//!
//! The alphabet contains no character with a meaning in a shell, in PMI-1 or in PMI-2.

const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

/// Encodes bytes as text.
pub(crate) fn encode(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for three in bytes.chunks(3) {
        // The bytes are the high ones of 24 bits. The bits of missing ones are 0.
        let mut word = [0; 4];
        word[1..=three.len()].copy_from_slice(three);
        let word = u32::from_be_bytes(word);

        // n bytes need n + 1 digits of 6 bits.
        for digit in 0..=three.len() {
            let six = word >> (18 - 6 * digit) & 63;
            text.push(ALPHABET[six as usize].into());
        }
    }
    text
}

/// Decodes a text; `None` if it has a character outside the alphabet, or a length that [`encode`]
/// never makes.
pub(crate) fn decode(text: &str) -> Option<Vec<u8>> {
    let mut bytes = Vec::with_capacity(text.len() / 4 * 3);
    for four in text.as_bytes().chunks(4) {
        let mut word = 0_u32;
        for character in four {
            let six = ALPHABET.iter().position(|known| known == character)?;
            word = word << 6 | six as u32;
        }

        // One digit has too few bits for a byte.
        if four.len() == 1 {
            return None;
        }
        let word = word << (6 * (4 - four.len()));
        bytes.extend_from_slice(&word.to_be_bytes()[1..four.len()]);
    }
    Some(bytes)
}
