//! Checks `SHMEM_TRANSPORT=auto` when candidates fail, and `SHMEM_AMOS`. The PEs of the jobs run
//! this test program with providers that claim an RDMA device and then fail on some PEs, when they
//! are opened or later.
#![allow(unsafe_code)]

use std::path::PathBuf;
use std::sync::{Arc, Condvar, Mutex};
use std::task::Waker;
use std::time::Duration;

use rushmem_runtime::{setup, start};
use rushmem_transport::progress::events::AwaitedWord;
use rushmem_transport::{
    AmoRequest, Amos, Caps, Dest, Directory, Endpoint, EndpointUser, Error, Found, Get, Host, Key,
    NetworkActivity, OldValue, Open, Pe, Provider, Put, Segment, SignalOrder, Source,
    StridedBlocks, Transport, null,
};
use testkit::{Job, Outcome};

fn claim(_: &dyn Host) -> Result<Found, Error> {
    Ok(Found {
        rdma: true,
        hardware_amos: false,
        description: "a claim".to_owned(),
    })
}

/// A provider that cannot be opened on PE 1.
const REFUSING: Provider = Provider {
    name: "refusing",
    available: claim,
    open: |with| match with.pe {
        Pe(1) => Err(Error::Unavailable("its NIC is broken".to_owned())),
        _ => (null::PROVIDER.open)(with),
    },
    ..null::PROVIDER
};

/// A provider in which PE 2 has no path to other PEs, although they can put to it.
const FLAWED: Provider = Provider {
    name: "flawed",
    available: claim,
    open: |with| {
        let sockets = sockets(with)?;
        Ok(Box::new(Altered {
            caps: sockets.caps(),
            has_paths: with.pe != Pe(2),
            sockets,
        }))
    },
    ..null::PROVIDER
};

/// A provider whose operations never complete: they wait until the runtime declares a PE lost.
const SILENT: Provider = Provider {
    name: "silent",
    available: claim,
    open: |_| Ok(Box::new(Silent::default())),
    ..null::PROVIDER
};

/// The transport and the endpoints of `SILENT`, which share the loss that ends all waits.
#[derive(Clone, Default)]
struct Silent(Arc<Loss>);

/// The loss of a PE that the runtime declares.
#[derive(Default)]
struct Loss {
    error: Mutex<Option<Error>>,
    is_declared: Condvar,
}

impl Silent {
    fn wait(&self) -> Error {
        let error = self.0.error.lock().expect("no panic holds it");
        let error = self
            .0
            .is_declared
            .wait_while(error, |error| error.is_none())
            .expect("no panic holds it");
        error.clone().expect("it was waited for")
    }
}

impl Transport for Silent {
    fn caps(&self) -> Caps {
        Caps::default()
    }

    unsafe fn register(&mut self, _: Segment, _: *mut u8, _: usize) -> Result<Key, Error> {
        Ok(Key(Vec::new()))
    }

    fn address(&self) -> Vec<u8> {
        Vec::new()
    }

    fn connect(&mut self, _: Arc<Directory>) -> Result<(), Error> {
        Ok(())
    }

    fn extend_heap(
        &self,
        _: usize,
        _: &mut dyn FnMut(usize) -> Result<(), Error>,
    ) -> Result<(), Error> {
        Ok(())
    }

    fn endpoint(&self, _: EndpointUser) -> Result<Box<dyn Endpoint>, Error> {
        Ok(Box::new(self.clone()))
    }

    fn progress(&self) -> Result<bool, Error> {
        Ok(false)
    }

    fn wait(
        &self,
        at_most: Duration,
        _: &[AwaitedWord],
        _: &mut dyn FnMut() -> bool,
    ) -> Result<bool, Error> {
        std::thread::sleep(at_most);
        Ok(false)
    }

    fn end_wait(&self) {}

    fn activity(&self) -> NetworkActivity {
        NetworkActivity::default()
    }

    fn stop_polling(&self) {}

    fn lose(&self, pe: Pe, why: &str) {
        let error = Error::Lost(pe, why.to_owned());
        *self.0.error.lock().expect("no panic holds it") = Some(error);
        self.0.is_declared.notify_all();
    }
}

