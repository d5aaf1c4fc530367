//! A plain socket between two PEs, as a measure of the network below a transport, and the time of
//! repeated calls.
//!
//! A PE accepts on the addresses of the interfaces that the transport `tcp` would use too, and
//! serves only those who know a random number, which they read from its symmetric memory.

use std::hash::{BuildHasher, RandomState};
use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::time::{Duration, Instant};

/// Bytes of the text with a random number and addresses.
pub const PLACE: usize = 512;
/// Bytes of a word that goes there and back.
const WORD: usize = 8;
/// Bytes that are sent for the bandwidth, in pieces of this length, and how many.
const PIECE: usize = 64 << 10;
const PIECES: u32 = 64;
/// The time for which connecting to an address, and each transfer, may take.
const LIMIT: Duration = Duration::from_millis(500);
/// The time for which the repetitions of an operation may take.
const ENOUGH: Duration = Duration::from_millis(200);

/// Accepts the peers of this PE.
pub struct Listener {
    socket: TcpListener,
    number: u64,
    addresses: Vec<SocketAddr>,
}

impl Listener {
    /// Listens, on loopback if all PEs are on one host.
    pub fn new(one_host: bool) -> Option<Listener> {
        let any = if one_host { Ipv4Addr::LOCALHOST } else { Ipv4Addr::UNSPECIFIED };
        let socket = TcpListener::bind((any, 0)).ok()?;
        let port = socket.local_addr().ok()?.port();
        let chosen = std::env::var("SHMEM_TCP_INTERFACE").ok();
        let is_chosen = |name: &str| {
            chosen.as_ref().is_none_or(|names| names.split(',').any(|one| one.trim() == name))
        };
        let interfaces = if_addrs::get_if_addrs().ok()?.into_iter();
        let addresses = interfaces
            .filter(|interface| interface.is_loopback() == one_host)
            .filter(|interface| one_host || is_chosen(&interface.name))
            .filter(|interface| interface.ip().is_ipv4() && !interface.is_link_local())
            .map(|interface| SocketAddr::new(interface.ip(), port))
            .collect();
        Some(Listener { socket, number: RandomState::new().hash_one(port), addresses })
    }

    /// Returns what peers need to connect.
    pub fn place(&self) -> [u8; PLACE] {
        let mut text = self.number.to_string();
        for address in &self.addresses {
            let more = format!(" {address}");
            if text.len() + more.len() <= PLACE {
                text += &more;
            }
        }
        let mut place = [0; PLACE];
        place[..text.len()].copy_from_slice(text.as_bytes());
        place
    }

    /// Serves one peer after the other, in a thread that ends with the process.
    pub fn serve(self) {
        std::thread::spawn(move || {
            for peer in self.socket.incoming().flatten() {
                // A peer that breaks off is not served.
                let _ = serve(peer, self.number);
            }
        });
    }
}

fn ready(stream: &TcpStream) -> io::Result<()> {
    stream.set_nodelay(true)?;
    stream.set_read_timeout(Some(LIMIT))?;
    stream.set_write_timeout(Some(LIMIT))
}

/// Echoes each word; after one of zero bytes, receives pieces and returns a word for all.
fn serve(mut peer: TcpStream, number: u64) -> io::Result<()> {
    ready(&peer)?;
    let mut word = [0; WORD];
    peer.read_exact(&mut word)?;
    if word != number.to_le_bytes() {
        return Ok(());
    }
    loop {
        peer.read_exact(&mut word)?;
        if word == [0; WORD] {
            break;
        }
        peer.write_all(&word)?;
    }
    let mut piece = vec![0; PIECE];
    for _ in 0..PIECES {
        peer.read_exact(&mut piece)?;
    }
    peer.write_all(&word)
}

fn text(place: &[u8; PLACE]) -> String {
    let end = place.iter().position(|byte| *byte == 0).unwrap_or(PLACE);
    String::from_utf8_lossy(&place[..end]).into_owned()
}

/// Returns the seconds of a round trip to a place, and bytes per second; `None` where none
/// connects.
pub fn measured(place: &[u8; PLACE]) -> Option<(f64, f64)> {
    let text = text(place);
    let mut words = text.split(' ');
    let number: u64 = words.next()?.parse().ok()?;
    let connect = |address: SocketAddr| TcpStream::connect_timeout(&address, LIMIT).ok();
    let mut peer = words.filter_map(|address| address.parse().ok()).find_map(connect)?;
    measure(&mut peer, number).ok()
}

fn measure(peer: &mut TcpStream, number: u64) -> io::Result<(f64, f64)> {
    ready(peer)?;
    peer.write_all(&number.to_le_bytes())?;
    let mut failure = Ok(());
    let word = [1; WORD];
    let round_trip = each(300, || {
        let mut back = [0; WORD];
        if let Err(error) = peer.write_all(&word).and_then(|()| peer.read_exact(&mut back)) {
            failure = Err(error);
        }
    });
    failure?;
    peer.write_all(&[0; WORD])?;
    let piece = vec![1; PIECE];
    let start = std::time::Instant::now();
    for _ in 0..PIECES {
        peer.write_all(&piece)?;
    }
    peer.read_exact(&mut [0; WORD])?;
    let seconds = start.elapsed().as_secs_f64();
    Ok((round_trip, PIECE as f64 * f64::from(PIECES) / seconds))
}

/// Returns the seconds of one of at most `most` calls.
pub fn each(most: u32, mut act: impl FnMut()) -> f64 {
    let start = Instant::now();
    let mut done = 0;
    while done < most && (done == 0 || start.elapsed() < ENOUGH) {
        act();
        done += 1;
    }
    start.elapsed().as_secs_f64() / f64::from(done)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_peer_that_knows_the_number_is_served_and_no_other() {
        let listener = Listener::new(true).expect("loopback");
        let (number, place) = (listener.number, listener.place());
        listener.serve();
        let (round_trip, bandwidth) = measured(&place).expect("it accepts");
        assert!(round_trip > 0.0 && bandwidth > 0.0);
        let wrong = String::from_utf8_lossy(&place).replace(&number.to_string(), "1");
        let mut other = [0; PLACE];
        let nbytes = wrong.len().min(PLACE);
        other[..nbytes].copy_from_slice(&wrong.as_bytes()[..nbytes]);
        assert_eq!(measured(&other), None);
    }
}
