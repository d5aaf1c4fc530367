//! Tests of tables: rows that are read, forced and built in, and the choices that they make.

use super::*;
use crate::choice::facts::SHORT_MAX_BYTES;

const FACTS: ChoiceFacts = ChoiceFacts {
    members: 7,
    per_node: 7,
    oversubscribed: false,
    receive_buffer_bytes: 32 << 10,
    pair_flags: true,
    lines: false,
};
const SHARED: ChoiceFacts = ChoiceFacts {
    oversubscribed: true,
    ..FACTS
};
const MANY: ChoiceFacts = ChoiceFacts {
    members: 17,
    per_node: 17,
    ..SHARED
};
const APART: ChoiceFacts = ChoiceFacts {
    per_node: 1,
    ..FACTS
};
const TWO_NODES: ChoiceFacts = ChoiceFacts {
    per_node: 6,
    ..FACTS
};

fn built_in() -> Table {
    of("")
}

fn of(text: &str) -> Table {
    let mut table = Table::default();
    table.read(text).expect("it is a table");
    table.complete();
    table
}

fn mistake(text: &str) -> String {
    Table::default()
        .read(text)
        .expect_err("it has a mistake")
        .to_string()
}

#[test]
fn what_is_built_in_leaves_no_case_open() {
    let table = built_in();
    for members in [1, 2, 3, 1_u32 << 20] {
        for per_node in [1, members.div_ceil(2), members] {
            // `alone`: no other team uses the buffers and flags that teams share.
            for (oversubscribed, alone) in
                [(false, false), (false, true), (true, false), (true, true)]
            {
                let listed = table.listed(&ChoiceFacts {
                    members,
                    per_node,
                    oversubscribed,
                    receive_buffer_bytes: usize::from(alone) << 15,
                    pair_flags: alone,
                    lines: alone && per_node == members,
                });
                for &operation in Table::OPERATIONS {
                    let mut rows = listed.iter().filter(|row| row.operation == operation);
                    assert!(rows.any(|row| row.from == 0));
                }
            }
        }
    }
}

#[test]
fn pes_that_share_cpus_sync_by_a_counter_or_a_tree() {
    use SyncAlgorithm::{Central, Dissemination, Gather, TwoLevel};
    let choose = |facts| built_in().choose::<SyncAlgorithm>(0, || facts);
    assert_eq!(choose(FACTS), Dissemination);
    assert_eq!(choose(SHARED), Central);

    let on_two_nodes = ChoiceFacts {
        per_node: 6,
        ..SHARED
    };
    assert_eq!(choose(on_two_nodes), TwoLevel);

    let several_at_once = ChoiceFacts {
        receive_buffer_bytes: 0,
        pair_flags: false,
        ..on_two_nodes
    };
    assert_eq!(choose(several_at_once), Gather);

    let apart = ChoiceFacts {
        per_node: 1,
        ..SHARED
    };
    assert_eq!(choose(apart), Gather);
}

#[test]
fn pes_that_share_cpus_exchange_by_a_counter() {
    let collect = |nbytes, facts| built_in().choose::<AllGatherAlgorithm>(nbytes, || facts);
    assert_eq!(collect(1 << 20, SHARED), AllGatherAlgorithm::Central);
    assert_eq!(collect(8, FACTS), AllGatherAlgorithm::Bruck);

    let alltoall = |facts| built_in().choose::<AllToAllAlgorithm>(1 << 20, || facts);
    assert_eq!(alltoall(SHARED), AllToAllAlgorithm::Central);
    assert_eq!(alltoall(FACTS), AllToAllAlgorithm::Pairwise);
}

#[test]
fn a_power_of_two_of_members_on_several_nodes_gather_with_partners() {
    use AllGatherAlgorithm::{Bruck, RecursiveDoubling, Ring};
    let choose = |nbytes, facts| built_in().choose::<AllGatherAlgorithm>(nbytes, || facts);
    let of_four = ChoiceFacts {
        members: 4,
        ..APART
    };
    assert_eq!(choose(32, of_four), RecursiveDoubling);
    assert_eq!(choose(512 << 10, of_four), Ring);
    assert_eq!(choose(56, APART), Bruck);
}

