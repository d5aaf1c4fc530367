//! Programs that are linked with the installed library, shared or static: every function is
//! defined, a profiling tool can intercept calls, and `long double` is passed correctly.
//!
//! Each program is a job of one PE, started without a launcher.

use std::path::{Path, PathBuf};
use std::process::Command;

use spec::table::SpecTable;

#[derive(Clone, Copy)]
enum Library {
    Shared,
    Static,
}

/// Returns the prefix in which the library is installed.
fn prefix() -> PathBuf {
    let prefix = std::env::var_os("RUSHMEM_PREFIX").expect(
        "RUSHMEM_PREFIX must name an installation to test. Make one with \
         `cargo xtask install --prefix DIR`, or run `cargo xtask test`, which does both",
    );
    PathBuf::from(prefix)
}

fn gcc(source: &Path) -> Command {
    let mut gcc = Command::new("gcc");
    gcc.args(["-std=c11", "-O1", "-Wall", "-Wextra", "-Werror"])
        .arg("-I")
        .arg(prefix().join("include"))
        .arg(source);
    gcc
}

/// Writes `source` to a file of that name.
fn file(name: &str, source: &str) -> PathBuf {
    let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("linking_{name}"));
    std::fs::write(&path, source).expect("the directory for tests can be written to");
    path
}

/// Compiles a program and links it with the library.
fn program(name: &str, library: Library, source: &str) -> PathBuf {
    let lib = prefix().join("lib");
    let path = file(&format!("{name}.c"), source);
    let mut gcc = gcc(&path);

    let program = match library {
        Library::Shared => {
            gcc.arg("-L")
                .arg(&lib)
                .arg("-lrushmem")
                .arg(format!("-Wl,-rpath,{}", lib.display()));
            path.with_extension("shared")
        }
        Library::Static => {
            gcc.arg(lib.join("librushmem.a"))
                .args(["-lgcc_s", "-lutil", "-lrt", "-lpthread", "-lm", "-ldl"])
                .arg("-lc");
            path.with_extension("static")
        }
    };

    succeed(gcc.arg("-o").arg(&program));
    program
}

