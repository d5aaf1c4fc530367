//! Unit tests of `endpoints`: one test, since the places are those of the process.

use super::*;
use crate::base::constants::{SHMEM_CTX_PRIVATE, SHMEM_CTX_SERIALIZED};
use rushmem_transport::null;

/// The place whose endpoint a context uses, and whether it does so without a lock.
fn used(ctx: ContextHandle) -> (usize, bool) {
    let uses = PLACES[ctx.place()].uses.load(Ordering::Relaxed);
    ((uses & !ALONE) as usize, uses & ALONE != 0)
}

fn quiet(ctx: ContextHandle) -> Option<Result<(), Error>> {
    on(ctx, || (), |endpoint| endpoint.quiet())
}

#[test]
fn contexts_have_endpoints_of_their_own_as_long_as_there_are_some() {
    let transport = null::with_endpoints(5);
    let made = contexts::tests::made;
    let default = ContextHandle::DEFAULT;
    let [a, private, serialized, late] =
        [made(0), made(SHMEM_CTX_PRIVATE), made(SHMEM_CTX_SERIALIZED), made(SHMEM_CTX_PRIVATE)];
    set_library(transport.endpoint().expect("the first one"));
    for ctx in [a, private, serialized, default, late] {
        assert!(quiet(ctx).is_none());
        make(ctx, || transport.endpoint());
        make(ctx, || panic!("it has one"));
        assert_eq!(quiet(ctx), Some(Ok(())));
    }
    assert_eq!(used(default), (0, false));
    assert_eq!(used(a), (a.place(), false));
    assert_eq!(used(private), (private.place(), true));
    assert_eq!(used(serialized), (serialized.place(), true));
    assert_eq!(used(late), (0, false), "it shares that of the default context, with its lock");

    // Before the default context has one there is the library's.
    forget(default);
    forget(late);
    make(late, || Err(Error::Unavailable("no more".to_owned())));
    assert_eq!(used(late), (LIBRARY, false));
    assert_eq!(quiet(late), Some(Ok(())));

    let mut n = 0;
    on_all(|_| {
        n += 1;
        Ok(())
    })
    .expect("no error");
    assert_eq!(n, 4, "the library's and those of three contexts");
    forget(a);
    assert!(quiet(a).is_none());
    clear();
    assert!(quiet(private).is_none());
    assert!(on_library(|endpoint| endpoint.quiet()).is_none());
}