#[test]
fn long_vectors_are_scanned_directly_where_memory_is_shared() {
    use ScanAlgorithm::{Central, Direct, RecursiveDoubling};
    let choose = |nbytes, facts| built_in().choose::<ScanAlgorithm>(nbytes, || facts);
    assert_eq!(choose((2 << 10) - 1, FACTS), RecursiveDoubling);
    assert_eq!(choose(2 << 10, FACTS), Direct);
    assert_eq!(choose(16 << 10, SHARED), Central);
    assert_eq!(choose((16 << 10) + 1, SHARED), Direct);
    assert_eq!(choose((1 << 10) + 1, MANY), Direct);
    assert_eq!(choose(1 << 20, APART), RecursiveDoubling);
}

#[test]
fn long_vectors_are_reduced_directly_where_memory_is_shared() {
    use AllReduceAlgorithm::{Central, Direct, Rabenseifner, RecursiveDoubling, TwoLevel};
    let choose = |nbytes, facts| built_in().choose::<AllReduceAlgorithm>(nbytes, || facts);
    assert_eq!(choose(256, FACTS), Direct);
    assert_eq!(choose(255, FACTS), RecursiveDoubling);
    assert_eq!(choose(16 << 10, SHARED), Central);
    assert_eq!(choose((16 << 10) + 1, SHARED), Direct);
    assert_eq!(choose((64 << 10) + 1, APART), Rabenseifner);
    assert_eq!(choose(64 << 10, APART), RecursiveDoubling);

    assert_eq!(choose(1 << 10, MANY), Central);
    assert_eq!(choose((1 << 10) + 1, MANY), Direct);

    let nine = ChoiceFacts {
        members: 9,
        ..APART
    };
    assert_eq!(choose(32 << 10, nine), Rabenseifner);

    let of_large_job = ChoiceFacts {
        receive_buffer_bytes: 8 << 10,
        ..APART
    };
    assert_eq!(choose(32 << 10, of_large_job), RecursiveDoubling);
    assert_eq!(choose((32 << 10) + 1, of_large_job), Rabenseifner);

    assert_eq!(choose(8, TWO_NODES), TwoLevel);
    assert_eq!(choose(512 << 10, TWO_NODES), TwoLevel);
    assert_eq!(choose((512 << 10) + 1, TWO_NODES), Rabenseifner);

    let several_at_once = ChoiceFacts {
        receive_buffer_bytes: 0,
        pair_flags: false,
        ..TWO_NODES
    };
    assert_eq!(choose(SHORT_MAX_BYTES + 1, several_at_once), Direct);
    assert_eq!(choose(32 << 10, several_at_once), Rabenseifner);
    assert_eq!(choose(SHORT_MAX_BYTES, several_at_once), RecursiveDoubling);

    let scan = |facts| built_in().choose::<ScanAlgorithm>(8, || facts);
    assert_eq!(scan(APART), ScanAlgorithm::RecursiveDoubling);
    assert_eq!(scan(several_at_once), ScanAlgorithm::Direct);
}

#[test]
fn many_short_blocks_travel_together_over_a_network() {
    use AllToAllAlgorithm::{Bruck, Pairwise};
    let choose = |nbytes, facts| built_in().choose::<AllToAllAlgorithm>(nbytes, || facts);
    let eight = ChoiceFacts {
        members: 8,
        per_node: 4,
        ..FACTS
    };
    assert_eq!(choose(2 << 10, eight), Bruck);
    assert_eq!(choose((2 << 10) + 1, eight), Pairwise);

    let several_at_once = ChoiceFacts {
        receive_buffer_bytes: 0,
        pair_flags: false,
        ..eight
    };
    assert_eq!(choose(8, several_at_once), Pairwise);

    let on_one_node = ChoiceFacts {
        per_node: 8,
        ..eight
    };
    assert_eq!(choose(8, on_one_node), Pairwise);
    assert_eq!(choose(8, TWO_NODES), Pairwise);
}

#[test]
fn long_results_go_around_the_ring() {
    let choose = |nbytes| built_in().choose::<AllGatherAlgorithm>(nbytes, || FACTS);
    assert_eq!(choose((512 << 10) - 1), AllGatherAlgorithm::Bruck);
    assert_eq!(choose(512 << 10), AllGatherAlgorithm::Ring);
}

