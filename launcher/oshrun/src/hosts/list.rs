//! Parses lists of hosts: `a:4,b:4` on the command line; in a file one host per line, `a`, `a:4` or
//! `a slots=4`, with comments after `#`.

/// A host that may get PEs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostSlots {
    /// The name of the host, as the user or the batch system wrote it.
    pub name: String,
    /// The number of slots, for one PE each; `None` if it is not given.
    pub slots: Option<u32>,
}

/// Parses the hosts of a command-line option. `option` is its name, for errors.
pub fn parse_option(option: &str, text: &str) -> Result<Vec<HostSlots>, String> {
    text.split(',')
        .map(|word| host(word.trim()))
        .collect::<Result<_, _>>()
        .map_err(|error| format!("{option} {text}: {error}"))
}

/// Parses the hosts of a file. `file` is its name, for errors.
pub fn parse_file(file: &str, text: &str) -> Result<Vec<HostSlots>, String> {
    let mut hosts = Vec::new();
    for (number, line) in (1..).zip(text.lines()) {
        let line = line.split('#').next().unwrap_or_default().trim();
        if line.is_empty() {
            continue;
        }

        let host = host_line(line).map_err(|error| format!("{file}, line {number}: {error}"))?;
        hosts.push(host);
    }

    if hosts.is_empty() {
        Err(format!("{file} lists no host"))
    } else {
        Ok(hosts)
    }
}

fn host_line(line: &str) -> Result<HostSlots, String> {
    let mut words = line.split_whitespace();
    let mut host = host(words.next().unwrap_or_default())?;
    for word in words {
        match word.strip_prefix("slots=") {
            Some(number) if host.slots.is_none() => host.slots = Some(slots(number)?),
            _ => {
                return Err(format!(
                    "{word} is not understood; write HOST, HOST:4 or HOST slots=4"
                ));
            }
        }
    }
    Ok(host)
}

fn host(word: &str) -> Result<HostSlots, String> {
    let (name, number) = match word.rsplit_once(':') {
        // An IPv6 address contains colons, so slots follow only after brackets.
        Some((name, _)) if name.contains(':') && !name.ends_with(']') => (word, None),
        Some((name, number)) if !number.ends_with(']') => (name, Some(number)),
        _ => (word, None),
    };

    let name = name
        .strip_prefix('[')
        .and_then(|name| name.strip_suffix(']'))
        .unwrap_or(name);

    // A leading hyphen would make it an option of the launch agent.
    if name.is_empty() || name.starts_with('-') || name.contains(char::is_whitespace) {
        return Err(format!("{word:?} is not a host name"));
    }

    let slots = match number {
        Some(number) => Some(slots(number)?),
        None => None,
    };
    Ok(HostSlots {
        name: name.to_string(),
        slots,
    })
}

fn slots(number: &str) -> Result<u32, String> {
    match number.parse() {
        Ok(slots @ 1..) => Ok(slots),
        _ => Err(format!("{number:?} is not a number of PEs")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hosts(list: &[(&str, Option<u32>)]) -> Vec<HostSlots> {
        list.iter()
            .map(|(name, slots)| HostSlots {
                name: name.to_string(),
                slots: *slots,
            })
            .collect()
    }

    #[test]
    fn hosts_of_the_option() {
        let list = parse_option("-H", "a:4, me@b,[::1]:2,fe80::1,10.0.0.1:3").expect("hosts");
        let expected = [
            ("a", Some(4)),
            ("me@b", None),
            ("::1", Some(2)),
            ("fe80::1", None),
            ("10.0.0.1", Some(3)),
        ];
        assert_eq!(list, hosts(&expected));

        for (text, words) in [
            ("", "\"\" is not a host name"),
            ("a,,b", "\"\" is not a host name"),
            ("a:0", "\"0\" is not a number of PEs"),
            ("a:x", "\"x\" is not a number of PEs"),
            ("-oProxyCommand=x", "is not a host name"),
            (":4", "is not a host name"),
        ] {
            let error = parse_option("-H", text).expect_err(text);
            assert!(error.contains(words), "{text}: {error}");
        }
    }

    #[test]
    fn hosts_of_a_file() {
        let text = "# ours\na\n\n b:4  # fast\nc slots=2\n";
        let expected = [("a", None), ("b", Some(4)), ("c", Some(2))];
        assert_eq!(parse_file("f", text), Ok(hosts(&expected)));

        for (text, error) in [
            ("# none\n", "f lists no host"),
            (
                "a\nb max_slots=3",
                "f, line 2: max_slots=3 is not understood",
            ),
            ("b:3 slots=3", "f, line 1: slots=3 is not understood"),
            ("b slots=0", "f, line 1: \"0\" is not a number of PEs"),
        ] {
            assert!(
                parse_file("f", text).expect_err(text).starts_with(error),
                "{text}"
            );
        }
    }
}
