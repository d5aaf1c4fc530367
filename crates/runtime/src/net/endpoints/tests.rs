//! Unit tests of `endpoints`: one test, since the table of endpoints belongs to the process.

use super::*;
use crate::call::call;
use crate::constants::{SHMEM_CTX_PRIVATE, SHMEM_CTX_SERIALIZED};
use rushmem_transport::null;
use std::sync::Barrier;
use std::thread;

const CALL: Call = call!("test");

/// Returns the index of the entry whose endpoint a context uses under its lock; `None` if it uses
/// an endpoint without a lock, or none.
fn locked(ctx: ContextHandle) -> Option<usize> {
    let entry = &ENDPOINTS[ctx.index()];
    if entry.sole.load(Ordering::Relaxed) == ctx.0 {
        return None;
    }
    let uses = entry.uses.load(Ordering::Relaxed);
    ENDPOINTS.iter().position(|entry| std::ptr::eq(entry, uses))
}

fn quiet(ctx: ContextHandle) -> Option<Result<(), Error>> {
    use_existing(CALL, ctx).map(|mut endpoint| endpoint.quiet())
}

/// Checks that a thread which visits all endpoints waits for one in use: while a thread uses the
/// endpoint of `ctx`, it visits only those of the contexts `before`, and afterwards the others.
fn all_wait_for_the_user_of(ctx: ContextHandle, before: &[ContextHandle]) {
    let done = Mutex::new(Vec::new());
    let (entered, leave) = (Barrier::new(2), Barrier::new(2));
    thread::scope(|scope| {
        scope.spawn(|| {
            let _endpoint = use_existing(CALL, ctx).expect("it has one");
            entered.wait();
            leave.wait();
            done.lock().unwrap().push("left");
        });
        entered.wait();
        let visit = |_: &mut dyn Endpoint| {
            done.lock().unwrap().push("visited");
            Ok(())
        };
        scope.spawn(move || on_all(visit));
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
fn contexts_have_endpoints_of_their_own_as_long_as_there_are_some() {
    let transport = null::with_endpoints(5);
    let made = contexts::tests::made;
    let default = ContextHandle::DEFAULT;
    let [a, private, serialized, late] = [
        made(0),
        made(SHMEM_CTX_PRIVATE),
        made(SHMEM_CTX_SERIALIZED),
        made(SHMEM_CTX_PRIVATE),
    ];
    set_library(transport.endpoint().expect("the first one"));
    for ctx in [a, private, serialized, default, late] {
        assert!(quiet(ctx).is_none());
        make(ctx, || transport.endpoint());
        make(ctx, || panic!("it has one"));
        assert_eq!(quiet(ctx), Some(Ok(())));
    }
    assert_eq!(locked(default), Some(0));
    assert_eq!(locked(a), Some(a.index()));
    assert_eq!(locked(private), Some(private.index()));
    assert_eq!(locked(serialized), Some(serialized.index()));
    assert_eq!(
        locked(late),
        Some(0),
        "it shares that of the default context, with its lock"
    );

    // While the default context has no endpoint, contexts share that of the library.
    drop_endpoint(default);
    drop_endpoint(late);
    make(late, || Err(Error::Unavailable("no more".to_owned())));
    assert_eq!(locked(late), Some(LIBRARY_INDEX));
    assert_eq!(quiet(late), Some(Ok(())));

    let mut n = 0;
    let counted = on_all(|_| {
        n += 1;
        Ok(())
    });
    assert_eq!(counted, Ok(()));
    assert_eq!(n, 4, "the library's and those of three contexts");
    all_wait_for_the_user_of(private, &[a]);
    drop_endpoint(a);
    assert!(quiet(a).is_none());
    close();
    assert!(quiet(private).is_none());
    assert!(ENDPOINTS[LIBRARY_INDEX].locked().is_none());
}
