//! The environment variables of the runtime, in one table: names, meanings, values.

use rushmem_transport::Nic;
use std::fmt;
use std::time::Duration;

/// A variable, for `SHMEM_INFO`.
#[derive(Debug)]
pub struct Variable {
    /// Its name.
    pub name: &'static str,
    /// A deprecated name that counts where the first is not set (OpenSHMEM 1.6, §8).
    pub old_name: Option<&'static str>,
    /// What it does, with its default.
    pub meaning: &'static str,
}

const VERSION: Variable = Variable {
    name: "SHMEM_VERSION",
    old_name: Some("SMA_VERSION"),
    meaning: "any value: print the version of the library at start-up",
};
const INFO: Variable = Variable {
    name: "SHMEM_INFO",
    old_name: Some("SMA_INFO"),
    meaning: "any value: print this list at start-up",
};
const DEBUG: Variable = Variable {
    name: "SHMEM_DEBUG",
    old_name: Some("SMA_DEBUG"),
    meaning: "any value: print what is found and chosen to standard error",
};
const CHECK: Variable = Variable {
    name: "SHMEM_CHECK",
    old_name: None,
    meaning: "1: check that the PEs of a team or an active set are in the same collective with the same \
              arguments, that private contexts and thread levels are kept to, and more that costs time; 0 \
              (default)",
};
const SYMMETRIC_SIZE: Variable = Variable {
    name: "SHMEM_SYMMETRIC_SIZE",
    old_name: Some("SMA_SYMMETRIC_SIZE"),
    meaning: "bytes of the symmetric heap of each PE, a number with an optional fraction and one of \
              the suffixes k, m, g, t; default 512m",
};
const ONNODE: Variable = Variable {
    name: "SHMEM_ONNODE",
    old_name: None,
    meaning: "on (default): PEs of a node share their memory; off: they use a transport",
};

const VIRTUAL_NODES: Variable = Variable {
    name: "SHMEM_VIRTUAL_NODES",
    old_name: None,
    meaning: "split one machine into nodes that share no memory with each other: how many, or the PEs \
              of each, such as 1+2+3",
};
const TRANSPORT: Variable = Variable {
    name: "SHMEM_TRANSPORT",
    old_name: None,
    meaning: "how PEs reach those whose memory they do not share: auto (default), tcp, ucx or ofi",
};

const NIC: Variable = Variable {
    name: rushmem_topology::NIC_VARIABLE,
    old_name: None,
    meaning: "the card of the network that a PE should prefer, such as mlx5_0:1 or cxi0,hsn0; any: none; by \
              default the nearest, each used by as many PEs of a machine as the others",
};

const BOOTSTRAP: Variable = Variable {
    name: rushmem_bootstrap::env::BOOTSTRAP,
    old_name: None,
    meaning: "how to join a job that another launcher started: auto (default), pmi1, pmi2 or pmix",
};

const HOST_LIMIT: Variable = Variable {
    name: "SHMEM_HOST_LIMIT",
    old_name: None,
    meaning: "how many seconds another host may be silent before the job has ended everywhere (10)",
};

/// Every variable, in the order of `SHMEM_INFO`.
pub const ALL: [Variable; 11] = [
    VERSION,
    INFO,
    DEBUG,
    CHECK,
    SYMMETRIC_SIZE,
    ONNODE,
    VIRTUAL_NODES,
    TRANSPORT,
    NIC,
    BOOTSTRAP,
    HOST_LIMIT,
];

/// Ten seconds where nothing else is asked for.
const DEFAULT_HOST_LIMIT: Duration = Duration::from_secs(10);

/// A heap of 512 MiB where nothing else is asked for.
const DEFAULT_SYMMETRIC_SIZE: u64 = 512 << 20;

/// What the environment asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// Print the version.
    pub version: bool,
    /// Print the variables.
    pub info: bool,
    /// Print what is found and chosen.
    pub debug: bool,
    /// Check what costs time to check.
    pub check: bool,
    /// Bytes of the symmetric heap.
    pub symmetric_size: u64,
    /// Whether somebody asked for that many.
    pub symmetric_size_is_set: bool,
    /// Whether PEs of a node share their memory.
    pub onnode: bool,
    /// How one machine is split.
    pub virtual_nodes: VirtualNodes,
    /// Name of the transport; `None` for the best that there is.
    pub transport: Option<String>,
    /// The card that this PE should prefer.
    pub nic: Preference,
    /// How long another host may be silent before the job has ended everywhere.
    pub host_limit: Duration,
}

/// Which card of the network a PE should prefer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Preference {
    /// The nearest, if the machine has several.
    Nearest,
    /// None: the network's library chooses.
    Any,
    /// This one.
    Named(Nic),
}

/// How one machine is split into nodes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum VirtualNodes {
    /// It is one node.
    No,
    /// Into so many blocks of PEs, as equal as can be.
    Blocks(u32),
    /// Into blocks of so many PEs each.
    Sizes(Vec<u32>),
}

