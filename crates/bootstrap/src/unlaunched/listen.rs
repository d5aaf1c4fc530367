//! The sockets at which a process serves a meeting.
//!
//! The process that makes a unique id listens at the addresses that the settings select. If the
//! user has named a host and a port, PE 0 listens at all addresses of the name that this machine
//! has, or at none. If another process held one of them, members would reach that process there,
//! and it could pass on, drop or delay what they send.

use std::fmt;
use std::fs;
use std::io::{self, ErrorKind};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener, ToSocketAddrs};
use std::time::{Duration, Instant};

use rushmem_connect::Attempts;
use rushmem_system::interfaces::{INTERFACES, Need, PORTS, PortRange, Selection, addresses};
use rushmem_system::stderr::print_line;
use rustix::io::Errno;
use rustix::net::{self, AddressFamily, SocketFlags, SocketType, sockopt};

use super::reach::notice_after;
use crate::error::Error;

/// Maximum number of connections that the kernel holds until they are accepted, as in the standard
/// library.
const BACKLOG: i32 = 128;

/// The state of a socket that listens, in the kernel's list.
const LISTENS: &str = "0A";

/// An address at which another process listens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Taken {
    address: SocketAddr,
    /// The user of that process, if the kernel lists its socket.
    uid: Option<u32>,
}

impl fmt::Display for Taken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.uid {
            Some(uid) => write!(
                f,
                "a process of uid {uid} listens at {} already",
                self.address
            ),
            None => write!(f, "another process has {} already", self.address),
        }
    }
}

/// Why this process does not listen at an address.
enum Refusal {
    Taken(Taken),
    Other(io::Error),
}

/// Listens at each address of this machine that members may reach, as the settings say. The
/// addresses are in the order in which members try them; one at which this process can listen is
/// enough.
pub(super) fn at_own_addresses() -> Result<Vec<TcpListener>, Error> {
    let refuse = |why: String| Error::Serving(io::Error::other(why));
    let variable = |name| std::env::var(name).ok();
    let selection = Selection::parse(&variable(INTERFACES).unwrap_or_default()).map_err(refuse)?;
    let ports = PortRange::parse(variable(PORTS).as_deref()).map_err(refuse)?;
    let own = addresses(Need::Any, selection.as_ref(), None).map_err(refuse)?;

    let mut listeners = Vec::new();
    let mut refused = ErrorKind::AddrNotAvailable.into();
    for ip in own {
        match ports.listen(ip) {
            Ok(listener) => listeners.push(listener),
            Err(error) => refused = error,
        }
    }

    if listeners.is_empty() {
        Err(Error::Serving(refused))
    } else {
        Ok(listeners)
    }
}

/// Listens at the addresses of `name`, a host and a port. While another process has one of them,
/// tries again for the time `limit`, since that may be the previous job with this name.
///
/// # Errors
/// If the address is taken all that time, or this process cannot listen for another reason.
pub(super) fn at_named(name: &str, limit: Duration) -> Result<Vec<TcpListener>, Error> {
    let mut attempts = Attempts::new(Instant::now());
    let mut has_printed_notice = false;
    loop {
        let taken = match try_listen(name) {
            Ok(listeners) => return Ok(listeners),
            Err(Refusal::Taken(taken)) => taken,
            Err(Refusal::Other(cause)) => {
                return Err(Error::MeetingAddress {
                    address: name.to_owned(),
                    cause,
                });
            }
        };

        let is_in_time = attempts.record_refusal(Instant::now(), limit);
        let waited = attempts.elapsed();
        if !is_in_time {
            return Err(Error::MeetingTaken {
                name: name.to_owned(),
                taken: taken.to_string(),
                waited,
            });
        }

        if !has_printed_notice && waited >= notice_after(limit) {
            has_printed_notice = true;
            print_line(format_args!(
                "PE 0 has waited {:.0} s to serve the job at SHMEM_JOB={name} ({taken}), and tries again until \
                 SHMEM_JOIN_LIMIT ({} s)",
                waited.as_secs_f64(),
                limit.as_secs_f64()
            ));
        }
        attempts.pause();
    }
}

