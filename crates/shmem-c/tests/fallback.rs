//! What `SHMEM_TRANSPORT=auto` does when candidates fail: the PEs of a job are this program, with providers that
//! claim an RDMA device and then fail on some PEs, early and late.
#![allow(unsafe_code)]

use std::path::PathBuf;
use std::time::Duration;

use rushmem_runtime::{Call, setup};
use rushmem_transport::{
    Caps, Endpoint, Error, Found, Key, Open, Pe, Provider, Segment, Transport, null,
};
use testkit::{Job, Outcome};

fn claim(_: &dyn rushmem_transport::Host) -> Result<Found, Error> {
    Ok(Found { rdma: true, description: "a claim".to_owned() })
}

/// It cannot be opened on PE 1.
const REFUSING: Provider = Provider {
    name: "refusing",
    available: claim,
    open: |with| match with.pe {
        Pe(1) => Err(Error::Unavailable("its NIC is broken".to_owned())),
        _ => (null::PROVIDER.open)(with),
    },
    ..null::PROVIDER
};

/// PE 2 has no way to others, who move data to it meanwhile.
const FLAWED: Provider = Provider {
    name: "flawed",
    available: claim,
    open: |with| Ok(Box::new(Flawed { me: with.pe, sockets: sockets(with)? })),
    ..null::PROVIDER
};

/// The one that works.
const SOCKETS: Provider =
    Provider { name: "sockets", without_rdma: true, open: sockets, ..null::PROVIDER };

fn sockets(with: &Open) -> Result<Box<dyn Transport>, Error> {
    let tcp = rushmem_providers::ALL.iter().find(|provider| provider.name == "tcp");
    (tcp.expect("it is always there").open)(with)
}

struct Flawed {
    me: Pe,
    sockets: Box<dyn Transport>,
}

impl Transport for Flawed {
    fn caps(&self) -> Caps {
        self.sockets.caps()
    }

    unsafe fn register(
        &mut self,
        segment: Segment,
        base: *mut u8,
        nbytes: usize,
    ) -> Result<Key, Error> {
        // SAFETY: the same contract.
        unsafe { self.sockets.register(segment, base, nbytes) }
    }

    fn address(&self) -> Vec<u8> {
        self.sockets.address()
    }

    fn connect(&mut self, pe: Pe, address: &[u8], keys: &[(Segment, Key)]) -> Result<(), Error> {
        match self.me {
            Pe(2) => Err(Error::Unreachable(pe)),
            _ => self.sockets.connect(pe, address, keys),
        }
    }

    fn endpoint(&self) -> Result<Box<dyn Endpoint>, Error> {
        self.sockets.endpoint()
    }

    fn progress(&self) -> Result<bool, Error> {
        self.sockets.progress()
    }

    fn wait(&self, at_most: Duration) -> Result<bool, Error> {
        self.sockets.wait(at_most)
    }
}

/// What each PE of the jobs below is: it joins, leaves, and both are barriers over the transport.
#[test]
fn a_pe() {
    let providers = match std::env::var_os("NOTHING_WORKS") {
        None => vec![REFUSING, FLAWED, SOCKETS],
        Some(_) => vec![REFUSING, FLAWED],
    };
    setup::init(Call("shmem_init"), &providers);
    setup::finalize(Call("shmem_finalize"));
}

fn job(variables: &[(&str, &str)]) -> Outcome {
    let this: PathBuf = std::env::current_exe().expect("a test program knows its path");
    let job = Job::new(this).n(3).arg("a_pe").arg("--exact").arg("--nocapture");
    let job = job.env("SHMEM_ONNODE", "off");
    variables.iter().fold(job, |job, (name, value)| job.env(name, value)).run()
}

#[test]
fn the_next_one_is_tried_and_the_reason_is_kept() {
    let outcome = job(&[("SHMEM_DEBUG", "1")]);
    assert!(outcome.status.success(), "{outcome}");
    for line in [
        "transport refusing: a claim; not chosen: PE 1: its NIC is broken",
        "transport flawed: a claim; not chosen: PE 2: there is no path to PE 0",
        "transport sockets: nothing; chosen",
    ] {
        let lines = outcome.stderr.lines().filter(|printed| printed.contains(line)).count();
        assert_eq!(lines, 1, "{line}\n{outcome}");
    }
}

#[test]
fn one_that_was_asked_for_or_the_last_one_ends_the_job() {
    let words =
        ["SHMEM_TRANSPORT is flawed", "PE 2: there is no path to PE 0", "SHMEM_TRANSPORT to"];
    job(&[("SHMEM_TRANSPORT", "flawed")]).assert_fails(&words);
    let words = ["none works", "refusing: PE 1: its NIC", "flawed: PE 2: there is no path"];
    job(&[("NOTHING_WORKS", "1")]).assert_fails(&words);
}
