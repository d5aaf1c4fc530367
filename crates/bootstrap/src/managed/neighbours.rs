//! The PEs of one node find each other, where no launcher of ours has told them who they are.
//!
//! Each PE listens on a name in the kernel's abstract namespace that holds the job and its own number. Once all PEs of
//! the job do, a PE looks for those before it: the lowest that answers is the first of the node, and connects to all
//! that answer to it. The namespace belongs to the machine and the network namespace, so whoever answers can be handed a
//! descriptor and reached over loopback, which is what makes a node, whatever the manager calls one. Nothing has a
//! name in a file system, so nothing can be left behind.
//!
//! A listener of another user counts as none.
#![forbid(unsafe_code)]

use std::io::{self, ErrorKind, IoSlice, IoSliceMut, Read, Write};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::sync::Arc;

use rustix::event::{PollFd, PollFlags, poll};
use rustix::fs::{MemfdFlags, memfd_create};
use rustix::io::Errno;
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, SocketAddrUnix, SocketFlags, SocketType,
};
use serde::{Deserialize, Serialize};

use super::watch::Lifeline;
use crate::error::Error;
use crate::link::Link;
use crate::nodes::NodeMap;

/// What the first PE of a node and another one tell each other.
#[derive(Debug, Serialize, Deserialize)]
enum Word {
    /// To the first: this PE's part of a gather.
    Part(Vec<u8>),
    /// From the first: the parts of all.
    Whole(Vec<Vec<u8>>),
    /// From the first: the job has several nodes, so that the manager is needed to know them.
    Several(bool),
    /// From the first: who shares a node with whom.
    Nodes(NodeMap),
}

/// A PE that listens for its neighbours.
#[derive(Debug)]
pub(crate) struct Listener {
    socket: OwnedFd,
    job: String,
    pe: u32,
}

impl Listener {
    /// Listens as PE `pe` of the job with that name. Every PE of the job must do so before one calls [`Listener::meet`].
    pub(crate) fn new(job: &str, pe: u32) -> Result<Listener, Error> {
        let listen = || -> Result<OwnedFd, Errno> {
            let socket = socket()?;
            rustix::net::bind(&socket, &name(job, pe)?)?;
            rustix::net::listen(&socket, 16)?;
            Ok(socket)
        };
        let socket = listen().map_err(|cause| Error::Listening { pe, cause: cause.into() })?;
        Ok(Listener { socket, job: job.to_owned(), pe })
    }

    /// Meets the PEs of this node, of `n_pes` in the job.
    pub(crate) fn meet(self, n_pes: u32) -> Result<Neighbours, Error> {
        for before in 0..self.pe {
            if let Some(first) = self.call(before)? {
                return self.follow(before, first);
            }
        }
        self.lead(n_pes)
    }

    /// A connection to PE `pe`, if it is on this node.
    fn call(&self, pe: u32) -> Result<Option<UnixStream>, Error> {
        let failed = |cause: Errno| Error::Neighbour { pe, cause: cause.into() };
        let socket = socket().map_err(failed)?;
        let address = name(&self.job, pe).map_err(failed)?;
        loop {
            match rustix::net::connect(&socket, &address) {
                Ok(()) => return Ok(is_ours(&socket).then(|| socket.into())),
                Err(Errno::CONNREFUSED) => return Ok(None),
                Err(Errno::INTR) => {}
                Err(error) => return Err(failed(error)),
            }
        }
    }

    /// The first PE of the node.
    fn lead(self, n_pes: u32) -> Result<Neighbours, Error> {
        let mut others = Vec::new();
        let mut memory = None;
        for pe in self.pe + 1..n_pes {
            let Some(stream) = self.call(pe)? else { continue };
            let failed = |cause| Error::Neighbour { pe, cause };
            if memory.is_none() {
                memory = Some(new_memory().map_err(failed)?);
            }
            let fd = memory.as_ref().expect("just made");
            send_descriptor(&stream, fd).map_err(failed)?;
            others.push((pe, stream));
        }
        let lifelines = self.answer(&others)?;
        let others = others.into_iter().map(|(pe, stream)| (pe, Link::new(stream))).collect();
        Ok(Neighbours { seat: Seat::First { pe: self.pe, others }, memory, lifelines })
    }