impl Endpoint for Silent {
    fn put(&mut self, _: Pe, _: Put) -> Result<(), Error> {
        Err(self.wait())
    }

    fn get(&mut self, _: Pe, _: Get) -> Result<(), Error> {
        Err(self.wait())
    }

    fn amo(&mut self, _: Pe, _: AmoRequest, _: OldValue) -> Result<u64, Error> {
        Err(self.wait())
    }

    fn put_strided(&mut self, _: Pe, _: StridedBlocks<Source>) -> Result<(), Error> {
        Err(self.wait())
    }

    fn get_strided_nbi(&mut self, _: Pe, _: StridedBlocks<Dest>) -> Result<(), Error> {
        Err(self.wait())
    }

    fn put_signal(&mut self, _: Pe, _: Put, _: AmoRequest, _: SignalOrder) -> Result<(), Error> {
        Err(self.wait())
    }

    fn session(&mut self, _: bool) -> Result<(), Error> {
        Ok(())
    }

    fn free_sources(&mut self, _: Option<Pe>) -> Result<(), Error> {
        Err(self.wait())
    }

    fn pe_quiet(&mut self, _: Pe) -> Result<(), Error> {
        Err(self.wait())
    }

    fn is_quiet(&mut self) -> Result<bool, Error> {
        Err(self.wait())
    }

    fn when_quiet(&mut self, _: &Waker) -> Result<bool, Error> {
        Err(self.wait())
    }

    fn in_flight(&mut self) -> Result<Vec<(Pe, u64)>, Error> {
        Ok(Vec::new())
    }

    fn fence(&mut self) -> Result<(), Error> {
        Ok(())
    }

    fn quiet(&mut self) -> Result<(), Error> {
        Err(self.wait())
    }
}

/// A provider whose network cards execute atomic operations. The PE that the variable `NO_CARD`
/// names has no such card, and the one that `BAD_CARD` names cannot use its card. Sockets stand for
/// the cards.
const CARDS: Provider = Provider {
    name: "cards",
    network_amos: true,
    available: |host| {
        Ok(Found {
            hardware_amos: !is_named(host, "NO_CARD"),
            ..claim(host)?
        })
    },
    open: |with| {
        let by_network = with.amos == Amos::Network;
        if by_network && is_named(&*with.host, "BAD_CARD") {
            return Err(Error::Unavailable("its card cannot add".to_owned()));
        }

        let sockets = sockets(with)?;
        let caps = Caps {
            amos_compose_with_cpu: !by_network,
            ..sockets.caps()
        };

        Ok(Box::new(Altered {
            caps,
            has_paths: true,
            sockets,
        }))
    },
    ..null::PROVIDER
};

/// A provider for RDMA devices. The PE that the variable `NO_CARD` names has none.
const SCARCE: Provider = Provider {
    name: "scarce",
    available: |host| {
        Ok(Found {
            rdma: !is_named(host, "NO_CARD"),
            ..claim(host)?
        })
    },
    open: sockets,
    ..null::PROVIDER
};

/// A provider whose network locks registered memory. Sockets stand for it.
const LOCKING: Provider = Provider {
    name: "locking",
    available: claim,
    open: |with| {
        let sockets = sockets(with)?;
        let caps = Caps {
            locks_memory: true,
            ..sockets.caps()
        };

        Ok(Box::new(Altered {
            caps,
            has_paths: true,
            sockets,
        }))
    },
    ..null::PROVIDER
};

/// Returns true if a variable names this PE of a job on one machine.
fn is_named(host: &dyn Host, variable: &str) -> bool {
    let named = host.variable(variable);
    named.is_some() && named == host.variable("SHMEM_LOCAL_ID")
}

