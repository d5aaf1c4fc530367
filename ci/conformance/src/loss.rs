//! A PE that dies: each PE that uses it, waits or computes gets an error that names both PEs, and
//! none hangs. A PE that leaves is no loss.
#![allow(unsafe_code)]

use crate::{Member, verbs};
use rushmem_transport::{
    Amos, Completion, Endpoint, EndpointUser, Error, Host, Open, Pe, Put, RemoteAddr, Segment,
    SourceBuf, Transport,
};
use std::process::exit;
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

/// The losses that were reported to the [`Recorder`]s of this process.
static LOSSES: Mutex<Vec<Error>> = Mutex::new(Vec::new());

/// Returns the losses that were reported to [`Recorder`]s.
///
/// # Panics
/// If a thread has panicked while it recorded one.
pub fn losses() -> Vec<Error> {
    LOSSES.lock().expect("no panic holds it").clone()
}

/// A host with these variables that records losses.
pub struct Recorder(pub &'static [(&'static str, &'static str)]);

impl Host for Recorder {
    fn variable(&self, name: &str) -> Option<String> {
        let known = self.0.iter().find(|(variable, _)| *variable == name)?;
        Some(known.1.to_owned())
    }

    fn lost(&self, error: &Error) {
        let mut losses = LOSSES.lock().expect("no panic holds it");
        losses.push(error.clone());
    }
}

/// The activity of a PE while another one dies.
#[derive(Clone, Copy, Debug)]
pub enum LossCase {
    /// It puts, with small and large sizes, and completes each put.
    Puts,
    /// It starts puts, which the service thread completes.
    PutsNbi,
    /// It gets, with a large size.
    Gets,
    /// It issues atomic operations.
    Fetches,
    /// It waits for a flag that is never set.
    Waits,
    /// It computes: the service thread reports the loss.
    Computes,
}

/// The memory of the dying PE that the others use.
const USED: RemoteAddr = RemoteAddr {
    segment: Segment::Heap,
    offset: 4096,
};

impl LossCase {
    /// Does this until there is an error, which it returns.
    fn until_lost(self, member: &Member, endpoint: &mut dyn Endpoint, dying: Pe) -> Error {
        const LARGE: usize = 1 << 19;
        let mut data = vec![1u8; 1 << 20];
        let mut nbytes = 1;
        loop {
            let done = match self {
                LossCase::Puts => {
                    let put = verbs::put(endpoint, dying, USED, &data[..nbytes]);
                    // The sizes vary from a byte to a megabyte.
                    nbytes = nbytes * 5 % (1 << 20);
                    put.and_then(|()| endpoint.quiet())
                }
                LossCase::PutsNbi => {
                    // The service thread completes the puts meanwhile.
                    thread::sleep(Duration::from_millis(1));
                    let put = Put {
                        remote: USED,
                        // SAFETY: the data are valid until an error, after which the provider does
                        // not use them.
                        local: unsafe { SourceBuf::new(data.as_ptr(), LARGE) },
                        completion: Completion::AtQuiet,
                    };
                    endpoint.put(dying, put)
                }
                LossCase::Gets => verbs::get(endpoint, dying, &mut data[..LARGE], USED),
                LossCase::Fetches => verbs::add_one(endpoint, dying, USED).map(|_| ()),
                LossCase::Waits => member.transport().progress().map(|_| ()),
                LossCase::Computes => match losses().pop() {
                    Some(error) => Err(error),
                    None => Ok(()),
                },
            };
            if let Err(error) = done {
                return error;
            }
        }
    }
}

/// Checks that an error of PE `me` names both PEs with their host.
fn check_message(error: &Error, me: usize, lost: usize) {
    assert!(
        matches!(error, Error::Lost(pe, _) if pe.index() == lost),
        "{error}"
    );

    let text = error.to_string();
    let host = std::fs::read_to_string("/proc/sys/kernel/hostname").expect("a host name");
    let host = host.trim();
    assert!(text.contains(&format!("PE {me} on {host}")), "{text}");
    assert!(text.contains(&format!("PE {lost} on {host}")), "{text}");
}

/// The last PE dies after all have used each other. PE i does `uses[i]` meanwhile and must get the
/// error.
///
/// # Panics
/// If a PE gets another error, or more than one is reported to its host.
pub fn one_dies(member: &Member, uses: &[LossCase]) {
    let me = member.me();
    let dying = member.n_pes() - 1;
    let mut end = member.endpoint();
    for peer in member.peers() {
        end.put_word(peer, 64 * me, 1);
    }
    end.quiet();

    let mut endpoint = member
        .transport()
        .endpoint(EndpointUser::Context)
        .expect("one");
    for peer in member.peers() {
        verbs::add_one(&mut *endpoint, Pe(peer as u32), USED).expect("a PE that is there");
    }
    member.barrier();
    if me == dying {
        exit(0);
    }

    let error = uses[me].until_lost(member, &mut *endpoint, Pe(dying as u32));
    check_message(&error, me, dying);
    // Every later operation returns the same error, and it was reported to the host once.
    assert_eq!(endpoint.quiet(), Err(error.clone()));
    let other = Pe(((me + 1) % dying) as u32);
    assert_eq!(
        verbs::add_one(&mut *endpoint, other, USED),
        Err(error.clone())
    );
    assert_eq!(losses(), [error]);

    // No PE exits before all have their error, which would be a loss of another PE.
    member.barrier_without_the_last();
    // A drop would complete its operations, of which one is to the PE that has died.
    std::mem::forget(end);
    exit(0);
}

/// Opens and connects a transport besides that of the case, which must be dropped before `heap`.
///
/// # Panics
/// If it cannot be opened and connected.
pub fn open_beside(
    member: &Member,
    heap: &mut [u64],
    host: Arc<dyn Host>,
    open: impl FnOnce(&Open) -> Result<Box<dyn Transport>, Error>,
) -> Box<dyn Transport> {
    let with = Open {
        pe: Pe(member.me() as u32),
        n_pes: member.n_pes() as u32,
        secret: [3; 32],
        one_machine: true,
        cpus_per_pe: 0,
        amos: Amos::Software,
        part: None,
        host,
    };
    let mut transport = open(&with).expect("a network");
    let base = heap.as_mut_ptr().cast();
    let nbytes = size_of_val(heap);
    // SAFETY: the caller drops the heap after the transport, and nobody else uses it meanwhile.
    let key = unsafe { transport.register(Segment::Heap, base, nbytes) }.expect("memory");
    member.connect_beside(&mut *transport, &key.0);
    transport
}

/// PE 0 drops this transport after all PEs have used each other; the others continue without it.
///
/// # Panics
/// If a loss is reported.
pub fn one_leaves(member: &Member, transport: Box<dyn Transport>) {
    use_peers_from(0, member, &*transport);
    member.barrier();

    if member.me() == 0 {
        drop(transport);
        member.barrier();
        member.barrier();
    } else {
        // PE 0 is gone when this barrier is over.
        member.barrier();
        for _ in 0..10_000 {
            transport.progress().expect("a PE that leaves is no loss");
        }
        use_peers_from(1, member, &*transport);
        assert_eq!(losses(), []);
        member.barrier();
        drop(transport);
    }
}

/// Puts to all other PEs from `first` on, and fetches from them.
fn use_peers_from(first: usize, member: &Member, transport: &dyn Transport) {
    let me = member.me();
    let mut endpoint = transport
        .endpoint(EndpointUser::Context)
        .expect("an endpoint");
    let own_word = RemoteAddr {
        segment: Segment::Heap,
        offset: 64 * me as u64,
    };
    for pe in first..member.n_pes() {
        if pe == me {
            continue;
        }
        let pe = Pe(pe as u32);
        let put = verbs::put(&mut *endpoint, pe, own_word, &1u64.to_ne_bytes());
        put.expect("a PE that is there");
        verbs::add_one(&mut *endpoint, pe, own_word).expect("a PE that is there");
    }
    endpoint.quiet().expect("PEs that are there");
}
