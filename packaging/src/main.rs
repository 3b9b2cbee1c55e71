//! `command-pages FOLDER` writes the manual pages and shell completions there.

use anyhow::Context as _;
use std::path::Path;

fn main() -> anyhow::Result<()> {
    let folder = std::env::args_os().nth(1).context("usage: command-pages FOLDER")?;
    packaging::write(Path::new(&folder))
}
