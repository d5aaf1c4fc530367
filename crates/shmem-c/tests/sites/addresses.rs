//! Symmetric objects have the same address on all PEs if that is possible; otherwise the library
//! reports it. tests/programs.rs runs the program on one node and over each transport. A test whose
//! tools are missing, or refused as in some containers, is ignored.

use std::process::Command;

use testkit::{Job, Outcome, absent, program};

/// Ignores the test if this command before a program fails.
fn needs(words: &[&str]) {
    let run = Command::new(words[0])
        .args(&words[1..])
        .arg("true")
        .output();
    if !run.is_ok_and(|output| output.status.success()) {
        absent(format!("`{}` is not here, or is refused", words.join(" ")));
    }
}

/// Returns a job of 2 PEs in which PE 1 has mapped other memory at these addresses.
fn with_taken(taken: &[String], argument: &str) -> Job {
    Job::new(program!("pointers.c"))
        .n(2)
        .arg(argument)
        .env("TAKE_ON", 1)
        .env("TAKE", taken.join(","))
}

/// Returns the address after the words that precede it in the output.
fn address(outcome: &Outcome, before: &str) -> Option<String> {
    let text = outcome.stdout.clone() + &outcome.stderr;
    let (_, after) = text.split_once(before)?;
    let word = after.strip_prefix(' ')?.split_whitespace().next()?;
    if word.starts_with("0x") {
        Some(word.to_owned())
    } else {
        None
    }
}

/// PE 1 has other memory at the usual address of the heap, then also at the address that is chosen
/// instead, and so on.
fn heaps_differ_only_where_no_address_is_free_on_all_pes() {
    const BEGINS: &str = "the symmetric heap begins at";

    let mut taken = Vec::new();
    while taken.len() < 10 {
        let outcome = with_taken(&taken, "").env("SHMEM_DEBUG", 2).run();
        let Some(heap) = address(&outcome, BEGINS) else {
            break;
        };

        outcome.assert_ok(2);
        let is_equal = outcome.stderr.contains(&format!("{BEGINS} {heap} on all PEs"));
        assert!(is_equal, "{outcome}");
        assert!(!taken.contains(&heap), "{heap} is taken on PE 1\n{outcome}");
        taken.push(heap);
    }
    assert!((2..10).contains(&taken.len()), "{taken:?}");

    let outcome = with_taken(&taken, "differ").env("SHMEM_DEBUG", 2).run();
    outcome.assert_ok(2);
    let differ = format!("{BEGINS} different addresses");
    assert!(outcome.stderr.contains(&differ), "{outcome}");

    with_taken(&taken, "")
        .run()
        .assert_fails(&["has another address on other PEs"]);
}

/// The limit is lower than the sizes of all candidates for the heap together.
fn heaps_are_equal_where_the_address_space_is_limited() {
    const LIMITED: [&str; 2] = ["prlimit", "--as=1500000000"];
    needs(&LIMITED);

    Job::new(program!("pointers.c"))
        .n(3)
        .env("SHMEM_SYMMETRIC_SIZE", "200m")
        .wrap(LIMITED)
        .run()
        .assert_ok(3);
}

fn heaps_are_equal_where_memory_is_mapped_upwards() {
    const UPWARDS: [&str; 2] = ["setarch", "--addr-compat-layout"];
    needs(&UPWARDS);

    Job::new(program!("pointers.c"))
        .n(3)
        .wrap(UPWARDS)
        .run()
        .assert_ok(3);
}

fn virtual_nodes_of_different_sizes_have_equal_heaps() {
    for (nodes, n) in [("2+2", 4), ("1+2+3", 6)] {
        Job::new(program!("pointers.c"))
            .n(n)
            .env("SHMEM_VIRTUAL_NODES", nodes)
            .run()
            .assert_ok(n);
    }
}

fn static_data_are_equal_without_aslr() {
    let outcome = Job::new(program!("pointers.c"))
        .n(3)
        .launcher_options(["--no-aslr"])
        .arg("static")
        .env("SHMEM_DEBUG", 2)
        .run();
    if outcome.stderr.contains("--no-aslr is refused") {
        absent("the kernel refuses --no-aslr");
    }

    outcome.assert_ok(3);
    let statics = address(&outcome, "the static data begin at");
    assert!(statics.is_some(), "{outcome}");
    let n_equal = outcome.stderr.matches("on all PEs").count();
    assert!(n_equal >= 2, "{outcome}");
}

testkit::module_tests! {
    heaps_differ_only_where_no_address_is_free_on_all_pes,
    heaps_are_equal_where_the_address_space_is_limited,
    heaps_are_equal_where_memory_is_mapped_upwards,
    virtual_nodes_of_different_sizes_have_equal_heaps,
    static_data_are_equal_without_aslr,
}
