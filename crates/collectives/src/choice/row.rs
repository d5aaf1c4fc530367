//! A row of a table: the conditions, and the algorithm to use if they hold. Also its text form.

use super::algorithms::Algorithm;
use super::facts::ChoiceFacts;
use std::fmt;

/// The origin of a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RowOrigin {
    /// A setting by which the user forces the algorithm.
    Forced,
    /// This line of the user's file.
    File(u32),
    /// The library.
    BuiltIn,
}

impl fmt::Display for RowOrigin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RowOrigin::Forced => f.write_str("forced"),
            RowOrigin::File(line) => write!(f, "line {line} of SHMEM_COLL_TUNING"),
            RowOrigin::BuiltIn => f.write_str("built in"),
        }
    }
}

/// A row: an algorithm and the conditions for its use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Row<A> {
    /// The range of bytes: of the message or vector, of a block of an all-to-all, of the whole
    /// result of an all-gather.
    bytes: Bounds,
    /// True if `bytes` is a number of bytes per member.
    bytes_per_member: bool,
    /// The range of team sizes.
    members: Bounds,
    /// The required value of [`ChoiceFacts::one_node`]; `None` for any.
    one_node: Option<bool>,
    /// The range of [`ChoiceFacts::per_node`].
    per_node: Bounds,
    /// The required value of [`ChoiceFacts::oversubscribed`]; `None` for any.
    oversubscribed: Option<bool>,
    /// True if all conditions but `bytes` are known to hold on every team of this job.
    everywhere: bool,
    /// The algorithm to use.
    pub algorithm: A,
    /// The origin of the row.
    pub origin: RowOrigin,
}

/// A line of a table that is no valid row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RowError {
    /// The number of the line; the first is 1.
    pub line: u32,
    /// The error, and what to write instead.
    pub what: String,
}

impl fmt::Display for RowError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}: {}", self.line, self.what)
    }
}

/// The columns between the operation and the algorithm.
pub(super) type Conditions<'a> = [&'a str; 5];

impl<A: Algorithm> Row<A> {
    /// Returns the row that always holds.
    pub(super) const fn always(algorithm: A, origin: RowOrigin) -> Row<A> {
        Row {
            bytes: Bounds::ANY,
            bytes_per_member: false,
            members: Bounds::ANY,
            one_node: None,
            per_node: Bounds::ANY,
            oversubscribed: None,
            everywhere: false,
            algorithm,
            origin,
        }
    }

    /// Reads the columns of a row.
    pub(super) fn parse(
        [bytes, members, nodes, per_node, oversubscribed]: Conditions<'_>,
        algorithm: &str,
        origin: RowOrigin,
    ) -> Result<Row<A>, String> {
        let per_member = bytes.strip_suffix(PER_MEMBER);
        let Some(algorithm) = A::named(algorithm) else {
            let names: Vec<&str> = A::ALL.iter().map(|&(name, _)| name).collect();
            return Err(format!(
                "{algorithm:?} is no algorithm of {}, which has {}",
                A::OPERATION,
                names.join(", ")
            ));
        };

        Ok(Row {
            bytes: Bounds::parse("bytes", per_member.unwrap_or(bytes))?,
            bytes_per_member: per_member.is_some(),
            members: Bounds::parse("members", members)?,
            one_node: either("nodes", nodes, "one", "several")?,
            per_node: Bounds::parse("per-node", per_node)?,
            oversubscribed: either("oversubscribed", oversubscribed, "yes", "no")?,
            everywhere: false,
            algorithm,
            origin,
        })
    }

    /// Returns true if the conditions hold for `nbytes` bytes and the algorithm can be used for
    /// them.
    #[inline]
    pub(super) fn holds(&self, nbytes: usize, facts: &impl Fn() -> ChoiceFacts) -> bool {
        // The facts are not made where they are not needed: this is a part of each collective.
        if self.everywhere {
            self.bytes.contain(nbytes)
        } else {
            self.holds_on(nbytes, &facts())
        }
    }

    fn holds_on(&self, nbytes: usize, facts: &ChoiceFacts) -> bool {
        let counted = if self.bytes_per_member {
            nbytes / facts.members as usize
        } else {
            nbytes
        };
        self.bytes.contain(counted)
            && self.members.contain(facts.members as usize)
            && self.per_node.contain(facts.per_node as usize)
            && self.one_node.is_none_or(|one| one == facts.one_node())
            && self
                .oversubscribed
                .is_none_or(|yes| yes == facts.oversubscribed)
            && self
                .algorithm
                .limit()
                .is_none_or(|fits| fits(nbytes, facts))
    }

