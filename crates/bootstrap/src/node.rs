//! Lets the PEs of one node find each other if they were not started by `oshrun`.
//!
//! Each PE opens a datagram socket with a name that only the PEs of the job can compute. Once all
//! PEs have done so, the lowest PE with a socket on this node is the first PE of the node. Every
//! other PE sends it a hello with one end of a stream for exchanges. When all hellos have arrived,
//! the first PE answers on the streams with the node's memory, the files of all PEs, and one end of
//! a second stream, the liveness connection, by which the two PEs watch each other.
//!
//! The names are in the abstract namespace of Unix sockets, which belongs to the network namespace:
//! no file remains, and descriptors can be passed to every process that can send to the name. But
//! every process can list the names and send to them. Therefore a datagram without the proof that
//! its sender belongs to the job is dropped before its descriptors are opened, a stream must have
//! been created by a process of this user, and every step has a time limit.

pub(crate) mod key;
pub(crate) mod map;

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, ErrorKind};
use std::mem::ManuallyDrop;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustix::fs::{MemfdFlags, memfd_create};
use rustix::io::Errno;
use rustix::net::sockopt::{Timeout, set_socket_timeout};
use rustix::net::{AddressFamily, RecvFlags, SocketFlags, SocketType};
use rustix::process::Pid;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::connection::Connection;
use crate::error::Error;
use crate::records::Records;
use crate::time_limit::{self, SLICE, TimeLeft};
use crate::unix_socket::{self, PeerProcess};
use crate::watch::LivenessConnection;
use key::{NodeKey, PROOF};

/// Number of bytes of a [`Handshake`].
const HANDSHAKE: usize = 4 + 4 + PROOF;

/// A hello to the first PE of a node, or the answer of that PE.
#[derive(Debug)]
struct Handshake {
    /// The PE that sends it.
    pe: u32,
    /// In a hello, the number of files in the same message, 0 or 1. In an answer, the length of the
    /// list of files that follows, which has one entry, possibly empty, for each PE of the node.
    n_files: u32,
}

impl Handshake {
    /// Returns the bytes for PE `to`, with the proof that they come from a PE of this job.
    fn encode(&self, key: &NodeKey, to: u32) -> Vec<u8> {
        let numbers = [self.pe, self.n_files].map(u32::to_le_bytes);
        [numbers.as_flattened(), &key.proof(self.pe, to)].concat()
    }

    /// Decodes a handshake to PE `to`; `None` if its proof is wrong.
    fn decode(bytes: &[u8; HANDSHAKE], key: &NodeKey, to: u32) -> Option<Handshake> {
        let (pe, rest) = bytes.split_first_chunk().expect("a handshake is longer");
        let (n_files, proof) = rest.split_first_chunk().expect("a handshake is longer");
        let pe = u32::from_le_bytes(*pe);
        let n_files = u32::from_le_bytes(*n_files);
        if key.is_proof(pe, to, proof) {
            Some(Handshake { pe, n_files })
        } else {
            None
        }
    }
}

/// What this PE shares with the others of its node: connections, the node's memory, and files.
#[derive(Debug)]
pub(crate) struct NodeConnections {
    pub(crate) peers: NodeExchange,
    /// The liveness connections: to all other PEs of the node if this PE is the first one,
    /// otherwise to the first one.
    pub(crate) liveness: Vec<LivenessConnection>,
    /// The node's memory; `None` if the PE is alone on its node.
    pub(crate) memory: Option<OwnedFd>,
    /// The files of the node's PEs, in the order of the PEs; `None` for a PE that has sent none.
    pub(crate) files: Vec<Option<OwnedFd>>,
}

/// A PE that has sent a hello.
#[derive(Debug)]
struct NodeMember {
    pid: Option<Pid>,
    stream: UnixStream,
    file: Option<OwnedFd>,
}

/// The socket of a PE, by which the other PEs of its node find it, and the one by which this PE
/// finds the others.
#[derive(Debug)]
pub(crate) struct NodeSockets {
    socket: OwnedFd,
    /// The socket that checks whether other PEs have theirs, and sends the hello.
    probe: OwnedFd,
    key: NodeKey,
    pe: u32,
    /// Maximum duration of a step.
    limit: Duration,
}

impl NodeSockets {
    /// Opens the socket of PE `pe`. Every PE of the job must have done so before one calls
    /// [`NodeSockets::connect_node`].
    pub(crate) fn open(key: NodeKey, pe: u32, limit: Duration) -> Result<NodeSockets, Error> {
        NodeSockets::try_open(key, pe, limit).map_err(|cause| Error::Listening {
            pe,
            cause: cause.into(),
        })
    }

