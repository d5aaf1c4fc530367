//! Unit tests of `choice`.

use super::*;
use rushmem_transport::NicName;

fn ordered(offers: &[(&str, &str, bool)], wish: &Wish) -> Vec<String> {
    let facts = |(provider, domain, loopback): &(&str, &str, bool)| InfoFacts {
        provider: (*provider).to_owned(),
        domain: (*domain).to_owned(),
        fabric: String::new(),
        mr_mode: 0,
        key_bytes: 8,
        registrations: 0,
        inject: 0,
        depth: 1,
        receives: 1,
        ranges: 1,
        sends_whole: true,
        max_message: 1,
        ordered: false,
        reads_follow: false,
        delivery: false,
        connects: connects(provider),
        sockets: false,
        loopback: *loopback,
        nic: None,
    };
    let mut found: Vec<((), InfoFacts)> = offers.iter().map(|offer| ((), facts(offer))).collect();
    order_by_connections(&mut found, wish);
    order(&mut found, wish);
    found.into_iter().map(|(_, facts)| facts.domain).collect()
}

#[test]
fn the_near_card_goes_first_among_those_of_its_provider() {
    let offers = [
        ("cxi", "cxi0", false),
        ("cxi", "cxi1", false),
        ("tcp", "lo", true),
        ("tcp", "hsn1", false),
    ];
    let wish = Wish::usual();
    assert_eq!(ordered(&offers, &wish), ["cxi0", "cxi1", "lo", "hsn1"]);
    let wish = Wish { near: NicName::parse("cxi1,hsn1"), ..wish };
    assert_eq!(ordered(&offers, &wish), ["cxi1", "cxi0", "hsn1", "lo"]);
    let wish = Wish { one_machine: true, ..wish };
    assert_eq!(ordered(&offers, &wish), ["cxi1", "cxi0", "lo", "hsn1"]);
}

#[test]
fn cards_without_connections_go_first_in_jobs_of_many() {
    let offers = [
        ("verbs;ofi_rxm", "mlx5_0", false),
        ("psm3", "irdma0", false),
        ("udp;ofi_rxd", "eth0", false),
        ("tcp", "eth1", false),
    ];
    let wish = |pairs_of_node| Wish { pairs_of_node, ..Wish::usual() };
    assert_eq!(ordered(&offers, &wish(MANY_PAIRS)), ["mlx5_0", "irdma0", "eth0", "eth1"]);
    assert_eq!(ordered(&offers, &wish(MANY_PAIRS + 1)), ["irdma0", "mlx5_0", "eth0", "eth1"]);
}
