//! Unit tests of `transport`: one PE that has itself as its peers, and the state after errors.
#![allow(unsafe_code)]

use super::*;
use crate::ep::{PostStatus, RmaAddress};
use crate::message::{HEAD, Message};
use crate::permits::MAX_AT_ONCE;
use crate::shared::rma_address;
use crate::wire::OfiWire;
use conformance::{LIMIT, verbs};
use rushmem_system::lock::lock;
use rushmem_transport::engine::driver::Driver;
use rushmem_transport::engine::entries::append_attached;
use rushmem_transport::engine::message::Ack;
use rushmem_transport::engine::message::{REQUEST, Reply, Request, Stream, StreamPosition};
use rushmem_transport::engine::{Wire, WireEndpoint, keys};
use rushmem_transport::peers::PeAddress;
use rushmem_transport::{
    AmoRequest, AmoWidth, Completion, DestBuf, Directory, Endpoint, EndpointUser, Get, Host,
    OldValue, Pe, PeRecord, Put, RemoteAddr, Segment, SignalOrder, SourceBuf,
};
use std::cell::Cell;
use std::mem::ManuallyDrop;
use std::sync::mpsc;
use std::time::Duration;
use testkit::eventually;

/// A host on which the user has set SHMEM_OFI_PROVIDER.
struct RequestedProvider(&'static str);

impl Host for RequestedProvider {
    fn variable(&self, name: &str) -> Option<String> {
        (name == "SHMEM_OFI_PROVIDER").then(|| self.0.to_owned())
    }

    fn arrived(&self, _: u8) {
        RINGS.set(RINGS.get() + 1);
    }
}

thread_local! {
    /// How often the calling thread has rung the doorbell of its PE.
    static RINGS: Cell<u32> = const { Cell::new(0) };
}

pub(crate) type Ofi = NetworkTransport<SharedState>;

/// A provider that moves long data only while it is polled.
pub(crate) const STREAMS: &str = "tcp;ofi_rxm";
/// A provider that goes on working after a message that is too long.
const MESSAGES: &str = "shm";

/// The size of the heap, and the length of transfers that are not copied, in bytes.
const HEAP: usize = 1 << 20;
const LONG: usize = HEAP / 2;
const START: RemoteAddr = RemoteAddr {
    segment: Segment::Heap,
    offset: 0,
};

/// Opens the job of [`job_of`] with a host that only asks for a provider.
pub(crate) fn job(provider: &'static str, tuning: Tuning) -> Option<Ofi> {
    job_of(Arc::new(RequestedProvider(provider)), tuning)
}

/// Returns PE 0 of a job of four PEs. The records of PEs 1 and 2 are its own; the address of PE 3
/// is invalid. Returns `None`, and prints why, if the network cannot be opened.
fn job_of(host: Arc<dyn Host>, tuning: Tuning) -> Option<Ofi> {
    let open = Open {
        pe: Pe(0),
        n_pes: 4,
        secret: [7; 32],
        one_machine: true,
        cpus_per_pe: 0,
        amos: Amos::Software,
        part: None,
        host,
    };

    let opened = open_network(&open, tuning).and_then(NetworkTransport::start);
    let mut ofi = match opened {
        Ok(ofi) => ofi,
        Err(error) => {
            eprintln!("skipped: {error}");
            return None;
        }
    };

    let heap = vec![0u64; HEAP / 8].leak();
    // SAFETY: the heap is never freed.
    let key = unsafe { ofi.register(Segment::Heap, heap.as_mut_ptr().cast(), HEAP) };
    let key = key.expect("memory that can be registered");

    let address = ofi.address();
    let record = PeRecord {
        address: &address,
        keys: [&key.0, &[], &[]],
    };

    let nowhere = Address {
        name: vec![0; 3],
        ..ofi.network().address.clone()
    };
    let nobody = PeAddress {
        host: "nowhere".to_owned(),
        of_provider: nowhere.encode(),
    };
    let nobody_address = nobody.encode();
    let nobody_record = PeRecord {
        address: &nobody_address,
        ..record
    };

    let records = [record, record, record, nobody_record];
    let directory = Directory::new(Directory::encode(records.into_iter()));
    ofi.connect(Arc::new(directory)).expect("own addresses");
    Some(ofi)
}

/// Calls `work` with an ep of a job, if libfabric is here.
pub(crate) fn with_ep(work: impl FnOnce(&mut FiEndpoint)) {
    let Some(ofi) = job(STREAMS, Tuning::default()) else {
        return;
    };
    let endpoint = new_endpoint(&ofi).expect("the first");
    with(&endpoint, |wire| work(wire.ep().expect("it is open")));
}

pub(crate) type TestEndpoint = WireEndpoint<SharedState>;

pub(crate) fn new_endpoint(ofi: &Ofi) -> Result<TestEndpoint, Error> {
    ofi.progress().endpoint(EndpointUser::Context)
}

/// Returns a word of a PE that was used, as libfabric's calls take it.
pub(crate) fn word_of(ofi: &Ofi, pe: Pe) -> Option<RmaAddress> {
    keys::find(ofi.network(), pe, START, 8).map(|word| rma_address(&word))
}

/// Calls `work` with the wire of an endpoint.
pub(crate) fn with<T>(endpoint: &TestEndpoint, work: impl FnOnce(&mut OfiWire) -> T) -> T {
    work(lock(&endpoint.issuer().origin).wire())
}

/// Calls `post`, which starts an operation on the ep of an endpoint, until there is room.
pub(crate) fn start(
    ofi: &Ofi,
    endpoint: &TestEndpoint,
    mut post: impl FnMut(&mut FiEndpoint) -> Result<PostStatus, i32>,
) {
    eventually("there is room", || {
        let posted = with(endpoint, |wire| {
            let ep = wire.ep().expect("it is open");
            ep.poll(|_| ()).expect("no failure");
            post(ep).expect("it can be started")
        });
        if posted == PostStatus::Again {
            ofi.progress().poll().expect("no loss");
        }
        posted == PostStatus::Started
    });
}

/// Returns how many operations an endpoint has in flight, unless its ep is closed.
pub(crate) fn in_flight(endpoint: &TestEndpoint) -> Option<u32> {
    with(endpoint, |wire| wire.ep().map(|ep| ep.in_flight()))
}

/// Returns the number of the endpoint's origin, and how many of its requests PE 0 has acknowledged.
fn acked(endpoint: &TestEndpoint) -> (u32, u32) {
    lock(&endpoint.issuer().origin).acked(Pe(0))
}

/// Returns a long put to PE 1 that completes with the next quiet.
fn long_put() -> Put {
    let source = vec![1u64; LONG / 8].leak();
    Put {
        remote: START,
        // SAFETY: the vector is never freed.
        local: unsafe { SourceBuf::new(source.as_ptr().cast(), LONG) },
        completion: Completion::AtQuiet,
    }
}

/// A call that fails after a loss.
type Call = fn(&mut TestEndpoint) -> Result<(), Error>;

#[test]
fn after_a_loss_no_call_leaves_anything_in_flight() {
    let calls: [(&str, Call); 5] = [
        ("quiet", |endpoint| endpoint.quiet()),
        ("is_quiet", |endpoint| endpoint.is_quiet().map(|_| ())),
        ("pe_quiet of one to which much is in flight", |endpoint| {
            endpoint.pe_quiet(Pe(1))
        }),
        ("pe_quiet of one to which nothing is", |endpoint| {
            endpoint.pe_quiet(Pe(2))
        }),
        ("pe_quiet of one that was never connected", |endpoint| {
            endpoint.pe_quiet(Pe(3))
        }),
    ];
    for (name, call) in calls {
        let Some(ofi) = job(STREAMS, Tuning::default()) else {
            return;
        };

        let mut endpoint = new_endpoint(&ofi).expect("the first");
        endpoint.put(Pe(1), long_put()).expect("a put that starts");

        ofi.network().local.loss.of_self("this is a test");
        assert!(
            matches!(call(&mut endpoint), Err(Error::Lost(..))),
            "{name}"
        );
        assert_eq!(in_flight(&endpoint), None, "{name} left its ep open");
    }
}

#[test]
fn a_signal_that_is_refused_leaves_no_put_in_flight() {
    let Some(ofi) = job(STREAMS, Tuning::default()) else {
        return;
    };
    let mut endpoint = new_endpoint(&ofi).expect("the first");
    for offset in [LONG as u64 + 4, HEAP as u64] {
        let dest = RemoteAddr { offset, ..START };
        let signal = AmoRequest::of_word(dest, AmoOp::Set, 1);
        let refused = endpoint.put_signal(Pe(1), long_put(), signal, SignalOrder::AfterData);
        assert!(matches!(refused, Err(Error::Invalid(_))));
        assert_eq!(in_flight(&endpoint), Some(0), "offset {offset}");
    }
}

#[test]
fn what_unknown_senders_send_uses_up_no_buffers() {
    let (done, is_done) = mpsc::channel();
    std::thread::spawn(move || {
        let few = Tuning {
            receives: 2,
            ..Tuning::default()
        };
        if let Some(ofi) = job(MESSAGES, few) {
            let mut endpoint = new_endpoint(&ofi).expect("the first");
            let to = ofi
                .network()
                .inserted(Pe(1))
                .expect("it is connected")
                .fi_addr();

            let long = [0u8; 5000];
            for _ in 0..3 * few.receives {
                start(&ofi, &endpoint, |ep| {
                    let raw = ep.endpoint.raw();
                    let from = long.as_ptr().cast();
                    // SAFETY: `raw` is an open endpoint, and `from` points to bytes that live
                    // during the call.
                    match unsafe { fi::fi_inject(raw, from, long.len(), to) } as i32 {
                        0 => Ok(PostStatus::Started),
                        code if code == -fi::FI_EAGAIN => Ok(PostStatus::Again),
                        code => Err(code),
                    }
                });
            }

            assert_eq!(verbs::add_one(&mut endpoint, Pe(1), START), Ok(0));
            assert_eq!(verbs::add_one(&mut endpoint, Pe(1), START), Ok(1));

            // This PE acknowledges as PE 0 what it has carried out as PE 1, so only after a loss
            // does the drop of the endpoint not wait. An endpoint that is not closed would leave
            // its file in /dev/shm.
            ofi.network().local.loss.of_self("the test is over");
        }
        done.send(()).expect("a thread waits");
    });
    is_done
        .recv_timeout(LIMIT)
        .expect("an atomic operation that is carried out");
}

/// Returns a message that no PE sends.
type Forge<'a> = &'a dyn Fn(&Ofi) -> Vec<u8>;

/// Returns the error with which the service refuses a message that is sent to PE 2, which is this
/// PE.
fn refusal(provider: &'static str, message: impl Fn(&Ofi) -> Vec<u8>) -> Option<String> {
    let ofi = job(provider, Tuning::default())?;
    let endpoint = ManuallyDrop::new(new_endpoint(&ofi).expect("the first"));

    let peer = ofi.network().inserted(Pe(2)).expect("it is connected");
    let to = peer.fi_addr();
    let bytes = message(&ofi);
    let data = &bytes[HEAD..];
    // SAFETY: the bytes live until the message has arrived.
    let source = unsafe { SourceBuf::new(data.as_ptr(), data.len()) };
    let head = bytes.first_chunk().expect("a head");
    start(&ofi, &endpoint, |ep| ep.send(2, to, head, &[], &source));

    let mut error = None;
    eventually("it is refused", || {
        error = ofi.progress().poll().err();
        error.is_some()
    });
    error.map(|error| error.to_string())
}

/// The text of the loss names both PEs and says what is wrong with the message.
#[test]
fn a_message_that_no_pe_sends_is_a_loss() {
    let request = Request {
        stream: Stream {
            pe: Pe(2),
            origin: 0,
        },
        position: StreamPosition {
            number: 1,
            after: 0,
            asks: true,
        },
        ack: None,
        slot: None,
        nbytes: 0,
    };
    let with = |ofi: &Ofi, request: Request, entries: &[u8]| {
        let request = Request {
            nbytes: entries.len() as u16,
            ..request
        };

        let head = Message::Request(request).encode(ofi.network().tag);
        [&head[..], entries].concat()
    };

    let mut beyond = Vec::new();
    let offset = HEAP as u64 - 4;
    append_attached(&mut beyond, RemoteAddr { offset, ..START });

    let again = Request {
        position: StreamPosition {
            number: 3,
            after: 3,
            asks: true,
        },
        ..request
    };

    let reply = Reply {
        pe: Pe(2),
        ack: Ack {
            origin: 9,
            count: 1,
        },
        answer: None,
    };

    let cases: [(&str, Forge<'_>); 6] = [
        ("it used an invalid offset", &|ofi| {
            [with(ofi, request, &beyond), vec![0; 8]].concat()
        }),
        ("it sent a damaged batch", &|ofi| {
            [with(ofi, request, &[]), vec![0; 8]].concat()
        }),
        ("it sent request 3 twice", &|ofi| with(ofi, again, &[])),
        ("it sent an unknown request", &|ofi| {
            let mut bytes = with(ofi, request, &[]);
            // The flags.
            bytes[HEAD - REQUEST + 2] = 99;
            bytes
        }),
        ("it sent a damaged batch", &|ofi| {
            with(ofi, request, &[0x99; 30])
        }),
        ("it answered what was not", &|ofi| {
            Message::Reply(reply).encode(ofi.network().tag).into()
        }),
    ];

    for (what, message) in cases {
        let Some(why) = refusal(STREAMS, message) else {
            return;
        };
        for part in [what, "PE 2 was lost", "from PE 0 on ", " to PE 2 on "] {
            assert!(why.contains(part), "{part}: {why}");
        }
    }

    let unknown = |ofi: &Ofi| {
        let mut bytes = with(ofi, request, &[]);
        // The kind of the message.
        bytes[8] = 99;
        bytes
    };
    let why = refusal(STREAMS, unknown).expect("the provider is here");
    assert!(
        why.contains("names no PE of this job: it sent an unknown message"),
        "{why}"
    );
}

/// Over a provider that keeps no order, an operation after a fence waits for earlier operations on
/// the same PE, and for nothing else.
#[test]
fn a_fence_holds_up_nothing_that_goes_elsewhere() {
    let no_order = Tuning {
        trust: false,
        ..Tuning::default()
    };
    let Some(ofi) = job(STREAMS, no_order) else {
        return;
    };

    let mut endpoint = new_endpoint(&ofi).expect("the first");
    let mut put = |pe, put| {
        endpoint.put(Pe(pe), put).expect("a put that starts");
    };

    // These puts connect the ep to both PEs.
    put(1, long_put());
    put(2, long_put());
    endpoint.quiet().expect("all is complete");

    endpoint.put(Pe(1), long_put()).expect("a put that starts");
    endpoint.fence().expect("a fence");

    let short = Put {
        local: long_put().local.take_first(8),
        ..long_put()
    };

    let polls = ofi.network().local.state.polls();
    endpoint.put(Pe(2), short).expect("a put that starts");
    assert_eq!(ofi.network().local.state.polls(), polls, "it has waited");

    endpoint.put(Pe(1), long_put()).expect("a put that starts");
    let of_pe_1 = with(&endpoint, |wire| wire.ep().map(|ep| ep.pending(1)));
    assert!(of_pe_1 <= Some(1), "the first one is complete");

    endpoint.quiet().expect("all is complete");
    assert!(with(&endpoint, |wire| wire.unflushed.is_empty()));
}

/// Each signal is a message; the target acknowledges none of them before a thread waits for that.
#[test]
fn signals_are_not_answered_before_somebody_waits() {
    const SIGNALS: u32 = 20;
    let Some(ofi) = job(STREAMS, Tuning::default()) else {
        return;
    };

    let mut endpoint = new_endpoint(&ofi).expect("the first");
    let signal = AmoRequest::of_word(START, AmoOp::Add, 1);
    let put = || Put {
        remote: START,
        local: SourceBuf::EMPTY,
        completion: Completion::Now,
    };

    for _ in 0..SIGNALS {
        endpoint.fence().expect("a fence");
        endpoint
            .put_signal(Pe(1), put(), signal, SignalOrder::AfterAll)
            .expect("a signal that starts");
    }

    // The answers to fetches of another origin acknowledge nothing of this one.
    let mut other = new_endpoint(&ofi).expect("the second");
    let count = |end: &mut TestEndpoint| {
        let fetch = AmoRequest {
            op: AmoOp::Fetch,
            ..signal
        };
        end.amo(Pe(1), fetch, OldValue::Returned).expect("a word")
    };
    eventually("all signals are carried out", || {
        ofi.progress().poll().expect("no loss");
        count(&mut other) == u64::from(SIGNALS)
    });

    // This PE acknowledges as PE 0 what it has carried out as PE 1.
    assert_eq!(acked(&endpoint).1, 0, "nobody requested an acknowledgment");
    assert_eq!(endpoint.is_quiet(), Ok(false), "nor was one sent");

    eventually("an acknowledgment comes", || {
        ofi.progress().poll().expect("no loss");
        acked(&endpoint).1 > 0
    });

    let (_, count) = acked(&endpoint);
    assert_eq!(count, SIGNALS + 1, "one more message asks for all");
    std::mem::forget((endpoint, other));
}

/// The message completes although the target does nothing meanwhile, so the target need not fetch
/// the data.
#[test]
fn data_and_their_signal_leave_as_one_message() {
    const WORD: u64 = 20_000;
    let Some(ofi) = job(STREAMS, Tuning::default()) else {
        return;
    };
    if !ofi.network().fabric.info.streams() {
        eprintln!("skipped: this version cuts long messages");
        return;
    }

    // This PE acknowledges as PE 0 what it has carried out as PE 1, so a drop would wait forever.
    let mut endpoint = ManuallyDrop::new(new_endpoint(&ofi).expect("the first"));
    let dest = RemoteAddr {
        offset: WORD,
        ..START
    };
    let signal = AmoRequest::of_word(dest, AmoOp::Add, 5);

    let count = |ofi: &Ofi| {
        let mut bytes = Vec::new();
        assert!(ofi.network().local.segments.append_to(&mut bytes, dest, 8));
        u64::from_ne_bytes(std::array::from_fn(|i| bytes[i]))
    };

    let nothing = Put {
        remote: START,
        local: SourceBuf::EMPTY,
        completion: Completion::Now,
    };
    endpoint
        .put_signal(Pe(1), nothing, signal, SignalOrder::AfterData)
        .expect("a signal that starts");
    eventually("it is connected", || {
        ofi.progress().poll().expect("no loss");
        count(&ofi) == 5
    });

    let put = Put {
        local: long_put().local.take_first(2 * WORD as usize),
        ..long_put()
    };

    eventually("nothing is in flight", || in_flight(&endpoint) == Some(0));
    ofi.network().while_paused(|_| {
        endpoint
            .put_signal(Pe(1), put, signal, SignalOrder::AfterData)
            .expect("a message that starts");
        assert!(in_flight(&endpoint) <= Some(1), "more than one message");
        eventually("it has left", || {
            let poll = |wire: &mut OfiWire| wire.ep().map(|ep| ep.poll(|_| ()).expect("no loss"));
            with(&endpoint, poll);
            in_flight(&endpoint) == Some(0)
        });
    });

    // All words of the data are 1.
    eventually("the signal has added to its data", || {
        ofi.progress().poll().expect("no loss");
        count(&ofi) == 6
    });
}

/// Batched operations are sent without a further call of the program, which might never come.
#[test]
fn what_is_batched_leaves_without_a_call() {
    const WORDS: usize = 100;
    let Some(ofi) = job(STREAMS, Tuning::default()) else {
        return;
    };
    let mut endpoint = new_endpoint(&ofi).expect("the first");
    let one = 1u64;
    let mut got = 0u64;

    for i in 0..WORDS {
        let dest = RemoteAddr {
            offset: 8 * i as u64,
            ..START
        };
        verbs::put(&mut endpoint, Pe(1), dest, &one.to_ne_bytes()).expect("memory of this PE");
    }

    let get = Get {
        remote: START,
        // SAFETY: the local outlives the get, which is complete below.
        local: unsafe { DestBuf::new((&raw mut got).cast(), 8) },
        completion: Completion::AtQuiet,
    };
    endpoint.get(Pe(1), get).expect("memory of this PE");

    eventually("all that was put is there", || {
        let mut bytes = Vec::new();
        assert!(
            ofi.network()
                .local
                .segments
                .append_to(&mut bytes, START, 8 * WORDS)
        );
        bytes.chunks(8).all(|word| word == one.to_le_bytes())
    });

    eventually("the answer comes", || {
        ofi.progress().poll().expect("no loss");
        // SAFETY: a live local, written through a pointer to it.
        unsafe { (&raw const got).read_volatile() == one }
    });

    // This PE acknowledges as PE 0 what it has carried out as PE 1, so a drop would wait forever.
    std::mem::forget(endpoint);
}

/// A thread that makes no calls takes no answers, but a peer may wait for what it has put.
#[test]
fn what_is_batched_leaves_while_no_answer_is_taken() {
    const WORDS: usize = 50;
    let Some(ofi) = job(STREAMS, Tuning::default()) else {
        return;
    };
    // This PE acknowledges as PE 0 what it has carried out as other PEs, so a drop would wait
    // forever.
    let mut endpoint = ManuallyDrop::new(new_endpoint(&ofi).expect("the first"));
    let one = 1u64;
    let n = ofi.network().tuning.max_requests;

    for old in vec![7u64; n].leak() {
        // SAFETY: the old value is stored in a word that is never freed.
        let old = OldValue::AtQuiet(unsafe { DestBuf::new((&raw mut *old).cast(), 8) });
        let dest = RemoteAddr {
            offset: 8 * WORDS as u64,
            ..START
        };
        let fetch = AmoRequest {
            dest,
            width: AmoWidth::Eight,
            op: AmoOp::Fetch,
            operand: 0,
            condition: 0,
        };
        endpoint.amo(Pe(1), fetch, old).expect("a word of this PE");

        eventually("it leaves", || {
            !lock(&endpoint.issuer().origin).moves_data()
        });
    }

    // The acknowledgment that the answers would contain if PE 1 were another PE.
    let (origin, _) = acked(&endpoint);
    let count = n as u32;
    let acknowledged = ofi
        .network()
        .local
        .acks
        .acknowledge(Pe(1), Ack { origin, count });
    assert_eq!(acknowledged, Ok(()));

    for i in 0..WORDS {
        let dest = RemoteAddr {
            offset: 8 * i as u64,
            ..START
        };
        verbs::put(&mut *endpoint, Pe(1), dest, &one.to_ne_bytes()).expect("memory of this PE");
    }

    eventually("all that was put is there", || {
        let mut bytes = Vec::new();
        assert!(
            ofi.network()
                .local
                .segments
                .append_to(&mut bytes, START, 8 * WORDS)
        );
        bytes.chunks(8).all(|word| word == one.to_le_bytes())
    });
}

/// The next call returns the loss and closes the ep, so that libfabric accesses no memory of
/// callers any more.
#[test]
fn a_loss_that_another_thread_finds_closes_the_ep_at_the_next_call() {
    let Some(ofi) = job(STREAMS, Tuning::default()) else {
        return;
    };
    let mut endpoint = new_endpoint(&ofi).expect("the first");

    let shared = ofi.network();
    shared.inserted(Pe(1)).expect("it is connected");
    let right = word_of(&ofi, Pe(1)).expect("memory of this PE");
    let wrong = RmaAddress {
        key: right.key.wrapping_add(1),
        ..right
    };

    start(&ofi, &endpoint, |ep| ep.read_and_forget(wrong));
    eventually("the failure is found", || {
        let polled = with(&endpoint, |wire| wire.ep().map(|ep| ep.poll(|_| ())));
        polled.is_some_and(|polled| polled.map_err(|failure| shared.fail(&failure)).is_err())
    });

    assert!(matches!(endpoint.quiet(), Err(Error::Lost(..))));
    assert_eq!(in_flight(&endpoint), None, "its ep is open");
}

/// libfabric does not report that a peer has written a flag, which any poll may have received.
#[test]
fn each_poll_wakes_the_threads_that_wait_for_flags() {
    let Some(ofi) = job(STREAMS, Tuning::default()) else {
        return;
    };
    let endpoint = new_endpoint(&ofi).expect("the first");
    let shared = ofi.network();
    let rings_of = |poll: &dyn Fn()| {
        let before = RINGS.get();
        poll();
        RINGS.get() - before
    };

    let of_origin = rings_of(&|| {
        with(&endpoint, |wire| {
            let polled = wire.poll(shared, &mut |_, _| unreachable!("nothing was requested"));
            polled.expect("no loss");
        });
    });
    let before_sleep = rings_of(&|| {
        shared.sleep_until_event(None, Duration::ZERO, &mut || true);
    });
    let of_service = rings_of(&|| {
        shared.serve();
    });
    assert!(
        of_origin > 0 && before_sleep > 0 && of_service > 0,
        "{of_origin}, {before_sleep}, {of_service}"
    );
}

/// A blocking get or fetch polls itself until it is complete.
#[test]
fn blocking_gets_and_fetches_leave_nothing_to_the_service_thread() {
    let Some(ofi) = job(STREAMS, Tuning::default()) else {
        return;
    };
    let mut endpoint = new_endpoint(&ofi).expect("the first");
    let mut words = [0u64; 2];
    let mut listed = Vec::new();

    // Fewer fetches than may be unacknowledged, since PE 1 acknowledges none.
    for _ in 0..20 {
        let get = Get {
            remote: START,
            // SAFETY: `words` lives until the call has waited for the get.
            local: unsafe { DestBuf::new(words.as_mut_ptr().cast(), 16) },
            completion: Completion::Now,
        };
        endpoint.get(Pe(1), get).expect("memory of this PE");
        listed.push(endpoint.issuer().is_listed());

        verbs::add_one(&mut endpoint, Pe(1), START).expect("a word of this PE");
        listed.push(endpoint.issuer().is_listed());
    }

    // This PE acknowledges as PE 0 what it has carried out as PE 1, so a drop would wait forever.
    std::mem::forget(endpoint);
    // A long wait, as on a busy machine, lists the endpoint for the service thread, so not every
    // call need leave it unlisted.
    assert!(listed.contains(&false), "each call has listed the endpoint");
}

/// Each ep makes connections of its own, and all eps take permits from the same supply.
#[test]
fn no_more_connections_are_made_at_once_than_may_be() {
    let Some(ofi) = job(STREAMS, Tuning::default()) else {
        return;
    };
    let new = |_| new_endpoint(&ofi).expect("one more");
    let endpoints: Vec<TestEndpoint> = (0..MAX_AT_ONCE + 2).map(new).collect();
    ofi.network()
        .inserted(Pe(1))
        .expect("it has published its address");
    let from = word_of(&ofi, Pe(1)).expect("memory of this PE");

    for endpoint in &endpoints {
        let posted = with(endpoint, |wire| {
            wire.ep().map(|ep| ep.read_and_forget(from))
        });
        assert_eq!(posted, Some(Ok(PostStatus::Again)), "it is not connected");
    }
    assert!(
        ofi.network().fabric.permits.take().is_none(),
        "there are more permits"
    );

    for endpoint in &endpoints {
        start(&ofi, endpoint, |ep| ep.read_and_forget(from));
    }

    let permits = &ofi.network().fabric.permits;
    let taken = [(); MAX_AT_ONCE as usize].map(|()| permits.take());
    assert!(taken.iter().all(Option::is_some));
}
