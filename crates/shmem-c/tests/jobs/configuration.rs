//! Files with the settings of a site and of a user: which values take precedence, and messages
//! about mistakes, under oshrun and without a launcher.

use std::fs;
use std::path::{Path, PathBuf};

use testkit::{Job, Outcome, prefix, scenario};

/// Returns an empty directory for a test.
fn dir(name: &str) -> PathBuf {
    let dir = Path::new(env!("CARGO_TARGET_TMPDIR"))
        .join("configuration")
        .join(name);
    let _ = fs::remove_dir_all(&dir);
    fs::create_dir_all(&dir).expect("a directory");
    dir
}

/// Writes a file of settings, and returns its path.
fn file(dir: &Path, text: &str) -> String {
    let file = dir.join("rushmem.conf");
    fs::write(&file, text).expect("a file");
    file.display().to_string()
}

const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;

/// Returns a job that checks that the heap has about this size.
fn with_heap(job: Job, size: u64) -> Job {
    job.arg(size / 2).arg(size + 4 * MIB)
}

fn launched() -> Job {
    Job::new(scenario!("heap_size.c")).n(2)
}

fn alone() -> Job {
    Job::direct(scenario!("heap_size.c"))
}

/// Sets the home directory of a job, and unsets the variables that name other files of settings.
fn with_home(job: Job, home: &Path) -> Job {
    job.wrap(["env", "-u", "SHMEM_CONFIG", "-u", "XDG_CONFIG_HOME"])
        .env("HOME", home.display())
}

#[track_caller]
fn says_once(outcome: &Outcome, words: &str) {
    let lines = outcome.stderr.lines().filter(|line| line.contains(words));
    assert_eq!(lines.count(), 1, "{words}\n{outcome}");
}

#[test]
fn the_nearest_value_counts() {
    let home = dir("nearest");
    let user = home.join(".config");
    fs::create_dir_all(&user).expect("a directory");
    file(&user, "# mine\n\n SHMEM_SYMMETRIC_SIZE = 2m # enough\n");
    let named = file(&home, "SHMEM_SYMMETRIC_SIZE=8m\n");

    for (n, job) in [(2, launched()), (1, alone())] {
        let with_user = with_home(job.clone(), &home);
        let outcome = with_heap(with_user.clone(), 2 * MIB).run();
        outcome.assert_ok(n);
        assert!(!outcome.stderr.contains("rushmem.conf"), "{outcome}");

        // A variable takes precedence over files.
        let by_variable = with_user.env("SHMEM_SYMMETRIC_SIZE", "32m");
        with_heap(by_variable, 32 * MIB).run().assert_ok(n);

        // A file that SHMEM_CONFIG names is the only file.
        let by_config = job
            .clone()
            .env("SHMEM_CONFIG", &named)
            .env("HOME", home.display());
        with_heap(by_config, 8 * MIB).run().assert_ok(n);

        // XDG_CONFIG_HOME stands for the directory .config of HOME.
        let by_xdg = job
            .wrap(["env", "-u", "SHMEM_CONFIG"])
            .env("XDG_CONFIG_HOME", home.display());
        with_heap(by_xdg, 8 * MIB).run().assert_ok(n);
    }

    let exported = launched().launcher_options(["-x", "SHMEM_SYMMETRIC_SIZE=32m"]);
    let with_user = with_home(exported, &home);
    with_heap(with_user, 32 * MIB).run().assert_ok(2);
}

/// Makes an installation of oshrun alone, with a file of a site's settings. Returns its directory.
fn installation(name: &str, settings: &str) -> PathBuf {
    let site = dir(name);
    for part in ["bin", "etc", "home/.config"] {
        fs::create_dir_all(site.join(part)).expect("a directory");
    }
    fs::copy(prefix().join("bin/oshrun"), site.join("bin/oshrun")).expect("a copy");
    file(&site.join("etc"), settings);
    site
}

/// Returns a job of the oshrun of an installation.
fn launched_by(site: &Path) -> Job {
    launched().launcher(site.join("bin/oshrun"))
}

/// The file of a site is in the directory `etc` of the installation.
#[test]
fn a_user_overrides_the_site() {
    let site = installation("site", "SHMEM_SYMMETRIC_SIZE=2m\nSHMEM_INFO=1\n");
    let job = with_home(launched_by(&site), &site.join("home"));

    let outcome = with_heap(job.clone(), 2 * MIB).run();
    outcome.assert_ok(2);
    let shown = outcome
        .lines()
        .find(|line| line.starts_with("SHMEM_SYMMETRIC_SIZE"))
        .unwrap_or_else(|| panic!("the setting is not shown\n{outcome}"));
    let place = site.join("etc/rushmem.conf:1");
    let value = format!("now \"2m\" from {}", place.display());
    assert!(shown.contains(&value), "{outcome}");

    file(&site.join("home/.config"), "SHMEM_SYMMETRIC_SIZE=8m\n");
    with_heap(job, 8 * MIB).run().assert_ok(2);
}

