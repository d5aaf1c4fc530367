//! The handshake, in which both ends of a connection prove that they know the job's secret.
//!
//! The acceptor sends a greeting with a nonce. The connector answers with a claim: its own number,
//! that of the PE to which it connects, a nonce, and an HMAC-SHA256 over these and the greeting.
//! The acceptor answers a valid claim with an HMAC of its own, which also says whether this
//! connection may be used or another one is being made. It does not answer an invalid claim.
//! Messages have fixed sizes. The stream is not encrypted and frames are not signed: an attacker
//! who can change the traffic of the network can change a job's memory.

use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;
use std::fmt;

/// Bytes of the greeting: magic number and version, nonce.
pub(crate) const GREETING: usize = 8 + NONCE;
/// Bytes of the claim: the two PEs, nonce, proof.
pub(crate) const CLAIM: usize = 8 + NONCE + PROOF;
/// Bytes of the answer to a claim, a welcome or a deferral: proof.
pub(crate) const ANSWER: usize = PROOF;

const NONCE: usize = 32;
const PROOF: usize = 32;
const MAGIC: [u8; 7] = *b"rushtcp";
const VERSION: u8 = rushmem_wire::TCP_HANDSHAKE.version;

/// The values that the proofs of a connection sign.
#[derive(Clone)]
struct ProofInput {
    secret: [u8; 32],
    target_nonce: [u8; NONCE],
    origin_nonce: [u8; NONCE],
    origin: u32,
    target: u32,
}

impl ProofInput {
    /// Returns the message authentication code by which `side` proves itself.
    fn mac(&self, side: &[u8]) -> Hmac<Sha256> {
        let mut mac =
            <Hmac<Sha256> as KeyInit>::new_from_slice(&self.secret).expect("HMAC takes any key");
        mac.update(&MAGIC);
        mac.update(&[VERSION]);
        mac.update(side);
        mac.update(&self.target_nonce);
        mac.update(&self.origin_nonce);
        mac.update(&self.origin.to_le_bytes());
        mac.update(&self.target.to_le_bytes());
        mac
    }

    fn prove(&self, side: &[u8]) -> [u8; PROOF] {
        self.mac(side).finalize().into_bytes().into()
    }

    fn check(&self, side: &[u8], proof: &[u8]) -> Result<(), HandshakeViolation> {
        self.mac(side)
            .verify_slice(proof)
            .map_err(|_| HandshakeViolation::Secret)
    }
}

const ORIGIN: &[u8] = b"origin";
const WELCOMED: &[u8] = b"target";
const DEFERRED: &[u8] = b"deferred";

/// An invalid message of the other end of a handshake.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum HandshakeViolation {
    /// The message does not begin with the magic number.
    Greeting,
    /// The other end has another version of the protocol.
    Version(u8),
    /// The other end does not know the job's secret.
    Secret,
    /// The claim is for another PE than the accepting one, or from a PE that the job does not have.
    WrongPe,
}

impl fmt::Display for HandshakeViolation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            HandshakeViolation::Greeting => f.write_str("it sent an unknown greeting"),
            HandshakeViolation::Version(version) => {
                write!(
                    f,
                    "it speaks version {version} of the protocol; use one build of Rushmem"
                )
            }
            HandshakeViolation::Secret => f.write_str("it does not know the secret of this job"),
            HandshakeViolation::WrongPe => f.write_str("another PE answers at its address"),
        }
    }
}

/// The answer to a valid claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum HandshakeAnswer {
    /// The connection may be used.
    Welcome,
    /// The connection may not be used, since there is another one or will be, or since the acceptor
    /// has no directory yet.
    Deferral,
}

impl HandshakeAnswer {
    fn label(self) -> &'static [u8] {
        match self {
            HandshakeAnswer::Welcome => WELCOMED,
            HandshakeAnswer::Deferral => DEFERRED,
        }
    }
}

/// The end that accepts the connection.
pub(crate) struct Acceptor {
    facts: ProofInput,
    n_pes: u32,
}

impl Acceptor {
    /// Returns the accepting end of a handshake at PE `me` of `n_pes`; `nonce` is random.
    pub(crate) fn new(secret: [u8; 32], me: u32, n_pes: u32, nonce: [u8; NONCE]) -> Acceptor {
        let facts = ProofInput {
            secret,
            target_nonce: nonce,
            origin_nonce: [0; NONCE],
            origin: 0,
            target: me,
        };
        Acceptor { facts, n_pes }
    }

    /// Returns the greeting, the first message.
    pub(crate) fn greeting(&self) -> [u8; GREETING] {
        let mut greeting = [0; GREETING];
        greeting[..7].copy_from_slice(&MAGIC);
        greeting[7] = VERSION;
        greeting[8..].copy_from_slice(&self.facts.target_nonce);
        greeting
    }

    /// Checks a claim. Returns the number of the PE that connects.
    pub(crate) fn check(&mut self, claim: &[u8; CLAIM]) -> Result<u32, HandshakeViolation> {
        let number = |at: usize| u32::from_le_bytes([0, 1, 2, 3].map(|i| claim[at + i]));
        let (origin, target) = (number(0), number(4));
        if target != self.facts.target || origin >= self.n_pes {
            return Err(HandshakeViolation::WrongPe);
        }
        self.facts.origin = origin;
        self.facts
            .origin_nonce
            .copy_from_slice(&claim[8..8 + NONCE]);
        self.facts.check(ORIGIN, &claim[8 + NONCE..])?;
        Ok(origin)
    }

    /// Returns the message with the answer to the claim that was checked.
    pub(crate) fn answer(&self, answer: HandshakeAnswer) -> [u8; ANSWER] {
        self.facts.prove(answer.label())
    }
}

/// The end that connects.
pub(crate) struct Connector {
    facts: ProofInput,
}

impl Connector {
    /// Returns the connecting end of a handshake of PE `me` with PE `target`; `nonce` is random.
    pub(crate) fn new(secret: [u8; 32], me: u32, target: u32, nonce: [u8; NONCE]) -> Connector {
        let facts = ProofInput {
            secret,
            target_nonce: [0; NONCE],
            origin_nonce: nonce,
            origin: me,
            target,
        };
        Connector { facts }
    }

    /// Checks the greeting of the acceptor, and returns the answer: the claim to be this PE, with
    /// its proof.
    pub(crate) fn claim(
        &mut self,
        greeting: &[u8; GREETING],
    ) -> Result<[u8; CLAIM], HandshakeViolation> {
        if greeting[..7] != MAGIC {
            return Err(HandshakeViolation::Greeting);
        }
        if greeting[7] != VERSION {
            return Err(HandshakeViolation::Version(greeting[7]));
        }
        self.facts.target_nonce.copy_from_slice(&greeting[8..]);
        let mut claim = [0; CLAIM];
        claim[..4].copy_from_slice(&self.facts.origin.to_le_bytes());
        claim[4..8].copy_from_slice(&self.facts.target.to_le_bytes());
        claim[8..8 + NONCE].copy_from_slice(&self.facts.origin_nonce);
        claim[8 + NONCE..].copy_from_slice(&self.facts.prove(ORIGIN));
        Ok(claim)
    }

    /// Checks the proof of the acceptor. Returns its answer.
    pub(crate) fn check(
        &self,
        answer: &[u8; ANSWER],
    ) -> Result<HandshakeAnswer, HandshakeViolation> {
        let is = |kind: HandshakeAnswer| self.facts.check(kind.label(), answer).map(|()| kind);
        is(HandshakeAnswer::Welcome).or_else(|_| is(HandshakeAnswer::Deferral))
    }
}