#[test]
fn two_members_of_a_node_exchange_once() {
    let two = ChoiceFacts {
        members: 2,
        per_node: 2,
        ..FACTS
    };
    let gather = |nbytes| built_in().choose::<AllGatherAlgorithm>(nbytes, || two);
    assert_eq!(gather(4 << 20), AllGatherAlgorithm::Pairwise);
    let reduce = |nbytes| built_in().choose::<AllReduceAlgorithm>(nbytes, || two);
    assert_eq!(reduce((2 << 10) - 1), AllReduceAlgorithm::RecursiveDoubling);
    assert_eq!(reduce(2 << 10), AllReduceAlgorithm::Ring);
    assert_eq!(reduce(2 << 20), AllReduceAlgorithm::Ring);
    assert_eq!(reduce((2 << 20) + 1), AllReduceAlgorithm::Direct);

    let reduce_to = |nbytes| built_in().choose::<ReduceToAlgorithm>(nbytes, || two);
    assert_eq!(reduce_to(8), ReduceToAlgorithm::RecursiveDoubling);
    assert_eq!(reduce_to(4 << 10), ReduceToAlgorithm::Gather);
    assert_eq!(reduce_to((4 << 10) + 1), ReduceToAlgorithm::Direct);

    let reduce_scatter = |nbytes| built_in().choose::<ReduceScatterAlgorithm>(nbytes, || two);
    assert_eq!(reduce_scatter(1 << 10), ReduceScatterAlgorithm::AllToAll);
    assert_eq!(
        reduce_scatter((1 << 10) + 1),
        ReduceScatterAlgorithm::Direct
    );

    let scan = |nbytes| built_in().choose::<ScanAlgorithm>(nbytes, || two);
    assert_eq!(scan((8 << 10) - 1), ScanAlgorithm::RecursiveDoubling);
    assert_eq!(scan(8 << 10), ScanAlgorithm::Direct);
}

#[test]
fn gathers_of_more_members_than_cpus_exchange_in_pairs() {
    let of = |members, nbytes| {
        let facts = ChoiceFacts {
            members,
            oversubscribed: true,
            ..APART
        };
        built_in().choose::<AllGatherAlgorithm>(nbytes, || facts)
    };
    assert_eq!(of(8, (2 << 20) - 1), AllGatherAlgorithm::RecursiveDoubling);
    assert_eq!(of(8, 2 << 20), AllGatherAlgorithm::NeighborExchange);
    assert_eq!(of(6, (512 << 10) - 1), AllGatherAlgorithm::Bruck);
    assert_eq!(of(6, 512 << 10), AllGatherAlgorithm::NeighborExchange);
    assert_eq!(of(7, 512 << 10), AllGatherAlgorithm::Ring);
}

#[test]
fn what_is_forced_is_used_where_it_can_be_before_what_a_file_says() {
    let mut table = Table::default();
    table.force(Some(SyncAlgorithm::Central));
    table.force(Some(AllReduceAlgorithm::RecursiveDoubling));
    table
        .read("reduce any any any any any direct\nsync any any any any any binomial")
        .unwrap();
    table.force(None::<ScanAlgorithm>);
    table.complete();

    let sync = |facts| table.choose::<SyncAlgorithm>(0, || facts);
    assert_eq!(sync(FACTS), SyncAlgorithm::Central);
    assert_eq!(sync(APART), SyncAlgorithm::Gather);

    let reduce = |nbytes| table.choose::<AllReduceAlgorithm>(nbytes, || FACTS);
    assert_eq!(reduce(8), AllReduceAlgorithm::RecursiveDoubling);
    assert_eq!(reduce(1 << 30), AllReduceAlgorithm::Direct);

    let listed = table
        .listed(&FACTS)
        .into_iter()
        .filter(|row| row.operation == "reduce");
    let origins: Vec<RowOrigin> = listed.map(|row| row.origin).collect();
    assert_eq!(origins, [RowOrigin::Forced, RowOrigin::File(1)]);
}

#[test]
fn every_condition_counts() {
    let facts = ChoiceFacts {
        members: 8,
        per_node: 4,
        oversubscribed: true,
        ..FACTS
    };
    let chosen = |row: &str, nbytes, facts| {
        let table = of(&format!("collect {row} ring"));
        table.choose::<AllGatherAlgorithm>(nbytes, || facts) == AllGatherAlgorithm::Ring
    };
    let holds = "1k-2k 8-15 several 2-4 yes";
    assert!(chosen(holds, 1024, facts));
    assert!(chosen(holds, 2048, facts));
    assert!(!chosen(holds, 1023, facts));
    assert!(!chosen(holds, 2049, facts));

    let seven = ChoiceFacts {
        members: 7,
        ..facts
    };
    assert!(!chosen(holds, 1024, seven));
    let five_on_a_node = ChoiceFacts {
        per_node: 5,
        ..facts
    };
    assert!(!chosen(holds, 1024, five_on_a_node));
    let with_enough_cpus = ChoiceFacts {
        oversubscribed: false,
        ..facts
    };
    assert!(!chosen(holds, 1024, with_enough_cpus));

    assert!(!chosen("any any one any any", 8, facts));
    assert!(chosen("100+/pe any any any any", 800, facts));
    assert!(!chosen("100+/pe any any any any", 799, facts));
    assert!(chosen("5 any any any any", 5, facts));
}

