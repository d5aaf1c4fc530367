//! The options of the sockets of connections, and the causes of their errors.

use crate::settings::Tuning;
use rustix::net::sockopt;
use std::io;
use std::net::TcpStream;
use std::time::Duration;

/// Prepares a socket for traffic after its handshake: calls do not block, the kernel delays no
/// data, and it detects that another host is gone although nothing is sent.
pub(crate) fn prepare(stream: &TcpStream, tuning: &Tuning) -> io::Result<()> {
    stream.set_nonblocking(true)?;
    stream.set_nodelay(true)?;

    if !is_within_host(stream)? {
        keep_alive(stream, tuning.silence_limit)?;
    }

    if let Some(nbytes) = tuning.socket_buffers {
        sockopt::set_socket_send_buffer_size(stream, nbytes)?;
        sockopt::set_socket_recv_buffer_size(stream, nbytes)?;
    }
    Ok(())
}

/// Returns true if both ends have the same address, so that the other host is this one and cannot
/// be gone. With tens of thousands of idle connections on few CPUs, a kernel might not answer its
/// own probes in time, and end a connection between PEs that are alive.
fn is_within_host(stream: &TcpStream) -> io::Result<bool> {
    Ok(stream.local_addr()?.ip() == stream.peer_addr()?.ip())
}

/// Has the kernel probe the other host after a third of the limit without data, and then three more
/// times, each a sixth of the limit later. The times are whole seconds, at least one.
fn keep_alive(stream: &TcpStream, silence_limit: Duration) -> io::Result<()> {
    let third = (silence_limit / 3).max(Duration::from_secs(1));
    sockopt::set_socket_keepalive(stream, true)?;
    sockopt::set_tcp_keepidle(stream, third)?;
    sockopt::set_tcp_keepintvl(stream, (third / 2).max(Duration::from_secs(1)))?;
    sockopt::set_tcp_keepcnt(stream, 4)?;
    Ok(())
}

/// The errors of a call on a socket that the peer or the path to it causes.
const OF_THE_PEER: [i32; 12] = [
    libc::EAGAIN,
    libc::ECONNABORTED,
    libc::ECONNREFUSED,
    libc::ECONNRESET,
    libc::EHOSTDOWN,
    libc::EHOSTUNREACH,
    libc::ENETDOWN,
    libc::ENETRESET,
    libc::ENETUNREACH,
    libc::ENOTCONN,
    libc::EPIPE,
    libc::ETIMEDOUT,
];

/// Returns true if the peer, or the path to it, caused an error. This PE is the cause of all other
/// errors, for example if it lacks memory. The standard library returns errors without a code, such
/// as that of a stream that has ended early.
pub(crate) fn is_of_peer(error: &io::Error) -> bool {
    error
        .raw_os_error()
        .is_none_or(|code| OF_THE_PEER.contains(&code))
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::net::{AddressFamily, SocketType};
    use std::net::{SocketAddr, TcpListener};

    /// Returns a connection between loopback addresses, which lasts as long as the listener.
    fn connection(from: [u8; 4], to: [u8; 4]) -> (TcpListener, TcpStream) {
        let listener = TcpListener::bind(SocketAddr::from((to, 0))).expect("a port");
        let socket =
            rustix::net::socket(AddressFamily::INET, SocketType::STREAM, None).expect("one");
        rustix::net::bind(&socket, &SocketAddr::from((from, 0))).expect("a port");

        let there = listener.local_addr().expect("its address");
        rustix::net::connect(&socket, &there).expect("room to wait");
        (listener, socket.into())
    }

    #[test]
    fn a_stream_that_ends_early_is_no_fault_of_this_pe() {
        for code in [libc::EAGAIN, libc::ECONNRESET, libc::EPIPE] {
            assert!(is_of_peer(&io::Error::from_raw_os_error(code)), "{code}");
        }
        for kind in [io::ErrorKind::UnexpectedEof, io::ErrorKind::WriteZero] {
            assert!(is_of_peer(&io::Error::from(kind)), "{kind}");
        }
        for code in [libc::ENOMEM, libc::ENOBUFS, libc::EMFILE] {
            assert!(!is_of_peer(&io::Error::from_raw_os_error(code)), "{code}");
        }
    }

    #[test]
    fn only_another_host_is_probed() {
        for (from, is_probed) in [([127, 0, 0, 1], false), ([127, 0, 0, 2], true)] {
            let (_listener, stream) = connection(from, [127, 0, 0, 1]);
            prepare(&stream, &Tuning::default()).expect("it is connected");
            assert_eq!(
                sockopt::socket_keepalive(&stream).expect("a socket"),
                is_probed
            );
        }
    }

    #[test]
    fn a_host_is_gone_after_the_limit() {
        let (_listener, stream) = connection([127, 0, 0, 2], [127, 0, 0, 1]);
        keep_alive(&stream, Duration::from_secs(30)).expect("it is connected");
        let first = sockopt::tcp_keepidle(&stream).expect("a socket");
        let next = sockopt::tcp_keepintvl(&stream).expect("a socket");
        let n = sockopt::tcp_keepcnt(&stream).expect("a socket");
        assert_eq!(first, Duration::from_secs(10));
        assert_eq!(first + n * next, Duration::from_secs(30));
    }
}
