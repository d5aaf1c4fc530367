//! What every connection has, whichever way its requests go: the settings of its socket, and the ways in which it ends.
//!
//! It must never know what travels on a connection.

use crate::proto::Violation;
use crate::settings::Tuning;
use rustix::net::sockopt;
use std::fmt;
use std::io;
use std::net::TcpStream;
use std::time::Duration;

/// How a connection ended.
#[derive(Debug)]
pub(crate) enum End {
    /// The peer said so.
    Bye,
    /// It broke; the text says how.
    Broken(String),
}

impl End {
    /// It was closed without a farewell.
    pub(crate) fn closed() -> End {
        End::Broken("its connection was closed".to_owned())
    }
}

impl fmt::Display for End {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            End::Bye => "it has left the job",
            End::Broken(why) => why,
        })
    }
}

impl From<Violation> for End {
    fn from(violation: Violation) -> End {
        End::Broken(violation.to_string())
    }
}

impl From<io::Error> for End {
    fn from(error: io::Error) -> End {
        End::Broken(error.to_string())
    }
}

/// Prepares a connection that is past its handshake for traffic: nothing blocks, nothing is held back by the kernel, and a
/// host that is gone is noticed while nothing is sent.
pub(crate) fn prepare(stream: &TcpStream, tuning: &Tuning) -> io::Result<()> {
    stream.set_nonblocking(true)?;
    stream.set_nodelay(true)?;
    sockopt::set_socket_keepalive(stream, true)?;
    // In whole seconds: the kernel asks once a third of the limit has passed, then three times more.
    let third = (tuning.silence_limit / 3).max(Duration::from_secs(1));
    sockopt::set_tcp_keepidle(stream, third)?;
    sockopt::set_tcp_keepintvl(stream, (third / 2).max(Duration::from_secs(1)))?;
    sockopt::set_tcp_keepcnt(stream, 4)?;
    if let Some(nbytes) = tuning.socket_buffers {
        sockopt::set_socket_send_buffer_size(stream, nbytes)?;
        sockopt::set_socket_recv_buffer_size(stream, nbytes)?;
    }
    Ok(())
}

/// Random bytes for a handshake.
pub(crate) fn nonce() -> io::Result<[u8; 32]> {
    let mut nonce = [0; 32];
    getrandom::fill(&mut nonce).map_err(|e| io::Error::other(e.to_string()))?;
    Ok(nonce)
}
