//! Unit tests of `endpoints`.

use super::*;
use crate::access::contexts::Contexts;
use rushmem_pe::call::call;
use rushmem_pe::constants::{SHMEM_CTX_PRIVATE, SHMEM_CTX_SERIALIZED};
use rushmem_transport::{EndpointUser, Transport, null};
use std::sync::Barrier;
use std::sync::atomic::AtomicBool;
use std::thread;

const CALL: Call = call!("test");

/// A PE without a network of the process: what it has of contexts and endpoints.
struct TestPe {
    contexts: Contexts,
    endpoints: Endpoints,
}

impl TestPe {
    const fn new() -> TestPe {
        TestPe {
            contexts: Contexts::new(),
            endpoints: Endpoints::new(),
        }
    }

    /// Gives the context an endpoint of `transport`.
    fn open(&self, ctx: ContextHandle, transport: &dyn Transport) -> Result<(), Error> {
        self.endpoints
            .add(ctx, || transport.endpoint(EndpointUser::Context))
    }

    /// Returns the result of a quiet on the context; `None` if it has no endpoint.
    fn quiet(&self, ctx: ContextHandle) -> Option<Result<(), Error>> {
        let endpoint = self.endpoints.used(CALL, ctx);
        endpoint.map(|mut endpoint| endpoint.quiet())
    }

    /// Destroys the context, as `shmem_ctx_destroy` does.
    fn destroy(&self, ctx: ContextHandle) {
        self.contexts.remove(ctx);
        self.endpoints.remove(ctx);
    }
}

/// Checks that a thread which visits all endpoints waits for one in use: while a thread uses the
/// endpoint of `ctx`, it visits only those of the contexts `before`, and afterwards the others.
fn all_wait_for_the_user_of(pe: &TestPe, ctx: ContextHandle, before: &[ContextHandle]) {
    let done = Mutex::new(Vec::new());
    let entered = Barrier::new(2);
    let leave = Barrier::new(2);
    thread::scope(|scope| {
        scope.spawn(|| {
            let _endpoint = pe.endpoints.used(CALL, ctx).expect("it has one");
            entered.wait();
            leave.wait();
            done.lock().unwrap().push("left");
        });
        entered.wait();
        scope.spawn(|| {
            for _endpoint in pe.endpoints.all().filter_map(Entry::locked) {
                done.lock().unwrap().push("visited");
            }
        });
        while done.lock().unwrap().len() < before.len() {
            thread::yield_now();
        }
        // A visitor that did not wait would go on meanwhile.
        (0..100).for_each(|_| thread::yield_now());
        leave.wait();
    });
    let done = done.into_inner().unwrap();
    let left = done.iter().position(|event| *event == "left");
    assert_eq!((left, done.len()), (Some(before.len()), 5), "{done:?}");
}

#[test]
fn contexts_have_endpoints_of_their_own() {
    static PE: TestPe = TestPe::new();
    let transport = null::with_endpoints(4);
    let of_library = transport.endpoint(EndpointUser::Context);
    PE.endpoints
        .set_of_library(of_library.expect("it is the first one"));
    let [a, private, serialized, late] = [
        0,
        SHMEM_CTX_PRIVATE,
        SHMEM_CTX_SERIALIZED,
        SHMEM_CTX_PRIVATE,
    ]
    .map(|options| PE.contexts.of_world(options));
    for ctx in [a, private, serialized] {
        assert!(PE.quiet(ctx).is_none());
        assert_eq!(PE.open(ctx, &*transport), Ok(()));
        let again = PE.endpoints.add(ctx, || panic!("it has one"));
        assert_eq!(again, Ok(()));
        assert_eq!(PE.quiet(ctx), Some(Ok(())));
    }
    assert!(PE.open(late, &*transport).is_err());
    assert!(PE.quiet(late).is_none(), "it has none, and shares none");
    assert!(PE.quiet(ContextHandle::DEFAULT).is_none());

    all_wait_for_the_user_of(&PE, private, &[a]);
    PE.destroy(a);
    assert!(PE.quiet(a).is_none());
    PE.endpoints.clear();
    assert!(PE.quiet(private).is_none());
    assert!(PE.endpoints.of_library.locked().is_none());
}

