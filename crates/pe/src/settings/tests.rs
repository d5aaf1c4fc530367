//! Unit tests of `settings`.

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
        ("1e7", 10_000_000),
        ("0.25e2m", 25 << 20),
        ("1.5E-3g", 1_610_613),
        ("+5m", 5 << 20),
        ("+.5e+1k", 5 << 10),
        (" \t2m", 2 << 20),
        ("0x10", 16),
        ("0x1p20", 1 << 20),
        ("+0X1.8P-1k", 768),
        ("0x.8m", 1 << 19),
        ("4503599627370497", (1 << 52) + 1),
    ] {
        assert_eq!(size(text), Some(bytes), "{text}");
    }
}

#[test]
fn what_is_no_size() {
    for text in [
        "", ".", "m", "-1", "-.1", "+", "abc", "1x2", "1 m", "0x", "0xm", "-0x10", "1e",
    ] {
        assert_eq!(size(text), None, "{text}");
    }
    for text in [
        "1em", "0x1p", "0x1pm", "1.2.3", "nan", "inf", "infinity", "1e400", "++1", "e5",
    ] {
        assert_eq!(size(text), None, "{text}");
    }
    assert_eq!(size("18446744073709551616"), None);
    assert_eq!(size("99999999999t"), None);
}

fn read(pairs: &[(&str, &str)]) -> Result<Settings, Invalid> {
    Settings::read(|name| {
        pairs
            .iter()
            .find(|(n, _)| *n == name)
            .map(|(_, value)| (*value).to_owned())
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
fn files_know_the_same_old_names() {
    let pairs = |row: &'static Setting| row.old_names.iter().map(|old| (*old, row.name));
    let of_rows: Vec<_> = ALL.iter().flat_map(pairs).collect();
    assert_eq!(of_rows, config::OLD_NAMES);
}

#[test]
fn events_are_printed_by_level_or_by_module() {
    let debug = |value| read(&[("SHMEM_DEBUG", value)]).map(|settings| settings.debug);
    assert_eq!(read(&[]).expect("valid").debug, None);
    assert_eq!(debug("1"), Ok(Filter::parse("info")));
    assert_eq!(
        debug("transport=debug"),
        Ok(Filter::parse("transport=debug"))
    );
    let error = debug("tcp=debug").expect_err("no module").to_string();
    assert!(
        error.starts_with("SHMEM_DEBUG is tcp=debug, but it must be 1, 2 or 3"),
        "{error}"
    );
    assert!(error.ends_with("by default nothing is printed"), "{error}");
}

#[test]
fn a_host_may_be_silent_for_ten_seconds_or_as_said() {
    let limit = |value| read(&[("SHMEM_HOST_LIMIT", value)]).map(|settings| settings.host_limit);
    assert_eq!(
        read(&[]).expect("valid").host_limit,
        Duration::from_secs(10)
    );
    assert_eq!(limit("2.5"), Ok(Duration::from_millis(2500)));
    assert!(limit("long").is_err());
}

#[test]
fn waits_are_explained_after_a_time_if_one_is_set() {
    let watchdog = |value| read(&[("SHMEM_WATCHDOG", value)]).map(|settings| settings.watchdog);
    assert_eq!(read(&[]).expect("valid").watchdog, None);
    assert_eq!(watchdog("off"), Ok(None));
    assert_eq!(watchdog("5m"), Ok(Some(Duration::from_secs(300))));
    assert!(watchdog("soon").is_err());
}

#[test]
fn reserved_huge_pages_have_the_size_that_is_set() {
    let size = |value| {
        let settings = read(&[("SHMEM_HUGE_PAGES", value)]).expect("valid");
        settings.huge_pages.page_size()
    };
    assert_eq!(size("off"), None);
    assert_eq!(size("auto"), Some(PageSize::Mib2));
    assert_eq!(size("2m"), Some(PageSize::Mib2));
    assert_eq!(size("1g"), Some(PageSize::Gib1));
}

#[test]
fn nodes_are_split_as_equally_as_can_be() {
    let split = |text: &str, n_pes| VirtualNodes::parse(text).and_then(|v| v.sizes(n_pes));
    assert_eq!(split("2", 5), Some(vec![3, 2]));
    assert_eq!(split("3", 12), Some(vec![4, 4, 4]));
    assert_eq!(split("1+2+3", 6), Some(vec![1, 2, 3]));
    for (text, n_pes) in [
        ("3", 2),
        ("1+2+3", 7),
        ("0", 4),
        ("", 4),
        ("1+", 1),
        ("-1", 4),
    ] {
        assert_eq!(split(text, n_pes), None, "{text}");
    }
}

#[test]
fn messages_name_the_variable_that_was_set() {
    let error = read(&[("SMA_SYMMETRIC_SIZE", "much")])
        .expect_err("no size")
        .to_string();
    assert!(
        error.starts_with("SMA_SYMMETRIC_SIZE is much, but it must be "),
        "{error}"
    );

    assert!(read(&[("SHMEM_NIC", "mlx5_0:first")]).is_err());
    let named = |value| read(&[("SHMEM_NIC", value)]).expect("valid").nic;
    assert_eq!(named("any"), NicPreference::Any);
    assert!(matches!(named("mlx5_1:1,ib1"), NicPreference::Named(nic) if nic.port == Some(1)));

    assert!(read(&[("SHMEM_ONNODE", "maybe")]).is_err());
    assert!(!read(&[("SHMEM_ONNODE", "off")]).expect("valid").onnode);

    let empty = read(&[("SHMEM_CHECK", "")])
        .expect_err("no value")
        .to_string();
    assert_eq!(empty, "SHMEM_CHECK is empty, but it must be 0, 1 or races");
    let check = |value| read(&[("SHMEM_CHECK", value)]).expect("valid").check;
    assert_eq!(check("1"), Checks::Calls);
    assert_eq!(check("races"), Checks::Races);

    assert!(read(&[("SHMEM_BOOTSTRAP", "pmi")]).is_err());
    let bootstrap = read(&[("SHMEM_BOOTSTRAP", "pmix")])
        .expect("valid")
        .bootstrap;
    assert_eq!(bootstrap, Protocol::Pmix);
}

#[test]
fn every_algorithm_can_be_forced_and_is_named_where_that_is_explained() {
    fn check<A: Algorithm>(forced: fn(&Settings) -> Option<A>) {
        let name = format!("SHMEM_{}_ALGORITHM", A::OPERATION.to_uppercase());
        let row = ALL
            .iter()
            .find(|row| row.name == name)
            .expect("each operation has its setting");

        for &(algorithm, value) in A::ALL {
            assert_eq!(
                forced(&read(&[(&name, algorithm)]).expect("valid")),
                Some(value)
            );
            let expected = read(&[(&name, "none")]).expect_err("no algorithm").expected;
            assert!(
                expected.contains(algorithm) && row.meaning.contains(algorithm),
                "{name}"
            );
        }
        assert_eq!(forced(&read(&[]).expect("valid")), None);
    }

    check(|settings| settings.sync_algorithm);
    check(|settings| settings.broadcast_algorithm);
    check(|settings| settings.reduce_algorithm);
    check(|settings| settings.collect_algorithm);
    check(|settings| settings.alltoall_algorithm);
    check(|settings| settings.scan_algorithm);
}
