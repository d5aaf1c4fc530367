//! Tests the arithmetic of `longdouble.c` by a C program, since Rust has no such type.

use std::path::PathBuf;
use std::process::Command;

const PROGRAM: &str = r#"
#include <float.h>
#include <math.h>
#include <stdio.h>
#include <longdouble.c>

static int wrong;

static void expect(const char *what, ld found, ld expected) {
    int same = isnan(found) ? isnan(expected) != 0
                            : found == expected && !signbit(found) == !signbit(expected);
    if (!same) {
        printf("%s: %Lg, not %Lg\n", what, found, expected);
        wrong = 1;
    }
}

int main(void) {
    const ld left[] = {1 + LDBL_EPSILON, -3, 0.0L, -0.0L, (ld)NAN, 2, LDBL_MAX};
    const ld right[] = {1, 2, -0.0L, 0.0L, 1, (ld)NAN, LDBL_MAX};
    const ld maxima[] = {1 + LDBL_EPSILON, 2, 0.0L, 0.0L, (ld)NAN, (ld)NAN, LDBL_MAX};
    const ld minima[] = {1, -3, -0.0L, -0.0L, (ld)NAN, (ld)NAN, LDBL_MAX};
    enum { N = sizeof left / sizeof *left };
    ld dest[N];

    rushmem_longdouble_max(dest, left, right, N);
    for (int i = 0; i < N; i++) expect("max", dest[i], maxima[i]);
    rushmem_longdouble_min(dest, left, right, N);
    for (int i = 0; i < N; i++) expect("min", dest[i], minima[i]);
    rushmem_longdouble_sum(dest, left, right, N);
    for (int i = 0; i < N; i++) expect("sum", dest[i], left[i] + right[i]);
    rushmem_longdouble_prod(dest, left, right, N);
    for (int i = 0; i < N; i++) expect("prod", dest[i], left[i] * right[i]);

    /* In place, on either side. */
    for (int i = 0; i < N; i++) dest[i] = left[i];
    rushmem_longdouble_sum(dest, dest, right, N);
    rushmem_longdouble_prod(dest, right, dest, N);
    for (int i = 0; i < N; i++) expect("in place", dest[i], right[i] * (left[i] + right[i]));
    return wrong;
}
"#;

#[test]
fn the_operators_of_long_double() {
    let source = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("longdouble_operators.c");
    std::fs::write(&source, PROGRAM).expect("the directory for tests can be written to");

    let program = source.with_extension("out");
    let compiled = Command::new("gcc")
        .args(["-std=c11", "-O2", "-Wall", "-Wextra", "-Werror"])
        .arg(concat!("-I", env!("CARGO_MANIFEST_DIR"), "/src"))
        .arg(&source)
        .arg("-o")
        .arg(&program)
        .arg("-lm")
        .status()
        .expect("this test needs gcc: install the package gcc");
    assert!(compiled.success());

    let output = Command::new(&program)
        .output()
        .expect("it was just compiled");
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stdout)
    );
}