/// Listens at the addresses of a host and a port once.
fn try_listen(name: &str) -> Result<Vec<TcpListener>, Refusal> {
    let resolved: Vec<SocketAddr> = name.to_socket_addrs().map_err(Refusal::Other)?.collect();
    let port = resolved.first().map(SocketAddr::port).unwrap_or_default();

    if !is_known_elsewhere(name, &resolved) {
        let listeners = listen_at_all(&resolved)?;
        if !listeners.is_empty() {
            return Ok(listeners);
        }
    }
    Ok(vec![listen_everywhere(port)?])
}

/// Returns true if other machines know the host of this name by other addresses than these: Debian
/// and Ubuntu give a machine's own name an address of loopback in its /etc/hosts, 127.0.1.1.
fn is_known_elsewhere(name: &str, resolved: &[SocketAddr]) -> bool {
    let is_address = name.parse::<SocketAddr>().is_ok();
    let is_loopback = ["localhost", "loopback"]
        .iter()
        .any(|word| name.contains(word));
    !is_address && !is_loopback && resolved.iter().all(|address| address.ip().is_loopback())
}

/// Listens at those of these addresses that this machine has; there may be none, as when they are
/// those of a router in front of this host. Closes all sockets if one of the addresses is taken:
/// until PE 0 has all, members find nobody and try again.
fn listen_at_all(addresses: &[SocketAddr]) -> Result<Vec<TcpListener>, Refusal> {
    let mut listeners = Vec::new();
    for (index, &address) in addresses.iter().enumerate() {
        // The C library may return an address of /etc/hosts twice.
        if !addresses[..index].contains(&address) {
            listeners.extend(bind(address)?);
        }
    }
    Ok(listeners)
}

/// Listens at a port of every address of this machine.
fn listen_everywhere(port: u16) -> Result<TcpListener, Refusal> {
    // A socket of IPv6 also accepts connections of IPv4, so only a machine without IPv6 needs the
    // other one.
    for any in [
        IpAddr::from(Ipv6Addr::UNSPECIFIED),
        Ipv4Addr::UNSPECIFIED.into(),
    ] {
        if let Some(listener) = bind(SocketAddr::new(any, port))? {
            return Ok(listener);
        }
    }
    Err(Refusal::Other(ErrorKind::AddrNotAvailable.into()))
}

/// Listens at an address. At the unspecified one of IPv6, this includes IPv4, whatever the sysctl
/// net.ipv6.bindv6only says: otherwise another process could have the port at an address of IPv4.
fn listener_at(address: SocketAddr) -> io::Result<TcpListener> {
    let SocketAddr::V6(everywhere) = address else {
        return TcpListener::bind(address);
    };
    if !everywhere.ip().is_unspecified() {
        return TcpListener::bind(address);
    }

    let socket = net::socket_with(
        AddressFamily::INET6,
        SocketType::STREAM,
        SocketFlags::CLOEXEC,
        None,
    )?;
    // As the standard library does. Without this option, connections of a meeting that is over
    // keep the port for a while.
    sockopt::set_socket_reuseaddr(&socket, true)?;
    sockopt::set_ipv6_v6only(&socket, false)?;
    net::bind(&socket, &everywhere)?;
    net::listen(&socket, BACKLOG)?;
    Ok(socket.into())
}

