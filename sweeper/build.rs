//! How the program is linked for tests.

use std::env;

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    // The scenarios start commands of the unoptimised program, thousands of times. At an address of its own choice each start had half a million pointers to
    // mend, and the pages that hold them to copy: 40 % of the CPU time of a command such as `sweeper actions`. What is released stays as the compiler has it.
    let is_linux = env::var("CARGO_CFG_TARGET_OS").is_ok_and(|os| os == "linux");
    if is_linux && env::var("PROFILE").is_ok_and(|profile| profile == "debug") {
        println!("cargo:rustc-link-arg-bins=-no-pie");
    }
}
