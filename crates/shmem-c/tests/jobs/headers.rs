//! Tests of the headers only: they compile as C and C++, and the type-generic macros select the
//! right function for every type. Nothing is linked or run.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use spec::table::{CFunction, SpecTable};

const WARNINGS: [&str; 5] = [
    "-Wall",
    "-Wextra",
    "-Wpedantic",
    "-Werror",
    "-pedantic-errors",
];
const HEADERS: [&str; 8] = [
    "shmem.h",
    "shmemx.h",
    "pshmem.h",
    "pshmemx.h",
    "mpp/shmem.h",
    "mpp/shmemx.h",
    "mpp/pshmem.h",
    "mpp/pshmemx.h",
];

/// Returns the option that names the directory of the headers.
fn include() -> &'static str {
    static OPTION: OnceLock<String> = OnceLock::new();
    OPTION.get_or_init(|| {
        let dir = Path::new(env!("CARGO_TARGET_TMPDIR")).join("headers_include");
        spec::write_headers(&dir).expect("the headers");
        format!("-I{}", dir.display())
    })
}

/// Writes `source` to a file, whose language is given by the extension of `name`, and compiles it.
/// Returns the path of the object file.
fn compile(compiler: &str, standard: &str, name: &str, source: &str) -> PathBuf {
    let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("headers_{name}"));
    std::fs::write(&path, source).expect("the directory for tests can be written to");

    let object = path.with_extension(format!("{compiler}-{standard}.o"));
    let output = Command::new(compiler)
        .args([include(), &format!("-std={standard}"), "-c", "-o"])
        .arg(&object)
        .args(WARNINGS)
        .arg(&path)
        .output()
        .unwrap_or_else(|error| {
            panic!("{compiler} is needed ({error}): install the package {compiler}")
        });
    assert!(
        output.status.success(),
        "{compiler} -std={standard} {}:\n{}",
        path.display(),
        String::from_utf8_lossy(&output.stderr)
    );
    object
}

/// Returns gcc, and clang if it is installed.
fn compilers(gcc: &'static str, clang: &'static str) -> Vec<&'static str> {
    let is_installed = Command::new(clang).arg("--version").output().is_ok();
    if is_installed {
        vec![gcc, clang]
    } else {
        eprintln!("{clang} is not installed: compiled with {gcc} alone");
        vec![gcc]
    }
}

const C: [&str; 5] = ["c99", "c11", "c17", "gnu17", "c2x"];
const CXX: [&str; 3] = ["c++11", "c++17", "c++20"];

#[test]
fn every_header_stands_alone_and_beside_the_others() {
    let main = "int main(void) { return sizeof(shmem_team_t) == 0; }\n";

    let mut together = String::new();
    for header in HEADERS {
        together += &format!("#include <{header}>\n");
    }
    together += main;
    for compiler in compilers("gcc", "clang") {
        for standard in C {
            compile(compiler, standard, "together.c", &together);
        }
    }
    for compiler in compilers("g++", "clang++") {
        for standard in CXX {
            compile(compiler, standard, "together.cc", &together);
        }
    }

    for header in HEADERS {
        let alone = format!("#include <{header}>\n{main}");
        compile("gcc", "c99", "alone.c", &alone);
        compile("g++", "c++11", "alone.cc", &alone);
    }
}

#[test]
fn every_function_is_declared_with_its_prototype() {
    let mut source = String::from("#include <pshmemx.h>\n#include <shmemx.h>\n");
    for (i, function) in SpecTable::read().all().enumerate() {
        for name in [&function.symbol, &function.twin()] {
            // The twin begins with another letter, so both variables have different names.
            let letter = &name[..1];
            let pointer = function.prototype(&format!("(*{letter}{i})"));
            writeln!(source, "extern {pointer};\n{pointer} = {name};").unwrap();
        }
    }
    compile("gcc", "c99", "declared.c", &source);
    compile("g++", "c++11", "declared.cc", &source);
}