/// Listens at an address. Returns `None` if this machine lacks the address or its family.
fn bind(address: SocketAddr) -> Result<Option<TcpListener>, Refusal> {
    match listener_at(address) {
        Ok(listener) => Ok(Some(listener)),
        Err(error) if error.kind() == ErrorKind::AddrNotAvailable => Ok(None),
        Err(error) if error.raw_os_error() == Some(Errno::AFNOSUPPORT.raw_os_error()) => Ok(None),
        Err(error) if error.kind() == ErrorKind::AddrInUse => {
            // If a list cannot be read, the message names no user.
            let lists = ["/proc/net/tcp", "/proc/net/tcp6"];
            let sockets = lists.map(|list| fs::read_to_string(list).unwrap_or_default());
            let uid = holder(&sockets.concat(), address);
            Err(Refusal::Taken(Taken { address, uid }))
        }
        Err(error) => Err(Refusal::Other(error)),
    }
}

/// Returns the user of the process that keeps others from listening at `address`, as the kernel
/// lists the sockets of TCP in proc_net_tcp(5); `None` if no socket listens there.
fn holder(sockets: &str, address: SocketAddr) -> Option<u32> {
    sockets.lines().find_map(|line| {
        let words: Vec<&str> = line.split_whitespace().collect();
        let [_, local, _, LISTENS, _, _, _, uid, ..] = words[..] else {
            return None;
        };
        let (ip, port) = local.split_once(':')?;
        let has_port = u16::from_str_radix(port, 16) == Ok(address.port());
        if has_port && overlap(listed(ip)?, address.ip()) {
            uid.parse().ok()
        } else {
            None
        }
    })
}

/// Returns the address that the kernel lists as words of 4 bytes in the byte order of the machine;
/// `None` if they are no address.
fn listed(hex: &str) -> Option<IpAddr> {
    let mut words = Vec::new();
    for index in 0..hex.len() / 8 {
        let digits = hex.get(8 * index..8 * index + 8)?;
        let word = u32::from_str_radix(digits, 16).ok()?;
        words.push(word.to_ne_bytes());
    }

    match words[..] {
        [ip] => Some(IpAddr::from(ip)),
        [a, b, c, d] => {
            let ip: [u8; 16] = [a, b, c, d].concat().try_into().ok()?;
            Some(IpAddr::from(ip).to_canonical())
        }
        _ => None,
    }
}

/// Returns true if no two processes can listen at these addresses with the same port.
fn overlap(one: IpAddr, other: IpAddr) -> bool {
    one == other || covers(one, other) || covers(other, one)
}