    /// Waits until each of the others has looked for its first PE and found this one: not before may it cease to listen.
    fn answer(&self, others: &[(u32, UnixStream)]) -> Result<Vec<Lifeline>, Error> {
        let mut looked: Vec<Lifeline> = Vec::new();
        while looked.len() < others.len() {
            let mut fds = vec![PollFd::new(&self.socket, PollFlags::IN)];
            fds.extend(others.iter().map(|(_, stream)| PollFd::new(stream, PollFlags::empty())));
            match poll(&mut fds, None) {
                Ok(_) | Err(Errno::INTR) => {}
                Err(error) => {
                    return Err(Error::Neighbour { pe: others[0].0, cause: error.into() });
                }
            }
            if fds[0].revents().contains(PollFlags::IN) {
                looked.extend(self.accept().and_then(|mut stream| {
                    let mut pe = [0; 4];
                    stream.read_exact(&mut pe).ok()?;
                    Some(Lifeline { pe: u32::from_le_bytes(pe), stream: Arc::new(stream) })
                }));
            } else if let Some(gone) = fds[1..].iter().position(|fd| !fd.revents().is_empty()) {
                let cause = ErrorKind::UnexpectedEof.into();
                return Err(Error::Neighbour { pe: others[gone].0, cause });
            }
        }
        looked.sort_unstable_by_key(|line| line.pe);
        Ok(looked)
    }

    /// A connection of this user's, if one is there.
    fn accept(&self) -> Option<UnixStream> {
        let accepted = rustix::net::accept_with(&self.socket, SocketFlags::CLOEXEC);
        accepted.ok().filter(is_ours).map(UnixStream::from)
    }

    /// Any other PE: it waits for the first one's connection, or for its end, which closes `lifeline`.
    fn follow(self, first: u32, mut lifeline: UnixStream) -> Result<Neighbours, Error> {
        let failed = |cause| Error::Neighbour { pe: first, cause };
        lifeline.write_all(&self.pe.to_le_bytes()).map_err(failed)?;
        loop {
            let mut fds = [
                PollFd::new(&self.socket, PollFlags::IN),
                PollFd::new(&lifeline, PollFlags::empty()),
            ];
            match poll(&mut fds, None) {
                Ok(_) | Err(Errno::INTR) => {}
                Err(error) => return Err(failed(error.into())),
            }
            let [listener, line] = fds.map(|fd| fd.revents());
            if listener.contains(PollFlags::IN) {
                if let Some(stream) = self.accept() {
                    let memory = receive_descriptor(&stream).map_err(failed)?;
                    let seat = Seat::Other { first, link: Link::new(stream) };
                    let lifelines = vec![Lifeline { pe: first, stream: Arc::new(lifeline) }];
                    return Ok(Neighbours { seat, memory: Some(memory), lifelines });
                }
            } else if !line.is_empty() {
                return Err(failed(ErrorKind::UnexpectedEof.into()));
            }
        }
    }
}

/// This PE's place on its node, with the connections that go with it.
#[derive(Debug)]
enum Seat {
    First { pe: u32, others: Vec<(u32, Link)> },
    Other { first: u32, link: Link },
}

/// The PEs of a node that have met.
#[derive(Debug)]
pub(crate) struct Neighbours {
    seat: Seat,
    memory: Option<OwnedFd>,
    lifelines: Vec<Lifeline>,
}

impl Neighbours {
    /// The node's memfd, once; none where a PE is alone.
    pub(crate) fn take_memory(&mut self) -> Option<OwnedFd> {
        self.memory.take()
    }

    /// Connections to all other PEs of the node if this is the first of them, else to the first. Once; they are open as
    /// long as the processes live.
    pub(crate) fn take_lifelines(&mut self) -> Vec<Lifeline> {
        std::mem::take(&mut self.lifelines)
    }

    /// The PEs of the node in ascending order, if this is the first of them.
    pub(crate) fn led(&self) -> Option<Vec<u32>> {
        match &self.seat {
            Seat::First { pe, others } => {
                Some(std::iter::once(*pe).chain(others.iter().map(|(pe, _)| *pe)).collect())
            }
            Seat::Other { .. } => None,
        }
    }

