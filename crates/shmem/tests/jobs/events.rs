//! Checks that the program's subscriber receives events of the library only if the program requests
//! them.

use std::io;
use std::sync::{Arc, Mutex};
use testkit::Outcome;
use tracing_subscriber::fmt::MakeWriter;

/// The output of a program's subscriber.
#[derive(Clone, Default)]
struct Written(Arc<Mutex<Vec<u8>>>);

impl Written {
    /// Sets a subscriber that writes to this as the global default of the process.
    fn set_global() -> Written {
        let written = Written::default();
        let lines = tracing_subscriber::fmt()
            .with_max_level(tracing::Level::TRACE)
            .with_ansi(false)
            .with_writer(written.clone())
            .finish();
        tracing::subscriber::set_global_default(lines).expect("nobody else has set one");
        written
    }

    fn text(&self) -> String {
        let bytes = self.0.lock().expect("no panic").clone();
        String::from_utf8(bytes).expect("text")
    }

    fn has_only_the_event_of_the_program(&self) {
        let text = self.text();
        assert!(text.contains("of the program"), "{text}");
        assert_eq!(text.lines().count(), 1, "{text}");
    }
}

impl io::Write for Written {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().expect("no panic").write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl<'a> MakeWriter<'a> for Written {
    type Writer = Written;

    fn make_writer(&'a self) -> Written {
        self.clone()
    }
}

/// Runs a test of this file as a job of 2 PEs over TCP, and checks that it passes.
fn run(test: &str, variables: &[(&str, &str)]) -> Outcome {
    let job = crate::over_tcp::job(&format!("events::{test}"), 2, "tcp");
    let outcome = job.envs(variables).run();
    assert!(outcome.status.success(), "{outcome}");
    outcome
}

/// Lets two PEs put a word to each other, which connects them.
fn communicate(shmem: &shmem::Shmem) {
    let word = shmem.boxed(0u64);
    word.on(shmem.next()).write(17);
    shmem.barrier_all();
    assert_eq!(word.load(), 17);
}

shmem::test!(a_subscriber_set_before_init_gets_no_event, pes = 2, || {
    let written = Written::set_global();
    let shmem = shmem::init();
    tracing::info!("of the program");
    communicate(&shmem);
    shmem.finalize();
    written.has_only_the_event_of_the_program();
});

shmem::test!(
    a_subscriber_can_be_set_after_init_and_gets_no_event,
    pes = 2,
    |shmem| {
        let written = Written::set_global();
        tracing::info!("of the program");
        communicate(&shmem);
        shmem.finalize();
        written.has_only_the_event_of_the_program();
    }
);

shmem::test!(a_program_that_wants_events_gets_them, pes = 2, || {
    shmem::forward_events();
    let written = Written::set_global();
    let shmem = shmem::init();
    communicate(&shmem);
    let me = shmem.my_pe();
    // The split of a team and its operations are events, too.
    drop(shmem.world().split_strided(1, -1, 2).expect("a team"));
    shmem.finalize();

    let text = written.text();
    for part in [
        "rushmem_bootstrap::membership",
        "a new team: the team of 2 PEs from split 1",
        "broadcast of the team: ",
        "rushmem_runtime::exit::finalize",
        &format!("pe={me}"),
    ] {
        assert!(text.contains(part), "{part} in\n{text}");
    }
});

#[test]
fn events_are_printed_beside_the_subscriber_of_the_program() {
    for test in [
        "a_subscriber_set_before_init_gets_no_event",
        "a_subscriber_can_be_set_after_init_and_gets_no_event",
    ] {
        let printed = run(test, &[("SHMEM_DEBUG", "trace")]).stderr;
        for pe in ["pe=0", "pe=1"] {
            let joins = printed
                .lines()
                .filter(|line| line.contains("bootstrap::membership: joins") && line.contains(pe));
            assert_eq!(joins.count(), 1, "{printed}");
        }
    }
}

#[test]
fn events_for_the_program_are_not_printed() {
    let outcome = run("a_program_that_wants_events_gets_them", &[]);
    assert!(!outcome.stderr.contains("rushmem"), "{outcome}");
    assert!(!outcome.stderr.contains("pe="), "{outcome}");
}
