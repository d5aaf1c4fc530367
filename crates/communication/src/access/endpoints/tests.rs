//! Unit tests of `endpoints`: one test of endpoints, since their table belongs to the process.

use super::*;
use rushmem_pe::call::call;
use rushmem_pe::constants::{SHMEM_CTX_PRIVATE, SHMEM_CTX_SERIALIZED};
use rushmem_transport::{EndpointUser, null};
use std::sync::Barrier;
use std::thread;

const CALL: Call = call!("test");

fn quiet(ctx: ContextHandle) -> Option<Result<(), Error>> {
    used_endpoint(CALL, ctx).map(|mut endpoint| endpoint.quiet())
}

/// Checks that a thread which visits all endpoints waits for one in use: while a thread uses the
/// endpoint of `ctx`, it visits only those of the contexts `before`, and afterwards the others.
fn all_wait_for_the_user_of(ctx: ContextHandle, before: &[ContextHandle]) {
    let done = Mutex::new(Vec::new());
    let entered = Barrier::new(2);
    let leave = Barrier::new(2);
    thread::scope(|scope| {
        scope.spawn(|| {
            let _endpoint = ENTRIES[ctx.index()].locked().expect("it has one");
            entered.wait();
            leave.wait();
            done.lock().unwrap().push("left");
        });
        entered.wait();
        scope.spawn(|| {
            for _endpoint in all().filter_map(Entry::locked) {
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
    let transport = null::with_endpoints(4);
    let made = contexts::tests::made;
    let default = ContextHandle::DEFAULT;
    let [a, private, serialized, late] = [
        made(0),
        made(SHMEM_CTX_PRIVATE),
        made(SHMEM_CTX_SERIALIZED),
        made(SHMEM_CTX_PRIVATE),
    ];
    set_library_endpoint(
        transport
            .endpoint(EndpointUser::Context)
            .expect("the first one"),
    );
    for ctx in [a, private, serialized] {
        assert!(quiet(ctx).is_none());
        assert_eq!(
            make(ctx, || transport.endpoint(EndpointUser::Context)),
            Ok(())
        );
        assert_eq!(make(ctx, || panic!("it has one")), Ok(()));
        assert_eq!(quiet(ctx), Some(Ok(())));
    }
    assert!(make(late, || transport.endpoint(EndpointUser::Context)).is_err());
    assert!(quiet(late).is_none(), "it has none, and shares none");
    assert!(quiet(default).is_none());

    all_wait_for_the_user_of(private, &[a]);
    drop_endpoint(a);
    assert!(quiet(a).is_none());
    // As `close` does, which also closes the network.
    all().for_each(|entry| drop(entry.take()));
    assert!(quiet(private).is_none());
    assert!(LIBRARY.locked().is_none());
}

/// A thread of the library carries out a collective while the program makes other calls.
#[test]
fn a_thread_that_carries_out_a_request_has_a_call_of_its_own() {
    set_call(call!("call of the program"));
    rushmem_pe::call::thread::add_request();
    let named = rushmem_pe::call::thread::carry_out(call!("request"), || current_call().name());
    assert_eq!(named, "request");
    let named = current_call().name();
    assert_eq!(named, "an operation over the network", "of which thread?");
}