#[test]
fn a_job_keeps_the_rows_that_may_hold_in_it() {
    let text = "collect any 9+ any any any ring\ncollect any any any 8+ any ring\ncollect 8k+ 2-3 one 2 no ring";
    for world in [FACTS, SHARED, APART, TWO_NODES] {
        let all = of(text);
        let mut kept = all.clone();
        kept.retain_for(&world);
        assert!(kept.rows().count() < all.rows().count());

        for members in 1..=world.members {
            let least = if world.one_node() { members } else { 1 };
            for per_node in least..=members.min(world.per_node) {
                let facts = ChoiceFacts {
                    members,
                    per_node,
                    ..world
                };
                assert_eq!(kept.listed(&facts), all.listed(&facts));
            }
        }
    }
}

#[test]
fn rows_are_written_as_they_are_read() {
    let table = built_in();
    let text: String = table.rows().map(|(row, _)| row + "\n").collect();
    let mut again = Table::default();
    again.read(&text).expect("it wrote it");
    let rows = |table: &Table| table.rows().map(|(row, _)| row).collect::<Vec<_>>();
    assert_eq!(rows(&again), rows(&table));

    let given: Vec<&str> = BUILT_IN
        .lines()
        .filter(|line| !line.is_empty() && !line.starts_with('#'))
        .collect();
    let mut written: Vec<&str> = text.lines().collect();
    written.sort_by_key(|row| given.iter().position(|given| given == row));
    assert_eq!(
        written, given,
        "the columns of built_in.txt are as wide as those that are written"
    );
}

#[test]
fn the_page_has_every_algorithm() {
    let page = include_str!("../../../../../docs/performance/collectives.md");
    for operation in Table::OPERATIONS {
        let section = page
            .split("\n### ")
            .find(|text| text.starts_with(operation))
            .expect(operation);
        for algorithm in Table::algorithms(operation) {
            assert!(
                section.contains(&format!("\n- `{algorithm}`")),
                "{operation}: {algorithm}"
            );
        }
    }
}

#[test]
fn a_mistake_is_reported_with_its_line_and_what_to_write() {
    for (text, message) in [
        (
            "# note\n\nsync any",
            "line 3: 2 columns; write operation, bytes",
        ),
        (
            "sing any any any any any ring",
            "line 1: there is no operation \"sing\"; write one of sync, ",
        ),
        (
            "sync any any any any any ring",
            "\"ring\" is no algorithm of sync, which has dissemination, ",
        ),
        (
            "sync x any any any any central",
            "bytes is \"x\"; write a number, a range",
        ),
        ("sync 4-3 any any any any central", "bytes is \"4-3\""),
        ("sync any +3 any any any central", "members is \"+3\""),
        (
            "sync any any two any any central",
            "nodes is \"two\"; write one, several or any",
        ),
        (
            "sync any any any 99999999999999999999 any central",
            "per-node is",
        ),
        (
            "sync any any any any maybe central",
            "oversubscribed is \"maybe\"; write yes, no or any",
        ),
    ] {
        assert!(mistake(text).contains(message), "{}", mistake(text));
    }
}

#[test]
fn a_list_shows_where_the_choice_changes() {
    let table = of("collect 8k+/pe 7 any any any ring # measured");
    let mut listed = table.listed(&FACTS);
    listed.retain(|row| row.operation == "collect");

    let built_in = Listed {
        operation: "collect",
        from: 0,
        algorithm: "bruck",
        origin: RowOrigin::BuiltIn,
    };
    let of_file = Listed {
        operation: "collect",
        from: 7 * 8192,
        algorithm: "ring",
        origin: RowOrigin::File(1),
    };
    assert_eq!(listed, [built_in, of_file]);
}

#[test]
fn limits_of_algorithms_are_listed() {
    let listed = built_in().listed(&ChoiceFacts {
        lines: true,
        ..FACTS
    });
    let of = |operation| {
        let rows = listed.iter().filter(|row| row.operation == operation);
        rows.map(|row| (row.from, row.algorithm))
            .collect::<Vec<_>>()
    };
    assert_eq!(
        of("collect"),
        [(0, "lines"), (56 * 7 + 1, "bruck"), (512 << 10, "ring")]
    );
    assert_eq!(of("alltoall"), [(0, "lines"), (57, "pairwise")]);
}