/// A provider with several parts, as libfabric has several providers: one that only some PEs have,
/// one that some PEs cannot open, one that crashes on the PE that `CRASH` names and cannot be
/// opened on others, and one that works.
const COMPOSED: Provider = Provider {
    name: "composed",
    available: claim,
    opens_libraries: true,
    parts: Some(|with| {
        let mut names = Vec::new();
        if with.pe != Pe(1) {
            names.push("rare".to_owned());
        }
        names.extend(["refused", "crashing", "good"].map(str::to_owned));
        Ok(names)
    }),
    open: |with| match (with.part.as_deref(), with.pe) {
        (Some("refused"), Pe(2)) => Err(Error::Unavailable("its port is down".to_owned())),
        (Some("crashing"), _) if is_named(&*with.host, "CRASH") => std::process::abort(),
        (Some("crashing"), _) => Err(Error::Unavailable("it does not crash here".to_owned())),
        (Some("refused" | "good"), _) => sockets(with),
        (part, _) => panic!("{part:?} is no part of all PEs"),
    },
    ..null::PROVIDER
};

/// The provider that works.
const SOCKETS: Provider = Provider {
    name: "sockets",
    without_rdma: true,
    open: sockets,
    ..null::PROVIDER
};

fn sockets(with: &Open) -> Result<Box<dyn Transport>, Error> {
    let tcp = rushmem_providers::ALL
        .iter()
        .find(|provider| provider.name == "tcp");
    (tcp.expect("it is always there").open)(with)
}

/// Sockets with other capabilities, or without a path to other PEs.
struct Altered {
    caps: Caps,
    has_paths: bool,
    sockets: Box<dyn Transport>,
}

impl Transport for Altered {
    fn caps(&self) -> Caps {
        self.caps
    }

    unsafe fn register(
        &mut self,
        segment: Segment,
        base: *mut u8,
        nbytes: usize,
    ) -> Result<Key, Error> {
        // SAFETY: the caller keeps the contract of `register`, which is the same.
        unsafe { self.sockets.register(segment, base, nbytes) }
    }

    fn address(&self) -> Vec<u8> {
        self.sockets.address()
    }

    fn connect(&mut self, directory: Arc<Directory>) -> Result<(), Error> {
        if self.has_paths {
            self.sockets.connect(directory)
        } else {
            Err(Error::Unreachable(Pe(0)))
        }
    }

    fn extend_heap(
        &self,
        nbytes: usize,
        prepare: &mut dyn FnMut(usize) -> Result<(), Error>,
    ) -> Result<(), Error> {
        self.sockets.extend_heap(nbytes, prepare)
    }

    fn endpoint(&self, user: EndpointUser) -> Result<Box<dyn Endpoint>, Error> {
        self.sockets.endpoint(user)
    }

    fn progress(&self) -> Result<bool, Error> {
        self.sockets.progress()
    }

    fn wait(
        &self,
        at_most: Duration,
        awaited: &[AwaitedWord],
        is_over: &mut dyn FnMut() -> bool,
    ) -> Result<bool, Error> {
        self.sockets.wait(at_most, awaited, is_over)
    }

    fn end_wait(&self) {
        self.sockets.end_wait();
    }

    fn activity(&self) -> NetworkActivity {
        self.sockets.activity()
    }

    fn stop_polling(&self) {
        self.sockets.stop_polling();
    }

    fn lose(&self, pe: Pe, why: &str) {
        self.sockets.lose(pe, why);
    }
}

/// A PE of the jobs below, not a test of its own. Initialization and finalization synchronize the
/// PEs over the transport.
#[test]
fn a_pe() {
    let providers = match std::env::var("PROVIDERS").as_deref() {
        Ok("that fail") => vec![REFUSING, FLAWED],
        Ok("with cards") => vec![CARDS, SOCKETS],
        Ok("that lock") => vec![LOCKING],
        Ok("that are scarce") => vec![SCARCE, SOCKETS],
        Ok("of parts") => vec![COMPOSED, SOCKETS],
        Ok("that wait") => vec![SILENT, SOCKETS],
        _ => vec![REFUSING, FLAWED, SOCKETS],
    };

    start::init(rushmem_runtime::call!("shmem_init"), &providers);
    setup::finalize(rushmem_runtime::call!("shmem_finalize"));
}

