//! The unique id of a job: the addresses of the meeting, and the secret of the job.
//!
//! The id is a printable text of less than 128 bytes, so that programs can pass it on in a file, a
//! message or a variable.

use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::str::FromStr;

use rushmem_connect::Secret;

use super::route::{MeetingAddress, MeetingRoute};
use crate::base64;

/// Number of bytes of an id in C: the text, and at least one null byte.
const NBYTES: usize = 128;

/// Number of bytes of the secret in an id.
pub(super) const SECRET: usize = 16;

/// The start of an id, with the version of its format.
const PREFIX: &str = "rushmem1-";

/// Maximum number of bytes that are encoded after the prefix.
const ROOM: usize = (NBYTES - 1 - PREFIX.len()) / 4 * 3;

/// The unique id of a job.
#[derive(Clone, PartialEq, Eq)]
pub struct UniqueId {
    text: String,
    addresses: Vec<SocketAddr>,
    secret: Secret,
}

impl UniqueId {
    /// Creates an id with the secret and with those `addresses`, in this order, for which it has
    /// room.
    pub(super) fn new(secret: &[u8; SECRET], addresses: &[SocketAddr]) -> UniqueId {
        let mut bytes = secret.to_vec();
        let mut held = Vec::new();
        for address in addresses {
            let mut encoded = match address.ip() {
                IpAddr::V4(ip) => [&[4][..], &ip.octets()].concat(),
                IpAddr::V6(ip) => [&[6][..], &ip.octets()].concat(),
            };
            encoded.extend(address.port().to_be_bytes());

            // An address for which there is no room is left out. A shorter one may follow it.
            if bytes.len() + encoded.len() <= ROOM {
                bytes.extend(encoded);
                held.push(*address);
            }
        }
        UniqueId {
            text: format!("{PREFIX}{}", base64::encode(&bytes)),
            addresses: held,
            secret: Secret::new(secret),
        }
    }

    /// Returns the id as in C: its text, followed by null bytes.
    pub fn to_bytes(&self) -> [u8; NBYTES] {
        let mut bytes = [0; NBYTES];
        bytes[..self.text.len()].copy_from_slice(self.text.as_bytes());
        bytes
    }

    /// Parses an id in the form of C. Spaces at the end, which Fortran adds, are ignored. Returns
    /// `None` if it is invalid.
    pub fn from_bytes(bytes: &[u8; NBYTES]) -> Option<UniqueId> {
        let text = bytes.split(|&byte| byte == 0).next()?;
        std::str::from_utf8(text).ok()?.trim().parse().ok()
    }

    /// Returns the route of PE `pe` of `n_pes` to the meeting of the job.
    pub fn route(&self, pe: u32, n_pes: u32) -> MeetingRoute {
        MeetingRoute {
            address: MeetingAddress::Addresses(self.addresses.clone()),
            secret: self.secret.clone(),
            pe,
            n_pes,
        }
    }
}

/// The error of a text that is not a unique id.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("this is no unique id of a job")]
pub struct NoUniqueId;

impl FromStr for UniqueId {
    type Err = NoUniqueId;

    fn from_str(text: &str) -> Result<UniqueId, NoUniqueId> {
        parse(text).ok_or(NoUniqueId)
    }
}

/// Parses an id, in the format of [`UniqueId::new`].
fn parse(text: &str) -> Option<UniqueId> {
    let bytes = base64::decode(text.strip_prefix(PREFIX)?)?;
    let (secret, mut rest) = bytes.split_first_chunk::<SECRET>()?;

    let mut addresses = Vec::new();
    while let Some((kind, address)) = rest.split_first() {
        let (ip, after_ip): (IpAddr, &[u8]) = match kind {
            4 => {
                let (ip, rest) = address.split_first_chunk::<4>()?;
                ((*ip).into(), rest)
            }
            6 => {
                let (ip, rest) = address.split_first_chunk::<16>()?;
                ((*ip).into(), rest)
            }
            _ => return None,
        };
        let (port, after_port) = after_ip.split_first_chunk::<2>()?;
        addresses.push(SocketAddr::new(ip, u16::from_be_bytes(*port)));
        rest = after_port;
    }

    if addresses.is_empty() {
        return None;
    }
    Some(UniqueId {
        text: text.to_owned(),
        addresses,
        secret: Secret::new(secret),
    })
}

impl fmt::Display for UniqueId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// Does not show the secret.
impl fmt::Debug for UniqueId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("UniqueId").field(&self.addresses).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn address() -> impl Strategy<Value = SocketAddr> {
        any::<(IpAddr, u16)>().prop_map(SocketAddr::from)
    }

    proptest! {
        #[test]
        fn an_id_survives_as_bytes_and_as_text(
            secret in any::<[u8; SECRET]>(),
            addresses in prop::collection::vec(address(), 1..20),
        ) {
            let id = UniqueId::new(&secret, &addresses);
            prop_assert!(addresses.starts_with(&id.addresses[..1]));
            prop_assert!(id.addresses.len() >= addresses.len().min(3));

            prop_assert_eq!(id.to_string().parse(), Ok(id.clone()));
            prop_assert_eq!(UniqueId::from_bytes(&id.to_bytes()), Some(id.clone()));

            let mut of_fortran = id.to_bytes();
            of_fortran.iter_mut().filter(|byte| **byte == 0).for_each(|byte| *byte = b' ');
            prop_assert_eq!(UniqueId::from_bytes(&of_fortran), Some(id));
        }

        #[test]
        fn other_texts_are_none(text in "(rushmem1-)?[ -~]{0,130}") {
            if let Ok(id) = text.parse::<UniqueId>() {
                prop_assert!(!id.addresses.is_empty());
            }
        }
    }

    #[test]
    fn a_cut_id_is_none() {
        let id = UniqueId::new(
            &[7; SECRET],
            &["10.0.0.1:5000".parse().expect("an address")],
        );
        let text = id.to_string();
        assert!((0..text.len()).all(|end| text[..end].parse::<UniqueId>().is_err()));
        assert!(UniqueId::from_bytes(&[0; NBYTES]).is_none());
    }
}
