//! Who carries out atomic operations, and which parts all PEs have.

use super::*;
use rushmem_transport::null;

const TCP: Provider = Provider {
    name: "tcp",
    ..null::PROVIDER
};
const NETWORK: Provider = Provider {
    name: "ofi",
    network_amos: true,
    ..null::PROVIDER
};

fn amos(requested: Option<Amos>, provider: &Provider, in_hardware: bool) -> Vec<Amos> {
    let executors = executors(requested, provider, in_hardware).expect("an executor");
    executors
        .into_iter()
        .map(|executor| executor.amos)
        .collect()
}

#[test]
fn the_network_is_chosen_where_its_hardware_does() {
    assert_eq!(amos(None, &NETWORK, true), [Amos::Network, Amos::Software]);
    assert_eq!(amos(None, &NETWORK, false), [Amos::Software]);
    assert_eq!(amos(None, &TCP, true), [Amos::Software]);
}

#[test]
fn the_requested_executor_is_the_only_one() {
    for in_hardware in [false, true] {
        for requested in [Amos::Software, Amos::Network] {
            let found = amos(Some(requested), &NETWORK, in_hardware);
            assert_eq!(found, [requested]);
        }
        let found = amos(Some(Amos::Software), &TCP, in_hardware);
        assert_eq!(found, [Amos::Software]);
    }

    let refusal = executors(Some(Amos::Network), &TCP, false).expect_err("it has none");
    assert!(
        refusal.contains("SHMEM_AMOS is network, but tcp has no"),
        "{refusal}"
    );
}

#[test]
fn parts_are_those_that_all_pes_have_in_the_order_of_the_first() {
    let has = |names: &[&str]| Ok(names.iter().map(|&name| name.to_owned()).collect());
    let part = |name: &str, with: &[usize]| CommonPart {
        name: name.to_owned(),
        with: with.to_vec(),
    };

    let found = common_parts(1, &[vec![has(&["a", "b", "c"])], vec![has(&["c", "b"])]]);
    assert_eq!(found, Ok(vec![part("b", &[0]), part("c", &[0])]));

    // Over part `a`, both executors are tried before the one that `b` has.
    let offers = vec![has(&["a"]), has(&["a", "b"])];
    let found = common_parts(2, &[offers.clone(), offers]);
    assert_eq!(found, Ok(vec![part("a", &[0, 1]), part("b", &[1])]));

    let offers = [vec![has(&["a"])], vec![has(&["a"])], vec![has(&["b"])]];
    let found = common_parts(1, &offers);
    let why = "the PEs have nothing in common (PE 0, PE 1: it has a; PE 2: it has b)";
    assert_eq!(found, Err(why.to_owned()));

    let offers = [vec![has(&["a"])], vec![Err("no library".to_owned())]];
    let found = common_parts(1, &offers);
    assert_eq!(found, Err("PE 1: no library".to_owned()));
}
