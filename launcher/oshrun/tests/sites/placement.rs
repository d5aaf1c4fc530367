//! Placement of PEs on this machine: options, report, and the affinity that the kernel shows.

use crate::support::{Outcome, TestJob};
use rushmem_topology::{BindTo, CpuSet, Level, MapBy, PlacementPlan, Topology, plan};
use testkit::absent;

/// The shell command that prints the number of a PE on this host and its affinity.
const SHOW: &str = "echo $SHMEM_LOCAL_ID $(grep Cpus_allowed_list /proc/self/status)";

/// Returns the CPUs of each PE, as the kernel reports them.
fn allowed(outcome: &Outcome) -> Vec<CpuSet> {
    let mut lines: Vec<(u32, CpuSet)> = outcome
        .stdout
        .lines()
        .map(|line| {
            let mut words = line.split_whitespace();
            let pe = words.next().and_then(|pe| pe.parse().ok());
            (
                pe.expect(line),
                words.last().and_then(CpuSet::parse).expect(line),
            )
        })
        .collect();

    lines.sort_by_key(|(pe, _)| *pe);
    lines.into_iter().map(|(_, cpus)| cpus).collect()
}

fn bindings(plan: &PlacementPlan) -> Vec<CpuSet> {
    plan.placements
        .iter()
        .filter_map(|place| place.binding.clone())
        .collect()
}

fn pes_run_where_the_plan_says() {
    let machine = Topology::of_this_machine();
    for (map_by, bind_to) in [
        ("core", "core"),
        ("slot", "core"),
        ("numa", "socket"),
        ("l3", "l3"),
    ] {
        let words = [
            "-n",
            "3",
            "--map-by",
            map_by,
            "--bind-to",
            bind_to,
            "sh",
            "-c",
            SHOW,
        ];

        let outcome = TestJob::new(&words).run();
        assert_eq!(outcome.status, 0, "{outcome:?}");

        let map_by: MapBy = map_by.parse().expect("a word");
        let bind_to: BindTo = bind_to.parse().expect("a word");
        assert_eq!(
            allowed(&outcome),
            bindings(&plan(&machine, 3, map_by, bind_to))
        );
    }
}

fn pes_that_are_not_bound_run_where_oshrun_may() {
    let machine = Topology::of_this_machine();
    let unbound = ["-n", "2", "--bind-to", "none", "sh", "-c", SHOW];
    let everywhere = vec![machine.usable.clone(); 2];
    assert_eq!(
        allowed(&TestJob::new(&unbound).run().expect(0, "")),
        everywhere
    );

    if machine.cpu_sets(Level::Numa).len() == 1 {
        assert_eq!(
            allowed(
                &TestJob::new(&["-n", "2", "sh", "-c", SHOW])
                    .run()
                    .expect(0, "")
            ),
            everywhere
        );
    } else {
        absent("this machine has several NUMA nodes, so that PEs are bound to them");
    }
}

fn no_pe_leaves_what_oshrun_may_use() {
    // A thread's affinity is that of the programs that it starts.
    let confined = std::thread::spawn(|| {
        let own = rustix::thread::sched_getaffinity(None).expect("own affinity");
        let last = (0..rustix::thread::CpuSet::MAX_CPU)
            .rfind(|&cpu| own.is_set(cpu))
            .expect("a CPU");

        let mut one = rustix::thread::CpuSet::new();
        one.set(last);
        rustix::thread::sched_setaffinity(None, &one).expect("fewer than before");

        let words = ["-n", "2", "--bind-to", "core", "sh", "-c", SHOW];
        (last as u32, TestJob::new(&words).run())
    });

    let (cpu, outcome) = confined.join().expect("no panic");
    let only = CpuSet::from_iter([cpu]);

    assert_eq!(
        outcome.stderr,
        "oshrun: the PEs outnumber the CPUs that they are bound to: 2 on 1\n"
    );
    assert_eq!(allowed(&outcome), [only.clone(), only]);
}

fn places_are_reported() {
    let outcome =
        TestJob::new(&["-n", "2", "--bind-to", "core", "--report-bindings", "true"]).run();
    assert_eq!(outcome.status, 0, "{outcome:?}");

    let machine = Topology::of_this_machine();
    let plan = plan(&machine, 2, MapBy::default(), BindTo::Core);

    for (pe, cpus) in bindings(&plan).iter().enumerate() {
        let start = format!("oshrun: PE {pe}: bound to CPUs {cpus}");
        assert!(
            outcome.stderr.lines().any(|line| line.starts_with(&start)),
            "{outcome:?}"
        );
    }

    assert!(
        outcome
            .stderr
            .contains("oshrun: CPUs and NICs of this machine ("),
        "{outcome:?}"
    );
}

testkit::module_tests! {
    pes_run_where_the_plan_says,
    pes_that_are_not_bound_run_where_oshrun_may,
    no_pe_leaves_what_oshrun_may_use,
    places_are_reported,
}
