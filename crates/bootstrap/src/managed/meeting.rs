//! How the PEs of one node find each other if they were not started by `oshrun`.
//!
//! Each PE listens on its node socket. Once all PEs of the job do so, a PE connects to those with
//! lower numbers, in order: the lowest one that listens on this node is the first PE of the node,
//! and gets a hello from every other. When all have come, it sends each of them a welcome with the
//! node's memory and a stream for later exchanges. The connection itself stays open as long as both
//! live, which is how they watch each other.
//!
//! Only the first PE accepts connections, and it does nothing else while it waits; the queues of
//! the others may be full. Every step has a time limit.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, ErrorKind};
use std::mem::forget;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::thread::sleep;
use std::time::{Duration, Instant};

use rustix::fs::{MemfdFlags, memfd_create};
use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags};

use super::admission::{Admission, hello};
use super::descriptors::{self, PAUSE};
use super::node_key::PROOF;
use super::node_peers::{NodePeers, Seat};
use super::node_socket::NodeSocket;
use super::time_left::{SLICE, TimeLeft};
use super::watch::Lifeline;
use crate::error::Error;
use crate::link::Link;

/// Meets the PEs of this node, of `n_pes` in the job; a step takes `limit` at most.
pub(super) fn meet(socket: NodeSocket, n_pes: u32, limit: Duration) -> Result<NodePeers, Error> {
    let meeting = Meeting { socket, limit };
    for before in 0..meeting.socket.pe() {
        if let Some(stream) = meeting.connect(before)? {
            return meeting.follow(before, stream);
        }
    }
    meeting.lead(n_pes)
}

#[derive(Debug)]
struct Meeting {
    socket: NodeSocket,
    limit: Duration,
}

impl Meeting {
    /// The first PE of the node: it waits for all others that listen on it.
    fn lead(self, n_pes: u32) -> Result<NodePeers, Error> {
        let me = self.socket.pe();
        let mut joined = BTreeMap::new();
        let mut others = Vec::new();
        match self.serve(n_pes, &mut joined, &mut others) {
            Ok(memory) => {
                let lifeline = |(pe, stream)| Lifeline { pe, stream: Arc::new(stream) };
                let lifelines = joined.into_iter().map(lifeline).collect();
                Ok(NodePeers::new(Seat::First { pe: me, others }, memory, lifelines))
            }
            Err(error) => {
                // To the others an end of these is the end of this PE, which each of them would
                // report, while this one still says what is wrong and has the job ended. So they
                // stay open as long as this process runs.
                forget((self, joined, others));
                Err(error)
            }
        }
    }

    /// Waits for all others of the node, who connect (`joined`), and welcomes them (`others`). The
    /// node's memory, if there are any.
    fn serve(
        &self,
        n_pes: u32,
        joined: &mut BTreeMap<u32, UnixStream>,
        others: &mut Vec<(u32, Link)>,
    ) -> Result<Option<OwnedFd>, Error> {
        let mut awaited = BTreeSet::new();
        for pe in self.socket.pe() + 1..n_pes {
            if self.socket.is_there(pe).map_err(|cause| Error::NodePeer { pe, cause })? {
                awaited.insert(pe);
            }
        }
        if awaited.is_empty() {
            return Ok(None);
        }
        // A connection, a stream and a file of static data for each.
        descriptors::make_room(3 * awaited.len());
        self.admit(awaited, joined)?;
        let memory = self.new_memory()?;
        for (&pe, stream) in joined.iter() {
            others.push((pe, self.welcome(pe, stream, &memory)?));
        }
        Ok(Some(memory))
    }

    /// The connections of all `awaited` PEs.
    fn admit(
        &self,
        mut awaited: BTreeSet<u32>,
        joined: &mut BTreeMap<u32, UnixStream>,
    ) -> Result<(), Error> {
        let me = self.socket.pe();
        let mut limit = TimeLeft::new(self.limit);
        let mut admission = Admission::new(&self.socket);
        let mut looked = Instant::now();
        while let Some(&pe) = awaited.first() {
            let Some(proven) = limit.spend(|slice| admission.admit(slice)) else {
                return Err(self.silent(self.limit, pe, "to connect"));
            };
            let proven = proven.map_err(|cause| Error::Listening { pe: me, cause })?;
            for (pe, stream) in proven {
                if awaited.remove(&pe) {
                    joined.insert(pe, stream);
                }
            }
            if looked.elapsed() > SLICE {
                self.check_present(&awaited)?;
                looked = Instant::now();
            }
        }
        Ok(())
    }

    /// A PE that has ended will not come.
    fn check_present(&self, awaited: &BTreeSet<u32>) -> Result<(), Error> {
        for &pe in awaited {
            // Where this cannot be reported, for lack of a descriptor that an unproven connection
            // holds, it is reported later.
            if let Ok(false) = self.socket.is_there(pe) {
                return Err(Error::NodePeer { pe, cause: ErrorKind::ConnectionRefused.into() });
            }
        }
        Ok(())
    }

