//! The commands that the compiler wrappers run, in a prefix whose path contains a space.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

const WRAPPER: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/../../crates/shmem-c/wrappers/oshcc"
);

/// A prefix with the wrappers and the headers. Dropping it deletes the prefix.
struct InstalledPrefix(PathBuf);

impl InstalledPrefix {
    fn make(name: &str) -> Self {
        let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("a {name}"));
        let _ = fs::remove_dir_all(&path);
        fs::create_dir_all(path.join("bin")).unwrap();
        for wrapper in ["oshcc", "oshcxx", "oshfort"] {
            let installed = path.join("bin").join(wrapper);
            fs::copy(WRAPPER, installed).unwrap();
        }
        for link in ["oshc++", "oshCC"] {
            symlink("oshcxx", path.join("bin").join(link)).unwrap();
        }
        spec::write_headers(&path.join("include")).unwrap();
        Self(path.canonicalize().unwrap())
    }

    /// Returns a command that runs the wrapper with `true` as the compiler, which every machine
    /// has.
    fn wrapper(&self, name: &str) -> Command {
        script(&self.0.join("bin").join(name))
    }

    /// Returns the command that `oshcc` would run.
    fn shown(&self, arguments: &[&str]) -> String {
        text(self.wrapper("oshcc").arg("--show").args(arguments))
    }

    fn include(&self) -> String {
        format!("'-I{}/include'", self.0.display())
    }

    fn link(&self) -> String {
        let lib = self.0.join("lib");
        let lib = lib.display();
        format!("'-L{lib}' -Xlinker -rpath -Xlinker '{lib}' -lrushmem")
    }
}

