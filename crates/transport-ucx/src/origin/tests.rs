//! A loss while transfers are in flight to a PE that serves nobody: nothing uses their memory any more when that was told.
#![allow(unsafe_code)]

use super::*;
use crate::area::Areas;
use crate::peers::Contact;
use crate::proto::MemoryKey;
use crate::target::Target;
use crate::ucp::Memory;
use std::cell::Cell;
use std::sync::OnceLock;

const NBYTES: usize = 4 << 20;
const LIMIT: Duration = Duration::from_secs(30);
const HEAP: RemoteAddr = RemoteAddr { segment: Segment::Heap, offset: 0 };
const PEER: Pe = Pe(0);

/// A peer in this process, which can stop serving and be lost.
struct Fake {
    contact: Contact,
    target: Target,
    /// What origins put to and get from; it lives as long as the process.
    heap: LocalBuf,
    /// Polls until the peer is lost; `None` while it serves.
    polls_left: Cell<Option<u32>>,
    loss: OnceLock<Error>,
}

impl Peers for Fake {
    fn check(&self) -> Result<(), Error> {
        self.loss.get().cloned().map_or(Ok(()), Err)
    }

    fn contact(&self, _: Pe) -> Result<&Contact, Error> {
        Ok(&self.contact)
    }

    fn lose(&self, pe: Pe, why: &str) -> Error {
        self.loss.get_or_init(|| Error::Lost(pe, why.to_owned())).clone()
    }

    fn max_in_flight(&self) -> usize {
        64
    }

    fn oversubscribed(&self) -> bool {
        false
    }

    fn serve(&self) -> bool {
        match self.polls_left.get() {
            None => self.target.serve(),
            Some(0) => {
                self.lose(PEER, "it serves nobody");
                false
            }
            Some(polls) => {
                self.polls_left.set(Some(polls - 1));
                false
            }
        }
    }

    fn sleep(&self, _: Option<&Worker>, _: Duration) {
        self.serve();
    }

    fn hand_over(&self) {}
}

/// An origin and its peer, whose memory lives as long as the process.
fn pair(transports: &str) -> Option<(Arc<Context>, Origin, Fake)> {
    let changes = [("TLS", transports.to_owned()), ("NET_DEVICES", "lo".to_owned())];
    let context = match Context::open(2, &changes) {
        Ok(context) => Arc::new(context),
        Err(why) => {
            println!("skipped: {why}");
            return None;
        }
    };
    let base = vec![7u8; NBYTES].leak().as_mut_ptr();
    // SAFETY: never freed.
    let memory = unsafe { Memory::register(&context, base, NBYTES) }.expect("memory");
    let packed = memory.key().expect("a key").into();
    std::mem::forget(memory);
    let key = MemoryKey { base: base.addr() as u64, nbytes: NBYTES as u64, packed };
    let areas = Arc::new(Areas::default());
    // SAFETY: never freed.
    assert!(unsafe { areas.open(Segment::Heap, base, NBYTES) });
    let target = Target::new(&context, areas).expect("a worker");
    let worker = target.worker().address().expect("an address");
    let contact = Contact { host: "here".to_owned(), worker, keys: [Some(key), None, None] };
    let origin = Origin::new(&context, 1).expect("a worker");
    let heap = LocalBuf { base, nbytes: NBYTES };
    let fake = Fake { contact, target, heap, polls_left: Cell::new(None), loss: OnceLock::new() };
    Some((context, origin, fake))
}

/// Lets both work until neither has had anything to do for long.
fn settle(origin: &Origin, fake: &Fake) {
    let mut idle = 0;
    while idle < 10_000 {
        idle = if origin.worker.progress() | fake.target.serve() { 0 } else { idle + 1 };
    }
}

/// Loses the peer during `work`, which is given memory.
fn loses(work: impl Fn(&mut Origin, &Fake, LocalBuf) -> Result<(), Error>) {
    for connected in [true, false] {
        let Some((_context, mut origin, fake)) = pair("tcp,self") else { return };
        let mut memory = vec![1u8; NBYTES];
        let local = LocalBuf { base: memory.as_mut_ptr(), nbytes: NBYTES };
        if connected {
            // SAFETY: the memory lives on.
            unsafe { origin.transfer(&fake, PEER, Transfer::Put, HEAP, local.first(8)) }
                .and_then(|()| origin.quiet(&fake))
                .expect("a peer that serves");
        }
        fake.polls_left.set(Some(1000));
        let error = work(&mut origin, &fake, local).expect_err("nobody serves");
        assert!(matches!(error, Error::Lost(PEER, _)), "{error}");
        let before = origin.unended();
        assert!(before > 0, "nothing was in flight: this tests nothing");
        assert_eq!(origin.abandon(LIMIT), Ok(()));
        memory.fill(2);
        settle(&origin, &fake);
        assert!(memory.iter().all(|&byte| byte == 2), "memory was written after the loss was told");
        // SAFETY: never freed, and nobody puts there any more.
        let heap = unsafe { std::slice::from_raw_parts(fake.heap.base, NBYTES) };
        assert!(!heap.contains(&2), "memory was read after the loss was told");
        assert_eq!(origin.unended(), 0);
        origin.leave();
        // UCX 1.13.1 aborts by an assertion when a worker ends from which somebody broke off.
        std::mem::forget(fake);
    }
}

fn transfers(kind: Transfer) {
    loses(|origin, fake, local| {
        // SAFETY: the memory lives until UCX is done with it.
        unsafe { origin.transfer(fake, PEER, kind, HEAP, local) }?;
        origin.quiet(fake)
    });
}

#[test]
fn a_get_ends_with_a_loss() {
    transfers(Transfer::Get);
}

#[test]
fn a_get_that_nobody_waits_for_ends_with_a_loss() {
    transfers(Transfer::GetNbi);
}

#[test]
fn a_put_ends_with_a_loss() {
    transfers(Transfer::Put);
}

#[test]
fn a_put_that_nobody_waits_for_ends_with_a_loss() {
    transfers(Transfer::PutNbi);
}

fn signals(blocks: bool) {
    loses(|origin, fake, local| {
        let (op, width) = (AmoOp::Add, AmoWidth::Eight);
        let signal = Operation { word: HEAP, width, op, operand: 1, condition: 0 };
        let data = (local, HEAP);
        // SAFETY: the memory lives until UCX is done with it.
        unsafe { origin.ask(fake, PEER, signal, std::ptr::null_mut(), data, blocks) }?;
        origin.quiet(fake)
    });
}

#[test]
fn a_put_with_a_signal_ends_with_a_loss() {
    signals(true);
    signals(false);
}

#[test]
fn what_cannot_be_ended_is_counted() {
    // No endpoint of shared memory alone is closed by force.
    let Some((_context, mut origin, fake)) = pair("posix,self") else { return };
    let local = LocalBuf { base: vec![1u8; NBYTES].leak().as_mut_ptr(), nbytes: NBYTES };
    fake.polls_left.set(Some(1000));
    // SAFETY: never freed.
    let lost = unsafe { origin.transfer(&fake, PEER, Transfer::Get, HEAP, local) };
    assert!(matches!(lost, Err(Error::Lost(PEER, _))), "{lost:?}");
    assert_eq!(origin.abandon(Duration::ZERO), Err(1));
    // It ends when the peer serves again.
    settle(&origin, &fake);
    assert_eq!(origin.abandon(Duration::ZERO), Ok(()));
    origin.leave();
}
