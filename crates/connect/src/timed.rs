//! Reads of a handshake that end in time.

use std::io::{self, ErrorKind, Read};
use std::net::TcpStream;
use std::time::{Duration, Instant};

/// A stream whose reads all end by one time. The time limit of a socket is for each read, so that a
/// peer that sends a byte now and then could keep a handshake going for ever.
pub struct TimedReads<'a> {
    stream: &'a TcpStream,
    until: Instant,
}

impl<'a> TimedReads<'a> {
    /// Returns a reader of a stream for the time `limit` from now on.
    pub fn new(stream: &'a TcpStream, limit: Duration) -> TimedReads<'a> {
        TimedReads {
            stream,
            until: Instant::now() + limit,
        }
    }
}

impl Read for TimedReads<'_> {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        let left = self.until.saturating_duration_since(Instant::now());
        // `set_read_timeout` refuses a limit of zero.
        if left.is_zero() {
            return Err(ErrorKind::TimedOut.into());
        }

        self.stream.set_read_timeout(Some(left))?;
        self.stream.read(bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;
    use std::net::TcpListener;
    use std::thread;

    #[test]
    fn a_peer_that_sends_slowly_does_not_keep_a_reader() {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let stream = TcpStream::connect(listener.local_addr().unwrap()).expect("a connection");
        let (mut peer, _) = listener.accept().expect("the connection");
        let sender = thread::spawn(move || {
            while peer.write_all(&[0]).is_ok() {
                thread::sleep(Duration::from_millis(10));
            }
        });

        let mut never_full = vec![0; 1 << 20];
        let error = TimedReads::new(&stream, Duration::from_millis(200))
            .read_exact(&mut never_full)
            .unwrap_err();
        assert!(
            matches!(error.kind(), ErrorKind::TimedOut | ErrorKind::WouldBlock),
            "{error}"
        );

        drop(stream);
        sender.join().expect("the sender ends with the connection");
    }
}
