//! The session that follows a handshake: what each end sends is encrypted and authenticated by
//! ChaCha20-Poly1305 (RFC 8439), with a key for each direction that only both ends can derive.
//!
//! The bytes travel in pieces: a u32 (little endian) with the size of the sealed piece, and the
//! piece. The nonce of a piece is its number, so pieces that are left out, repeated or exchanged
//! are noticed, as changed ones are. The end of the stream is not sealed: the messages inside have
//! sizes, so a message that was cut off is noticed.

use std::fmt;

use chacha20poly1305::aead::{Aead, KeyInit};
use chacha20poly1305::{ChaCha20Poly1305, Nonce};

use crate::secret::Secret;

/// Maximum number of bytes of a piece before it is sealed. The receiver needs a whole piece before
/// it can use any of it.
const PIECE: usize = 64 * 1024;

/// Bytes that sealing adds to a piece.
const TAG: usize = 16;

/// Bytes in front of a sealed piece.
const HEADER: usize = 4;

/// Bytes that the other end of a session has not sealed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Forged;

impl fmt::Display for Forged {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("somebody has changed, left out or exchanged what was sent")
    }
}

impl std::error::Error for Forged {}

/// One end of a session.
#[derive(Debug)]
pub struct Session {
    sealer: Sealer,
    opener: Opener,
}

impl Session {
    pub(crate) fn new(own: &Secret, other: &Secret) -> Session {
        Session {
            sealer: Sealer(Key::new(own)),
            opener: Opener {
                key: Key::new(other),
                received: Vec::new(),
                has_failed: false,
            },
        }
    }

    /// Returns the bytes to send for these. They must be sent in the order of the calls.
    pub fn seal(&mut self, bytes: &[u8]) -> Vec<u8> {
        self.sealer.seal(bytes)
    }

    /// Adds bytes that have arrived from the other end. After an error they are dropped.
    pub fn received(&mut self, bytes: &[u8]) {
        self.opener.received(bytes);
    }

    /// Returns the next piece that has arrived as a whole; `None` if there is none.
    ///
    /// # Errors
    /// If the bytes are not those that the other end has sealed. The session is over then.
    pub fn take(&mut self) -> Result<Option<Vec<u8>>, Forged> {
        self.opener.take()
    }

    /// Returns the halves, for threads that send and receive.
    pub fn split(self) -> (Sealer, Opener) {
        (self.sealer, self.opener)
    }
}

/// The sending half of a session.
#[derive(Debug)]
pub struct Sealer(Key);

impl Sealer {
    /// Returns the bytes to send for these. They must be sent in the order of the calls.
    pub fn seal(&mut self, bytes: &[u8]) -> Vec<u8> {
        let mut sent = Vec::with_capacity(bytes.len() + bytes.len() / PIECE + HEADER + TAG);
        for piece in bytes.chunks(PIECE) {
            let nonce = self.0.next_nonce();
            let sealed = self.0.cipher.encrypt(&nonce, piece);
            let sealed = sealed.expect("a piece is shorter than the limit of the cipher");
            sent.extend((sealed.len() as u32).to_le_bytes());
            sent.extend(sealed);
        }
        sent
    }
}

/// The receiving half of a session.
#[derive(Debug)]
pub struct Opener {
    key: Key,
    /// Bytes that have arrived and are not opened yet. They stay below a piece and a read if the
    /// caller takes all pieces after each read.
    received: Vec<u8>,
    /// True once bytes have arrived that the other end has not sealed.
    has_failed: bool,
}

impl Opener {
    /// Adds bytes that have arrived. After an error they are dropped.
    pub fn received(&mut self, bytes: &[u8]) {
        if !self.has_failed {
            self.received.extend_from_slice(bytes);
        }
    }

    /// Returns the next piece that has arrived as a whole; `None` if there is none.
    ///
    /// # Errors
    /// If the bytes are not those that the other end has sealed. Every later call returns the same
    /// error.
    pub fn take(&mut self) -> Result<Option<Vec<u8>>, Forged> {
        if self.has_failed {
            return Err(Forged);
        }

        let piece = self.open_next();
        if piece.is_err() {
            self.has_failed = true;
            self.received = Vec::new();
        }
        piece
    }

