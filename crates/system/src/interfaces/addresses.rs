//! The addresses of this machine at which sockets listen, in the order in which peers try them, or
//! the reason why there are none.

use std::net::{IpAddr, Ipv4Addr};

use if_addrs::{Interface, get_if_addrs};

use crate::interfaces::flags::{down, names};
use crate::interfaces::selection::{Entry, INTERFACES, Selection};

/// The processes that must be able to reach the addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Need {
    /// Processes of this machine alone, for which loopback suffices.
    ThisMachine,
    /// Processes of other machines.
    Others,
    /// Processes of other machines, or of this one if it has no network.
    Any,
}

/// Returns the addresses to listen at, in the order in which peers try them: those of bridges after
/// all others, those of the interface `near` first, and IPv4 before IPv6.
///
/// If the selection requests addresses, they are all of these. Otherwise the selection may exclude
/// some, and of the rest they are one address of loopback, if there is one, for
/// [`Need::ThisMachine`], and also for [`Need::Any`] if there is no other address. In all other
/// cases they are the addresses that are not of loopback. Link-local addresses are never among
/// them.
///
/// # Errors
/// A sentence that says why there are none, with the remedy if there is one.
pub fn addresses(
    need: Need,
    selection: Option<&Selection>,
    near: Option<&str>,
) -> Result<Vec<IpAddr>, String> {
    let all = get_if_addrs()
        .map_err(|error| format!("the network interfaces cannot be listed: {error}"))?;
    let picked = pick(&all, need, selection, near);
    if !picked.is_empty() {
        return Ok(picked);
    }

    if let Some(selection) = selection {
        return Err(no_match(&all, selection));
    }
    if need == Need::ThisMachine {
        // The loopback interface is down. The message of the failed connection will name it.
        return Ok(vec![Ipv4Addr::LOCALHOST.into()]);
    }
    Err(no_address(&all))
}

/// Returns the names of the interfaces that a selection admits, for libraries that take names. A
/// list of names alone is returned unchecked.
///
/// # Errors
/// A sentence, if the selection admits none or the interfaces cannot be listed.
pub fn interface_names(selection: &Selection) -> Result<Vec<String>, String> {
    if selection.has_only_names() {
        // The library reports an interface that does not exist.
        return Ok(selection.requested_names().map(str::to_owned).collect());
    }

    let all = get_if_addrs()
        .map_err(|error| format!("the network interfaces cannot be listed: {error}"))?;
    let mut names: Vec<String> = admitted(&all, Some(selection))
        .map(|interface| interface.name.clone())
        .collect();
    names.sort_unstable();
    names.dedup();

    if names.is_empty() {
        return Err(no_match(&all, selection));
    }
    Ok(names)
}

/// Returns the addresses that [`addresses`] describes; none if there are none.
fn pick(
    all: &[Interface],
    need: Need,
    selection: Option<&Selection>,
    near: Option<&str>,
) -> Vec<IpAddr> {
    // A list of exclusions requests nothing, so `need` decides among the remaining addresses.
    let is_requested = selection.is_some_and(|selection| !selection.excludes());
    let usable: Vec<&Interface> = admitted(all, selection).collect();
    let (loopback, others): (Vec<&Interface>, Vec<&Interface>) = usable
        .iter()
        .copied()
        .partition(|interface| interface.is_loopback());

    let is_by_loopback = match need {
        Need::ThisMachine => !loopback.is_empty(),
        Need::Any => others.is_empty(),
        Need::Others => false,
    };
    if is_by_loopback && !is_requested {
        let first = loopback
            .iter()
            .map(|interface| interface.ip())
            .min_by_key(IpAddr::is_ipv6);
        return first.into_iter().collect();
    }

    let mut picked = if is_requested { usable } else { others };
    // The best ones first: no bridges, near the NIC, IPv4.
    picked.sort_by_key(|interface| {
        let is_far = near.is_some_and(|near| near != interface.name);
        (is_bridge(&interface.name), is_far, interface.ip().is_ipv6())
    });

    let mut addresses: Vec<IpAddr> = picked.iter().map(|interface| interface.ip()).collect();
    addresses.dedup();
    addresses
}

/// Returns the addresses that a selection admits, without link-local ones, to which no route leads.
fn admitted<'a>(
    all: &'a [Interface],
    selection: Option<&'a Selection>,
) -> impl Iterator<Item = &'a Interface> {
    all.iter()
        .filter(move |one| selection.is_none_or(|selection| selection.admits(one)))
        .filter(|one| !one.is_link_local())
}

/// Returns true for a bridge. It usually connects containers and virtual machines of this machine
/// rather than other machines.
fn is_bridge(name: &str) -> bool {
    std::path::Path::new("/sys/class/net")
        .join(name)
        .join("bridge")
        .exists()
}

/// Returns a sentence that says why a selection admits no address, and which addresses there are.
fn no_match(all: &[Interface], selection: &Selection) -> String {
    let why = if selection.excludes() {
        "that leaves no address that another machine could reach".to_owned()
    } else {
        let mut whys = Vec::new();
        for entry in &selection.entries {
            whys.push(match entry {
                Entry::Name(name) => why(all, name),
                Entry::Subnet(subnet) => format!("no address here is in {subnet}"),
            });
        }
        whys.join(", ")
    };

    let there: Vec<String> = names().iter().map(|name| described(all, name)).collect();
    format!(
        "{INTERFACES} is {}, but {why}; there are {}: name some of these, or their subnets",
        selection.text(),
        there.join(", ")
    )
}