fn job(variables: &[(&str, &str)]) -> Outcome {
    let this: PathBuf = std::env::current_exe().expect("a test program knows its path");
    Job::new(this)
        .n(3)
        .args(["a_pe", "--exact", "--nocapture"])
        .env("SHMEM_ONNODE", "off")
        .envs(variables)
        .run()
}

#[test]
fn the_next_one_is_tried_and_the_reason_is_kept() {
    let outcome = job(&[("SHMEM_DEBUG", "2")]);
    assert!(outcome.status.success(), "{outcome}");

    for words in [
        "transport refusing: a claim; not chosen: PE 1: its NIC is broken",
        "transport flawed: a claim; not chosen: PE 2: there is no path to PE 0",
        "transport sockets: nothing; chosen",
    ] {
        assert_one_line(&outcome, words);
    }
}

/// Checks that exactly one line on standard error has these words.
#[track_caller]
fn assert_one_line(outcome: &Outcome, words: &str) {
    let lines = outcome.stderr.lines().filter(|line| line.contains(words));
    assert_eq!(lines.count(), 1, "{words}\n{outcome}");
}

#[test]
fn the_next_part_is_tried_by_all_pes() {
    let parts = [("PROVIDERS", "of parts"), ("SHMEM_TRANSPORT", "composed")];
    let outcome = job(&parts);
    assert!(outcome.status.success(), "{outcome}");

    let warnings: Vec<&str> = outcome.stderr.lines().collect();
    let passed_over =
        |what: &str| format!("warning: of the transport composed, {what}; the next one is used");
    let expected = [
        "refused does not work here (PE 2: its port is down)",
        "crashing does not work here (all PEs: it does not crash here)",
    ];
    assert_eq!(warnings, expected.map(passed_over), "{outcome}");

    let crashes = [&parts[..], &[("CRASH", "1")]].concat();
    job(&crashes).assert_fails(&[
        "was killed by SIGABRT; it was opening the transport composed (crashing): select",
    ]);
}

#[test]
fn a_device_that_only_some_pes_have_is_missed() {
    let warning = "warning: the job uses sockets, and no RDMA device, although there are some (scarce: PE 1 \
                   has no RDMA device for it); `oshrun --doctor` examines all hosts";
    let scarce = ("PROVIDERS", "that are scarce");

    let outcome = job(&[scarce, ("NO_CARD", "1")]);
    assert!(outcome.status.success(), "{outcome}");
    let warnings = outcome.stderr.lines().filter(|line| *line == warning);
    assert_eq!(warnings.count(), 1, "{outcome}");

    for variables in [
        &[scarce][..],
        &[scarce, ("NO_CARD", "1"), ("SHMEM_TRANSPORT", "sockets")],
    ] {
        let outcome = job(variables);
        assert!(outcome.status.success(), "{outcome}");
        assert!(!outcome.stderr.contains("warning"), "{outcome}");
    }
}

#[test]
fn one_that_answers_nothing_is_given_up() {
    let waits = ("PROVIDERS", "that wait");
    let silence = "a put to PE 1 to try it out failed: a transfer to try it out is not over after";

    let outcome = job(&[waits, ("SHMEM_HOST_LIMIT", "0.2"), ("SHMEM_DEBUG", "2")]);
    assert!(outcome.status.success(), "{outcome}");

    let warned = format!(
        "warning: the transport silent does not work here and is passed over: PE 0: {silence}"
    );
    assert_one_line(&outcome, &warned);
    assert_one_line(&outcome, "transport sockets: nothing; chosen");

    let forced = [
        waits,
        ("SHMEM_HOST_LIMIT", "0.2"),
        ("SHMEM_TRANSPORT", "silent"),
    ];
    job(&forced).assert_fails(&["SHMEM_TRANSPORT is silent", silence, "SHMEM_TRANSPORT to"]);
}

#[test]
fn one_that_was_requested_or_the_last_one_ends_the_job() {
    let words = [
        "SHMEM_TRANSPORT is flawed",
        "PE 2: there is no path to PE 0",
        "SHMEM_TRANSPORT to",
    ];
    job(&[("SHMEM_TRANSPORT", "flawed")]).assert_fails(&words);

    let words = [
        "none works",
        "refusing: PE 1: its NIC",
        "flawed: PE 2: there is no path",
    ];
    job(&[("PROVIDERS", "that fail")]).assert_fails(&words);
}