    fn try_open(key: NodeKey, pe: u32, limit: Duration) -> Result<NodeSockets, Errno> {
        let named = socket()?;
        rustix::net::bind(&named, &key.name(pe)?)?;

        // Without a time limit, a send to a PE that does not read would block for ever.
        let probe = socket()?;
        set_socket_timeout(&probe, Timeout::Send, Some(SLICE))?;
        Ok(NodeSockets {
            socket: named,
            probe,
            key,
            pe,
            limit,
        })
    }

    /// Connects this PE to those of its node, and sends them `file`. `n_pes` is the number of PEs
    /// of the job.
    pub(crate) fn connect_node(
        self,
        n_pes: u32,
        file: Option<BorrowedFd<'_>>,
    ) -> Result<NodeConnections, Error> {
        for before in 0..self.pe {
            if self.has_socket(before)? {
                return self.join_first(before, file);
            }
        }
        self.accept_others(n_pes, file)
    }

    /// Accepts the connections of all other PEs of the node, as its first PE.
    fn accept_others(
        self,
        n_pes: u32,
        file: Option<BorrowedFd<'_>>,
    ) -> Result<NodeConnections, Error> {
        // If this function fails, the connections stay open until the process ends. If it closed
        // them, each of the other PEs would report that this one has ended, while this one still
        // reports the error and ends the job.
        let sockets = ManuallyDrop::new(self);
        let mut joined = ManuallyDrop::new(BTreeMap::new());
        let mut liveness = ManuallyDrop::new(Vec::new());

        let me = sockets.pe;
        sockets.accept_hellos(sockets.awaited(n_pes)?, &mut joined)?;

        let failed = |cause| Error::Memory { pe: me, cause };
        let own = match file {
            Some(file) => Some(file.try_clone_to_owned().map_err(failed)?),
            None => None,
        };
        // This PE is the lowest of the node, so its file is the first in the order of the PEs.
        let mut files = vec![own];
        for other in joined.values_mut() {
            files.push(other.file.take());
        }

        let memory = if joined.is_empty() {
            None
        } else {
            Some(new_memory().map_err(failed)?)
        };
        if let Some(memory) = &memory {
            let files: Vec<Option<BorrowedFd<'_>>> = files
                .iter()
                .map(|file| file.as_ref().map(AsFd::as_fd))
                .collect();
            for (&pe, other) in joined.iter() {
                let stream = sockets.answer(pe, &other.stream, memory.as_fd(), &files)?;
                liveness.push(LivenessConnection {
                    pe,
                    pid: other.pid,
                    stream: Arc::new(stream),
                });
            }
        }

        // Nothing fails from here on.
        drop(ManuallyDrop::into_inner(sockets));
        let others = ManuallyDrop::into_inner(joined)
            .into_iter()
            .map(|(pe, other)| (pe, Connection::new(other.stream)))
            .collect();
        Ok(NodeConnections {
            peers: NodeExchange::First { pe: me, others },
            liveness: ManuallyDrop::into_inner(liveness),
            memory,
            files,
        })
    }

    /// Returns the higher PEs that are on this node, from each of which the first PE awaits a
    /// hello.
    fn awaited(&self, n_pes: u32) -> Result<BTreeSet<u32>, Error> {
        let mut awaited = BTreeSet::new();
        for pe in self.pe + 1..n_pes {
            if self.has_socket(pe)? {
                awaited.insert(pe);
            }
        }
        Ok(awaited)
    }

    /// Waits for the hellos of all `awaited` PEs.
    fn accept_hellos(
        &self,
        mut awaited: BTreeSet<u32>,
        joined: &mut BTreeMap<u32, NodeMember>,
    ) -> Result<(), Error> {
        // Each PE needs a stream, a liveness connection and a file.
        unix_socket::make_room(3 * awaited.len());

        let mut limit = TimeLeft::new(self.limit);
        let mut last_check = Instant::now();
        while let Some(&pe) = awaited.first() {
            let hello = limit
                .spend(|slice| self.next_hello(slice))
                .ok_or_else(|| self.silence_error(self.limit, pe, "to connect"))?
                .map_err(|cause| Error::Listening { pe: self.pe, cause })?;
            if let Some((pe, other)) = hello
                && awaited.remove(&pe)
            {
                joined.insert(pe, other);
            }

            // Once per slice, also while datagrams arrive: other users may send them all the time.
            if last_check.elapsed() > SLICE {
                for &pe in &awaited {
                    // A PE without a socket has ended, and sends no hello.
                    if !self.has_socket(pe)? {
                        return Err(Error::NodePeer {
                            pe,
                            cause: ErrorKind::ConnectionRefused.into(),
                        });
                    }
                }
                last_check = Instant::now();
            }
        }
        Ok(())
    }

