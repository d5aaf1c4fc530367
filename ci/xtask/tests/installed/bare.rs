//! `cargo xtask test --bare`: what it hides does not exist for the steps.

use crate::support::{runs, succeed, temporary};

fn a_launcher_on_the_path_is_hidden() {
    let dir = temporary("with a launcher");
    std::fs::write(dir.join("mpirun"), "").unwrap();
    let path = format!("{}:{}", dir.display(), std::env::var("PATH").unwrap());
    let mut bare = runs(env!("CARGO_BIN_EXE_xtask"));
    let said = succeed(
        bare.args(["test", "--bare", "--only", "bare"])
            .env("PATH", path),
    );
    if let Some(why) = said
        .lines()
        .find(|line| line.contains("cannot be hidden: "))
    {
        testkit::absent(why);
    }
    assert!(said.contains("==== bare: passed"), "{said}");
    assert!(dir.join("mpirun").exists());
}

testkit::module_tests! {
    a_launcher_on_the_path_is_hidden,
}