impl Drop for InstalledPrefix {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Returns a command by which the shell runs a script. The kernel would refuse to run it while a
/// child of another test, between fork and exec, still has the file open for writing.
fn script(path: &Path) -> Command {
    let mut command = Command::new("sh");
    command.arg(path);
    for variable in ["OSHCC_CC", "OSHCXX_CXX", "OSHFORT_FC"] {
        command.env(variable, "true");
    }
    command
}

fn text(command: &mut Command) -> String {
    let Output { status, stdout, .. } = command.output().unwrap();
    assert!(status.success(), "{command:?}: {status}");
    String::from_utf8(stdout).unwrap().trim_end().to_owned()
}

#[test]
fn the_library_comes_after_the_users_objects() {
    let prefix = InstalledPrefix::make("link");
    assert_eq!(
        prefix.shown(&["a b.c", "-o", "a"]),
        format!("true {} 'a b.c' -o a {}", prefix.include(), prefix.link())
    );
}

#[test]
fn what_does_not_link_gets_no_library() {
    let prefix = InstalledPrefix::make("compile");
    for option in ["-c", "-E", "-S", "-M", "-MM", "-r"] {
        let expected = format!("true {} {option} a.c", prefix.include());
        assert_eq!(prefix.shown(&[option, "a.c"]), expected);
    }
    let only_a_question = format!("true {} -v -o a", prefix.include());
    assert_eq!(prefix.shown(&["-v", "-o", "a"]), only_a_question);
}

#[test]
fn options_that_only_look_like_compiling_still_link() {
    let prefix = InstalledPrefix::make("dependencies");
    for arguments in [&["-MD", "a.c"][..], &["-o", "-c", "a.o"], &["-x", "c", "-"]] {
        assert!(prefix.shown(arguments).ends_with(&prefix.link()));
    }
}

#[test]
fn the_prefix_is_found_through_links_and_after_a_move() {
    let prefix = InstalledPrefix::make("linked");
    let elsewhere = InstalledPrefix::make("linked elsewhere");
    let link = elsewhere.0.join("my-oshcc");
    symlink(prefix.0.join("bin/oshcc"), &link).unwrap();
    let through = text(script(&link).args(["--show", "a.c"]));
    assert_eq!(through, prefix.shown(&["a.c"]));

    let moved = elsewhere.0.join("moved");
    fs::rename(&prefix.0, &moved).unwrap();
    let moved = InstalledPrefix(moved);
    assert!(
        moved
            .shown(&["a.c"])
            .contains("a linked elsewhere/moved/lib")
    );
}

#[test]
fn each_wrapper_has_its_compiler() {
    let prefix = InstalledPrefix::make("compilers");
    let c = text(prefix.wrapper("oshcc").env("OSHCC_CC", "echo C").arg("-c"));
    assert!(c.starts_with("C -I"), "{c}");
    let cxx = text(
        prefix
            .wrapper("oshcxx")
            .env("OSHCXX_CXX", "echo C++")
            .arg("-c"),
    );
    assert!(cxx.starts_with("C++ -I"), "{cxx}");

    let fortran = text(
        prefix
            .wrapper("oshfort")
            .env("OSHFORT_FC", "echo Fortran")
            .arg("-c"),
    );
    assert!(fortran.starts_with("Fortran -I"), "{fortran}");

    let echo = prefix.0.join("an echo");
    symlink("/bin/echo", &echo).unwrap();
    let blank = text(prefix.wrapper("oshcc").env("OSHCC_CC", &echo).arg("-c"));
    assert!(blank.starts_with("-I"), "{blank}");
}

/// `oshc++` is the name in the standard's annex, `oshCC` a customary one.
#[test]
fn each_name_of_the_wrapper_for_cxx_compiles_cxx() {
    let prefix = InstalledPrefix::make("names");
    for name in ["oshcxx", "oshc++", "oshCC"] {
        let mut wrapper = prefix.wrapper(name);
        let shown = text(
            wrapper
                .env("OSHCXX_CXX", "some-c++")
                .arg("--showme:command"),
        );
        assert_eq!(shown, "some-c++", "{name}");
    }
}

#[test]
fn the_command_is_shown_in_every_spelling() {
    let prefix = InstalledPrefix::make("spellings");
    let shown = prefix.shown(&["a.c", "-o", "a"]);
    for option in ["-show", "--showme", "-showme"] {
        let mut wrapper = prefix.wrapper("oshcc");
        assert_eq!(
            text(wrapper.args([option, "a.c", "-o", "a"])),
            shown,
            "{option}"
        );
    }
    // Build systems call it without arguments to get all options that are added.
    assert_eq!(
        prefix.shown(&[]),
        format!("true {} {}", prefix.include(), prefix.link())
    );
}

#[test]
fn each_part_of_the_command_is_shown_alone() {
    let prefix = InstalledPrefix::make("parts");
    let dir = |name| format!("'{}'", prefix.0.join(name).display());
    for (part, expected) in [
        ("command", "true".to_string()),
        ("compile", prefix.include()),
        ("link", prefix.link()),
        ("incdirs", dir("include")),
        ("libdirs", dir("lib")),
        ("libs", "rushmem".to_string()),
        (
            "version",
            concat!(
                "oshcc: Rushmem ",
                env!("CARGO_PKG_VERSION"),
                " (Language: C)"
            )
            .into(),
        ),
    ] {
        for hyphens in ["-", "--"] {
            let option = format!("{hyphens}showme:{part}");
            assert_eq!(
                text(prefix.wrapper("oshcc").arg(&option)),
                expected,
                "{option}"
            );
            let among_others = text(prefix.wrapper("oshcc").args(["-c", "a.c", &option]));
            assert_eq!(among_others, expected, "{option}");
        }
    }

    let statically = text(prefix.wrapper("oshcc").args(["-static", "--showme:link"]));
    assert!(
        statically.contains("--wrap=_Fork") && !statically.contains("-rpath"),
        "{statically}"
    );
}

#[test]
fn an_unknown_part_of_the_command_is_refused() {
    let prefix = InstalledPrefix::make("unknown part");
    for unknown in ["--showme:color", "--showme:no"] {
        let output = prefix.wrapper("oshcc").arg(unknown).output().unwrap();
        assert_eq!(output.status.code(), Some(1));
        let message = String::from_utf8(output.stderr).unwrap();
        assert!(
            message.contains(unknown) && message.contains("--help"),
            "{message}"
        );
    }
}

/// The case of a Fortran compiler that was installed after the library.
#[test]
fn a_module_that_is_missing_is_named_with_the_remedy() {
    let prefix = InstalledPrefix::make("module");
    let compile = |compiler: &str| {
        let mut wrapper = prefix.wrapper("oshfort");
        wrapper
            .env("OSHFORT_FC", compiler)
            .args(["-c", "a.f90"])
            .output()
            .unwrap()
    };
    for (compiler, dir) in [("false", "include"), ("false flang", "include/flang")] {
        let output = compile(compiler);
        let message = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(1));
        let has = format!("{} has no shmem.mod", prefix.0.join(dir).display());
        assert!(
            message.contains(&has) && message.contains("shmem.f90"),
            "{message}"
        );
    }
    assert!(compile("true").stderr.is_empty());
    fs::write(prefix.0.join("include/shmem.mod"), "").unwrap();
    assert!(compile("false").stderr.is_empty());
}

#[test]
fn the_options_of_old_dialects_are_named() {
    let prefix = InstalledPrefix::make("dialects");
    let help = text(prefix.wrapper("oshfort").arg("--help"));
    for option in ["-fdollar-ok", "-fdefault-real-8", "-fcray-pointer", "N$PES"] {
        assert!(help.contains(option), "{help}");
    }
    assert!(!text(prefix.wrapper("oshcc").arg("--help")).contains("-fdollar-ok"));
}

/// gfortran's library refers to the functions of threads weakly, so the linker would omit some.
#[test]
fn a_static_fortran_program_gets_all_of_the_threads() {
    let prefix = InstalledPrefix::make("static Fortran");
    let show = |wrapper, flag| text(prefix.wrapper(wrapper).args(["--show", flag, "a.o"]));
    let needed = "--undefined=pthread_mutex_destroy";
    assert!(show("oshfort", "-static").contains(needed));
    assert!(!show("oshfort", "-O2").contains(needed));
    assert!(!show("oshcc", "-static").contains(needed));
}

#[test]
fn a_compiler_that_is_not_there_is_named() {
    let prefix = InstalledPrefix::make("missing");
    let mut wrapper = prefix.wrapper("oshcc");
    let output = wrapper
        .env("OSHCC_CC", "no-such-cc")
        .arg("a.c")
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(127));
    let message = String::from_utf8(output.stderr).unwrap();
    assert!(
        message.contains("`no-such-cc'") && message.contains("OSHCC_CC"),
        "{message}"
    );
}
