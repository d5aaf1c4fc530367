//! Measures a TCP connection between two PEs of a host: the floor of a library whose PEs share no
//! memory.
//!
//! The leader sends messages. The other PE answers each window: in a round trip by the same number
//! of bytes, after a stream by one byte. The first byte of a message can end the measurement.

use std::io::{ErrorKind, Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::time::Instant;

use crate::job::BenchJob;
use crate::wire::{BareWire, Direction, Exchange};

/// A connection between two PEs.
pub struct Socket {
    stream: TcpStream,
    buffer: Vec<u8>,
}

const MORE: u8 = 1;
const END: u8 = 2;
/// The number of polls after which a waiting PE yields the CPU.
const YIELDING: u32 = 100;

impl Socket {
    /// Connects the two PEs of a pair. If `spins`, their sockets do not block, and they poll. All
    /// PEs call it. Returns `None` on other PEs, and on one or both of the pair if it fails.
    pub fn connect(job: &BenchJob<'_>, (from, to): (u32, u32), spins: bool) -> Option<Self> {
        let mut listener = None;
        if job.me == from {
            listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).ok();
        }
        let port: Option<u16> = listener
            .as_ref()
            .and_then(|listener| listener.local_addr().ok())
            .map(|address| address.port());
        // All PEs leave here together if there is none, so none waits in the next `share`.
        let port = job.share(from, Some(&port))?;

        let mut stream = None;
        if job.me == to {
            stream = TcpStream::connect((Ipv4Addr::LOCALHOST, port)).ok();
        }
        // If it could not connect, accepting would wait forever.
        let is_connected: bool = job.share(to, Some(&stream.is_some()));
        if is_connected && let Some(listener) = listener {
            stream = listener.accept().ok().map(|(stream, _)| stream);
        }

        let stream = stream?;
        stream.set_nodelay(true).ok()?;
        stream.set_nonblocking(spins).ok()?;
        Some(Self {
            stream,
            buffer: Vec::new(),
        })
    }

    fn resize_buffer(&mut self, exchange: Exchange) {
        self.buffer.resize(exchange.nbytes.max(1) as usize, 0);
    }

    fn send(&mut self, nbytes: u64) -> std::io::Result<()> {
        let mut rest = &self.buffer[..nbytes as usize];
        let mut polls = 0;
        while !rest.is_empty() {
            match self.stream.write(rest) {
                Ok(sent) => rest = &rest[sent..],
                Err(error) if error.kind() == ErrorKind::WouldBlock => poll_again(&mut polls),
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    fn receive(&mut self, nbytes: u64) -> std::io::Result<()> {
        let mut rest = &mut self.buffer[..nbytes as usize];
        let mut polls = 0;
        while !rest.is_empty() {
            match self.stream.read(rest) {
                Ok(0) => return Err(ErrorKind::UnexpectedEof.into()),
                Ok(received) => rest = &mut rest[received..],
                Err(error) if error.kind() == ErrorKind::WouldBlock => poll_again(&mut polls),
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}

/// Pauses between two polls. Yields the CPU after many of them, since the other PE may be waiting
/// for this CPU.
fn poll_again(polls: &mut u32) {
    *polls += 1;
    match *polls % YIELDING {
        0 => std::thread::yield_now(),
        _ => std::hint::spin_loop(),
    }
}

impl BareWire for Socket {
    fn lead(&mut self, exchange: Exchange, samples: u64, group: u64) -> std::io::Result<Vec<u64>> {
        self.resize_buffer(exchange);
        let mut times = Vec::with_capacity(samples as usize);
        for _ in 0..samples {
            let start = Instant::now();
            for _ in 0..group {
                for _ in 0..exchange.window {
                    self.buffer[0] = MORE;
                    self.send(exchange.nbytes)?;
                }
                self.receive(answer(exchange))?;
            }
            times.push(start.elapsed().as_nanos() as u64);
        }
        Ok(times)
    }

    fn end(&mut self, exchange: Exchange) -> std::io::Result<()> {
        self.resize_buffer(exchange);
        self.buffer[0] = END;
        self.send(exchange.nbytes)
    }

    fn follow(&mut self, exchange: Exchange) -> std::io::Result<()> {
        self.resize_buffer(exchange);
        loop {
            for _ in 0..exchange.window {
                self.receive(exchange.nbytes)?;
                if self.buffer[0] == END {
                    return Ok(());
                }
            }
            self.send(answer(exchange))?;
        }
    }
}

/// Returns the size in bytes of the follower's answer, which completes a window.
fn answer(exchange: Exchange) -> u64 {
    if exchange.direction == Direction::RoundTrip {
        exchange.nbytes
    } else {
        1
    }
}
