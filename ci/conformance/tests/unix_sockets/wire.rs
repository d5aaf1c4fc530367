//! The wire of one origin: how it writes, reads and sends, and takes what comes back.
#![allow(unsafe_code)]

use super::frames::{BATCH, DONE, FrameStream, LONGEST, READ, REPLIED, REQUEST, WRITE};
use super::transport::Network;
use rushmem_transport::kit::heap_blocks::{Covered, ENTRY, HeapBlock};
use rushmem_transport::kit::message::{REPLY, Reply, Request};
use rushmem_transport::kit::violation::{RefusedMessage, Violation};
use rushmem_transport::mem::{VolatileLoads, copy_bytes};
use rushmem_transport::origin::{
    Payload, PolledUntil, PostOutcome, StreamOrder, TakeReply, Wire, WireCaps, WireNetwork,
    WriteEnd,
};
use rushmem_transport::{AmoOp, AmoRequest, AmoWidth, Error, LocalBuf, Pe, RemoteAddr, Segment};
use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

/// The way of one origin to one PE.
struct Link {
    stream: FrameStream,
    /// The destinations of the writes, which have none, and reads that are in flight.
    in_flight: VecDeque<LocalBuf>,
    /// Writes and reads that were started.
    started: u64,
    broken: Option<String>,
}

pub(super) struct SocketWire {
    links: BTreeMap<Pe, Link>,
    most_unsent: usize,
}

/// Returns the head of a write or read.
fn address(at: RemoteAddr) -> Vec<u8> {
    [&[at.segment as u8][..], &at.offset.to_le_bytes()].concat()
}

/// Returns the bytes of local memory, which is valid for reads.
unsafe fn bytes(LocalBuf { base, nbytes }: LocalBuf) -> Vec<u8> {
    let mut bytes = vec![0; nbytes];
    // SAFETY: valid by contract.
    unsafe { copy_bytes::<VolatileLoads>(bytes.as_mut_ptr(), base, nbytes) };
    bytes
}

impl SocketWire {
    pub(super) fn new(most_unsent: usize) -> SocketWire {
        SocketWire { links: BTreeMap::new(), most_unsent }
    }

    /// Returns the link to a PE that was reached, if there is room for one more frame.
    fn link(&mut self, pe: Pe) -> Option<&mut Link> {
        let most = self.most_unsent;
        self.links.get_mut(&pe).filter(|link| link.stream.n_unsent() < most)
    }

    fn transfer(&mut self, pe: Pe, frame: (u8, &[u8], &[u8]), to: LocalBuf) -> PostOutcome<u64> {
        let Some(link) = self.link(pe) else { return PostOutcome::Full };
        link.stream.push(frame.0, frame.1, frame.2);
        link.in_flight.push_back(to);
        link.started += 1;
        PostOutcome::Pending(link.started)
    }
}

impl Wire for SocketWire {
    type Network = Network;
    type Token = u64;
    type Outside = ();

    fn caps(&self) -> WireCaps {
        WireCaps {
            copies: true,
            batches: true,
            sessions: true,
            order: StreamOrder::Everything,
            polled: PolledUntil::Acknowledged,
            flushes_free: true,
            longest_signaled: 4096,
            longest_write: LONGEST,
            longest_read: LONGEST,
            longest_batch: (4096, LONGEST),
            window: 64,
            max_unanswered: 64,
            max_in_flight: 1024,
        }
    }

    fn reach(&mut self, network: &Network, pe: Pe) -> Result<bool, Error> {
        if let Entry::Vacant(link) = self.links.entry(pe) {
            let stream = network.connect(pe).map_err(|e| network.lose(pe, &e.to_string()))?;
            let in_flight = VecDeque::new();
            link.insert(Link { stream, in_flight, started: 0, broken: None });
        }
        Ok(true)
    }

    fn covered(&mut self, _: &Network, _: Pe, _: RemoteAddr, n: usize) -> Result<Covered, Error> {
        Ok(Covered::Bytes(n))
    }

    fn learn(&mut self, _: &Network, _: Pe, _: HeapBlock, _: &[u8; ENTRY]) -> Result<(), Error> {
        unreachable!("one key covers a heap")
    }

    unsafe fn write(
        &mut self,
        network: &Network,
        pe: Pe,
        (to, source): (RemoteAddr, LocalBuf),
        _: WriteEnd,
    ) -> Result<PostOutcome<u64>, Error> {
        network.check(pe, to, source.nbytes)?;
        // SAFETY: valid by contract.
        let body = unsafe { bytes(source) };
        Ok(match self.transfer(pe, (WRITE, &address(to), &body), LocalBuf::EMPTY) {
            PostOutcome::Full => PostOutcome::Full,
            // The source was copied.
            _ => PostOutcome::Done,
        })
    }