impl VirtualNodes {
    /// How many PEs each node has; `None` when `n_pes` cannot be split so.
    pub fn sizes(&self, n_pes: u32) -> Option<Vec<u32>> {
        match self {
            VirtualNodes::No => Some(vec![n_pes]),
            VirtualNodes::Blocks(k) => {
                let (least, more) = (n_pes / k, n_pes % k);
                (least > 0).then(|| (0..*k).map(|i| least + u32::from(i < more)).collect())
            }
            VirtualNodes::Sizes(sizes) => {
                let sum: u64 = sizes.iter().map(|&size| u64::from(size)).sum();
                (sum == u64::from(n_pes)).then(|| sizes.clone())
            }
        }
    }

    fn parse(text: &str) -> Option<VirtualNodes> {
        let positive = |text: &str| text.parse().ok().filter(|&number: &u32| number > 0);
        if text.contains('+') {
            text.split('+').map(positive).collect::<Option<_>>().map(VirtualNodes::Sizes)
        } else {
            positive(text).map(VirtualNodes::Blocks)
        }
    }
}

/// A variable has a value that means nothing.
#[derive(Debug, PartialEq, Eq)]
pub struct Invalid {
    name: &'static str,
    value: String,
    expected: &'static str,
}

impl fmt::Display for Invalid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Invalid { name, value, expected } = self;
        write!(f, "the environment variable {name} is \"{value}\", but it must be {expected}")
    }
}

impl std::error::Error for Invalid {}

impl Settings {
    /// Read the environment through `lookup`.
    ///
    /// # Errors
    /// When a value means nothing.
    pub fn read(lookup: impl Fn(&str) -> Option<String>) -> Result<Settings, Invalid> {
        let find = |variable: &Variable| {
            let named = |name: &'static str| lookup(name).map(|value| (name, value));
            named(variable.name).or_else(|| variable.old_name.and_then(named))
        };
        let symmetric_size = match find(&SYMMETRIC_SIZE) {
            None => DEFAULT_SYMMETRIC_SIZE,
            Some((name, value)) => size(&value).ok_or(Invalid {
                name,
                value,
                expected: "a non-negative number of bytes, such as 512m, 1.5G or 65536",
            })?,
        };
        let check = match find(&CHECK) {
            None => false,
            Some((_, value)) if value == "1" => true,
            Some((_, value)) if value == "0" || value.is_empty() => false,
            Some((name, value)) => return Err(Invalid { name, value, expected: "0 or 1" }),
        };
        let onnode = match find(&ONNODE) {
            None => true,
            Some((_, value)) if value == "on" => true,
            Some((_, value)) if value == "off" => false,
            Some((name, value)) => return Err(Invalid { name, value, expected: "on or off" }),
        };
        let virtual_nodes = match find(&VIRTUAL_NODES) {
            None => VirtualNodes::No,
            Some((name, value)) => VirtualNodes::parse(&value).ok_or(Invalid {
                name,
                value,
                expected: "a number of nodes, or the PEs of each node such as 1+2+3",
            })?,
        };
        let nic = match find(&NIC) {
            None => Preference::Nearest,
            Some((_, value)) if value == "any" => Preference::Any,
            Some((name, value)) => {
                let expected =
                    "a card such as mlx5_0:1 or cxi0,hsn0 (its name, port and interface), or any";
                let nic = Nic::parse(&value).ok_or(Invalid { name, value, expected })?;
                Preference::Named(nic)
            }
        };
        let host_limit = match find(&HOST_LIMIT) {
            None => DEFAULT_HOST_LIMIT,
            Some((name, value)) => {
                let seconds = value.parse().ok().and_then(|s| Duration::try_from_secs_f64(s).ok());
                let expected = "a number of seconds above 0";
                let is_some = |limit: &Duration| !limit.is_zero();
                seconds.filter(is_some).ok_or(Invalid { name, value, expected })?
            }
        };
        Ok(Settings {
            version: find(&VERSION).is_some(),
            info: find(&INFO).is_some(),
            debug: find(&DEBUG).is_some(),
            check,
            symmetric_size,
            symmetric_size_is_set: find(&SYMMETRIC_SIZE).is_some(),
            onnode,
            virtual_nodes,
            nic,
            host_limit,
            transport: find(&TRANSPORT).map(|(_, value)| value).filter(|value| value != "auto"),
        })
    }
}

