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
        let is_it = |&&(variable, _): &&(&str, &str)| variable == name;
        self.0
            .iter()
            .find(is_it)
            .map(|(_, value)| (*value).to_owned())
    }

    fn lost(&self, error: &Error) {
        LOSSES
            .lock()
            .expect("no panic holds it")
            .push(error.clone());
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

const AT: RemoteAddr = RemoteAddr {
    segment: Segment::Heap,
    offset: 4096,
};

impl LossCase {
    fn until_lost(self, member: &Member, endpoint: &mut dyn Endpoint, dying: Pe) -> Error {
        let mut data = vec![1u8; 1 << 20];
        let mut nbytes = 1;
        loop {
            let done = match self {
                LossCase::Puts => {
                    let put = verbs::put(endpoint, dying, AT, &data[..nbytes]);
                    nbytes = nbytes * 5 % (1 << 20);
                    put.and_then(|()| endpoint.quiet())
                }
                LossCase::PutsNbi => {
                    thread::sleep(std::time::Duration::from_millis(1));
                    let put = Put {
                        remote: AT,
                        // SAFETY: the data are valid until an error, after which the provider does
                        // not use them.
                        local: unsafe { SourceBuf::new(data.as_ptr(), 1 << 19) },
                        completion: Completion::AtQuiet,
                    };
                    endpoint.put(dying, put)
                }
                LossCase::Gets => verbs::get(endpoint, dying, &mut data[..1 << 19], AT),
                LossCase::Fetches => verbs::add_one(endpoint, dying, AT).map(|_| ()),
                LossCase::Waits => member.transport().progress().map(|_| ()),
                LossCase::Computes => losses().pop().map_or(Ok(()), Err),
            };
            if let Err(error) = done {
                return error;
            }
        }
    }
}

fn check_message(error: &Error, me: usize, lost: usize) {
    assert!(
        matches!(error, Error::Lost(pe, _) if pe.index() == lost),
        "{error}"
    );
    let (text, host) = (
        error.to_string(),
        std::fs::read_to_string("/proc/sys/kernel/hostname"),
    );
    let host = host.expect("a host name").trim().to_owned();
    assert!(text.contains(&format!("PE {me} on {host}")), "{text}");
    assert!(text.contains(&format!("PE {lost} on {host}")), "{text}");
}

/// The last PE dies after all have used each other. PE i does `uses[i]` meanwhile and must get the
/// error.
///
/// # Panics
/// If a PE gets another error, or more than one is reported to its host.
pub fn one_dies(member: &Member, uses: &[LossCase]) {
    let (me, dying) = (member.me(), member.n_pes() - 1);
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
        verbs::add_one(&mut *endpoint, Pe(peer as u32), AT).expect("a PE that is there");
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
        verbs::add_one(&mut *endpoint, other, AT),
        Err(error.clone())
    );
    assert_eq!(losses(), [error]);
    // No PE exits before all have their error, which would be a loss of another PE.
    member.barrier_without_the_last();
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
    let (base, nbytes) = (heap.as_mut_ptr().cast(), 8 * heap.len());
    // SAFETY: dropped after the transport, and used by nobody else meanwhile.
    let key = unsafe { transport.register(Segment::Heap, base, nbytes) }.expect("memory");
    member.connect_beside(&mut *transport, &key.0);
    transport
}

/// PE 0 drops this transport after all PEs have used each other; the others continue without it.
///
/// # Panics
/// If a loss is reported.
pub fn one_leaves(member: &Member, transport: Box<dyn Transport>) {
    let (me, n_pes) = (member.me(), member.n_pes());
    let use_peers_from = |first: usize| {
        let mut endpoint = transport
            .endpoint(EndpointUser::Context)
            .expect("an endpoint");
        for pe in (first..n_pes)
            .filter(|&pe| pe != me)
            .map(|pe| Pe(pe as u32))
        {
            let at = RemoteAddr {
                segment: Segment::Heap,
                offset: 64 * me as u64,
            };
            let put = verbs::put(&mut *endpoint, pe, at, &1u64.to_ne_bytes());
            put.expect("a PE that is there");
            verbs::add_one(&mut *endpoint, pe, at).expect("a PE that is there");
        }
        endpoint.quiet().expect("PEs that are there");
    };
    use_peers_from(0);
    member.barrier();
    if me == 0 {
        drop(transport);
        member.barrier();
        member.barrier();
    } else {
        // PE 0 is gone when this barrier is over.
        member.barrier();
        for _ in 0..10_000 {
            transport.progress().expect("a PE that leaves is no loss");
        }
        use_peers_from(1);
        assert_eq!(losses(), []);
        member.barrier();
        drop(transport);
    }
}
