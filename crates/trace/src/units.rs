//! Formats times and sizes for people.

/// Returns a time with its unit, such as `2.50 s`.
pub fn time(nanoseconds: u64) -> String {
    let value = nanoseconds as f64;
    match nanoseconds {
        0..1_000 => format!("{nanoseconds} ns"),
        1_000..1_000_000 => format!("{:.1} us", value / 1e3),
        1_000_000..1_000_000_000 => format!("{:.1} ms", value / 1e6),
        _ => format!("{:.2} s", value / 1e9),
    }
}

/// Returns a number of bytes, from 10,000 on with a unit, such as `1.5 MiB`.
pub fn size(nbytes: u64) -> String {
    let value = nbytes as f64;
    let unit = |shift: u32| value / (1_u64 << shift) as f64;
    match nbytes {
        0..10_000 => nbytes.to_string(),
        10_000..0x10_0000 => format!("{:.1} KiB", unit(10)),
        0x10_0000..0x4000_0000 => format!("{:.1} MiB", unit(20)),
        0x4000_0000..0x100_0000_0000 => format!("{:.1} GiB", unit(30)),
        _ => format!("{:.1} TiB", unit(40)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_fit_the_value() {
        let times = [999, 1_500, 2_500_000_000].map(time);
        assert_eq!(times, ["999 ns", "1.5 us", "2.50 s"]);
        let sizes = [728, 9_999, 20_480, 3 << 19, 5 << 30, 2 << 40].map(size);
        assert_eq!(
            sizes,
            ["728", "9999", "20.0 KiB", "1.5 MiB", "5.0 GiB", "2.0 TiB"]
        );
    }
}
