//! What a process knows of the meeting that it attends: its place and its secret, which the unique id
//! of a job holds as text, and limits of time.
//!
//! It is pure. The id is a printable text of less than 128 bytes, so that programs can hand it on
//! by whatever they have: a file, a message, a variable.

use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::str::FromStr;
use std::time::Duration;

use crate::base64;
use crate::time_limit;

/// How long PEs wait for each other: the setting, its environment variable.
pub const LIMIT_VARIABLE: &str = "SHMEM_JOIN_LIMIT";

/// Its value where the variable is not set.
pub const LIMIT_DEFAULT: &str = "2m";

/// Bytes of an id for C: the text, and at least one null byte.
const NBYTES: usize = 128;

/// Bytes of its secret.
pub(super) const SECRET: usize = 16;

/// What an id begins with: the version of its form is part of it.
const PREFIX: &str = "rushmem1-";

/// Most bytes of what follows, before they become text.
const ROOM: usize = (NBYTES - 1 - PREFIX.len()) / 4 * 3;

/// Limits of time that a meeting observes.
#[derive(Clone, Copy, Debug)]
pub struct MeetingLimits {
    /// The time for which PEs that have come wait for the others.
    pub join: Duration,
    /// The time for which the host of a PE, or of the meeting, may be silent.
    pub silence: Duration,
}

impl Default for MeetingLimits {
    fn default() -> MeetingLimits {
        let parse = |text| time_limit::parse(text).expect("a default is a limit");
        MeetingLimits { join: parse(LIMIT_DEFAULT), silence: parse(time_limit::DEFAULT_HOST_LIMIT) }
    }
}

/// A secret of a job: what its PEs know, and nobody else.
#[derive(Clone, PartialEq, Eq)]
pub struct JobSecret(Vec<u8>);

impl JobSecret {
    /// Returns these bytes as a secret.
    pub fn new(bytes: impl Into<Vec<u8>>) -> JobSecret {
        JobSecret(bytes.into())
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        &self.0
    }
}

impl fmt::Debug for JobSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JobSecret")
    }
}

/// The place of a meeting.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MeetingPlace {
    /// The addresses of the process that made a unique id.
    Addresses(Vec<SocketAddr>),
    /// The host and the port at which PE 0 serves it.
    Named(String),
}

/// One process's part in a meeting.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Attendance {
    /// Where.
    pub place: MeetingPlace,
    /// The proof of membership.
    pub secret: JobSecret,
    /// The number of this PE.
    pub pe: u32,
    /// The number of PEs.
    pub n_pes: u32,
}

/// What made the meeting, for messages.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Speaker {
    UniqueId,
    Variables,
}

/// The unique id of a job.
#[derive(Clone, PartialEq, Eq)]
pub struct UniqueId {
    text: String,
    at: Vec<SocketAddr>,
    secret: JobSecret,
}

impl UniqueId {
    /// Returns the id with as many of the addresses `at` as it has room for, the first ones.
    pub(super) fn new(secret: &[u8; SECRET], at: &[SocketAddr]) -> UniqueId {
        let mut bytes = secret.to_vec();
        let mut held = Vec::new();
        for address in at {
            let octets = match address.ip() {
                IpAddr::V4(ip) => [&[4][..], &ip.octets()].concat(),
                IpAddr::V6(ip) => [&[6][..], &ip.octets()].concat(),
            };
            let port = address.port().to_be_bytes();
            if bytes.len() + octets.len() + port.len() <= ROOM {
                bytes.extend([&octets[..], &port].concat());
                held.push(*address);
            }
        }
        let text = format!("{PREFIX}{}", base64::encode(&bytes));
        UniqueId { text, at: held, secret: JobSecret::new(*secret) }
    }

    /// Returns the id as C has it: its text, and null bytes.
    pub fn to_bytes(&self) -> [u8; NBYTES] {
        let mut bytes = [0; NBYTES];
        bytes[..self.text.len()].copy_from_slice(self.text.as_bytes());
        bytes
    }

    /// Returns the id in the bytes of C; blanks at its end, as Fortran writes them, are no part of
    /// it. `None` if they hold none.
    pub fn from_bytes(bytes: &[u8; NBYTES]) -> Option<UniqueId> {
        let text = bytes.split(|&byte| byte == 0).next()?;
        std::str::from_utf8(text).ok()?.trim().parse().ok()
    }

    /// Returns the part of PE `pe` of `n_pes` in the meeting of its job.
    pub fn attendance(&self, pe: u32, n_pes: u32) -> Attendance {
        let place = MeetingPlace::Addresses(self.at.clone());
        Attendance { place, secret: self.secret.clone(), pe, n_pes }
    }
}

/// A text that is no unique id.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
/// Remedy: pass on the whole id.
#[error("this is no unique id of a job")]
pub struct NoUniqueId;

impl FromStr for UniqueId {
    type Err = NoUniqueId;

    fn from_str(text: &str) -> Result<UniqueId, NoUniqueId> {
        let parse = || {
            let bytes = base64::decode(text.strip_prefix(PREFIX)?)?;
            let (secret, mut rest) = bytes.split_first_chunk::<SECRET>()?;
            let mut at = Vec::new();
            while let Some((kind, address)) = rest.split_first() {
                let (ip, port): (IpAddr, &[u8]) = match kind {
                    4 => address.split_first_chunk::<4>().map(|(ip, rest)| ((*ip).into(), rest))?,
                    6 => {
                        address.split_first_chunk::<16>().map(|(ip, rest)| ((*ip).into(), rest))?
                    }
                    _ => return None,
                };
                let (port, others) = port.split_first_chunk::<2>()?;
                at.push(SocketAddr::new(ip, u16::from_be_bytes(*port)));
                rest = others;
            }
            let secret = JobSecret::new(*secret);
            (!at.is_empty()).then(|| UniqueId { text: text.to_owned(), at, secret })
        };
        parse().ok_or(NoUniqueId)
    }
}

impl fmt::Display for UniqueId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// Without the secret.
impl fmt::Debug for UniqueId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("UniqueId").field(&self.at).finish()
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
            at in prop::collection::vec(address(), 1..20),
        ) {
            let id = UniqueId::new(&secret, &at);
            prop_assert!(at.starts_with(&id.at[..1]));
            prop_assert!(id.at.len() >= at.len().min(3));
            prop_assert_eq!(id.to_string().parse(), Ok(id.clone()));
            prop_assert_eq!(UniqueId::from_bytes(&id.to_bytes()), Some(id.clone()));
            let mut of_fortran = id.to_bytes();
            of_fortran.iter_mut().filter(|byte| **byte == 0).for_each(|byte| *byte = b' ');
            prop_assert_eq!(UniqueId::from_bytes(&of_fortran), Some(id));
        }

        #[test]
        fn other_texts_are_none(text in "(rushmem1-)?[ -~]{0,130}") {
            if let Ok(id) = text.parse::<UniqueId>() {
                prop_assert!(!id.at.is_empty());
            }
        }
    }

    #[test]
    fn a_cut_id_is_none() {
        let id = UniqueId::new(&[7; SECRET], &["10.0.0.1:5000".parse().expect("an address")]);
        let text = id.to_string();
        assert!((0..text.len()).all(|end| text[..end].parse::<UniqueId>().is_err()));
        assert!(UniqueId::from_bytes(&[0; NBYTES]).is_none());
    }
}
