//! The handshake by which both ends of a connection prove that they know a secret.
//!
//! The end that accepts sends a greeting with a nonce. The end that connects answers with a claim:
//! its number, the number of the process that it wants, a nonce, and a code over all of these, the
//! greeting, and the address to which it has connected, if the protocol binds that. The accepting
//! end answers a right claim with a code of its own, which also says whether this connection may be
//! used, and any other one with a refusal. Messages have fixed sizes.

use std::fmt;
use std::net::{IpAddr, SocketAddr};

use crate::sealed::Session;
use crate::secret::{NBYTES, Secret};

/// Number of bytes of the greeting: magic number, version, nonce.
pub const GREETING: usize = MAGIC + 1 + NBYTES;
/// Number of bytes of the claim: both numbers, nonce, proof.
pub const CLAIM: usize = 4 + 4 + NBYTES + NBYTES;
/// Number of bytes of the answer: proof.
pub const ANSWER: usize = NBYTES;

const MAGIC: usize = 7;

/// The answer to a wrong claim. It is no proof, and says only that another attempt with this secret
/// is useless as long as the same process listens.
pub const REFUSAL: [u8; ANSWER] = [0; ANSWER];

/// The first bytes of a protocol, and its version.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Protocol {
    /// The magic number.
    pub magic: [u8; MAGIC],
    /// The version, which must be equal at both ends.
    pub version: u8,
}

/// Why a message of the other end is not accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Violation {
    /// The greeting is that of another program.
    Greeting,
    /// The other end has this version of the protocol.
    Version(u8),
    /// The other end does not know the secret, or passes on what another process has sent to it.
    Secret,
    /// The claim is for another process than the accepting one.
    WrongPe,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Violation::Greeting => f.write_str("another program answers"),
            Violation::Version(version) => {
                write!(
                    f,
                    "it has version {version} of the protocol, another one than this side; use one build of Rushmem"
                )
            }
            Violation::Secret => f.write_str("it does not know the secret of this job"),
            Violation::WrongPe => f.write_str("another PE answers at its address"),
        }
    }
}

/// The answer to a right claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    /// The connection may be used.
    Welcome,
    /// The connection may not be used: there is another one or will be, or the accepting process is
    /// not ready for it. Another attempt may succeed later.
    Deferral,
}

impl Answer {
    fn purpose(self) -> &'static str {
        match self {
            Answer::Welcome => "welcome",
            Answer::Deferral => "deferral",
        }
    }
}

/// The purpose of the proof in a claim.
const CLAIM_PURPOSE: &str = "claim";

/// What the proofs of a connection are about.
#[derive(Clone, Debug)]
struct Facts {
    protocol: Protocol,
    secret: Secret,
    /// The nonce of the end that accepts.
    acceptor_nonce: [u8; NBYTES],
    /// The nonce of the end that connects.
    connector_nonce: [u8; NBYTES],
    /// The number of the process that connects, little endian.
    from: [u8; 4],
    /// The number of the process that accepts, little endian.
    to: [u8; 4],
    /// The bytes of the address of the end that accepts; empty if the protocol does not bind it.
    address: Vec<u8>,
}

impl Facts {
    /// Returns the bytes that each proof and each key covers, besides its purpose.
    fn parts(&self) -> [&[u8]; 7] {
        [
            &self.protocol.magic,
            std::slice::from_ref(&self.protocol.version),
            &self.acceptor_nonce,
            &self.connector_nonce,
            &self.from,
            &self.to,
            &self.address,
        ]
    }

    fn prove(&self, purpose: &str) -> [u8; NBYTES] {
        self.secret.tag(purpose, &self.parts())
    }

    fn check(&self, purpose: &str, proof: &[u8]) -> Result<(), Violation> {
        if self.secret.is_tag(purpose, &self.parts(), proof) {
            Ok(())
        } else {
            Err(Violation::Secret)
        }
    }

    fn key(&self, direction: &str) -> Secret {
        self.secret.derive(direction, &self.parts())
    }
}

/// Returns the bytes of an address as both ends of a connection see it. An address of IPv4 counts
/// as such also where a socket of IPv6 shows it.
fn address_bytes(address: SocketAddr) -> Vec<u8> {
    let port = address.port().to_le_bytes();
    match address.ip().to_canonical() {
        IpAddr::V4(ip) => [&ip.octets()[..], &port].concat(),
        IpAddr::V6(ip) => [&ip.octets()[..], &port].concat(),
    }
}

/// The end that accepts the connection.
#[derive(Clone, Debug)]
pub struct Acceptor {
    facts: Facts,
}

impl Acceptor {
    /// Returns the accepting end of a handshake at the process with the number `me`. `nonce` must
    /// be random.
    pub fn new(protocol: Protocol, secret: &Secret, me: u32, nonce: [u8; NBYTES]) -> Acceptor {
        let facts = Facts {
            protocol,
            secret: secret.clone(),
            acceptor_nonce: nonce,
            // Filled in from the claim.
            connector_nonce: [0; NBYTES],
            from: [0; 4],
            to: me.to_le_bytes(),
            address: Vec::new(),
        };
        Acceptor { facts }
    }

