//! The link to a peer, and the mark by which an event of the kernel tells its socket.

use crate::connection::Connection;
use crate::establishment::Establishment;

/// The connection to a PE.
pub(crate) enum PeerLink {
    /// Not connected yet.
    Unconnected(Establishment),
    Open(Box<Connection>),
    /// Not used any more, for the reason `why`. If this PE gave up a connection that works, it
    /// stays open as `_unused`, so that the peer does not take this PE for lost.
    Closed {
        why: String,
        _unused: Option<Box<Connection>>,
    },
}

impl Default for PeerLink {
    fn default() -> PeerLink {
        PeerLink::Unconnected(Establishment::default())
    }
}

impl PeerLink {
    /// Returns the link to a peer that is not used any more, for the reason `why`.
    pub(crate) fn closed(why: String) -> PeerLink {
        PeerLink::Closed { why, _unused: None }
    }
}

/// The socket that an event of the kernel refers to: a listener by its index, a link by its PE, and
/// any other socket by its descriptor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Token {
    Listener(u32),
    Stranger(u32),
    /// A connection that was reserved for a peer.
    Reserved(u32),
    Link(u32),
}

impl From<Token> for u64 {
    fn from(token: Token) -> u64 {
        let (kind, number) = match token {
            Token::Listener(number) => (0, number),
            Token::Stranger(number) => (1, number),
            Token::Reserved(number) => (2, number),
            Token::Link(number) => (3, number),
        };
        kind << 32 | u64::from(number)
    }
}

impl From<u64> for Token {
    fn from(token: u64) -> Token {
        let number = token as u32;
        match token >> 32 {
            0 => Token::Listener(number),
            1 => Token::Stranger(number),
            2 => Token::Reserved(number),
            _ => Token::Link(number),
        }
    }
}
