//! The table of a comparison: values with their range, ratios, aims and verdicts.
//!
//! It knows nothing of how a value was measured.

use std::collections::HashMap;

use shmem_perf::statistics::Spread;

/// One line of the table.
pub struct SuiteRow {
    /// The name under which its values were measured.
    pub name: &'static str,
    title: &'static str,
    unit: Unit,
    /// The row that is measured with it as its lower bound.
    bare: Option<&'static str>,
    aims: Vec<Aim>,
}

impl SuiteRow {
    /// Returns the rows of a text: a line each, with its columns between `|`. Lines with `#` are
    /// comments.
    pub fn all(text: &'static str) -> Vec<Self> {
        let lines = text.lines().filter(|line| !line.starts_with('#'));
        lines.map(|line| Self::parse(line).unwrap_or_else(|| panic!("no row: {line}"))).collect()
    }

    fn parse(line: &'static str) -> Option<Self> {
        let columns: Vec<&str> = line.split('|').map(str::trim).collect();
        let &[name, title, unit, bare, aims] = columns.as_slice() else { return None };
        let unit = match unit {
            "time" => Unit::Time,
            "%" => Unit::Percent,
            rate => Unit::Rate(rate),
        };
        let aim = |aim: &str| {
            let mut words = aim.split(' ').skip(1);
            let value = words.next()?.parse().ok()?;
            match words.next() {
                Some("theirs") => Some(Aim::OfTheirs(value)),
                Some("bare") => Some(Aim::OfBare(value)),
                Some(_) => None,
                None => Some(Aim::Below(value)),
            }
        };
        let aims = aims.split(", ").filter(|text| !text.is_empty()).map(aim);
        let bare = Some(bare).filter(|bare| !bare.is_empty());
        Some(Self { name, title, unit, bare, aims: aims.collect::<Option<_>>()? })
    }
}

/// The unit of a value, and with that whether less of it is better.
#[derive(Clone, Copy)]
pub enum Unit {
    /// Nanoseconds: less is better.
    Time,
    /// A rate in this unit: more is better.
    Rate(&'static str),
    /// A share that is lost: less is better. Such values are not divided by each other.
    Percent,
}

/// The aim for our value: at most this, or at least, where more is better.
#[derive(Clone, Copy)]
pub enum Aim {
    OfTheirs(f64),
    /// This share of the bare row.
    OfBare(f64),
    /// Less than this many of the unit.
    Below(f64),
}

/// Returns the table in Markdown; `bare` is the heading of the column of the bare rows, which ours
/// measured.
pub fn of(
    rows: &[SuiteRow],
    bare: &str,
    ours: &HashMap<&str, Spread>,
    theirs: &HashMap<&str, Spread>,
) -> String {
    let mut text = format!(
        "| | ours | theirs | {bare} | ours/theirs | ours/bare | aim | verdict |\n|---|---|---|---|---|---|---|---|\n",
    );
    for row in rows {
        let (Some(our), Some(their)) = (ours.get(row.name), theirs.get(row.name)) else {
            text += &format!("| {} | not measured | | | | | | |\n", row.title);
            continue;
        };
        let bare = row.bare.and_then(|name| ours.get(name));
        text += &format!(
            "| {} | {} | {} | {} | {} | {} | {} | {} |\n",
            row.title,
            row.unit.shown(our),
            row.unit.shown(their),
            bare.map(|bare| row.unit.shown(bare)).unwrap_or_default(),
            row.unit.compared(our, their),
            bare.map(|bare| row.unit.compared(our, bare)).unwrap_or_default(),
            aims(row),
            verdict(row, our, their, bare),
        );
    }
    text
}

fn aims(row: &SuiteRow) -> String {
    let sign = if row.unit.more_is_better() { ">=" } else { "<=" };
    let shown = row.aims.iter().map(|aim| match aim {
        Aim::OfTheirs(share) => format!("{sign} {share} theirs"),
        Aim::OfBare(share) => format!("{sign} {share} bare"),
        Aim::Below(value) => format!("< {value}"),
    });
    shown.collect::<Vec<_>>().join(", ")
}

/// Returns whether ours is within all of the row's aims; nothing where it has none.
fn verdict(row: &SuiteRow, ours: &Spread, theirs: &Spread, bare: Option<&Spread>) -> &'static str {
    let mut met = row.aims.iter().filter_map(|aim| match *aim {
        Aim::OfTheirs(share) => Some(row.unit.within(share, ours, theirs)),
        Aim::OfBare(share) => bare.map(|bare| row.unit.within(share, ours, bare)),
        Aim::Below(value) => Some(ours.median < value),
    });
    match met.next() {
        None => "",
        Some(first) if first && met.all(|met| met) => "met",
        Some(_) => "missed",
    }
}

impl Unit {
    fn more_is_better(self) -> bool {
        matches!(self, Unit::Rate(_))
    }

    /// Returns true if ours is as good as this share of the other's. Where the other's itself would
    /// do, equal is enough.
    fn within(self, share: f64, ours: &Spread, other: &Spread) -> bool {
        let bound = share * other.median;
        let (reached, equal_will_do) = if self.more_is_better() {
            (ours.median >= bound, share <= 1.0)
        } else {
            (ours.median <= bound, share >= 1.0)
        };
        reached || (equal_will_do && ours.overlaps(other))
    }

    fn compared(self, ours: &Spread, other: &Spread) -> String {
        let equal = ours.overlaps(other);
        match self {
            Unit::Percent if equal => "(equal)".to_owned(),
            Unit::Percent => String::new(),
            _ => {
                let ratio = ours.median / other.median;
                if equal { format!("{ratio:.2} (equal)") } else { format!("{ratio:.2}") }
            }
        }
    }

    fn shown(self, spread: &Spread) -> String {
        let (scale, unit) = match self {
            Unit::Rate(unit) => (1.0, unit),
            Unit::Percent => (1.0, "%"),
            Unit::Time if spread.median < 100.0 => (1.0, "ns"),
            Unit::Time if spread.median < 1e6 => (1e3, "us"),
            Unit::Time => (1e6, "ms"),
        };
        let Spread { low, median, high } = *spread;
        let digits = |value: f64| {
            let value = value / scale;
            format!("{value:.*}", if value.abs() < 1.0 { 3 } else { 1 })
        };
        let range = match self {
            // A minus between two of them would be read as a sign.
            Unit::Percent => format!("{} to {}", digits(low), digits(high)),
            _ => format!("{}-{}", digits(low), digits(high)),
        };
        format!("{} ({range}) {unit}", digits(median))
    }
}

#[cfg(test)]
mod tests;
