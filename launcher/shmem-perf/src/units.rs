//! The text of figures, which have three digits and a unit, and of sizes.

use crate::record::Measure;

/// The units of a measure. Each is a thousand of the one before; the first one is that of records.
type Units = &'static [&'static str];

const TIMES: Units = &["ns", "us", "ms", "s"];
const BANDWIDTHS: Units = &["B/s", "kB/s", "MB/s", "GB/s", "TB/s"];
const RATES: Units = &["/s", "k/s", "M/s", "G/s"];
const PERCENT: Units = &["%"];

/// Returns a figure of a measure with three digits, such as `1.20 us`.
pub fn figure(measure: Measure, value: f64) -> String {
    let Scaled { number, unit } = scaled(measure, value);
    format!("{number} {unit}")
}

/// Returns a ratio with two decimals, or with three digits if it is below 0.1: `1.25`, `0.000286`.
pub fn ratio(value: f64) -> String {
    if !value.is_finite() || value == 0.0 || value >= 0.1 {
        return format!("{value:.2}");
    }
    let decimals = 2 - value.log10().floor() as i32;
    format!("{value:.*}", decimals as usize)
}

/// Returns a figure of a measure for an axis, without zeros at the end of its decimals: `1 us`,
/// `1.5 us`, `500 MB/s`. Zero has no unit.
pub fn tick(measure: Measure, value: f64) -> String {
    let Scaled { mut number, unit } = scaled(measure, value);
    if value == 0.0 {
        return number;
    }
    if number.contains('.') {
        let short = number.trim_end_matches('0').trim_end_matches('.');
        number.truncate(short.len());
    }
    format!("{number} {unit}")
}

/// Returns a number of bytes as `8`, `1 Ki`, `4 Mi`. One that is not a multiple of a unit is
/// written in full.
pub fn size(nbytes: u64) -> String {
    for (unit, name) in [(1u64 << 30, "Gi"), (1 << 20, "Mi"), (1 << 10, "Ki")] {
        if nbytes >= unit && nbytes.is_multiple_of(unit) {
            return format!("{} {name}", nbytes / unit);
        }
    }
    nbytes.to_string()
}

/// Returns the unit of the figures in a record.
pub fn base(measure: Measure) -> &'static str {
    units(measure)[0]
}

/// Returns the name of a measure, for titles.
pub fn name(measure: Measure) -> &'static str {
    match measure {
        Measure::Latency => "Latency",
        Measure::Bandwidth => "Bandwidth",
        Measure::BidirectionalBandwidth => "Bidirectional bandwidth",
        Measure::MessageRate => "Message rate",
        Measure::Overlap => "Overlap",
        Measure::Collective => "Collectives",
        Measure::Event => "Events",
    }
}

fn units(measure: Measure) -> Units {
    match measure {
        Measure::Latency | Measure::Collective | Measure::Event => TIMES,
        Measure::Bandwidth | Measure::BidirectionalBandwidth => BANDWIDTHS,
        Measure::MessageRate => RATES,
        Measure::Overlap => PERCENT,
    }
}

/// A number and its unit.
struct Scaled {
    number: String,
    unit: &'static str,
}

/// Returns a figure in the largest unit of which it is at least 1, or else in the smallest unit.
fn scaled(measure: Measure, value: f64) -> Scaled {
    let units = units(measure);
    // Rounded first, so that 999.9 ns are 1.00 us.
    let value = three_digits(value);
    let mut scale = 1.0;
    let mut unit = units[0];
    for larger in &units[1..] {
        if value.abs() >= scale * 1e3 {
            scale *= 1e3;
            unit = larger;
        }
    }
    Scaled {
        number: digits(value / scale),
        unit,
    }
}

/// Rounds to three significant digits.
fn three_digits(value: f64) -> f64 {
    if value == 0.0 || !value.is_finite() {
        return value;
    }
    // The formatter rounds exactly, which a division by a power of ten in floating point does not.
    format!("{value:.2e}").parse().unwrap_or(value)
}

fn digits(number: f64) -> String {
    match number.abs() {
        0.0 => "0".into(),
        small if small < 9.995 => format!("{number:.2}"),
        middle if middle < 99.95 => format!("{number:.1}"),
        _ => format!("{number:.0}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_have_three_digits_and_the_unit_that_fits() {
        let times = [0.0, 0.25, 999.7, 1234.0, 12_345.0, 5.6e7, 2e9];
        assert_eq!(
            times.map(|time| figure(Measure::Latency, time)),
            [
                "0 ns", "0.25 ns", "1.00 us", "1.23 us", "12.3 us", "56.0 ms", "2.00 s"
            ]
        );
        assert_eq!(figure(Measure::Bandwidth, 12.34e9), "12.3 GB/s");
        assert_eq!(figure(Measure::MessageRate, 3.456e6), "3.46 M/s");
        assert_eq!(figure(Measure::Overlap, 87.65), "87.7 %");
    }

    #[test]
    fn a_small_ratio_is_not_zero() {
        let ratios = [1.0, 3504.0, 0.104, 12.2 / 42_700.0, 0.0, f64::INFINITY];
        assert_eq!(
            ratios.map(ratio),
            ["1.00", "3504.00", "0.10", "0.000286", "0.00", "inf"]
        );
    }

    #[test]
    fn ticks_have_no_idle_zeros() {
        let times = [0.0, 1.0, 20.0, 500.0, 1e3, 1.5e3, 1e6];
        assert_eq!(
            times.map(|time| tick(Measure::Latency, time)),
            ["0", "1 ns", "20 ns", "500 ns", "1 us", "1.5 us", "1 ms"]
        );
        assert_eq!(tick(Measure::Bandwidth, 5e8), "500 MB/s");
    }

    #[test]
    fn sizes_are_binary() {
        let sizes = [0, 8, 1000, 1024, 1536, 1 << 20, 3 << 30];
        assert_eq!(
            sizes.map(size),
            ["0", "8", "1000", "1 Ki", "1536", "1 Mi", "3 Gi"]
        );
    }
}
