//! The handshake by which both ends of a connection to a meeting prove that they know the secret of
//! the job, before any other data are read; and the options of their sockets.
//!
//! The meeting sends a greeting with a nonce. The member answers with a claim: a nonce of its own
//! and an HMAC-SHA256 over both nonces. If it is right, the meeting answers with an HMAC of its
//! own; otherwise it closes the connection. Messages have fixed sizes.

use std::net::TcpStream;
use std::time::Duration;

use hmac::{Hmac, KeyInit, Mac};
use rustix::net::sockopt;
use sha2::Sha256;

use super::attendance::JobSecret;

const NONCE: usize = 32;
const PROOF: usize = 32;

/// Number of bytes of the greeting: magic, version, nonce.
pub(super) const GREETING: usize = MAGIC.len() + 1 + NONCE;
/// Number of bytes of the claim of a member: nonce and proof.
pub(super) const CLAIM: usize = NONCE + PROOF;
/// Number of bytes of the answer to a right claim.
pub(super) const ANSWER: usize = PROOF;

const MAGIC: [u8; 7] = *b"rushjob";
const VERSION: u8 = rushmem_wire::JOB.version;

const MEMBER: &[u8] = b"member";
const MEETING: &[u8] = b"meeting";

/// Why a greeting is not answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NoGreeting {
    /// The bytes are not the greeting of a meeting.
    Foreign,
    /// The meeting has this version of the job protocol.
    Version(u8),
}

/// The two nonces of a connection and the secret of the job.
#[derive(Debug)]
pub(super) struct Handshake {
    secret: JobSecret,
    meeting: [u8; NONCE],
    member: [u8; NONCE],
}

impl Handshake {
    /// Begins a handshake on either side. `nonce` must be random.
    pub(super) fn new(secret: &JobSecret, nonce: [u8; NONCE]) -> Handshake {
        Handshake {
            secret: secret.clone(),
            meeting: nonce,
            member: nonce,
        }
    }

    /// Returns the greeting, the first message of the meeting.
    pub(super) fn greeting(&self) -> [u8; GREETING] {
        let mut greeting = [0; GREETING];
        greeting[..MAGIC.len()].copy_from_slice(&MAGIC);
        greeting[MAGIC.len()] = VERSION;
        greeting[MAGIC.len() + 1..].copy_from_slice(&self.meeting);
        greeting
    }

    /// Returns the claim with which a member answers a greeting.
    pub(super) fn claim(&mut self, greeting: &[u8; GREETING]) -> Result<[u8; CLAIM], NoGreeting> {
        if greeting[..MAGIC.len()] != MAGIC {
            return Err(NoGreeting::Foreign);
        }
        if greeting[MAGIC.len()] != VERSION {
            return Err(NoGreeting::Version(greeting[MAGIC.len()]));
        }
        self.meeting.copy_from_slice(&greeting[MAGIC.len() + 1..]);
        let mut claim = [0; CLAIM];
        claim[..NONCE].copy_from_slice(&self.member);
        claim[NONCE..].copy_from_slice(&self.proof(MEMBER).finalize().into_bytes());
        Ok(claim)
    }

    /// Returns the answer of the meeting to a right claim; `None` if the claim is wrong.
    pub(super) fn answer(&mut self, claim: &[u8; CLAIM]) -> Option<[u8; ANSWER]> {
        self.member.copy_from_slice(&claim[..NONCE]);
        self.proof(MEMBER).verify_slice(&claim[NONCE..]).ok()?;
        Some(self.proof(MEETING).finalize().into_bytes().into())
    }

    /// Returns true if this is the answer of a meeting that knows the secret.
    pub(super) fn is_answer(&self, answer: &[u8; ANSWER]) -> bool {
        self.proof(MEETING).verify_slice(answer).is_ok()
    }

    fn proof(&self, side: &[u8]) -> Hmac<Sha256> {
        let mut mac = <Hmac<Sha256> as KeyInit>::new_from_slice(self.secret.bytes())
            .expect("HMAC takes any key");
        [&MAGIC, &[VERSION][..], side, &self.meeting, &self.member]
            .iter()
            .for_each(|part| mac.update(part));
        mac
    }
}

/// Sets the options of a connection: small messages are sent immediately, and a host that is silent
/// for `silence` is detected. The kernel of the other host answers even if the process there is
/// stopped.
pub(super) fn prepare(stream: &TcpStream, silence: Duration) {
    let interval = (silence / 4).max(Duration::from_secs(1));
    // If an option cannot be set, messages are slower, or a lost host is detected later.
    let _ = stream.set_nodelay(true);
    let _ = sockopt::set_socket_keepalive(stream, true);
    let _ = sockopt::set_tcp_keepidle(stream, interval);
    let _ = sockopt::set_tcp_keepintvl(stream, interval);
    let _ = sockopt::set_tcp_keepcnt(stream, 3);
    let _ = sockopt::set_tcp_user_timeout(stream, silence.as_millis().try_into().unwrap_or(0));
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sides(meeting: &str, member: &str) -> (Handshake, Handshake) {
        let side = |secret: &str, nonce| Handshake::new(&JobSecret::new(secret), [nonce; NONCE]);
        (side(meeting, 1), side(member, 2))
    }

    #[test]
    fn who_knows_the_secret_is_let_in() {
        let (mut meeting, mut member) = sides("secret", "secret");
        let claim = member.claim(&meeting.greeting()).expect("a greeting");
        let answer = meeting.answer(&claim).expect("a right claim");
        assert!(member.is_answer(&answer));
        assert!(
            !member.is_answer(&claim[NONCE..].try_into().expect("its size")),
            "not reflected"
        );
    }

    #[test]
    fn others_are_not() {
        let (mut meeting, mut member) = sides("secret", "another");
        let claim = member.claim(&meeting.greeting()).expect("a greeting");
        assert_eq!(meeting.answer(&claim), None);
        assert_eq!(member.claim(&[0; GREETING]), Err(NoGreeting::Foreign));
        let mut older = meeting.greeting();
        older[MAGIC.len()] = 1;
        assert_eq!(member.claim(&older), Err(NoGreeting::Version(1)));
    }
}
