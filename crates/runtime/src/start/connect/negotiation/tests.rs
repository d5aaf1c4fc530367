//! What all PEs choose among candidates and parts, given what each has found.

use super::*;
use rushmem_transport::null;

const UCX: Provider = Provider {
    name: "ucx",
    ..null::PROVIDER
};
const OFI: Provider = Provider {
    name: "ofi",
    ..null::PROVIDER
};
const TCP: Provider = Provider {
    name: "tcp",
    without_rdma: true,
    ..null::PROVIDER
};

fn agreed(findings: &[Findings]) -> Result<Vec<Candidate<'static>>, String> {
    agree(&[&UCX, &OFI, &TCP], findings).map_err(|error| error.to_string())
}

/// Returns the numbers of the transports that are tried, in their order.
fn tried(candidates: &[Candidate<'_>]) -> Vec<usize> {
    let tried = candidates
        .iter()
        .filter(|candidate| candidate.verdict == Verdict::Untried);
    tried.map(|candidate| candidate.rank).collect()
}

fn auto(ucx: Availability, ofi: Availability) -> Findings {
    Findings {
        seen: vec![ucx, ofi, Availability::Plain],
        ..Findings::default()
    }
}

fn forced(name: &str) -> Findings {
    Findings {
        requested: name.to_owned(),
        ..Findings::default()
    }
}

#[test]
fn rdma_goes_first_and_software_only_where_it_is_ours() {
    use Availability::{Plain, Rdma};
    let on_both_pes = |ucx: &Availability, ofi: &Availability| {
        let findings = auto(ucx.clone(), ofi.clone());
        tried(&agreed(&[findings.clone(), findings]).expect("tcp at least"))
    };
    let absent = Availability::Absent("gone".into());
    assert_eq!(on_both_pes(&Rdma, &Rdma), [0, 1, 2]);
    assert_eq!(on_both_pes(&Plain, &Rdma), [1, 2]);
    assert_eq!(on_both_pes(&Plain, &Plain), [2]);
    assert_eq!(on_both_pes(&absent, &Plain), [2]);
}

#[test]
fn what_some_pes_lack_is_passed_over_with_the_reason() {
    let with_devices = auto(Availability::Rdma, Availability::Rdma);
    let without_for_ucx = auto(Availability::Plain, Availability::Rdma);
    let no_libfabric = Availability::Absent("no libfabric.so.1".into());
    let without_ofi = auto(Availability::Rdma, no_libfabric);

    let findings = [
        with_devices.clone(),
        without_for_ucx,
        with_devices,
        without_ofi,
    ];
    let agreed = agreed(&findings).expect("tcp at least");
    assert_eq!(tried(&agreed), [2]);
    assert_eq!(
        refusals(agreed.iter()),
        "ucx: PE 1 has no RDMA device for it; ofi: PE 3: no libfabric.so.1"
    );
}

#[test]
fn what_is_requested_is_the_only_candidate() {
    let candidates = agreed(&[forced("ofi"), forced("ofi")]).expect("it is known");
    assert_eq!(tried(&candidates), [1]);
    let excluded = candidates
        .iter()
        .filter(|candidate| candidate.is_excluded());
    assert_eq!(excluded.count(), 2);

    let error = agreed(&[
        forced("tcp"),
        forced("tcp"),
        auto(Availability::Rdma, Availability::Rdma),
    ]);
    let error = error.map(drop).expect_err("they differ");
    assert!(
        error.contains("tcp on PE 0") && error.contains("auto on PE 2"),
        "{error}"
    );
}

#[test]
fn pes_agree_on_who_carries_out_atomic_operations() {
    let network = Findings {
        amos: "network".to_owned(),
        ..forced("ofi")
    };
    let error = agreed(&[forced("ofi"), forced("ofi"), network])
        .map(drop)
        .expect_err("they differ");
    assert!(
        error.contains("SHMEM_AMOS is auto on PE 0 and network on PE 2"),
        "{error}"
    );
}

#[test]
fn who_saw_what_is_said_once_for_all_who_saw_the_same() {
    let bad = |why: &str| Err(why.to_owned());
    assert_eq!(complaint(&[Ok(()), Ok(())]), None);

    let found = complaint(&[bad("a"), Ok(()), bad("b"), bad("a")]);
    assert_eq!(found.as_deref(), Some("PE 0, PE 3: a; PE 2: b"));

    let found = complaint(&[bad("a"), bad("a")]);
    assert_eq!(found.as_deref(), Some("all PEs: a"));

    let found = complaint(&[vec![bad("a"); 9], vec![Ok(())]].concat());
    let expected = "PE 0, PE 1, PE 2, PE 3 and 5 more: a";
    assert_eq!(found.as_deref(), Some(expected));
}