    /// Binds the proofs to this address, at which the connection was accepted. The other end does
    /// the same with the address to which it has connected.
    pub fn bound_to(mut self, address: SocketAddr) -> Acceptor {
        self.facts.address = address_bytes(address);
        self
    }

    /// Returns the greeting, the first message.
    pub fn greeting(&self) -> [u8; GREETING] {
        let mut greeting = [0; GREETING];
        greeting[..MAGIC].copy_from_slice(&self.facts.protocol.magic);
        greeting[MAGIC] = self.facts.protocol.version;
        greeting[MAGIC + 1..].copy_from_slice(&self.facts.acceptor_nonce);
        greeting
    }

    /// Checks a claim. Returns the number of the process that connects.
    ///
    /// # Errors
    /// [`Violation::WrongPe`] or [`Violation::Secret`]. The answer is [`REFUSAL`] then.
    pub fn check(&mut self, claim: &[u8; CLAIM]) -> Result<u32, Violation> {
        let (from, rest) = claim.split_first_chunk().expect("a claim is longer");
        let (to, rest) = rest.split_first_chunk().expect("a claim is longer");
        let (nonce, proof) = rest.split_first_chunk().expect("a claim is longer");

        if *to != self.facts.to {
            return Err(Violation::WrongPe);
        }

        // Before the check of the proof, which is also about these two.
        self.facts.from = *from;
        self.facts.connector_nonce = *nonce;

        self.facts.check(CLAIM_PURPOSE, proof)?;
        Ok(u32::from_le_bytes(*from))
    }

    /// Returns the message with the answer to the claim that was checked.
    pub fn answer(&self, answer: Answer) -> [u8; ANSWER] {
        self.facts.prove(answer.purpose())
    }

    /// Returns this end of the session that follows a welcome.
    pub fn session(&self) -> Session {
        Session::new(&self.facts.key(ACCEPTS), &self.facts.key(CONNECTS))
    }
}

/// The end that connects.
#[derive(Clone, Debug)]
pub struct Connector {
    facts: Facts,
}

impl Connector {
    /// Returns the connecting end of a handshake of process `me` with process `to`. `nonce` must be
    /// random.
    pub fn new(
        protocol: Protocol,
        secret: &Secret,
        me: u32,
        to: u32,
        nonce: [u8; NBYTES],
    ) -> Connector {
        let facts = Facts {
            protocol,
            secret: secret.clone(),
            // Filled in from the greeting.
            acceptor_nonce: [0; NBYTES],
            connector_nonce: nonce,
            from: me.to_le_bytes(),
            to: to.to_le_bytes(),
            address: Vec::new(),
        };
        Connector { facts }
    }

    /// Binds the proofs to this address, to which this end has connected.
    pub fn bound_to(mut self, address: SocketAddr) -> Connector {
        self.facts.address = address_bytes(address);
        self
    }

    /// Checks the greeting. Returns the claim to be the process with this number.
    ///
    /// # Errors
    /// [`Violation::Greeting`] or [`Violation::Version`].
    pub fn claim(&mut self, greeting: &[u8; GREETING]) -> Result<[u8; CLAIM], Violation> {
        let Protocol { magic, version } = self.facts.protocol;
        if greeting[..MAGIC] != magic {
            return Err(Violation::Greeting);
        }
        if greeting[MAGIC] != version {
            return Err(Violation::Version(greeting[MAGIC]));
        }

        // Before the proof, which is also about the nonce of the greeting.
        self.facts
            .acceptor_nonce
            .copy_from_slice(&greeting[MAGIC + 1..]);

        let claim = [
            &self.facts.from[..],
            &self.facts.to,
            &self.facts.connector_nonce,
            &self.facts.prove(CLAIM_PURPOSE),
        ]
        .concat();
        Ok(claim.try_into().expect("the parts of a claim"))
    }

    /// Checks the answer to the claim.
    ///
    /// # Errors
    /// [`Violation::Secret`]: the other end refuses the claim, or does not prove itself.
    pub fn check(&self, answer: &[u8; ANSWER]) -> Result<Answer, Violation> {
        // The answer is nothing but the proof, so its meaning is that of the proof which fits.
        for kind in [Answer::Welcome, Answer::Deferral] {
            if self.facts.check(kind.purpose(), answer).is_ok() {
                return Ok(kind);
            }
        }
        Err(Violation::Secret)
    }

    /// Returns this end of the session that follows a welcome.
    pub fn session(&self) -> Session {
        Session::new(&self.facts.key(CONNECTS), &self.facts.key(ACCEPTS))
    }
}

/// The purposes of the keys of a session: what each end sends.
const ACCEPTS: &str = "from the end that accepts";
const CONNECTS: &str = "from the end that connects";

#[cfg(test)]
mod tests;
