/* A program that calls a shared library in Rust (examples/in_library.rs), and no function of OpenSHMEM itself. */

void run_in_library(int with_static);

int main(int argc, char **argv)
{
    (void)argv;
    run_in_library(argc > 1);
    return 0;
}
