//! The options of the sockets between a meeting and its members.

use std::net::TcpStream;
use std::time::Duration;

use rustix::net::sockopt;

/// Sets how fast small messages leave, and how soon a host that is gone is noticed: its kernel
/// answers also for a process that is stopped.
pub(super) fn prepare(stream: &TcpStream, silence: Duration) {
    let interval = (silence / 4).max(Duration::from_secs(1));
    // Without one of these options the end is only found later.
    let _ = stream.set_nodelay(true);
    let _ = sockopt::set_socket_keepalive(stream, true);
    let _ = sockopt::set_tcp_keepidle(stream, interval);
    let _ = sockopt::set_tcp_keepintvl(stream, interval);
    let _ = sockopt::set_tcp_keepcnt(stream, 3);
    let _ = sockopt::set_tcp_user_timeout(stream, silence.as_millis().try_into().unwrap_or(0));
}