    /// Gives the first PE a part of everybody, in the order of PEs; the others nothing.
    pub(crate) fn gather(&mut self, part: &[u8]) -> Result<Option<Vec<Vec<u8>>>, Error> {
        match &mut self.seat {
            Seat::First { others, .. } => {
                let mut parts = vec![part.to_vec()];
                for (pe, link) in others {
                    match receive(*pe, link)? {
                        Word::Part(part) => parts.push(part),
                        _ => return Err(Error::Unexpected("a neighbour's word")),
                    }
                }
                Ok(Some(parts))
            }
            Seat::Other { first, link } => {
                send(*first, link, &Word::Part(part.to_vec()))?;
                Ok(None)
            }
        }
    }

    /// Gives everybody the parts that the first PE has; `whole` is some there and none elsewhere.
    pub(crate) fn spread(&mut self, whole: Option<Vec<Vec<u8>>>) -> Result<Vec<Vec<u8>>, Error> {
        match self.tell(whole.map(Word::Whole))? {
            Word::Whole(parts) => Ok(parts),
            _ => Err(Error::Unexpected("a neighbour's word")),
        }
    }

    /// As [`Neighbours::spread`]: whether the job has several nodes.
    pub(crate) fn spread_several(&mut self, several: Option<bool>) -> Result<bool, Error> {
        match self.tell(several.map(Word::Several))? {
            Word::Several(several) => Ok(several),
            _ => Err(Error::Unexpected("a neighbour's word")),
        }
    }

    /// As [`Neighbours::spread`]: the node map.
    pub(crate) fn spread_nodes(&mut self, nodes: Option<NodeMap>) -> Result<NodeMap, Error> {
        match self.tell(nodes.map(Word::Nodes))? {
            Word::Nodes(nodes) => Ok(nodes),
            _ => Err(Error::Unexpected("a neighbour's word")),
        }
    }

    fn tell(&mut self, word: Option<Word>) -> Result<Word, Error> {
        match (&mut self.seat, word) {
            (Seat::First { others, .. }, Some(word)) => {
                for (pe, link) in others {
                    send(*pe, link, &word)?;
                }
                Ok(word)
            }
            (Seat::Other { first, link }, None) => receive(*first, link),
            _ => Err(Error::Unexpected("a neighbour's word")),
        }
    }
}

fn send(pe: u32, link: &Link, word: &Word) -> Result<(), Error> {
    link.send(word).map_err(|error| of_neighbour(pe, error))
}

fn receive(pe: u32, link: &mut Link) -> Result<Word, Error> {
    link.receive().map_err(|error| of_neighbour(pe, error))
}

/// The error of a connection, said of a PE instead of oshrun.
fn of_neighbour(pe: u32, error: Error) -> Error {
    match error {
        Error::Lost(cause) => Error::Neighbour { pe, cause },
        Error::Frame(cause) => Error::Neighbour { pe, cause: io::Error::other(cause) },
        other => other,
    }
}

fn socket() -> Result<OwnedFd, Errno> {
    rustix::net::socket_with(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::CLOEXEC, None)
}

/// The job's name may be of any length, a socket's not: a digest stands for it.
fn name(job: &str, pe: u32) -> Result<SocketAddrUnix, Errno> {
    SocketAddrUnix::new_abstract_name(format!("rushmem-{:016x}-{pe}", digest(job)).as_bytes())
}

/// FNV-1a. It only keeps jobs of one user apart; who may connect is the kernel's word on the user.
fn digest(text: &str) -> u64 {
    text.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3)
    })
}

/// Whether the process at the other end is one of this user's.
fn is_ours(socket: &impl AsFd) -> bool {
    rustix::net::sockopt::socket_peercred(socket)
        .is_ok_and(|other| other.uid == rustix::process::geteuid())
}

fn new_memory() -> io::Result<OwnedFd> {
    Ok(memfd_create("rushmem", MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING)?)
}

/// The byte that a descriptor travels with.
const CARRIER: [u8; 1] = [b'm'];

fn send_descriptor(stream: &UnixStream, fd: &OwnedFd) -> io::Result<()> {
    let fds = [fd.as_fd()];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut ancillary = SendAncillaryBuffer::new(&mut space);
    ancillary.push(SendAncillaryMessage::ScmRights(&fds));
    loop {
        let sent = rustix::net::sendmsg(
            stream,
            &[IoSlice::new(&CARRIER)],
            &mut ancillary,
            SendFlags::NOSIGNAL,
        );
        match sent {
            Err(Errno::INTR) => {}
            sent => return Ok(sent.map(drop)?),
        }
    }
}