/// A deprecated name counts as much as its source: more than the present name in a file that is
/// farther away.
#[test]
fn an_old_name_has_the_rank_of_its_source() {
    let site = installation("old_names", "SHMEM_SYMMETRIC_SIZE=2m\n");
    let empty = site.join("empty");
    fs::create_dir(&empty).expect("a directory");
    let job = with_home(launched_by(&site), &empty);

    let by_variable = job.clone().env("SMA_SYMMETRIC_SIZE", "32m");
    with_heap(by_variable, 32 * MIB).run().assert_ok(2);

    let exported = job.launcher_options(["-x", "SMA_SYMMETRIC_SIZE=32m"]);
    with_heap(exported.clone(), 32 * MIB).run().assert_ok(2);
    let over_variable = exported.env("SHMEM_SYMMETRIC_SIZE", "8m");
    with_heap(over_variable, 32 * MIB).run().assert_ok(2);

    let without_launcher = alone()
        .env("SHMEM_CONFIG", site.join("etc/rushmem.conf").display())
        .env("SMA_SYMMETRIC_SIZE", "32m");
    with_heap(without_launcher, 32 * MIB).run().assert_ok(1);

    let home = site.join("home");
    file(&home.join(".config"), "SMA_SYMMETRIC_SIZE=8m\n");
    let by_file = with_home(launched_by(&site), &home);
    with_heap(by_file, 8 * MIB).run().assert_ok(2);
}

#[test]
fn an_option_names_the_file() {
    let dir = dir("option");
    let named = file(&dir, "SHMEM_SYMMETRIC_SIZE=8m\n");
    let job = launched().launcher_options(["-x", &format!("SHMEM_CONFIG={named}")]);
    with_heap(job, 8 * MIB).run().assert_ok(2);
}

/// A value is checked on one node, too, where no transport uses it.
#[test]
fn a_wrong_value_is_named_with_its_line() {
    let dir = dir("wrong");
    for (line, words) in [
        ("SHMEM_CHECK=7", "SHMEM_CHECK is 7, but it must be 0, 1 or"),
        (
            "SHMEM_TCP_PORTS=no",
            "SHMEM_TCP_PORTS is no, but it must be a range",
        ),
        (
            "SHMEM_TCP_INTERFACE=1.2.3.4/99",
            "1.2.3.4/99 is no subnet: an address and",
        ),
        (
            "SHMEM_UCX_WORKERS=0",
            "SHMEM_UCX_WORKERS is 0, but it must be a number above 0",
        ),
        (
            "SHMEM_OFI_ENDPOINTS=x",
            "SHMEM_OFI_ENDPOINTS is x, but it must be a number above",
        ),
        (
            "SHMEM_TRANSPORT=tpc",
            "SHMEM_TRANSPORT is tpc, but this build has",
        ),
        (
            "SHMEM_HOST_LIMIT=0",
            "SHMEM_HOST_LIMIT is 0, but it must be a time",
        ),
    ] {
        let bad = file(&dir, &format!("\n{line}\n"));
        let (name, _) = line.split_once('=').expect("a name");

        for job in [launched(), alone()] {
            let outcome = job.arg(0).arg(0).env("SHMEM_CONFIG", &bad).run();
            assert!(!outcome.status.success(), "{outcome}");
            says_once(&outcome, words);
            says_once(&outcome, &format!("({bad}:2 sets {name})"));
        }
    }
}

#[test]
fn mistakes_are_named_once() {
    let dir = dir("mistakes");
    let named = file(
        &dir,
        "SHMEM_CHECK\nUCX_TLS=rc\nSHMEM_TRANSPROT=tcp\nSHMEM_NOSUCH=1\nSHMEM_SYMMETRIC_SIZE=2m\n",
    );

    for (n, job) in [(2, launched()), (1, alone())] {
        let outcome = with_heap(job.env("SHMEM_CONFIG", &named), 2 * MIB).run();
        outcome.assert_ok(n);

        for words in [
            "rushmem.conf:1: SHMEM_CHECK is no line of the form NAME=value",
            "rushmem.conf:2: UCX_TLS is no setting: their names begin with SHMEM_",
            "rushmem.conf:3: there is no setting SHMEM_TRANSPROT; did you mean SHMEM_TRANSPORT?",
            "rushmem.conf:4: there is no setting SHMEM_NOSUCH",
        ] {
            says_once(&outcome, words);
        }
        let n_messages = outcome.stderr.matches("rushmem.conf:").count();
        assert_eq!(n_messages, 4, "{outcome}");
    }
}

#[test]
fn a_file_that_cannot_be_read_is_named_and_one_that_is_not_there_is_none() {
    let home = dir("unreadable");
    let absent = home.join("nowhere");
    let fifo = home.join("fifo");
    let made = std::process::Command::new("mkfifo").arg(&fifo).status();
    assert!(made.expect("mkfifo").success());

    for (named, words) in [
        (
            &absent,
            "nowhere, which SHMEM_CONFIG names, cannot be read: No such file",
        ),
        (&home, "cannot be read: Is a directory"),
        (
            &fifo,
            "fifo, which SHMEM_CONFIG names, cannot be read: it is not a regular file",
        ),
    ] {
        for (n, job) in [(2, launched()), (1, alone())] {
            let outcome = job
                .arg(KIB)
                .arg(0)
                .env("SHMEM_CONFIG", named.display())
                .run();
            outcome.assert_ok(n);
            says_once(&outcome, words);
        }
    }

    for (n, job) in [(2, launched()), (1, alone())] {
        let outcome = with_home(job, &home).arg(KIB).arg(0).run();
        outcome.assert_ok(n);
        assert_eq!(outcome.stderr, "", "{outcome}");
    }
}
