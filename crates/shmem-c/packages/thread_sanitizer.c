/* What `oshcc -fsanitize=thread` links into a program: a default of ThreadSanitizer. It knows no lock of the library, whose
 * code is not compiled for it, so it must not check what the library does. TSAN_OPTIONS, and a function of this name in the
 * program, take precedence. */
const char *__tsan_default_options(void);

__attribute__((weak, visibility("default"))) const char *__tsan_default_options(void) {
    return "ignore_noninstrumented_modules=1";
}
