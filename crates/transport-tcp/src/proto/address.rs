//! Where a PE listens, as it is given to its peers.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

/// The maximum number of addresses of a PE.
const MAX_ADDRESSES: usize = 16;
const VERSION: u8 = 1;

/// Host name and socket addresses of a PE.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Address {
    /// For messages.
    pub(crate) host: String,
    /// In the order of preference; at most 16.
    pub(crate) sockets: Vec<SocketAddr>,
}

impl Address {
    /// As bytes.
    pub(crate) fn encode(&self) -> Vec<u8> {
        let host = &self.host.as_bytes()[..self.host.len().min(255)];
        let mut bytes = vec![VERSION, host.len() as u8];
        bytes.extend_from_slice(host);
        for socket in self.sockets.iter().take(MAX_ADDRESSES) {
            match socket.ip() {
                IpAddr::V4(ip) => {
                    bytes.push(4);
                    bytes.extend_from_slice(&ip.octets());
                }
                IpAddr::V6(ip) => {
                    bytes.push(6);
                    bytes.extend_from_slice(&ip.octets());
                }
            }
            bytes.extend_from_slice(&socket.port().to_le_bytes());
        }
        bytes
    }

    /// From bytes, if they are an address.
    pub(crate) fn decode(bytes: &[u8]) -> Option<Address> {
        let (&[VERSION, host_bytes], rest) = bytes.split_first_chunk()? else {
            return None;
        };
        let (host, mut rest) = rest.split_at_checked(usize::from(host_bytes))?;
        let mut sockets = Vec::new();
        while let Some((&family, tail)) = rest.split_first() {
            if sockets.len() == MAX_ADDRESSES {
                return None;
            }
            let (ip, tail) = match family {
                4 => {
                    let (ip, tail) = tail.split_first_chunk::<4>()?;
                    (IpAddr::from(Ipv4Addr::from(*ip)), tail)
                }
                6 => {
                    let (ip, tail) = tail.split_first_chunk::<16>()?;
                    (IpAddr::from(Ipv6Addr::from(*ip)), tail)
                }
                _ => return None,
            };
            let (port, tail) = tail.split_first_chunk()?;
            sockets.push(SocketAddr::new(ip, u16::from_le_bytes(*port)));
            rest = tail;
        }
        Some(Address { host: String::from_utf8_lossy(host).into_owned(), sockets })
    }
}