    /// Prepares the row for the job whose world team has these facts: records whether `bytes` alone
    /// decides if the row holds. Returns false if the row holds on no team of the job.
    pub(super) fn prepare_for(&mut self, world: &ChoiceFacts) -> bool {
        let members = world.members as usize;
        let per_node = world.per_node as usize;

        // A team has from 1 to all PEs, so a range that has both ends has all of them.
        self.everywhere = !self.bytes_per_member
            && self.members.contain(1)
            && self.members.contain(members)
            && self.per_node.contain(1)
            && self.per_node.contain(per_node)
            && self.one_node.is_none_or(|one| one && world.one_node())
            && self.algorithm.limit().is_none();

        self.members.least <= members
            && self.per_node.least <= per_node
            && (self.one_node != Some(false) || !world.one_node())
            && self
                .oversubscribed
                .is_none_or(|yes| yes == world.oversubscribed)
    }

    /// Returns the numbers of bytes at which the row may begin or cease to hold on a team of
    /// `members` members, without those at which its algorithm reaches its limit.
    pub(super) fn changes(&self, members: u32) -> [usize; 2] {
        let factor = if self.bytes_per_member {
            members as usize
        } else {
            1
        };
        [self.bytes.least, self.bytes.most.saturating_add(1)]
            .map(|nbytes| nbytes.saturating_mul(factor))
    }
}

/// Formats the row as a line of a table, without its origin.
impl<A: Algorithm> fmt::Display for Row<A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let per_member = if self.bytes_per_member {
            PER_MEMBER
        } else {
            ""
        };
        let bytes = format!("{}{per_member}", self.bytes);
        let nodes = match self.one_node {
            None => ANY,
            Some(true) => "one",
            Some(false) => "several",
        };
        let oversubscribed = match self.oversubscribed {
            None => ANY,
            Some(true) => "yes",
            Some(false) => "no",
        };
        // As texts, which are padded to the widths of the columns.
        let members = self.members.to_string();
        let per_node = self.per_node.to_string();
        write!(
            f,
            "{:15} {bytes:10} {members:8} {nodes:8} {per_node:9} {oversubscribed:15} {}",
            A::OPERATION,
            self.algorithm.name()
        )
    }
}

/// The text of a condition that always holds.
const ANY: &str = "any";
/// The suffix of a number of bytes per member.
const PER_MEMBER: &str = "/pe";

/// A range of numbers, with both ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Bounds {
    least: usize,
    most: usize,
}

impl Bounds {
    const ANY: Bounds = Bounds {
        least: 0,
        most: usize::MAX,
    };

    #[inline]
    fn contain(self, number: usize) -> bool {
        self.least <= number && number <= self.most
    }

    fn parse(column: &str, text: &str) -> Result<Bounds, String> {
        match Bounds::of_text(text) {
            Some(bounds) if bounds.least <= bounds.most => Ok(bounds),
            _ => Err(format!(
                "{column} is {text:?}; write a number, a range such as 17-255, a minimum such as \
                 8k+, or any"
            )),
        }
    }

    fn of_text(text: &str) -> Option<Bounds> {
        if text == ANY {
            return Some(Bounds::ANY);
        }
        if let Some(least) = text.strip_suffix('+') {
            return Some(Bounds {
                least: number(least)?,
                most: usize::MAX,
            });
        }

        let (least, most) = text.split_once('-').unwrap_or((text, text));
        Some(Bounds {
            least: number(least)?,
            most: number(most)?,
        })
    }
}

impl fmt::Display for Bounds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Bounds::ANY => f.write_str(ANY),
            Bounds {
                least,
                most: usize::MAX,
            } => write!(f, "{}+", with_unit(least)),
            Bounds { least, most } if least == most => f.write_str(&with_unit(least)),
            Bounds { least, most } => write!(f, "{}-{}", with_unit(least), with_unit(most)),
        }
    }
}

/// Formats a number as [`number`] parses it, with the largest unit of which it is a multiple.
fn with_unit(number: usize) -> String {
    match number {
        0 => "0".to_owned(),
        _ if number.is_multiple_of(1 << 20) => format!("{}m", number >> 20),
        _ if number.is_multiple_of(1 << 10) => format!("{}k", number >> 10),
        _ => number.to_string(),
    }
}

/// Parses a number, which may be followed by `k` or `m` for units of 1024 or of its square.
fn number(text: &str) -> Option<usize> {
    let (digits, unit) = match text.as_bytes().last()? {
        b'k' | b'K' => (&text[..text.len() - 1], 1 << 10),
        b'm' | b'M' => (&text[..text.len() - 1], 1 << 20),
        _ => (text, 1),
    };
    // `parse` would accept a sign, too.
    if !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    digits.parse::<usize>().ok()?.checked_mul(unit)
}

/// Parses a condition with two values, of which `yes` is true.
fn either(column: &str, text: &str, yes: &str, no: &str) -> Result<Option<bool>, String> {
    match text {
        ANY => Ok(None),
        _ if text == yes => Ok(Some(true)),
        _ if text == no => Ok(Some(false)),
        _ => Err(format!("{column} is {text:?}; write {yes}, {no} or any")),
    }
}