    /// Sends PE `pe` what it needs. The stream for the exchanges with it.
    fn welcome(&self, pe: u32, stream: &UnixStream, memory: &OwnedFd) -> Result<Link, Error> {
        let failed = |cause: io::Error| Error::NodePeer { pe, cause };
        let (ours, theirs) = UnixStream::pair().map_err(failed)?;
        let proof = self.socket.key().proof(self.socket.pe(), pe);
        let fds = [memory.as_fd(), theirs.as_fd()];
        let mut limit = TimeLeft::new(self.limit);
        loop {
            match limit.spend(|_| descriptors::send(stream, &proof, &fds, SendFlags::DONTWAIT)) {
                None => {
                    return Err(self.silent(
                        self.limit,
                        pe,
                        "and others to take the descriptors sent to them",
                    ));
                }
                Some(Ok(())) => return Ok(Link::new(ours)),
                // The kernel limits how many descriptors of a user are in flight at once.
                Some(Err(Errno::INTR | Errno::TOOMANYREFS)) => {
                    limit.spend(|_| sleep(PAUSE));
                }
                Some(Err(error)) => return Err(failed(error.into())),
            }
        }
    }

    /// Any other PE: it waits for the welcome of the first one, which has accepted `stream` or
    /// will.
    fn follow(self, first: u32, mut stream: UnixStream) -> Result<NodePeers, Error> {
        let failed = |cause| Error::NodePeer { pe: first, cause };
        // The first PE waits for others too, and says whom it has missed.
        let whole = 2 * self.limit;
        let silent = || self.silent(whole, first, "to answer");
        let mut limit = TimeLeft::new(whole);
        loop {
            match self.await_welcome(first, &stream, &mut limit) {
                Ok((memory, link)) => {
                    let seat = Seat::Other { first, link: Link::new(link.into()) };
                    let lifelines = vec![Lifeline { pe: first, stream: Arc::new(stream) }];
                    return Ok(NodePeers::new(seat, Some(memory), lifelines));
                }
                // It has ended, or closed this connection in favor of others.
                Err(error) if is_end(&error) => {
                    limit.spend(|_| sleep(PAUSE)).ok_or_else(silent)?;
                    stream = self.connect(first)?.ok_or_else(|| failed(error))?;
                }
                Err(error) if error.kind() == ErrorKind::TimedOut => {
                    return Err(silent());
                }
                Err(error) => return Err(failed(error)),
            }
        }
    }

    /// Says hello; the node's memory and the stream that the answer brings.
    fn await_welcome(
        &self,
        first: u32,
        stream: &UnixStream,
        limit: &mut TimeLeft,
    ) -> io::Result<(OwnedFd, OwnedFd)> {
        let hello = hello(self.socket.key(), self.socket.pe(), first);
        // The queue of a new connection has room for it.
        rustix::net::send(stream, &hello, SendFlags::NOSIGNAL | SendFlags::DONTWAIT)?;
        limit.readable(stream)?;
        let (proof, fds) = receive_with(stream)?;
        if !self.socket.key().is_proof(first, self.socket.pe(), &proof) {
            return Err(io::Error::other("it does not know the secret of this job"));
        }
        let [memory, link] = fds.ok_or_else(|| {
            // The kernel drops those for which there is no room.
            io::Error::from(Errno::MFILE)
        })?;
        Ok((memory, link))
    }

    /// A connection to PE `pe`, if it is on this node.
    fn connect(&self, pe: u32) -> Result<Option<UnixStream>, Error> {
        let mut limit = TimeLeft::new(self.limit);
        self.socket.connect(pe, &mut limit).map_err(|cause| match cause.kind() {
            ErrorKind::TimedOut => self.silent(self.limit, pe, "to accept its connection"),
            _ => Error::NodePeer { pe, cause },
        })
    }

    /// This PE has waited for all of `limit`.
    fn silent(&self, limit: Duration, other: u32, what: &'static str) -> Error {
        Error::SilentNodePeer { pe: self.socket.pe(), limit, other, what }
    }

    fn new_memory(&self) -> Result<OwnedFd, Error> {
        memfd_create("rushmem", MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING)
            .map_err(|cause| Error::Memory { pe: self.socket.pe(), cause: cause.into() })
    }
}

/// Whether the other end has closed the connection.
fn is_end(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        ErrorKind::UnexpectedEof | ErrorKind::ConnectionReset | ErrorKind::BrokenPipe
    )
}

/// The proof that has arrived, with its descriptors if this process could open them.
fn receive_with(stream: &UnixStream) -> io::Result<([u8; PROOF], Option<[OwnedFd; 2]>)> {
    let mut proof = [0; PROOF];
    let fds = descriptors::receive(stream, &mut proof, RecvFlags::DONTWAIT)?;
    Ok((proof, fds.try_into().ok()))
}

#[cfg(test)]
mod tests;
