//! Secrets and what is derived from them, by HMAC-SHA256 (RFC 2104).

use std::fmt;
use std::io;

use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;

/// Number of bytes of a secret, a proof and a nonce.
pub(crate) const NBYTES: usize = 32;

/// A secret that only the processes of a job know.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret([u8; NBYTES]);

impl Secret {
    /// Creates a secret of any bytes, such as a text that the user has chosen.
    pub fn new(bytes: &[u8]) -> Secret {
        Secret(NONE.tag("secret", &[bytes]))
    }

    /// Creates a secret of random bytes.
    ///
    /// # Errors
    /// If the kernel gives none.
    pub fn random() -> io::Result<Secret> {
        nonce().map(Secret)
    }

    /// Returns another secret for this purpose. A process that knows only the other one cannot find
    /// out this one.
    pub fn derive(&self, purpose: &str, about: &[&[u8]]) -> Secret {
        Secret(self.tag(purpose, about))
    }

    /// Returns the code by which a process proves that it knows this secret.
    pub fn tag(&self, purpose: &str, about: &[&[u8]]) -> [u8; NBYTES] {
        self.mac(purpose, about).finalize().into_bytes().into()
    }

    /// Returns true if this is the code of [`tag`](Secret::tag). The time that this takes does not
    /// depend on the code.
    pub fn is_tag(&self, purpose: &str, about: &[&[u8]], tag: &[u8]) -> bool {
        self.mac(purpose, about).verify_slice(tag).is_ok()
    }

    /// Returns the bytes, for the key of a cipher, or to send them in a sealed message.
    pub fn bytes(&self) -> &[u8; NBYTES] {
        &self.0
    }

    fn mac(&self, purpose: &str, about: &[&[u8]]) -> Hmac<Sha256> {
        let mut mac =
            <Hmac<Sha256> as KeyInit>::new_from_slice(&self.0).expect("HMAC takes any key");
        for part in [&[purpose.as_bytes()], about].concat() {
            // The length before each part keeps different lists of parts from giving the same
            // bytes.
            mac.update(&(part.len() as u64).to_le_bytes());
            mac.update(part);
        }
        mac
    }
}

/// The key by which [`Secret::new`] converts bytes of any length to a secret.
const NONE: Secret = Secret([0; NBYTES]);

impl From<[u8; NBYTES]> for Secret {
    fn from(bytes: [u8; NBYTES]) -> Secret {
        Secret(bytes)
    }
}

/// Does not show the bytes.
impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret")
    }
}

/// Returns random bytes for one handshake.
///
/// # Errors
/// If the kernel gives none, as in a sandbox that forbids `getrandom`.
pub fn nonce() -> io::Result<[u8; NBYTES]> {
    let mut nonce = [0; NBYTES];
    getrandom::fill(&mut nonce).map_err(|error| io::Error::other(error.to_string()))?;
    Ok(nonce)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_derived_depends_on_all_that_it_is_derived_from() {
        let secret = Secret::new(b"secret");
        let derived = secret.derive("purpose", &[b"ab", b"c"]);
        assert_eq!(
            derived,
            Secret::new(b"secret").derive("purpose", &[b"ab", b"c"])
        );
        for other in [
            Secret::new(b"another").derive("purpose", &[b"ab", b"c"]),
            secret.derive("another", &[b"ab", b"c"]),
            secret.derive("purpose", &[b"a", b"bc"]),
            secret.derive("purpose", &[b"abc"]),
            secret.clone(),
        ] {
            assert_ne!(derived, other);
        }
        let tag = secret.tag("purpose", &[b"a"]);
        assert!(secret.is_tag("purpose", &[b"a"], &tag));
        assert!(!secret.is_tag("purpose", &[b"b"], &tag));
        assert!(!secret.is_tag("purpose", &[b"a"], &tag[1..]));
        assert_eq!(format!("{secret:?}"), "Secret");
    }
}