/// A size as the standard has it (OpenSHMEM 1.6, §8): digits with an optional fraction, then an optional
/// suffix; what follows the suffix is ignored; rounded up to whole bytes. Computed in integers, so
/// that no size loses a byte. `None` for anything else, and for what exceeds 64 bits.
fn size(text: &str) -> Option<u64> {
    let text = text.trim_start();
    let digits = |s: &str| s.bytes().take_while(u8::is_ascii_digit).count();
    let (whole, rest) = text.split_at(digits(text));
    let (fraction, rest) = match rest.strip_prefix('.') {
        Some(rest) => rest.split_at(digits(rest)),
        None => ("", rest),
    };
    if whole.is_empty() && fraction.is_empty() {
        return None;
    }
    let shift = match rest.bytes().next() {
        None => 0,
        Some(b'k' | b'K') => 10,
        Some(b'm' | b'M') => 20,
        Some(b'g' | b'G') => 30,
        Some(b't' | b'T') => 40,
        Some(_) => return None,
    };
    let whole = if whole.is_empty() { 0 } else { whole.parse::<u64>().ok()? };
    // Digits beyond the 18th are worth less than a byte at any suffix: they only round up.
    let (counted, tail) = fraction.split_at(fraction.len().min(18));
    let numerator = if counted.is_empty() { 0 } else { counted.parse::<u128>().ok()? };
    let numerator = (numerator << shift) + u128::from(tail.bytes().any(|b| b != b'0'));
    let part = numerator.div_ceil(10u128.pow(counted.len() as u32));
    u64::try_from((u128::from(whole) << shift) + part).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_of_the_standard() {
        for (text, bytes) in [
            ("20m", 20_971_520),
            ("3.1M", 3_250_586),
            ("20kk", 20 << 10),
            (".5m", 1 << 19),
            ("0.5m", 1 << 19),
            ("5.k", 5 << 10),
            ("0", 0),
            ("0.0g", 0),
            ("65536", 65_536),
            ("1.1", 2),
            ("1T", 1 << 40),
            ("2gibibytes", 2 << 30),
            ("0.00000000000000000000001t", 1),
            ("18446744073709551615", u64::MAX),
        ] {
            assert_eq!(size(text), Some(bytes), "{text}");
        }
    }

    #[test]
    fn what_is_no_size() {
        for text in ["", ".", "m", "-1", "+1", "abc", "1x2", "1 m", "0x10", "1e6", "1.2.3", "nan"] {
            assert_eq!(size(text), None, "{text}");
        }
        assert_eq!(size("18446744073709551616"), None);
        assert_eq!(size("99999999999t"), None);
    }

    fn read(pairs: &[(&str, &str)]) -> Result<Settings, Invalid> {
        Settings::read(|name| {
            pairs.iter().find(|(n, _)| *n == name).map(|(_, value)| (*value).to_owned())
        })
    }

    #[test]
    fn new_names_win_over_old_ones() {
        let settings = read(&[("SMA_SYMMETRIC_SIZE", "1m"), ("SHMEM_SYMMETRIC_SIZE", "2m")]);
        assert_eq!(settings.expect("valid").symmetric_size, 2 << 20);
        let settings = read(&[("SMA_SYMMETRIC_SIZE", "1m"), ("SMA_INFO", "")]).expect("valid");
        assert_eq!(settings.symmetric_size, 1 << 20);
        assert!(settings.info && !settings.version);
    }

    #[test]
    fn a_host_may_be_silent_for_ten_seconds_or_as_said() {
        let limit =
            |value| read(&[("SHMEM_HOST_LIMIT", value)]).map(|settings| settings.host_limit);
        assert_eq!(read(&[]).expect("valid").host_limit, Duration::from_secs(10));
        assert_eq!(limit("2.5"), Ok(Duration::from_millis(2500)));
        assert!(["0", "-1", "long", "nan", ""].into_iter().all(|value| limit(value).is_err()));
    }

    #[test]
    fn nodes_are_split_as_equally_as_can_be() {
        let split = |text: &str, n_pes| VirtualNodes::parse(text).and_then(|v| v.sizes(n_pes));
        assert_eq!(split("2", 5), Some(vec![3, 2]));
        assert_eq!(split("3", 12), Some(vec![4, 4, 4]));
        assert_eq!(split("1+2+3", 6), Some(vec![1, 2, 3]));
        for (text, n_pes) in [("3", 2), ("1+2+3", 7), ("0", 4), ("", 4), ("1+", 1), ("-1", 4)] {
            assert_eq!(split(text, n_pes), None, "{text}");
        }
    }

    #[test]
    fn messages_name_the_variable_that_was_set() {
        let error = read(&[("SMA_SYMMETRIC_SIZE", "much")]).expect_err("no size").to_string();
        assert!(error.contains("SMA_SYMMETRIC_SIZE") && error.contains("\"much\""), "{error}");
        assert!(read(&[("SHMEM_NIC", "mlx5_0:first")]).is_err());
        let named = |value| read(&[("SHMEM_NIC", value)]).expect("valid").nic;
        assert_eq!(named("any"), Preference::Any);
        assert!(matches!(named("mlx5_1:1,ib1"), Preference::Named(nic) if nic.port == Some(1)));
        assert!(read(&[("SHMEM_ONNODE", "maybe")]).is_err());
        assert!(!read(&[("SHMEM_ONNODE", "off")]).expect("valid").onnode);
        assert!(read(&[("SHMEM_CHECK", "yes")]).is_err());
        assert!(read(&[("SHMEM_CHECK", "1")]).expect("valid").check);
    }
}
