//! The node agent's binary; everything lives in the library.

fn main() -> std::process::ExitCode {
    node_agent::cli::main()
}
