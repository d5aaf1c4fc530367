//! Opens the PMI connection that a process makes itself: `PMI_PORT` and `PMI_ID`.

use std::io::{self, BufRead, BufReader, ErrorKind, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::os::fd::OwnedFd;
use std::time::Duration;

use super::wire::{self, Dialect, PmiDecoder, PmiMessage};
use crate::error::Error;

/// A connection to the manager, which answers with this process's number and that of all processes.
#[derive(Debug)]
pub(crate) struct Connected {
    pub(crate) socket: OwnedFd,
    pub(crate) pe: u32,
    pub(crate) n_pes: u32,
}

/// Connects to the manager at `address` as process `id`; it may take `limit` for each answer.
pub(crate) fn connect(address: &str, id: u32, limit: Duration) -> Result<Connected, Error> {
    let mut stream = reach(address, limit).map_err(Error::ManagerLost)?;
    stream.set_read_timeout(Some(limit)).map_err(Error::ManagerLost)?;
    let request = wire::encode(Dialect::One, "initack", &[("pmiid", &id.to_string())]);
    stream.write_all(&request).map_err(Error::ManagerLost)?;
    // It sends no more than these lines before the first request, so the buffer is empty at the
    // end.
    let mut lines = BufReader::new(&stream);
    let (mut pe, mut n_pes) = (None, None);
    let reply = line(&mut lines)?;
    if reply.command() != "initack" || reply.value("rc").is_some_and(|rc| rc != "0") {
        return Err(Error::Refused { request: "initack".to_owned(), reply: reply.to_string() });
    }
    for _ in 0..3 {
        let reply = line(&mut lines)?;
        let number = |key| reply.value(key).and_then(|text| text.parse().ok());
        pe = pe.or(number("rank"));
        n_pes = n_pes.or(number("size"));
    }
    let (Some(pe), Some(n_pes)) = (pe, n_pes) else {
        return Err(Error::Unexpected("an opening without rank and size"));
    };
    // Later requests have limits of their own.
    stream.set_read_timeout(None).map_err(Error::ManagerLost)?;
    Ok(Connected { socket: stream.into(), pe, n_pes })
}

fn reach(address: &str, limit: Duration) -> io::Result<TcpStream> {
    let mut failed = ErrorKind::AddrNotAvailable.into();
    for address in address.to_socket_addrs()? {
        match TcpStream::connect_timeout(&address, limit) {
            Ok(stream) => return Ok(stream),
            Err(error) => failed = error,
        }
    }
    Err(failed)
}

fn line(lines: &mut impl BufRead) -> Result<PmiMessage, Error> {
    let mut text = Vec::new();
    let end = || Error::ManagerLost(io::Error::from(ErrorKind::UnexpectedEof));
    let read = lines.read_until(b'\n', &mut text);
    read.map_err(|error| match error.kind() {
        // What a timeout of the socket is called.
        ErrorKind::WouldBlock => Error::ManagerLost(ErrorKind::TimedOut.into()),
        _ => Error::ManagerLost(error),
    })?;
    let mut decoder = PmiDecoder::new(Dialect::One);
    decoder.push(&text);
    decoder.take().map_err(|_| Error::Unexpected("bytes that are not PMI"))?.ok_or_else(end)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read;
    use std::net::TcpListener;
    use std::thread;

    fn against(answer: &'static str) -> Result<Connected, Error> {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("an address").to_string();
        thread::scope(|scope| {
            scope.spawn(move || {
                let (mut stream, _) = listener.accept().expect("a client");
                let mut request = [0; 20];
                stream.read_exact(&mut request).expect("a request");
                assert_eq!(&request, b"cmd=initack pmiid=5\n");
                stream.write_all(answer.as_bytes()).expect("a client reads");
            });
            connect(&address, 5, Duration::from_secs(60))
        })
    }

    #[test]
    fn the_manager_says_who_we_are() {
        let answer = "cmd=initack rc=0\ncmd=set size=4\ncmd=set rank=3\ncmd=set debug=0\n";
        let connected = against(answer).expect("connected");
        assert_eq!((connected.pe, connected.n_pes), (3, 4));
    }

    #[test]
    fn a_port_where_nobody_answers_is_an_error() {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("an address").to_string();
        let connect = || connect(&address, 5, Duration::from_millis(50)).expect_err("no answer");
        let Error::ManagerLost(cause) = connect() else { panic!("it did not wait") };
        assert_eq!(cause.kind(), ErrorKind::TimedOut);
        drop(listener);
        let Error::ManagerLost(cause) = connect() else { panic!("nobody listens") };
        assert_eq!(cause.kind(), ErrorKind::ConnectionRefused);
    }

    #[test]
    fn a_manager_that_does_not_is_an_error() {
        for answer in ["", "cmd=initack rc=1\n", "cmd=initack rc=0\ncmd=set size=4\n"] {
            against(answer).expect_err("no place in a job");
        }
    }
}