fn receive_descriptor(stream: &UnixStream) -> io::Result<OwnedFd> {
    let mut byte = [0];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut ancillary = RecvAncillaryBuffer::new(&mut space);
    loop {
        let received = rustix::net::recvmsg(
            stream,
            &mut [IoSliceMut::new(&mut byte)],
            &mut ancillary,
            RecvFlags::CMSG_CLOEXEC,
        );
        match received {
            Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
            Ok(_) => break,
        }
    }
    let descriptor = ancillary.drain().find_map(|message| match message {
        RecvAncillaryMessage::ScmRights(mut fds) => fds.next(),
        _ => None,
    });
    descriptor.filter(|_| byte == CARRIER).ok_or_else(|| ErrorKind::UnexpectedEof.into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::FileExt;
    use std::sync::Barrier;
    use std::thread;

    /// Runs `body` as each of the PEs, which all share a node; `together` stands for the manager's fence.
    fn node(pes: &[u32], n_pes: u32, body: impl Fn(u32, Neighbours) + Sync) {
        static NEXT: std::sync::atomic::AtomicU32 = std::sync::atomic::AtomicU32::new(0);
        let number = NEXT.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        let job = format!("test-{}-{number}", std::process::id());
        let together = Barrier::new(pes.len());
        thread::scope(|scope| {
            for &pe in pes {
                let (body, together, job) = (&body, &together, &job);
                scope.spawn(move || {
                    let listener = Listener::new(job, pe).expect("a name");
                    together.wait();
                    body(pe, listener.meet(n_pes).expect("neighbours"));
                });
            }
        });
    }

    #[test]
    fn a_node_gathers_at_its_first_pe() {
        for pes in [&[0_u32][..], &[0, 1], &[5], &[2, 3, 7, 9], &[1, 2, 3, 4, 5, 6, 7, 8, 9, 10]] {
            node(pes, 12, |pe, mut neighbours| {
                assert_eq!(neighbours.led().is_some(), pe == pes[0]);
                for round in 0..3_u8 {
                    let part = |pe: u32| vec![round; pe as usize * 999];
                    let gathered = neighbours.gather(&part(pe)).expect("parts");
                    let whole = neighbours.spread(gathered).expect("the whole");
                    assert_eq!(whole, pes.iter().map(|&pe| part(pe)).collect::<Vec<_>>());
                }
                if let Some(led) = neighbours.led() {
                    assert_eq!(led, pes);
                }
            });
        }
    }

    #[test]
    fn the_nodes_memory_is_one_file() {
        node(&[4, 6, 7], 8, |pe, mut neighbours| {
            let file = std::fs::File::from(neighbours.take_memory().expect("memory"));
            assert!(neighbours.take_memory().is_none());
            if pe == 4 {
                file.write_all_at(b"here", 0).expect("written");
                neighbours.spread_several(Some(true)).expect("told");
            } else {
                assert!(neighbours.spread_several(None).expect("heard"));
                let mut text = [0; 4];
                file.read_exact_at(&mut text, 0).expect("read");
                assert_eq!(&text, b"here");
            }
        });
    }

    #[test]
    fn a_pe_that_is_alone_has_no_memory_to_share() {
        node(&[3], 9, |_, mut neighbours| assert!(neighbours.take_memory().is_none()));
    }

    #[test]
    fn a_first_pe_that_dies_is_an_error() {
        node(&[0, 1], 2, |pe, mut neighbours| {
            if pe == 1 {
                let error = neighbours.spread_nodes(None).expect_err("it is gone");
                assert!(error.to_string().contains("PE 0"), "{error}");
            }
        });
    }

    #[test]
    fn two_jobs_cannot_have_one_name() {
        let job = format!("twice-{}", std::process::id());
        let _first = Listener::new(&job, 1).expect("a name");
        let error = Listener::new(&job, 1).expect_err("the name is taken");
        assert!(error.to_string().contains("PE 1"), "{error}");
    }
}
