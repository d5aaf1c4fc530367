//! Measures a TCP connection between two PEs of a host: the floor of a library whose PEs share no
//! memory.
//!
//! The leader sends messages. The other PE answers each window: in a round trip by the same number
//! of bytes, after a stream by one byte. The first byte of a message can end the measurement.

use std::io::{ErrorKind, Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::time::Instant;

use crate::job::BenchJob;
use crate::record::Pair;
use crate::wire::{BareWire, Direction, Exchange};

/// A connection between two PEs.
pub struct Socket {
    stream: TcpStream,
    buffer: Vec<u8>,
}

const MORE: u8 = 1;
const END: u8 = 2;
/// The number of polls after which a waiting PE yields the CPU. A larger number delays a peer that
/// needs this CPU; with a smaller one, the system calls take time from the polls.
const YIELDING: u32 = 100;

impl Socket {
    /// Connects the two PEs of a pair. If `spins`, their sockets do not block, and they poll. All
    /// PEs call it. Returns `None` on other PEs, and on one or both of the pair if it fails.
    pub fn connect(job: &BenchJob<'_>, pair: Pair, spins: bool) -> Option<Self> {
        let mut listener = None;
        let mut port = None;
        if job.me == pair.from
            && let Ok(bound) = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))
            && let Ok(address) = bound.local_addr()
        {
            listener = Some(bound);
            port = Some(address.port());
        }
        // All PEs leave here together if there is none, so none waits in the next `share`.
        let port: u16 = job.share(pair.from, Some(&port))?;

        let mut stream = None;
        if job.me == pair.to {
            stream = TcpStream::connect((Ipv4Addr::LOCALHOST, port)).ok();
        }
        // If it could not connect, accepting would wait forever.
        let is_connected: bool = job.share(pair.to, Some(&stream.is_some()));
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
    if polls.is_multiple_of(YIELDING) {
        std::thread::yield_now();
    } else {
        std::hint::spin_loop();
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
