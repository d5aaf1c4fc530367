//! The list of `SHMEM_TCP_INTERFACE`: names of interfaces and subnets that sockets may use, or
//! after a `^` those that they may not use. It is the notation of Open MPI and of UCX.

use std::net::IpAddr;

use if_addrs::Interface;
use ipnet::IpNet;

/// The setting that selects interfaces.
pub const INTERFACES: &str = "SHMEM_TCP_INTERFACE";

/// A list of `SHMEM_TCP_INTERFACE`: the interfaces and subnets that sockets may use, or may not
/// use.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Selection {
    text: String,
    /// True if the entries are those that sockets may not use.
    excludes: bool,
    pub(crate) entries: Vec<Entry>,
}

/// One entry of a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Entry {
    Name(String),
    Subnet(IpNet),
}

impl Selection {
    /// Parses a list. Returns `None` if it has no entry.
    ///
    /// # Errors
    /// A sentence, if an entry is neither a name nor a subnet, or if `^` is not at the start.
    pub fn parse(text: &str) -> Result<Option<Selection>, String> {
        let refuse = |why: String| Err(format!("{INTERFACES} is {text}, but {why}"));
        let trimmed = text.trim();
        let excludes = trimmed.starts_with('^');
        let list = trimmed.strip_prefix('^').unwrap_or(trimmed);

        let mut entries = Vec::new();
        for entry in list
            .split(',')
            .map(str::trim)
            .filter(|entry| !entry.is_empty())
        {
            if entry.starts_with('^') {
                return refuse(
                    "^ stands once, before a list of all that are left out, such as ^docker0,virbr0"
                        .to_owned(),
                );
            }

            let entry = if let Ok(address) = entry.parse::<IpAddr>() {
                Entry::Subnet(address.into())
            } else if let Ok(subnet) = entry.parse::<IpNet>() {
                Entry::Subnet(subnet)
            } else if entry.contains('/') {
                return refuse(format!(
                    "{entry} is no subnet: an address and the number of its leading bits, such as 10.77.0.0/16 or fd00::/8"
                ));
            } else {
                Entry::Name(entry.to_owned())
            };
            entries.push(entry);
        }

        if entries.is_empty() {
            return Ok(None);
        }
        Ok(Some(Selection {
            text: text.to_owned(),
            excludes,
            entries,
        }))
    }

    /// Returns the list as the user has written it.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Returns true if the list names what sockets may not use.
    pub fn excludes(&self) -> bool {
        self.excludes
    }

    /// Returns the names of interfaces that the list requests; none if it excludes.
    pub fn requested_names(&self) -> impl Iterator<Item = &str> {
        let requested = if self.excludes {
            &[]
        } else {
            &self.entries[..]
        };
        requested.iter().filter_map(|entry| match entry {
            Entry::Name(name) => Some(name.as_str()),
            Entry::Subnet(_) => None,
        })
    }

    /// Returns true if the list requests interfaces by their names alone.
    pub(crate) fn has_only_names(&self) -> bool {
        !self.excludes
            && self
                .entries
                .iter()
                .all(|entry| matches!(entry, Entry::Name(_)))
    }

    /// Returns true if sockets may use this address of an interface.
    pub fn admits(&self, interface: &Interface) -> bool {
        let is_listed = self.entries.iter().any(|entry| match entry {
            Entry::Name(name) => *name == interface.name,
            Entry::Subnet(subnet) => subnet.contains(&interface.ip()),
        });
        is_listed != self.excludes
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn admitted(list: &str) -> Vec<String> {
        let selection = Selection::parse(list)
            .expect("it is right")
            .expect("it has entries");
        let all = crate::interfaces::addresses::tests::some_machine();
        all.iter()
            .filter(|one| selection.admits(one))
            .map(|one| one.ip().to_string())
            .collect()
    }

    #[test]
    fn names_subnets_and_exclusions_select() {
        for (list, expected) in [
            ("eth0", &["10.77.1.2", "fd00::2"][..]),
            (" eth0 , lo", &["127.0.0.1", "10.77.1.2", "fd00::2"]),
            ("10.77.0.0/16", &["10.77.1.2"]),
            // As elsewhere, any address of a subnet names it.
            ("10.77.1.9/24", &["10.77.1.2"]),
            ("10.77.1.2", &["10.77.1.2"]),
            ("fd00::/8", &["fd00::2"]),
            ("docker0,fd00::/8", &["fd00::2", "172.17.0.1"]),
            ("^docker0", &["127.0.0.1", "10.77.1.2", "fd00::2"]),
            ("^docker0, fd00::/8,lo", &["10.77.1.2"]),
        ] {
            assert_eq!(admitted(list), expected, "{list}");
        }
    }

    #[test]
    fn lists_that_say_nothing_select_nothing() {
        for blank in ["", " ", ",", " , ", "^", "^ ,"] {
            assert_eq!(Selection::parse(blank), Ok(None), "{blank:?}");
        }
    }

    #[test]
    fn what_is_wrong_is_named() {
        for (list, words) in [
            ("10.77.0.0/33", "10.77.0.0/33 is no subnet: an address and "),
            ("eth0,10.77/16", "10.77/16 is no subnet"),
            ("eth0,^docker0", "^ stands once, before a list"),
            ("^docker0,^virbr0", "such as ^docker0,virbr0"),
        ] {
            let error = Selection::parse(list).expect_err("it is wrong");
            assert!(
                error.starts_with(&format!("SHMEM_TCP_INTERFACE is {list}, but ")),
                "{error}"
            );
            assert!(error.contains(words), "{list}: {error}");
        }
    }

    proptest! {
        #[test]
        fn a_list_and_its_exclusion_are_opposites(
            entries in prop::collection::vec("eth0|docker0|lo|10[.]77[.]1[.]2/(8|24|32)|fd00::/8", 1..4),
        ) {
            let list = entries.join(",");
            let one = admitted(&list);
            let other = admitted(&format!("^{list}"));
            let n = crate::interfaces::addresses::tests::some_machine().len();
            prop_assert!(one.iter().all(|address| !other.contains(address)));
            prop_assert_eq!(one.len() + other.len(), n);
        }
    }
}