/// Returns a sentence that says why no interface has an address that another machine could reach.
fn no_address(all: &[Interface]) -> String {
    let mut whys = Vec::new();
    for name in names() {
        if name != "lo" {
            whys.push(why(all, &name));
        }
    }

    let whys = if whys.is_empty() {
        "there is only lo".to_owned()
    } else {
        whys.join(", ")
    };
    format!("no network interface has an address that another machine could reach: {whys}")
}

/// Returns the name of an interface with its addresses.
fn described(all: &[Interface], name: &str) -> String {
    let own = addresses_of(all, name);
    if own.is_empty() {
        name.to_owned()
    } else {
        format!("{name} ({})", own.join(" "))
    }
}

/// Returns the reason why `all` has no usable address of interface `name`.
fn why(all: &[Interface], name: &str) -> String {
    let own = addresses_of(all, name);
    if !names().iter().any(|there| there == name) {
        format!("there is no {name} here")
    } else if down().iter().any(|down| down == name) {
        format!("{name} is down (`ip link set {name} up`)")
    } else if own.is_empty() {
        format!("{name} has no address")
    } else {
        format!(
            "{name} has only the link-local {}: give it another address",
            own.join(" and ")
        )
    }
}

fn addresses_of(all: &[Interface], name: &str) -> Vec<String> {
    all.iter()
        .filter(|interface| interface.name == name)
        .map(|interface| interface.ip().to_string())
        .collect()
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use if_addrs::{IfAddr, IfOperStatus, Ifv4Addr, Ifv6Addr};
    use std::net::Ipv6Addr;

    fn interface(name: &str, ip: &str) -> Interface {
        let addr = match ip.parse().expect("an address") {
            IpAddr::V4(ip) => IfAddr::V4(Ifv4Addr {
                ip,
                netmask: Ipv4Addr::new(255, 255, 255, 0),
                prefixlen: 24,
                broadcast: None,
            }),
            IpAddr::V6(ip) => IfAddr::V6(Ifv6Addr {
                ip,
                netmask: Ipv6Addr::UNSPECIFIED,
                prefixlen: 64,
                broadcast: None,
            }),
        };
        Interface {
            name: name.to_owned(),
            addr,
            index: None,
            oper_status: IfOperStatus::Up,
            is_p2p: false,
        }
    }

    pub(crate) fn some_machine() -> Vec<Interface> {
        [
            ("lo", "127.0.0.1"),
            ("eth0", "10.77.1.2"),
            ("eth0", "fd00::2"),
            ("docker0", "172.17.0.1"),
        ]
        .map(|(name, ip)| interface(name, ip))
        .to_vec()
    }

    fn picked(need: Need, list: &str, near: Option<&str>) -> Vec<String> {
        let selection = Selection::parse(list).expect("it is right");
        let picked = pick(&some_machine(), need, selection.as_ref(), near);
        picked.iter().map(IpAddr::to_string).collect()
    }

    #[test]
    fn who_needs_them_decides_on_addresses() {
        let all = ["10.77.1.2", "172.17.0.1", "fd00::2"];
        for (need, list, near, expected) in [
            (Need::ThisMachine, "", None, &["127.0.0.1"][..]),
            (Need::ThisMachine, "^docker0", None, &["127.0.0.1"]),
            (
                Need::ThisMachine,
                "^lo,docker0",
                None,
                &["10.77.1.2", "fd00::2"],
            ),
            (Need::ThisMachine, "eth0", None, &["10.77.1.2", "fd00::2"]),
            (Need::Others, "", None, &all),
            (Need::Any, "", None, &all),
            (
                Need::Others,
                "",
                Some("docker0"),
                &["172.17.0.1", "10.77.1.2", "fd00::2"],
            ),
            (
                Need::Others,
                "eth0",
                Some("docker0"),
                &["10.77.1.2", "fd00::2"],
            ),
            (Need::Others, "^docker0", None, &["10.77.1.2", "fd00::2"]),
            (Need::Others, "lo", None, &["127.0.0.1"]),
            (Need::Others, "^eth0,docker0", None, &[]),
            (Need::Any, "^eth0,docker0", None, &["127.0.0.1"]),
        ] {
            assert_eq!(
                picked(need, list, near),
                expected,
                "{need:?} {list:?} {near:?}"
            );
        }
    }

    #[test]
    fn a_machine_may_have_only_the_loopback_of_ipv6() {
        let all = [interface("lo", "::1")];
        let only = vec!["::1".parse::<IpAddr>().expect("an address")];
        assert_eq!(pick(&all, Need::ThisMachine, None, None), only);
        assert_eq!(pick(&all, Need::Any, None, None), only);
        assert!(pick(&all, Need::Others, None, None).is_empty());
    }

    #[test]
    fn what_matches_nothing_is_named_with_what_there_is() {
        for (list, words) in [
            ("nowhere0", "there is no nowhere0 here"),
            ("198.51.100.0/24", "no address here is in 198.51.100.0/24"),
            (
                "^0.0.0.0/0,::/0",
                "that leaves no address that another machine could reach",
            ),
        ] {
            let selection = Selection::parse(list).expect("it is right");
            let error = addresses(Need::Others, selection.as_ref(), None).expect_err("no match");
            let begin = format!("SHMEM_TCP_INTERFACE is {list}, but {words}; there are ");
            assert!(error.starts_with(&begin), "{error}");
            assert!(error.contains("lo (127.0.0.1"), "{error}");
        }
    }
}