    /// Waits for at most `wait` for a datagram. If it is a hello, returns the PE that has sent it.
    fn next_hello(&self, wait: Duration) -> io::Result<Option<(u32, NodeMember)>> {
        if !time_limit::is_readable(&self.socket, wait)? {
            return Ok(None);
        }

        let mut bytes = [0; HANDSHAKE];
        // Closing a descriptor of an unknown sender may block, so none is opened before the proof
        // has been checked.
        rustix::net::recv(&self.socket, &mut bytes, RecvFlags::PEEK)?;
        let Some(hello) = Handshake::decode(&bytes, &self.key, self.pe) else {
            rustix::net::recv(&self.socket, &mut bytes, RecvFlags::empty())?;
            return Ok(None);
        };

        // The kernel drops descriptors that exceed the limit of this process.
        let mut fds = unix_socket::receive(&self.socket, &mut bytes)?.into_iter();
        let stream = UnixStream::from(fds.next().ok_or(Errno::MFILE)?);
        let file = if hello.n_files > 0 {
            Some(fds.next().ok_or(Errno::MFILE)?)
        } else {
            None
        };

        let Some(creator) = creator_of_this_user(&stream) else {
            return Ok(None);
        };
        let joined = NodeMember {
            pid: creator.pid,
            stream,
            file,
        };
        Ok(Some((hello.pe, joined)))
    }

