//! Bytes as text of letters, digits, `-` and `_` (RFC 4648, base64url without padding).
//!
//! The alphabet contains no character with a meaning in a shell, in PMI-1 or in PMI-2.

const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

/// Encodes bytes as text.
pub(crate) fn encode(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for three in bytes.chunks(3) {
        let word = three
            .iter()
            .chain(&[0, 0])
            .take(3)
            .fold(0_u32, |word, &byte| word << 8 | u32::from(byte));
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
        let n = four.len().checked_sub(1).filter(|&n| n > 0)?;
        let word = word << (6 * (4 - four.len()));
        bytes.extend_from_slice(&word.to_be_bytes()[1..=n]);
    }
    Some(bytes)
}