    fn open_next(&mut self) -> Result<Option<Vec<u8>>, Forged> {
        let Some((size, rest)) = self.received.split_first_chunk::<HEADER>() else {
            return Ok(None);
        };

        // The size itself is not authenticated. A wrong one must not make this end wait for bytes
        // that never come, or keep more than a piece in memory.
        let size = u32::from_le_bytes(*size) as usize;
        if !(TAG..=PIECE + TAG).contains(&size) {
            return Err(Forged);
        }

        let Some(sealed) = rest.get(..size) else {
            return Ok(None);
        };

        // The nonce is taken only once the piece is complete, since this function is called again
        // for one that is not, and each piece has one number.
        let nonce = self.key.next_nonce();
        let cipher = &self.key.cipher;
        let piece = cipher.decrypt(&nonce, sealed).map_err(|_| Forged)?;

        self.received.drain(..HEADER + size);
        Ok(Some(piece))
    }
}

/// The key of one direction, and the number of its next piece.
struct Key {
    cipher: ChaCha20Poly1305,
    next: u64,
}

impl Key {
    fn new(secret: &Secret) -> Key {
        Key {
            cipher: ChaCha20Poly1305::new(secret.bytes().into()),
            next: 0,
        }
    }

    fn next_nonce(&mut self) -> Nonce {
        let mut nonce = [0; 12];
        nonce[4..].copy_from_slice(&self.next.to_le_bytes());
        // The number cannot overflow, so no key seals two pieces with one nonce: 2^64 pieces are
        // more than any connection carries.
        self.next += 1;
        nonce.into()
    }
}

/// Does not show the key.
impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Key").field("next", &self.next).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn ends() -> (Sealer, Opener) {
        let [one, other] = [b"one", b"two"].map(|text| Secret::new(text));
        let (sealer, _) = Session::new(&one, &other).split();
        let (_, opener) = Session::new(&other, &one).split();
        (sealer, opener)
    }

    fn all(opener: &mut Opener) -> Result<Vec<u8>, Forged> {
        let mut bytes = Vec::new();
        while let Some(piece) = opener.take()? {
            bytes.extend(piece);
        }
        Ok(bytes)
    }

    #[test]
    fn long_messages_arrive_in_pieces() {
        let (mut sealer, mut opener) = ends();
        let long: Vec<u8> = (0..3 * PIECE + 7).map(|i| i as u8).collect();
        let sent = sealer.seal(&long);

        opener.received(&sent[..PIECE]);
        assert_eq!(opener.take(), Ok(None), "not even one piece");

        opener.received(&sent[PIECE..]);
        assert_eq!(all(&mut opener), Ok(long));
    }

    #[test]
    fn pieces_that_are_left_out_or_sent_again_are_noticed() {
        let (mut sealer, mut opener) = ends();
        let first = sealer.seal(b"first");
        let second = sealer.seal(b"second");

        opener.received(&second);
        assert_eq!(opener.take(), Err(Forged));
        opener.received(&first);
        assert_eq!(opener.take(), Err(Forged), "the session is over");
        assert!(opener.received.is_empty(), "a flood takes no memory");

        let (_, mut again) = ends();
        again.received(&[&first[..], &first].concat());
        assert_eq!(again.take(), Ok(Some(b"first".to_vec())));
        assert_eq!(again.take(), Err(Forged));
    }

    #[test]
    fn a_size_that_no_piece_has_is_refused_at_once() {
        for size in [0, TAG - 1, PIECE + TAG + 1, u32::MAX as usize] {
            let (_, mut opener) = ends();
            opener.received(&(size as u32).to_le_bytes());
            assert_eq!(opener.take(), Err(Forged), "{size}");
        }
    }

    proptest! {
        #[test]
        fn what_is_sent_arrives_however_it_is_cut(
            messages in prop::collection::vec(prop::collection::vec(any::<u8>(), 1..200), 1..10),
            cut in 1..50_usize,
        ) {
            let (mut sealer, mut opener) = ends();
            let sent: Vec<u8> = messages.iter().flat_map(|message| sealer.seal(message)).collect();
            let mut arrived = Vec::new();
            for part in sent.chunks(cut) {
                opener.received(part);
                arrived.extend(all(&mut opener).expect("nothing was changed"));
            }
            prop_assert_eq!(arrived, messages.concat());
        }

        #[test]
        fn a_changed_bit_is_noticed(bit in 0..(4 + 16 + 7) * 8_usize) {
            let (mut sealer, mut opener) = ends();
            let mut sent = sealer.seal(b"records");
            sent[bit / 8] ^= 1 << (bit % 8);
            opener.received(&sent);
            // A size that was raised waits for bytes that never arrive.
            prop_assert!(matches!(opener.take(), Err(Forged) | Ok(None)));
        }
    }
}