/// Contexts of two PEs have the same handle, and each has the endpoint of its PE.
#[test]
fn two_pes_have_endpoints_of_their_own() {
    static PES: [TestPe; 2] = [const { TestPe::new() }; 2];
    let transports = [null::with_endpoints(1), null::with_endpoints(1)];
    let [ctx, on_second] = [0, 1].map(|pe: usize| PES[pe].contexts.of_world(0));
    assert_eq!(ctx, on_second);
    let [first, second] = &PES;
    assert_eq!(first.open(ctx, &*transports[0]), Ok(()));
    assert!(second.quiet(ctx).is_none());
    assert_eq!(second.open(ctx, &*transports[1]), Ok(()));

    // A call of one PE is not that of the other one.
    first.endpoints.set_call(call!("call of the first PE"));
    assert!(!first.endpoints.call.load(Relaxed).is_null());
    assert!(second.endpoints.call.load(Relaxed).is_null());

    // A thread that uses the endpoint of one PE does not hinder the other one.
    let used = first.endpoints.used(CALL, ctx);
    assert_eq!(second.quiet(ctx), Some(Ok(())));
    drop(used);

    first.destroy(ctx);
    assert!(first.quiet(ctx).is_none());
    assert_eq!(second.quiet(ctx), Some(Ok(())));
}

#[test]
fn two_threads_that_use_a_context_first_share_one_endpoint() {
    static PE: TestPe = TestPe::new();
    let together = Barrier::new(2);
    for nth in 0..100 {
        let ctx = PE.contexts.of_world(0);
        let transport = null::with_endpoints(1);
        thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(|| {
                    together.wait();
                    assert_eq!(PE.open(ctx, &*transport), Ok(()), "context {nth}");
                    assert_eq!(PE.quiet(ctx), Some(Ok(())));
                });
            }
        });
    }
}

#[test]
fn a_destroyed_context_loses_its_endpoint_once_no_thread_uses_it() {
    static PE: TestPe = TestPe::new();
    let ctx = PE.contexts.of_world(0);
    assert_eq!(PE.open(ctx, &*null::with_endpoints(1)), Ok(()));

    let used = PE.endpoints.used(CALL, ctx);
    let is_destroyed = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            PE.destroy(ctx);
            is_destroyed.store(true, Relaxed);
        });
        // A thread that did not wait would go on meanwhile.
        (0..100).for_each(|_| thread::yield_now());
        assert!(!is_destroyed.load(Relaxed));
        drop(used);
    });
    assert!(PE.quiet(ctx).is_none());
}

#[test]
fn the_handle_of_a_destroyed_context_does_not_reach_its_successor() {
    static PE: TestPe = TestPe::new();
    let transport = null::with_endpoints(2);
    let stale = PE.contexts.of_world(0);
    assert_eq!(PE.open(stale, &*transport), Ok(()));
    PE.destroy(stale);

    let ctx = PE.contexts.of_world(0);
    assert_eq!(ctx.index(), stale.index());
    assert!(PE.quiet(ctx).is_none(), "it has none yet");
    assert_eq!(PE.open(ctx, &*transport), Ok(()));
    assert!(PE.quiet(stale).is_none());
    PE.destroy(stale);
    assert_eq!(PE.quiet(ctx), Some(Ok(())), "it was not destroyed");
    assert!(PE.contexts.team_of(ctx).is_some());
}

/// A thread of the library carries out a collective while the program makes other calls.
#[test]
fn a_thread_that_carries_out_a_request_has_a_call_of_its_own() {
    static ENDPOINTS: Endpoints = Endpoints::new();
    ENDPOINTS.set_call(call!("call of the program"));
    rushmem_pe::call::thread::add_request();
    let request = call!("request");
    let named = rushmem_pe::call::thread::carry_out(request, || ENDPOINTS.current_call().name());
    assert_eq!(named, "request");
    let named = ENDPOINTS.current_call().name();
    assert_eq!(named, "an operation over the network", "of which thread?");
}