    /// Answers the hello of PE `pe` with the node's memory and the files of all PEs. Returns the
    /// liveness connection to it.
    fn answer(
        &self,
        pe: u32,
        stream: &UnixStream,
        memory: BorrowedFd<'_>,
        files: &[Option<BorrowedFd<'_>>],
    ) -> Result<UnixStream, Error> {
        let answer = Handshake {
            pe: self.pe,
            n_files: files.len() as u32,
        }
        .encode(&self.key, pe);

        self.send_answer(stream, &answer, memory, files)
            .map_err(|cause| match cause.kind() {
                ErrorKind::TimedOut => self.silence_error(
                    self.limit,
                    pe,
                    "and others to take the descriptors sent to them",
                ),
                _ => Error::NodePeer { pe, cause },
            })
    }

    /// Sends the answer, with the node's memory and one end of a new pair, and then the files.
    /// Returns the other end of the pair.
    fn send_answer(
        &self,
        stream: &UnixStream,
        answer: &[u8],
        memory: BorrowedFd<'_>,
        files: &[Option<BorrowedFd<'_>>],
    ) -> io::Result<UnixStream> {
        let (ours, theirs) = UnixStream::pair()?;
        let mut limit = TimeLeft::new(self.limit);
        unix_socket::send(stream, answer, &[memory, theirs.as_fd()], &mut limit)?;
        unix_socket::send_files(stream, files, &mut limit)?;
        Ok(ours)
    }

    /// Sends a hello to the first PE of the node, and waits for its answer.
    fn join_first(
        self,
        first: u32,
        file: Option<BorrowedFd<'_>>,
    ) -> Result<NodeConnections, Error> {
        // The first PE also waits for the others. This PE waits twice as long, so that the first PE
        // is the one that reports which PE is missing.
        let whole = 2 * self.limit;
        self.greet(first, file, TimeLeft::new(whole))
            .map_err(|cause| match cause.kind() {
                ErrorKind::TimedOut => self.silence_error(whole, first, "to answer"),
                _ => Error::NodePeer { pe: first, cause },
            })
    }

    /// Sends the hello, and receives the answer with the node's memory and files.
    fn greet(
        &self,
        first: u32,
        file: Option<BorrowedFd<'_>>,
        mut limit: TimeLeft,
    ) -> io::Result<NodeConnections> {
        let (stream, theirs) = UnixStream::pair()?;
        let fds: Vec<_> = std::iter::once(theirs.as_fd()).chain(file).collect();
        let hello = Handshake {
            pe: self.pe,
            n_files: u32::from(file.is_some()),
        };
        // `has_socket` has connected the probe to the first PE.
        unix_socket::send(
            &self.probe,
            &hello.encode(&self.key, first),
            &fds,
            &mut limit,
        )?;
        // If this copy stayed open, the stream would not end when the first PE ends.
        drop(theirs);

        limit.readable(&stream)?;
        let mut bytes = [0; HANDSHAKE];
        let fds = unix_socket::receive(&stream, &mut bytes)?;
        let answer = Handshake::decode(&bytes, &self.key, self.pe)
            .filter(|answer| answer.pe == first)
            .ok_or_else(|| io::Error::other("it does not know the secret of this job"))?;

        // The kernel drops descriptors that exceed the limit of this process.
        let [memory, liveness] = fds.try_into().map_err(|_| Errno::MFILE)?;
        let liveness = UnixStream::from(liveness);
        let creator = creator_of_this_user(&liveness)
            .ok_or_else(|| io::Error::other("it is a process of another user"))?;

        let n_files = answer.n_files as usize;
        unix_socket::make_room(n_files);
        let files = unix_socket::receive_files(&stream, n_files)?;

        Ok(NodeConnections {
            peers: NodeExchange::Other {
                first,
                connection: Connection::new(stream),
            },
            liveness: vec![LivenessConnection {
                pe: first,
                pid: creator.pid,
                stream: Arc::new(liveness),
            }],
            memory: Some(memory),
            files,
        })
    }

    /// Returns true if PE `pe` has its socket on this node. The probe is connected to that socket
    /// afterwards. Does not block.
    fn has_socket(&self, pe: u32) -> Result<bool, Error> {
        let name = self.key.name(pe);
        match name.and_then(|name| rustix::net::connect(&self.probe, &name)) {
            Ok(()) => Ok(true),
            Err(Errno::CONNREFUSED) => Ok(false),
            Err(error) => Err(Error::NodePeer {
                pe,
                cause: error.into(),
            }),
        }
    }

    /// Returns the error that `other` has not done `what` within `limit`.
    fn silence_error(&self, limit: Duration, other: u32, what: &'static str) -> Error {
        Error::SilentNodePeer {
            pe: self.pe,
            limit,
            other,
            what,
        }
    }
}

/// The connections for exchanges between this PE and others of its node.
#[derive(Debug)]
pub(crate) enum NodeExchange {
    /// The connections of the node's first PE to all others, in the order of the PEs.
    First {
        pe: u32,
        others: Vec<(u32, Connection)>,
    },
    /// The connection of another PE to the first.
    Other { first: u32, connection: Connection },
}

impl NodeExchange {
    /// Returns the PEs of the node in ascending order, if this is the first of them.
    pub(crate) fn node_pes(&self) -> Option<Vec<u32>> {
        match self {
            NodeExchange::First { pe, others } => {
                let mut pes = vec![*pe];
                pes.extend(others.iter().map(|(pe, _)| *pe));
                Some(pes)
            }
            NodeExchange::Other { .. } => None,
        }
    }

    /// Gathers the part of each PE of the node at its first PE, in the order of the PEs. Returns
    /// `None` on the others.
    pub(crate) fn gather(&mut self, part: &[u8]) -> Result<Option<Records>, Error> {
        match self {
            NodeExchange::First { others, .. } => {
                let mut parts = vec![part.to_vec()];
                for (pe, connection) in others {
                    let received = connection.receive();
                    parts.push(received.map_err(|error| node_peer_error(*pe, error))?);
                }
                Ok(Some(parts.into_iter().collect()))
            }
            NodeExchange::Other { first, connection } => {
                connection
                    .send(&part)
                    .map_err(|error| node_peer_error(*first, error))?;
                Ok(None)
            }
        }
    }

    /// Sends the value of the node's first PE to all PEs of the node. `value` is `Some` on the
    /// first PE and `None` on the others.
    pub(crate) fn broadcast<T: Serialize + DeserializeOwned>(
        &mut self,
        value: Option<T>,
    ) -> Result<T, Error> {
        match (self, value) {
            (NodeExchange::First { others, .. }, Some(value)) => {
                for (pe, connection) in others {
                    connection
                        .send(&value)
                        .map_err(|error| node_peer_error(*pe, error))?;
                }
                Ok(value)
            }
            (NodeExchange::Other { first, connection }, None) => connection
                .receive()
                .map_err(|error| node_peer_error(*first, error)),
            // Each caller has a value on the first PE, and on no other one.
            _ => Err(Error::Unexpected("a message of another PE of the node")),
        }
    }
}

/// Converts an error of a [`Connection`], which names `oshrun`, to one that names the PE at the
/// other end.
fn node_peer_error(pe: u32, error: Error) -> Error {
    match error {
        Error::Lost(cause) => Error::NodePeer { pe, cause },
        Error::Frame(cause) => Error::NodePeer {
            pe,
            cause: io::Error::other(cause),
        },
        other => other,
    }
}

fn socket() -> Result<OwnedFd, Errno> {
    let flags = SocketFlags::CLOEXEC;
    rustix::net::socket_with(AddressFamily::UNIX, SocketType::DGRAM, flags, None)
}

/// Returns the process that has created the pair to which this stream belongs, if it is one of this
/// user.
fn creator_of_this_user(stream: &UnixStream) -> Option<PeerProcess> {
    let creator = PeerProcess::of(stream).ok()?;
    if creator.user == rustix::process::geteuid() {
        Some(creator)
    } else {
        None
    }
}

fn new_memory() -> io::Result<OwnedFd> {
    Ok(memfd_create(
        "rushmem",
        MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING,
    )?)
}

#[cfg(test)]
mod tests;
