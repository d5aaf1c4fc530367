/* What `oshcc -fsanitize=thread` links into a program: a default of ThreadSanitizer. It knows no lock of the library, whose
 * code is not compiled for it, so it must not check what the library does. TSAN_OPTIONS takes precedence. The definition is
 * not weak, since the linker would then prefer that of a static run time, such as Clang's, which comes first. */
const char *__tsan_default_options(void);

__attribute__((visibility("default"))) const char *__tsan_default_options(void) {
    return "ignore_noninstrumented_modules=1";
}