/// Runs a job whose PEs may lock this many KiB, and lack the privilege to lock more.
fn locking(limit: &str) -> Outcome {
    let this: PathBuf = std::env::current_exe().expect("a test program knows its path");
    let limited = format!("ulimit -l {limit} && exec \"$0\" a_pe --exact --nocapture");

    let mut words = Vec::new();
    if rustix::process::geteuid().is_root() {
        words.extend([
            "setpriv",
            "--bounding-set=-ipc_lock",
            "--inh-caps=-ipc_lock",
        ]);
    }
    words.extend(["sh", "-c", &limited]);

    Job::new(words[0])
        .n(2)
        .args(&words[1..])
        .arg(this.display())
        .env("SHMEM_ONNODE", "off")
        .env("SHMEM_SYMMETRIC_SIZE", "1m")
        .env("PROVIDERS", "that lock")
        .run()
}

#[test]
fn memory_that_may_not_be_locked_is_not_registered() {
    let words = [
        "all PEs: the network locks",
        "heap",
        "may lock 65536 bytes",
        "ulimit -l",
    ];
    locking("64").assert_fails(&words);
}

/// Returns the line on what executes atomic operations, from a job with `CARDS`.
fn atomics_line(variables: &[(&str, &str)]) -> String {
    let with_cards = [("SHMEM_DEBUG", "2"), ("PROVIDERS", "with cards")];
    let outcome = job(&[&with_cards, variables].concat());
    assert!(outcome.status.success(), "{outcome}");
    let choice = "transport cards: a claim; chosen";
    assert!(outcome.stderr.contains(choice), "{outcome}");

    let lines: Vec<&str> = outcome
        .stderr
        .lines()
        .filter(|line| line.contains("atomic operations are carried out"))
        .collect();
    assert_eq!(lines.len(), 1, "{outcome}");
    lines[0].to_owned()
}

#[test]
fn the_network_carries_out_atomic_operations_where_all_pes_have_the_hardware() {
    let with_hardware = ["by the network", "(the hardware of every PE"];
    let without_hardware = ["by the CPU", "(not every PE has hardware"];
    let requested = ["by the network", "is network)"];
    let refused = ["by the CPU", "(SHMEM_AMOS is software)"];

    let forced = ("SHMEM_TRANSPORT", "cards");
    for (variables, words) in [
        (&[][..], with_hardware),
        (&[("SHMEM_AMOS", "auto")][..], with_hardware),
        (&[("SHMEM_AMOS", "software")][..], refused),
        (
            &[("SHMEM_AMOS", "network"), ("NO_CARD", "1")][..],
            requested,
        ),
        (&[("NO_CARD", "1")][..], without_hardware),
        (&[forced][..], with_hardware),
        (&[forced, ("NO_CARD", "2")][..], without_hardware),
    ] {
        let line = atomics_line(variables);
        for word in words {
            assert!(line.contains(word), "{word}: {line}");
        }
    }
}

#[test]
fn hardware_that_does_not_work_is_passed_over_unless_it_was_requested() {
    let line = atomics_line(&[("BAD_CARD", "1")]);
    assert!(line.contains("by the CPU"), "{line}");
    assert!(line.contains("do not work: PE 1: its card"), "{line}");

    let settings = [
        ("PROVIDERS", "with cards"),
        ("BAD_CARD", "1"),
        ("SHMEM_AMOS", "network"),
        ("SHMEM_TRANSPORT", "cards"),
    ];
    job(&settings).assert_fails(&["SHMEM_TRANSPORT is cards", "PE 1: its card cannot add"]);

    // No other provider has atomic operations of its own.
    let words = [
        "none works",
        "cards: PE 1: its card",
        "sockets: SHMEM_AMOS is network, but",
    ];
    job(&settings[..3]).assert_fails(&words);
}