#[test]
fn constants_are_what_the_standard_asks_for() {
    let both = "
        #include <shmem.h>
        #if SHMEM_MAJOR_VERSION != 1 || SHMEM_MINOR_VERSION != 6
        #error version
        #endif
        int is(int);
        int is(int x) {
            switch (x) {
            case SHMEM_CMP_EQ: case SHMEM_CMP_NE: case SHMEM_CMP_GT:
            case SHMEM_CMP_GE: case SHMEM_CMP_LT: case SHMEM_CMP_LE: return 1;
            }
            switch (x) { case SHMEM_SIGNAL_SET: case SHMEM_SIGNAL_ADD: return 2; }
            return 0;
        }
        ASSERT(SHMEM_THREAD_SINGLE < SHMEM_THREAD_FUNNELED, \"\");
        ASSERT(SHMEM_THREAD_FUNNELED < SHMEM_THREAD_SERIALIZED, \"\");
        ASSERT(SHMEM_THREAD_SERIALIZED < SHMEM_THREAD_MULTIPLE, \"\");
        ASSERT(sizeof(SHMEM_VENDOR_STRING) <= SHMEM_MAX_NAME_LEN, \"\");
        ASSERT((SHMEM_CTX_SERIALIZED & (SHMEM_CTX_PRIVATE | SHMEM_CTX_NOSTORE)) == 0, \"\");
        ASSERT((SHMEM_CTX_PRIVATE & SHMEM_CTX_NOSTORE) == 0, \"\");
        ASSERT((SHMEM_MALLOC_ATOMICS_REMOTE & SHMEM_MALLOC_SIGNAL_REMOTE) == 0, \"\");
        ASSERT(sizeof(shmem_team_config_t) == sizeof(int), \"\");
        ASSERT(sizeof(shmem_ctx_session_config_t) == sizeof(size_t), \"\");
        long sync[SHMEM_SYNC_SIZE + SHMEM_BARRIER_SYNC_SIZE + SHMEM_BCAST_SYNC_SIZE
            + SHMEM_COLLECT_SYNC_SIZE + SHMEM_ALLTOALL_SYNC_SIZE + SHMEM_ALLTOALLS_SYNC_SIZE
            + SHMEM_REDUCE_SYNC_SIZE + _SHMEM_REDUCE_SYNC_SIZE] = {SHMEM_SYNC_VALUE};
        double work[SHMEM_REDUCE_MIN_WRKDATA_SIZE];
        shmem_team_t teams[] = {SHMEM_TEAM_INVALID, SHMEM_TEAM_WORLD, SHMEM_TEAM_SHARED};
        shmem_ctx_t contexts[] = {SHMEM_CTX_INVALID, SHMEM_CTX_DEFAULT};
        shmem_team_config_t config = {0};
        shmem_ctx_session_config_t session = {0};
        long masks[] = {SHMEM_TEAM_NUM_CONTEXTS, SHMEM_CTX_SESSION_TOTAL_OPS,
            SHMEM_CTX_SESSION_BATCH};
        const char *names[] = {SHMEM_VENDOR_STRING, _SHMEM_VENDOR_STRING};
        #include <shmemx.h>
        long crays[_SHMEM_ALLTOALL_SYNC_SIZE + _SHMEM_ALLTOALLS_SYNC_SIZE];
        ASSERT(_SHMEM_ALLTOALL_SYNC_SIZE == SHMEM_ALLTOALL_SYNC_SIZE, \"\");
        ASSERT(_SHMEM_ALLTOALLS_SYNC_SIZE == SHMEM_ALLTOALLS_SYNC_SIZE, \"\");\n";

    let c = format!("#define ASSERT _Static_assert\n{both}");
    // C99 has no assertions at compile time.
    for standard in &C[1..] {
        compile("gcc", standard, "constants.c", &c);
    }

    let cxx = format!("#define ASSERT static_assert\n{both}");
    for standard in CXX {
        compile("g++", standard, "constants.cc", &cxx);
    }
}

#[test]
fn complex_numbers_are_those_of_the_language() {
    let source = "#include <complex.h>\n#include <shmem.h>\n\
         int sum(float complex *, double complex *);\n\
         int sum(float complex *f, double complex *d) {\n\
             return shmem_complexf_sum_reduce(SHMEM_TEAM_WORLD, f, f, 1)\n\
                 + shmem_complexd_sum_reduce(SHMEM_TEAM_WORLD, d, d, 1);\n}\n";
    compile("gcc", "c99", "complex.c", source);

    // _Complex is not C++, but the compilers accept it.
    for (complex_float, complex_double) in [
        ("std::complex<float>", "std::complex<double>"),
        (
            "__extension__ float _Complex",
            "__extension__ double _Complex",
        ),
    ] {
        let source = format!(
            "#include <complex>\n#include <shmem.h>\n\
             {complex_float} f;\n{complex_double} d;\n\
             int sum() {{\n\
                 return shmem_complexf_sum_reduce(SHMEM_TEAM_WORLD, &f, &f, 1)\n\
                     + shmem_complexd_sum_reduce(SHMEM_TEAM_WORLD, &d, &d, 1);\n}}\n"
        );
        compile("g++", "c++11", "complex.cc", &source);
    }
}

/// Compiles a function for each type-generic call. The undefined symbols of the object file show
/// which functions the macros select.
#[test]
fn type_generic_macros_select_the_function_of_every_type() {
    let table = SpecTable::read();
    let GenericCalls { source, functions } = calls_of_generics(&table);

    let called: BTreeSet<&String> = functions.keys().map(|call| call.generic).collect();
    let extensions = table.extension_generics();
    assert!(extensions.contains(&&"shmemx_ibput".to_owned()));
    let all: BTreeSet<&String> = table.generics.iter().chain(extensions).collect();
    assert_eq!(called, all, "every macro is called");

    for compiler in compilers("gcc", "clang") {
        for standard in ["c11", "c2x"] {
            let called = undefined(&compile(compiler, standard, "generic.c", &source));
            for (call, symbols) in &functions {
                let found: Vec<_> = symbols.intersection(&called).collect();
                assert_eq!(found.len(), 1, "{call:?}: {found:?} of {symbols:?}");
            }
            assert_eq!(called.len(), functions.len(), "something else is called");
        }
    }
}

/// A call of a type-generic macro.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct GenericCall<'a> {
    generic: &'a String,
    takes_context: bool,
    /// The type as the compiler sees it, or the symbol if the function is of no type.
    key: &'a str,
}

/// A program with a call of each macro for each type.
struct GenericCalls<'a> {
    source: String,
    /// The functions that a call may select. int32_t is int: if functions have the same types, a
    /// macro selects one of them.
    functions: BTreeMap<GenericCall<'a>, BTreeSet<String>>,
}

fn calls_of_generics(table: &SpecTable) -> GenericCalls<'_> {
    let mut source = String::from("#include <shmemx.h>\n");
    let mut functions: BTreeMap<_, BTreeSet<String>> = BTreeMap::new();

    for (i, function) in table.all().filter(|f| !f.generic.is_empty()).enumerate() {
        let CFunction {
            generic, symbol, ..
        } = function;
        let call = GenericCall {
            generic,
            takes_context: function.takes_context(),
            key: if function.type_name.is_empty() {
                symbol
            } else {
                function.base_type()
            },
        };
        functions.entry(call).or_default().insert(symbol.clone());

        let parameters = function.parameters.join(", ");
        let names: Vec<&str> = function.parameters.iter().map(|p| name_of(p)).collect();
        let names = names.join(", ");
        let returns = &function.returns;
        let result = if returns == "void" { "" } else { "return " };
        writeln!(
            source,
            "{returns} t{i}({parameters});\n\
             {returns} t{i}({parameters}) {{ {result}{generic}({names}); }}"
        )
        .unwrap();
    }
    GenericCalls { source, functions }
}

#[test]
fn type_generic_macros_take_what_functions_take() {
    let source = "
        #include <shmem.h>
        static long table[4];
        struct pair { int first; const double second; };
        long calls(shmem_ctx_t const ctx, struct pair *pair, const short **row);
        long calls(shmem_ctx_t const ctx, struct pair *pair, const short **row) {
            shmem_put(table, table, 4, 1);
            shmem_put(table, ((const long[]){1, 2}), 2, 1);
            shmem_put(ctx, table, (const long[]){1, 2}, 2, 1);
            shmem_sum_reduce(SHMEM_TEAM_WORLD, table, (const long[]){1, 2}, 2);
            shmem_test_all_vector(table, 2, (int[]){0, 1}, SHMEM_CMP_EQ, (long[]){1, 2});
            shmem_put(ctx, table + 1, &table[2], 1, 1);
            shmem_put(SHMEM_CTX_DEFAULT, table, table, 1, 1);
            shmem_p(&pair->first, (int)shmem_g(&pair->second, shmem_my_pe()), 0);
            shmem_wait_until(table, SHMEM_CMP_EQ, 7);
            (shmem_wait_until)(table, SHMEM_CMP_EQ, 7);
            shmem_sync(0, 0, 1, table);
            shmem_sync(SHMEM_TEAM_WORLD);
            void (*sync)(int, int, int, long *) = shmem_sync;
            sync(0, 0, 1, table);
            return shmem_g(ctx, *row, 0) + shmem_g(shmem_g(table, 0) == 0 ? table : table + 1, 0);
        }\n";
    for compiler in compilers("gcc", "clang") {
        for standard in ["c11", "c2x"] {
            compile(compiler, standard, "taken.c", source);
        }
    }
}

#[test]
fn type_generic_macros_refuse_types_without_a_function() {
    assert_eq!(errors("shmem_put(c, c, 1, 0)"), None);

    for call in [
        "shmem_put(v, v, 1, 0)",
        "shmem_atomic_add(c, 1, 0)",
        "(void)v; shmem_and_reduce(SHMEM_TEAM_WORLD, c, c, 1)",
    ] {
        assert!(errors(call).is_some(), "{call}");
    }

    // The preprocessor splits this argument at its commas; the message has the remedy.
    let split =
        errors("shmem_put(c, (char[]){1, 2}, 2, 0)").expect("a literal without parentheses");
    let remedy = "put parentheses around a compound literal";
    assert!(split.contains(remedy), "{split}");
}

/// Returns what the compiler says about a call with `void *v` and `char *c`, if it is an error.
fn errors(call: &str) -> Option<String> {
    let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("headers_refused.c");
    let source = format!("#include <shmem.h>\nvoid f(void *v, char *c) {{ {call}; }}\n");
    std::fs::write(&path, source).expect("the directory for tests can be written to");

    let output = Command::new("gcc")
        .args([include(), "-std=c11", "-fsyntax-only", "-w"])
        .arg(&path)
        .output()
        .expect("gcc is installed");
    if output.status.success() {
        None
    } else {
        Some(String::from_utf8_lossy(&output.stderr).into_owned())
    }
}

/// Returns the name in a parameter such as `const long *source`.
fn name_of(parameter: &str) -> &str {
    let (_, name) = parameter
        .rsplit_once([' ', '*'])
        .expect("a type and a name");
    name
}

/// Returns the undefined symbols of an object file that contain `shmem`.
fn undefined(object: &PathBuf) -> BTreeSet<String> {
    let output = Command::new("nm")
        .arg("--undefined-only")
        .arg(object)
        .output()
        .expect("nm");
    assert!(output.status.success());

    let listing = String::from_utf8(output.stdout).expect("names are ASCII");
    listing
        .lines()
        .filter_map(|line| line.split_whitespace().last())
        .filter(|name| name.contains("shmem"))
        .map(str::to_owned)
        .collect()
}
