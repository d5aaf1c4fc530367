//! Several addresses, IPv6, and a network that fails during a job.

use conformance::{Case, LIMIT, Member, soak, verbs};
use rushmem_transport::{EndpointUser, Error, Host, Open, Pe, RemoteAddr, Segment, Transport};
use rushmem_transport_tcp::{Tuning, open};
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

const START: RemoteAddr = RemoteAddr {
    segment: Segment::Heap,
    offset: 0,
};

/// The host of a PE for which SHMEM_TCP_INTERFACE is set.
struct Chosen(&'static str);

impl Host for Chosen {
    fn variable(&self, name: &str) -> Option<String> {
        (name == "SHMEM_TCP_INTERFACE").then(|| self.0.to_owned())
    }
}

fn over(interface: &'static str, with: &Open, tuning: Tuning) -> Result<Box<dyn Transport>, Error> {
    let with = Open {
        host: Arc::new(Chosen(interface)),
        one_machine: false,
        ..with.clone()
    };
    open(&with, tuning)
}

fn by_name(with: &Open) -> Result<Box<dyn Transport>, Error> {
    // All addresses of lo: IPv4 and, where the machine has it, IPv6.
    over("lo", with, Tuning::default())
}

fn some_traffic(member: &Member) {
    soak(member, Duration::from_millis(300), |_| {});
}

fn an_interface_chosen_by_name() {
    let case = Case {
        sizes: &[2, 3],
        heap_bytes: 8 << 20,
        limit: LIMIT,
        body: some_traffic,
    };
    conformance::run("an_interface_chosen_by_name", by_name, case);
}

fn impatient(with: &Open) -> Result<Box<dyn Transport>, Error> {
    let tuning = Tuning {
        silence_limit: Duration::from_secs(2),
        ..Tuning::default()
    };
    over("lo", with, tuning)
}

/// PE 0 puts, sets the network interface down, and puts again until that fails.
fn cut_off(member: &Member) {
    let mut endpoint = member
        .transport()
        .endpoint(EndpointUser::Context)
        .expect("one");
    let mut put =
        || verbs::put(&mut *endpoint, Pe(1), START, &[1; 8]).and_then(|()| endpoint.quiet());
    if member.me() == 0 {
        put().expect("the network is up");

        let down = Command::new("ip")
            .args(["link", "set", "lo", "down"])
            .status();
        assert!(down.expect("the tool ran before").success());

        let error = loop {
            if let Err(error) = put() {
                break error.to_string();
            }
        };

        assert!(
            error.contains("PE 1") && error.contains("PE 0 on"),
            "{error}"
        );
        assert!(
            error.contains("silent") || error.contains("unreachable"),
            "{error}"
        );
    }
    member.barrier();
    std::process::exit(0);
}

const INSIDE: &str = "RUSHMEM_IN_NAMESPACE";

fn a_network_that_goes_away_is_noticed() {
    let name = "a_network_that_goes_away_is_noticed";
    if std::env::var_os(INSIDE).is_some() {
        let case = Case {
            sizes: &[2],
            heap_bytes: 1 << 20,
            limit: LIMIT,
            body: cut_off,
        };
        conformance::run(name, impatient, case);
        return;
    }

    let inside = |script: &str| {
        let mut command = Command::new("unshare");
        command.args(["--user", "--map-root-user", "--net", "sh", "-c", script]);
        command
    };

    let up = "ip link set lo up && ";
    if !inside(&format!("{up} true"))
        .output()
        .is_ok_and(|output| output.status.success())
    {
        testkit::absent("there are no network namespaces");
    }

    let this = std::env::current_exe().expect("the test binary");
    let run = inside(&format!("{up} exec \"$0\" \"$@\""))
        .arg(this)
        .args([name, "--exact", "--nocapture"])
        .env(INSIDE, "1")
        .output()
        .expect("it ran before");
    assert!(
        run.status.success(),
        "{}",
        String::from_utf8_lossy(&run.stderr)
    );
}

testkit::tests! {
    an_interface_chosen_by_name,
    a_network_that_goes_away_is_noticed,
}