/// Runs a command with a time limit of a minute, and returns its standard output.
fn succeed(command: &mut Command) -> String {
    let mut limited = Command::new("timeout");
    limited
        .args(["-k", "5", "60"])
        .arg(command.get_program())
        .args(command.get_args());
    for (name, value) in command.get_envs() {
        limited.env(name, value.expect("no test removes a variable"));
    }

    let output = limited.output().expect("timeout is installed");
    assert!(
        output.status.success(),
        "{command:?}: {}\n{}{}",
        output.status,
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
    String::from_utf8(output.stdout).expect("the programs print ASCII")
}

#[test]
fn every_function_can_be_linked() {
    let table = SpecTable::read();
    let functions: Vec<_> = table.all().collect();
    let names: String = functions
        .iter()
        .map(|function| format!("(any *){}, (any *){},\n", function.symbol, function.twin()))
        .collect();
    let source = format!(
        "#include <pshmemx.h>
        #include <shmemx.h>
        #include <stdio.h>
        #pragma GCC diagnostic ignored \"-Wcast-function-type\"
        typedef void any(void);
        static any *const volatile all[] = {{
            {names}
        }};
        int main(void) {{
            int found = 0;
            for (size_t i = 0; i < sizeof all / sizeof *all; i++)
                found += all[i] != 0;
            printf(\"%d\\n\", found);
        }}
        "
    );

    for library in [Library::Shared, Library::Static] {
        let found = succeed(&mut Command::new(program("every", library, &source)));
        // Each function has a twin.
        assert_eq!(found.trim(), (2 * functions.len()).to_string());
    }
}

/// A program that puts twice.
const PUTS: &str = "
    #include <shmem.h>
    #include <stdio.h>
    int main(void) {
        shmem_init();
        const int me = shmem_my_pe();
        long *x = shmem_malloc(sizeof *x);
        shmem_long_p(x, 41, me);
        shmem_p(x, shmem_g(x, me) + 1, me);
        printf(\"%ld\\n\", shmem_long_g(x, me));
        shmem_free(x);
        shmem_finalize();
    }
";

/// A tool that counts the calls of `shmem_long_p`.
const TOOL: &str = "
    #include <pshmem.h>
    #include <stdio.h>
    static int calls;
    void shmem_long_p(long *dest, long value, int pe);
    void shmem_long_p(long *dest, long value, int pe) {
        calls++;
        pshmem_long_p(dest, value, pe);
    }
    __attribute__((destructor)) static void report(void) {
        printf(\"%d calls\\n\", calls);
    }
";

#[test]
fn a_tool_in_the_program_gets_between() {
    for library in [Library::Shared, Library::Static] {
        let bare = program("puts", library, PUTS);
        assert_eq!(succeed(&mut Command::new(bare)), "42\n");

        let profiled = program("profiled", library, &format!("{TOOL}{PUTS}"));
        assert_eq!(succeed(&mut Command::new(profiled)), "42\n2 calls\n");
    }
}

#[test]
fn a_tool_that_is_preloaded_gets_between() {
    let source = file("tool.c", TOOL);
    let tool = source.with_extension("so");
    succeed(gcc(&source).args(["-shared", "-fPIC", "-o"]).arg(&tool));

    let program = program("preloaded", Library::Shared, PUTS);
    let printed = succeed(Command::new(program).env("LD_PRELOAD", tool));
    assert_eq!(printed, "42\n2 calls\n");
}

#[test]
fn a_long_double_arrives_as_it_was_sent() {
    let source = "
        #include <float.h>
        #include <shmem.h>
        int main(void) {
            shmem_init();
            const int me = shmem_my_pe();
            /* One bit more than a double has. */
            const long double sent = 1 + LDBL_EPSILON;
            long double *x = shmem_calloc(2, sizeof *x);
            shmem_longdouble_p(x, sent, me);
            shmem_ctx_longdouble_p(SHMEM_CTX_DEFAULT, x + 1, -sent, me);
            shmem_quiet();
            int wrong = x[0] != sent || x[1] != -sent;
            wrong |= shmem_longdouble_g(x, me) != sent;
            wrong |= shmem_ctx_longdouble_g(SHMEM_CTX_DEFAULT, x + 1, me) != -sent;
            shmem_finalize();
            return wrong;
        }
    ";
    for library in [Library::Shared, Library::Static] {
        succeed(&mut Command::new(program("longdouble", library, source)));
    }
}

/// The names by which build systems of other implementations ask for the library.
#[test]
fn the_library_has_the_names_of_others() {
    let source = "
        #include <shmem.h>
        static long here;
        int main(void) {
            shmem_init();
            shmem_long_p(&here, 5, shmem_my_pe());
            shmem_barrier_all();
            const int wrong = here != 5 || shmem_n_pes() != 1;
            shmem_finalize();
            return wrong;
        }
    ";
    let lib = prefix().join("lib");
    let path = file("names.c", source);

    for name in ["sma", "shmem", "oshmem"] {
        for options in [&[][..], &["-static"]] {
            let program = path.with_extension(format!("{name}{}", options.concat()));
            succeed(
                gcc(&path)
                    .args(options)
                    .arg("-L")
                    .arg(&lib)
                    .arg(format!("-l{name}"))
                    .arg(format!("-Wl,-rpath,{}", lib.display()))
                    .arg("-o")
                    .arg(&program),
            );
            succeed(&mut Command::new(program));
        }
    }
}

/// PEs compare these texts when they join a job, so the libraries of one prefix must agree.
#[test]
fn the_libraries_of_a_prefix_have_one_build() {
    let source = "
        #include <shmem.h>
        int main(void) {
            shmem_init();
            shmem_finalize();
            return 0;
        }
    ";
    let first_line = |command: &mut Command| {
        let text = succeed(command.env("SHMEM_VERSION", "1"));
        text.lines()
            .next()
            .expect("it prints its version")
            .to_owned()
    };

    let expected = first_line(&mut Command::new(prefix().join("bin/shmem-info")));
    let (_, build) = expected.split_once(", build ").expect("it has a build");
    assert_eq!(build.len(), 16, "{expected}");
    for library in [Library::Shared, Library::Static] {
        let program = program("builds", library, source);
        assert_eq!(first_line(&mut Command::new(program)), expected);
    }
}

#[test]
fn the_library_names_itself() {
    let source = "
        #include <shmem.h>
        #include <string.h>
        int main(void) {
            int major = 0, minor = 0;
            char name[SHMEM_MAX_NAME_LEN];
            memset(name, 'x', sizeof name);
            shmem_info_get_version(&major, &minor);
            shmem_info_get_name(name);
            shmem_pcontrol(3, 1.5L, name, &major);
            return major != SHMEM_MAJOR_VERSION || minor != SHMEM_MINOR_VERSION
                || strcmp(name, SHMEM_VENDOR_STRING) != 0;
        }
    ";
    succeed(&mut Command::new(program("named", Library::Shared, source)));
}
