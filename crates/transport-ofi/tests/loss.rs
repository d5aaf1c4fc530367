//! A PE that dies: whoever uses it learns of it, with the names of both; nobody hangs. (That a PE died whom
//! nobody uses libfabric does not say; the launcher does.)

use conformance::{Case, LIMIT, Member, verbs};
use rushmem_transport::{AmoOp, AmoWidth, Error, Host, Open, Pe, RemoteAddr, Segment, Transport};
use rushmem_transport_ofi::{PROVIDER, Tuning, open};
use std::process::exit;
use std::sync::{Arc, Mutex};

/// What this process's host was told.
static TOLD: Mutex<Vec<Error>> = Mutex::new(Vec::new());

struct Recorder;

impl Host for Recorder {
    fn variable(&self, name: &str) -> Option<String> {
        (name == "SHMEM_OFI_PROVIDER").then(|| "tcp;ofi_rxm".to_owned())
    }

    fn lost(&self, error: &Error) {
        TOLD.lock().expect("no panic holds it").push(error.clone());
    }
}

fn recording(with: &Open) -> Result<Box<dyn Transport>, Error> {
    open(&Open { host: Arc::new(Recorder), ..with.clone() }, Tuning::default())
}

fn needs() {
    if let Err(error) = (PROVIDER.available)(&Recorder) {
        testkit::absent(error);
    }
}

fn is_the_right_message(error: &Error, me: usize, lost: u32) {
    assert!(matches!(error, Error::Lost(Pe(pe), _) if *pe == lost), "{error}");
    let (text, host) = (error.to_string(), std::fs::read_to_string("/proc/sys/kernel/hostname"));
    let host = host.expect("a host name").trim().to_owned();
    assert!(text.contains(&format!("PE {me} on {host}")), "{text}");
    assert!(text.contains(&format!("PE {lost} on {host}")), "{text}");
}

const DYING: usize = 2;

/// PE 2 dies in the middle; those who use it must learn it, each at what it does.
fn one_dies(member: &Member) {
    let me = member.me();
    let mut end = member.endpoint();
    for peer in 0..member.n_pes() {
        end.put_word(peer, 64 * me, 1);
        end.update(peer, 64 * me, AmoWidth::Eight, AmoOp::Add, 1);
    }
    end.quiet();
    member.barrier();
    let at = RemoteAddr { segment: Segment::Heap, offset: 4096 };
    let dying = Pe(DYING as u32);
    let mut endpoint = member.transport().endpoint().expect("one");
    let error = match me {
        DYING => exit(0),
        // Puts and completes, large and small.
        0 => {
            let data = vec![1u8; 1 << 20];
            let mut nbytes = 1;
            loop {
                let put = verbs::put(&mut *endpoint, dying, at, &data[..nbytes]);
                if let Err(error) = put.and_then(|()| endpoint.quiet()) {
                    break error;
                }
                nbytes = nbytes * 5 % (1 << 20);
            }
        }
        // Asks for atomic operations alone.
        _ => loop {
            let old = verbs::add_one(&mut *endpoint, dying, at);
            if let Err(error) = old {
                break error;
            }
        },
    };
    is_the_right_message(&error, me, DYING as u32);
    // From now on every verb says so, and the host was told once.
    assert_eq!(endpoint.quiet(), Err(error.clone()));
    assert_eq!(verbs::add_one(&mut *endpoint, Pe(me as u32 ^ 1), at), Err(error.clone()));
    assert_eq!(*TOLD.lock().expect("no panic holds it"), [error]);
    // Nobody must hear of another loss first.
    member.barrier_without_the_last();
    std::mem::forget(end);
    exit(0);
}

fn a_pe_that_dies_is_noticed_by_those_who_use_it() {
    let case = Case { sizes: &[3], heap_bytes: 2 << 20, limit: LIMIT, body: one_dies };
    let test = "a_pe_that_dies_is_noticed_by_those_who_use_it";
    conformance::run_where(needs, test, recording, case);
}

testkit::tests! {
    a_pe_that_dies_is_noticed_by_those_who_use_it,
}
