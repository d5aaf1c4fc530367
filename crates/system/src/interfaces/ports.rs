//! The range of `SHMEM_TCP_PORTS`, at which sockets listen, for sites whose firewalls let only
//! some ports through.

use std::io::{self, ErrorKind};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, TcpListener};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};

/// The setting that selects ports.
pub const PORTS: &str = "SHMEM_TCP_PORTS";

/// The ports at which sockets may listen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PortRange {
    first: u16,
    last: u16,
}

impl PortRange {
    /// Any port: the kernel chooses a free one.
    pub const ANY: PortRange = PortRange { first: 0, last: 0 };

    /// Parses a range such as `50000-50999`, or a single port. Returns [`ANY`](PortRange::ANY) for
    /// no text or a blank one.
    ///
    /// # Errors
    /// A sentence, if the text is no range.
    pub fn parse(text: Option<&str>) -> Result<PortRange, String> {
        let Some(text) = text.map(str::trim).filter(|text| !text.is_empty()) else {
            return Ok(PortRange::ANY);
        };

        let (first, last) = text.split_once('-').unwrap_or((text, text));
        match (first.trim().parse(), last.trim().parse()) {
            (Ok(first), Ok(last)) if 0 < first && first <= last => Ok(PortRange { first, last }),
            _ => Err(format!(
                "{PORTS} is {text}, but it must be a range of ports, such as 50000-50999"
            )),
        }
    }

    /// Returns the first and the last port; `None` if any port may be used.
    pub fn bounds(self) -> Option<(u16, u16)> {
        if self == PortRange::ANY {
            return None;
        }
        Some((self.first, self.last))
    }

    /// Listens on a free port of the range at this address.
    ///
    /// # Errors
    /// If the kernel refuses, or all ports of the range are taken.
    pub fn listen(self, ip: IpAddr) -> io::Result<TcpListener> {
        for port in self.ports() {
            match TcpListener::bind((ip, port)) {
                Err(error) if error.kind() == ErrorKind::AddrInUse => {}
                result => return result,
            }
        }

        let text = match self.bounds() {
            Some((first, last)) => format!(
                "all ports of {PORTS} ({first}-{last}) are taken on {ip}: give a wider range, or end \
                 what listens there (`ss -tlnp`)"
            ),
            None => format!("the kernel has no free port on {ip}"),
        };
        Err(io::Error::other(text))
    }

    /// Calls `listen` with one free port of the range after the other, until it returns a value:
    /// for a library that listens by itself. Processes that call this at the same time try
    /// different ports. Returns `None` if all ports are taken, or `listen` has returned no value.
    pub fn find<T>(self, mut listen: impl FnMut(u16) -> Option<T>) -> Option<T> {
        for port in self.ports() {
            // Another process tries this port.
            let Ok(_claim) = claim(port) else { continue };
            if is_free(port)
                && let Some(found) = listen(port)
            {
                return Some(found);
            }
        }
        None
    }

    /// Returns the ports of the range; 0 alone for any port. Each process begins with one that
    /// depends on its number, so that many processes on one machine need few attempts.
    fn ports(self) -> impl Iterator<Item = u16> {
        let n = u32::from(self.last - self.first) + 1;
        (0..n).map(move |offset| {
            let port = u32::from(self.first) + (std::process::id() % n + offset) % n;
            u16::try_from(port).expect("it is at most the last port")
        })
    }
}

/// Keeps other processes of this network namespace from [`PortRange::find`]ing a port while the
/// result lives. It is an abstract socket, since a socket bound to the port itself would keep the
/// library that is to listen from it, too.
///
/// # Errors
/// If another process has claimed the port.
fn claim(port: u16) -> io::Result<Option<UnixDatagram>> {
    let name = SocketAddr::from_abstract_name(format!("rushmem-port-{port}"))?;
    match UnixDatagram::bind_addr(&name) {
        Ok(claim) => Ok(Some(claim)),
        Err(error) if error.kind() == ErrorKind::AddrInUse => Err(error),
        // Without such sockets two processes may try one port, and the second tries another then.
        Err(_) => Ok(None),
    }
}

/// Returns true if no socket listens at the port, at any address.
fn is_free(port: u16) -> bool {
    let any_address = [
        IpAddr::V4(Ipv4Addr::UNSPECIFIED),
        IpAddr::V6(Ipv6Addr::UNSPECIFIED),
    ];
    for ip in any_address {
        // Other errors say that the machine lacks this version of the protocol.
        if let Err(error) = TcpListener::bind((ip, port))
            && error.kind() == ErrorKind::AddrInUse
        {
            return false;
        }
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::Ipv4Addr;

    const LOCALHOST: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);

    #[test]
    fn ranges_are_parsed() {
        assert_eq!(PortRange::parse(None), Ok(PortRange::ANY));
        assert_eq!(PortRange::parse(Some(" ")), Ok(PortRange::ANY));

        let range = |first, last| Ok(PortRange { first, last });
        assert_eq!(PortRange::parse(Some("50000-50999")), range(50000, 50999));
        assert_eq!(
            PortRange::parse(Some(" 50000 - 50000 ")),
            range(50000, 50000)
        );
        assert_eq!(PortRange::parse(Some("65535")), range(65535, 65535));

        for wrong in [
            "0",
            "0-9",
            "9-8",
            "1-65536",
            "a-b",
            "50000-",
            "1-2-3",
            "50000,50001",
        ] {
            let error = PortRange::parse(Some(wrong)).expect_err("it is no range");
            assert!(error.contains(&format!("SHMEM_TCP_PORTS is {wrong}, but it must be")));
        }
    }

    #[test]
    fn ports_that_are_taken_are_passed_over() {
        let taken = PortRange::ANY.listen(LOCALHOST).expect("any port");
        let port = taken.local_addr().expect("it is bound").port();
        let only = PortRange {
            first: port,
            last: port,
        };
        let error = only
            .listen(LOCALHOST)
            .expect_err("the port is taken")
            .to_string();
        assert!(
            error.contains(&format!("({port}-{port}) are taken on 127.0.0.1")),
            "{error}"
        );

        let more = PortRange {
            first: port.saturating_sub(40),
            last: port,
        };
        let found = more.listen(LOCALHOST).expect("some port below is free");
        let found = found.local_addr().expect("it is bound").port();
        assert!((more.first..more.last).contains(&found), "{found}");
    }

    #[test]
    fn a_library_is_given_free_ports_until_it_listens() {
        let taken = PortRange::ANY.listen(LOCALHOST).expect("any port");
        let last = taken.local_addr().expect("it is bound").port();
        let first = last - 9;
        let range = PortRange { first, last };

        let mut tried = Vec::new();
        let listens = range.find(|port| {
            tried.push(port);
            // Another process finds no port meanwhile.
            let only = PortRange {
                first: port,
                last: port,
            };
            assert_eq!(only.find(Some), None);
            None::<u16>
        });
        assert_eq!(listens, None);
        assert!(!tried.is_empty());
        assert!(tried.iter().all(|port| (first..last).contains(port)));
        assert!(range.find(Some).is_some());
    }
}
