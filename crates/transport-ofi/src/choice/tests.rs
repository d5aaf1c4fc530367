//! Unit tests of `choice`.

use super::*;
use rushmem_transport::{Amos, NicName};

fn ordered(offers: &[(&str, &str, bool)], wish: &Wish) -> Vec<String> {
    let facts = |(provider, domain, loopback): &(&str, &str, bool)| InfoFacts {
        provider: (*provider).to_owned(),
        domain: (*domain).to_owned(),
        mr_mode: 0,
        key_bytes: 8,
        registrations: 0,
        inject: 0,
        depth: 1,
        receives: 1,
        max_message: 1,
        ordered: false,
        reads_follow: false,
        delivery: false,
        sockets: false,
        loopback: *loopback,
        nic: None,
    };
    let mut found: Vec<((), InfoFacts)> = offers.iter().map(|offer| ((), facts(offer))).collect();
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
    let wish = Wish {
        provider: None,
        domain: None,
        amos: Amos::Software,
        one_machine: false,
        interfaces: Vec::new(),
        near: None,
    };
    assert_eq!(ordered(&offers, &wish), ["cxi0", "cxi1", "lo", "hsn1"]);
    let wish = Wish { near: NicName::parse("cxi1,hsn1"), ..wish };
    assert_eq!(ordered(&offers, &wish), ["cxi1", "cxi0", "hsn1", "lo"]);
    let wish = Wish { one_machine: true, ..wish };
    assert_eq!(ordered(&offers, &wish), ["cxi1", "cxi0", "lo", "hsn1"]);
}