    unsafe fn read(
        &mut self,
        network: &Network,
        pe: Pe,
        (from, dest): (RemoteAddr, LocalBuf),
        _: bool,
    ) -> Result<PostOutcome<u64>, Error> {
        network.check(pe, from, dest.nbytes)?;
        let nbytes = (dest.nbytes as u32).to_le_bytes();
        Ok(self.transfer(pe, (READ, &address(from), &nbytes), dest))
    }

    fn has_amo(&self, _: &Network, _: AmoOp, _: AmoWidth) -> bool {
        false
    }

    fn carries_out(_: &Network, _: Segment) -> bool {
        false
    }

    unsafe fn amo(
        &mut self,
        _: &Network,
        _: Pe,
        _: &AmoRequest,
        _: *mut u8,
    ) -> Result<PostOutcome<u64>, Error> {
        unreachable!("the target's CPU carries them out")
    }

    unsafe fn send(
        &mut self,
        _: &Network,
        pe: Pe,
        request: &Request,
        payload: Payload<'_>,
        _: bool,
    ) -> Result<PostOutcome<u64>, Error> {
        let Some(link) = self.link(pe) else { return Ok(PostOutcome::Full) };
        match payload {
            Payload::Batch(batch) => link.stream.push(BATCH, &request.encode(), batch),
            Payload::Data(data) => {
                // SAFETY: valid by contract.
                let body = unsafe { bytes(data) };
                link.stream.push(REQUEST, &request.encode(), &body);
            }
        }
        Ok(PostOutcome::Done)
    }

    fn is_over(&mut self, _: &Network, pe: Pe, token: &u64) -> Result<bool, Error> {
        let over = |link: &Link| link.started - link.in_flight.len() as u64;
        Ok(self.links.get(&pe).is_none_or(|link| over(link) >= *token))
    }

    fn is_flushed(&mut self, _: &Network, pe: Pe) -> Result<bool, Error> {
        Ok(self.in_flight_to(pe) == 0)
    }

    fn in_flight(&self) -> usize {
        self.links.values().map(|link| link.in_flight.len()).sum()
    }

    fn in_flight_to(&self, pe: Pe) -> usize {
        self.links.get(&pe).map_or(0, |link| link.in_flight.len())
    }

    fn poll(&mut self, network: &Network, take: TakeReply<'_>) -> Result<bool, Error> {
        let mut worked = false;
        for (&pe, link) in &mut self.links {
            if link.broken.is_some() {
                continue;
            }
            match link.stream.exchange() {
                Ok(came) => worked |= came,
                Err(error) => link.broken = Some(error.to_string()),
            }
            let taken = link.take(take);
            taken.map_err(|why| network.refuse(&RefusedMessage::of(pe, why)))?;
        }
        Ok(worked)
    }

    fn broken(&mut self, is_used: &mut dyn FnMut(Pe) -> bool) -> Option<(Pe, String)> {
        let mut broken =
            self.links.iter().filter_map(|(pe, link)| Some((*pe, link.broken.clone()?)));
        broken.find(|(pe, _)| is_used(*pe))
    }

    fn serve(&self, network: &Network, _: u32, _: bool) -> Result<bool, Error> {
        network.local().state.polled();
        network.serve().map(|served| served == Some(true))
    }

    fn sleep(&mut self, network: &Network, at_most: Duration) {
        network.local().state.count_sleep();
        std::thread::sleep(at_most);
    }

    /// Nobody watches the sockets.
    fn arm(&self, _: bool) -> bool {
        false
    }

    fn abandon(&mut self, _: &Network) -> Result<(), String> {
        self.links.clear();
        Ok(())
    }
}

impl Link {
    /// Takes the frames that have come whole.
    fn take(&mut self, take: TakeReply<'_>) -> Result<(), Violation> {
        while let Some((kind, body)) = self.stream.next()? {
            match (kind, body.split_at_checked(REPLY)) {
                (DONE, _) => {
                    let dest = self.in_flight.pop_front().ok_or(Violation::Unrequested)?;
                    if dest.nbytes != body.len() {
                        return Err(Violation::Unrequested);
                    }
                    // SAFETY: valid until the read is over, by the contract of `read`.
                    unsafe { copy_bytes::<VolatileLoads>(dest.base, body.as_ptr(), dest.nbytes) };
                }
                (REPLIED, Some((head, answers))) => {
                    let reply = Reply::decode(head).map_err(|_| Violation::Unknown("reply"))?;
                    take(reply, answers)?;
                }
                _ => return Err(Violation::Unknown("frame")),
            }
        }
        Ok(())
    }
}