/// Returns true if `all` is an unspecified address that stands for `one`, among others: that of
/// IPv4 for those of IPv4, and that of IPv6 for all.
fn covers(all: IpAddr, one: IpAddr) -> bool {
    all.is_unspecified() && (all.is_ipv6() || one.is_ipv4())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::thread;

    const LIST: &str = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n   \
        0: 0100007F:1388 00000000:0000 0A 00000000:00000000 00:00000000 00000000  1001        0 1 1 0 100 0 0 10 0\n   \
        1: 0200007F:1389 00000000:0000 01 00000000:00000000 00:00000000 00000000  1002        0 2 1 0 100 0 0 10 0\n   \
        0: 00000000000000000000000001000000:138A 00000000000000000000000000000000:0000 0A 00000000:00000000 \
        00:00000000 00000000  1003        0 3 1 0 100 0 0 10 0\n   \
        1: 00000000000000000000000000000000:138B 00000000000000000000000000000000:0000 0A 00000000:00000000 \
        00:00000000 00000000  1004        0 4 1 0 100 0 0 10 0\n   \
        2: 00000000:138C 00000000:0000 0A 00000000:00000000 00:00000000 00000000  1005        0 5 1 0 100 0 0 10 0\n   \
        3: 00000000000000000000000001000000:138C 00000000000000000000000000000000:0000 0A 00000000:00000000 \
        00:00000000 00000000  1006        0 6 1 0 100 0 0 10 0\n";

    #[test]
    #[cfg(target_endian = "little")]
    fn the_holder_of_an_address_is_named() {
        let of = |address: &str| holder(LIST, address.parse().expect("an address"));
        assert_eq!(of("127.0.0.1:5000"), Some(1001));
        assert_eq!(of("0.0.0.0:5000"), Some(1001), "it has one of all");
        assert_eq!(of("127.0.0.2:5000"), None, "another address");
        assert_eq!(of("127.0.0.2:5001"), None, "it does not listen");
        assert_eq!(of("[::1]:5002"), Some(1003));
        assert_eq!(of("127.0.0.3:5003"), Some(1004), "it has all");
        assert_eq!(of("[::1]:5004"), Some(1006), "not who has all of IPv4");
        assert_eq!(of("0.0.0.0:5002"), None, "it has one of IPv6");
    }

    #[test]
    fn the_socket_for_all_addresses_has_those_of_ipv4() {
        let listener = listen_everywhere(0).ok().expect("a port");
        let address = listener.local_addr().expect("bound");
        if address.is_ipv6() {
            assert_eq!(sockopt::ipv6_v6only(&listener), Ok(false));
        }
        let by_ipv4 = (Ipv4Addr::LOCALHOST, address.port());
        std::net::TcpStream::connect(by_ipv4).expect("the port has all addresses");
    }

    #[test]
    fn a_taken_address_is_awaited_and_then_named() {
        let holder = TcpListener::bind("127.0.0.1:0").expect("a port");
        let name = holder.local_addr().expect("bound").to_string();
        let refused = at_named(&name, Duration::from_millis(300)).expect_err("it is taken");
        let uid = rustix::process::geteuid().as_raw();
        let words = format!("a process of uid {uid} listens at {name} already");
        assert!(refused.to_string().contains(&words), "{refused}");

        let freed = thread::spawn(move || {
            thread::sleep(Duration::from_millis(300));
            drop(holder);
        });
        at_named(&name, Duration::from_secs(60)).expect("it is free later");
        freed.join().expect("no panic");
    }

    #[test]
    fn all_addresses_are_free_until_none_is_taken() {
        let held = TcpListener::bind("127.0.0.1:0").expect("a port");
        let held_at = held.local_addr().expect("bound");
        let free = SocketAddr::new([127, 0, 0, 2].into(), held_at.port());

        // As a relay would, another process listens at one address and not at the other.
        for addresses in [[held_at, free], [free, held_at]] {
            let Err(Refusal::Taken(taken)) = listen_at_all(&addresses) else {
                panic!("one is taken")
            };
            assert_eq!(taken.address, held_at);
            TcpListener::bind(free).expect("nobody listens there");
        }

        drop(held);
        let all = listen_at_all(&[held_at, free, held_at]);
        assert_eq!(all.map_err(drop).expect("both are free").len(), 2);
    }

    #[test]
    fn a_name_that_is_loopback_only_here_stands_for_all_addresses() {
        let only = |address: &str| [address.parse().expect("an address")];
        let own = only("127.0.1.1:5000");
        assert!(is_known_elsewhere("h1:5000", &own));
        assert!(!is_known_elsewhere("h1:5000", &only("10.0.0.1:5000")));
        for loopback in [
            "127.0.1.1:5000",
            "[::1]:5000",
            "localhost:5000",
            "ip6-loopback:5000",
        ] {
            assert!(!is_known_elsewhere(loopback, &own), "{loopback}");
        }
        let both = [own, only("10.0.0.1:5000")].concat();
        assert!(!is_known_elsewhere("h1:5000", &both));
    }

    #[test]
    fn an_address_that_is_not_here_is_passed_over() {
        // An address for documentation, which no machine has (RFC 5737).
        let elsewhere = at_named("192.0.2.1:0", Duration::from_secs(60)).expect("all addresses");
        let ips = elsewhere
            .iter()
            .map(|one| one.local_addr().expect("bound").ip());
        assert!(ips.eq([IpAddr::from(Ipv6Addr::UNSPECIFIED)]) || elsewhere.len() == 1);
    }
}
