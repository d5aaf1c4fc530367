//! Checks the simulator itself: it must find the faults of broken plans.

use crate::call::{Call, Call::*, Plan};
use crate::simulator::Team;
use rushmem_collectives::{Step, recursive_doubling};

const SCHEDULES: u64 = 300;

/// Returns true if some schedule shows a fault when the plan of each member is changed by `change`.
fn is_found(n: u32, program: &[Call], clocks: bool, change: &dyn Fn(u32, Plan) -> Plan) -> bool {
    fails(&Team {
        n,
        program,
        plan: &|call, me| change(me, program[call].plan(n, me)),
        receive_buffer_copies: 2,
        clocks,
    })
}

/// Returns true if some schedule shows a fault. With clocks one schedule is enough, since any must
/// show it.
fn fails(team: &Team) -> bool {
    let schedules = if team.clocks { 1 } else { SCHEDULES };
    (0..schedules).any(|seed| team.run(seed).is_err())
}

#[test]
fn every_step_is_needed() {
    for n in 1..=9 {
        for call in Call::ALL.into_iter().filter(|call| call.fits(n)) {
            for victim in 0..n {
                for index in 0..call.plan(n, victim).count() {
                    let without = |me, plan: Plan| -> Plan {
                        if me != victim {
                            return plan;
                        }
                        let mut steps: Vec<Step> = plan.collect();
                        steps.remove(index);
                        Box::new(steps.into_iter())
                    };
                    assert!(
                        is_found(n, &[call], true, &without),
                        "{call:?} among {n}: step {index} of {victim} is superfluous"
                    );
                }
            }
        }
    }
}

#[test]
fn scans_with_shared_receive_buffers_need_their_entry() {
    for scan in [InclusiveScan, ExclusiveScan] {
        for n in 2..=20 {
            let without_entry = |me, plan: Plan| -> Plan {
                let entry = recursive_doubling::scan_entry(n, me).count();
                Box::new(plan.skip(entry))
            };
            for clocks in [true, false] {
                let is_found = is_found(n, &[scan, scan, scan], clocks, &without_entry);
                assert!(is_found, "{scan:?} among {n}");
            }
        }
    }
}

/// Returns a reduction to member 0 without its credits, for which a member waits for a lower one.
fn without_credits_of_parents(me: u32, plan: Plan) -> Plan {
    Box::new(plan.filter(move |step| match step {
        Step::Signal { .. } => false,
        Step::Wait { peer } => peer.index > me,
        _ => true,
    }))
}

#[test]
fn reductions_to_a_root_need_their_credits() {
    for n in 2..=20 {
        for clocks in [true, false] {
            let program = [ReduceTo { root: 0 }; 3];
            assert!(is_found(n, &program, clocks, &without_credits_of_parents));
        }
    }
}

#[test]
fn reductions_and_scans_need_a_second_copy_of_the_receive_buffers() {
    let all_reduces = [[AllReduce, AllReduce], [LongAllReduce, NextPiece]];
    let scans = [
        [OwnInclusiveScan, OwnInclusiveScan],
        [InclusiveScan, NextScanPiece],
    ];
    for n in 2..=20_u32 {
        // With other numbers, the signals around the circle tell a member that its receivers have
        // read.
        let scans = scans.iter().filter(|_| n.is_power_of_two());
        for program in all_reduces.iter().chain(scans) {
            for clocks in [true, false] {
                let team = Team {
                    n,
                    program,
                    plan: &|call, me| program[call].plan(n, me),
                    receive_buffer_copies: 1,
                    clocks,
                };
                assert!(fails(&team), "{program:?} among {n}");
            }
        }
    }
}

/// Returns the plan with each wait moved behind the next step.
fn late_waits(_: u32, plan: Plan) -> Plan {
    let mut steps: Vec<Step> = plan.collect();
    let mut index = 0;
    while index + 1 < steps.len() {
        if matches!(steps[index], Step::Wait { .. }) {
            steps.swap(index, index + 1);
            index += 1;
        }
        index += 1;
    }
    Box::new(steps.into_iter())
}

#[test]
fn data_must_be_waited_for() {
    for call in [
        AllReduce,
        LongAllReduce,
        InclusiveScan,
        ExclusiveScan,
        Bruck,
        Words,
        Ring,
    ] {
        for n in 4..=20 {
            for clocks in [true, false] {
                let is_found = is_found(n, &[call], clocks, &late_waits);
                assert!(is_found, "{call:?} among {n}");
            }
        }
    }
}

#[test]
fn a_sync_needs_all_its_rounds() {
    for n in 2..=20_u32 {
        let one_round_less = move |_, plan: Plan| -> Plan {
            let rounds = n.next_power_of_two().ilog2() as usize;
            Box::new(plan.take(2 * (rounds - 1)))
        };
        for clocks in [true, false] {
            let is_found = is_found(n, &[Dissemination], clocks, &one_round_less);
            assert!(is_found, "n = {n}");
        }
    }
}
