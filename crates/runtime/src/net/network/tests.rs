//! Unit tests of `network`.

use super::*;
use rushmem_transport::null;

/// One over a fabric with so many endpoints.
fn with_endpoints(most: usize) -> Network {
    let transport = null::with_endpoints(most);
    let library = transport.endpoint().expect("the first one");
    Network { contexts: Mutex::default(), library: share(library), transport }
}

const CALL: Call = Call("test");

#[test]
fn contexts_share_when_the_network_has_no_more_endpoints() {
    let (default, a, b) =
        (ContextHandle::DEFAULT, contexts::tests::made(), contexts::tests::made());
    let network = with_endpoints(3);
    let own = network.endpoint(CALL, a);
    let of_default = network.endpoint(CALL, default);
    assert!(!Arc::ptr_eq(&own, &of_default) && !Arc::ptr_eq(&of_default, &network.library));
    let shared = network.endpoint(CALL, b);
    assert!(Arc::ptr_eq(&shared, &of_default));
    assert!(Arc::ptr_eq(&shared, &network.endpoint(CALL, b)));
    assert!(Arc::ptr_eq(&own, &network.endpoint(CALL, a)));
    assert_eq!(process::lock(&shared).quiet(), Ok(()));

    // Before the default context has one there is the library's.
    let network = with_endpoints(1);
    assert!(Arc::ptr_eq(&network.endpoint(CALL, a), &network.library));
    assert!(Arc::ptr_eq(&network.endpoint(CALL, default), &network.library));
}
