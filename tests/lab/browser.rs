//! A real browser, Debian's Chromium, that lays out a page at a width: is it wider than its reader's screen, and are its pictures drawn?

use crate::binaries;
use regex_lite::Regex;
use std::{fs, path::Path, process::Stdio, time::Duration};

/// Longest that it may take; a start takes two seconds on an idle machine.
const TIMEOUT: Duration = Duration::from_secs(120);

/// A page as it was laid out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LaidOut {
    /// How wide its content is, in CSS pixels: more than the screen if one must scroll sideways.
    pub width: u32,
    /// How high its content is.
    pub height: u32,
    /// Pictures that were drawn.
    pub pictures: usize,
    /// Pictures that could not be.
    pub broken: usize,
}

/// Lays a page out on a screen of this width. Its profile and the page lie in `folder`, and nothing is fetched.
///
/// # Panics
///
/// When there is no Chromium, or it does not answer.
pub async fn lay_out(html: &str, width: u32, folder: &Path) -> LaidOut {
    let profile = tempfile::Builder::new().prefix("chromium-").tempdir_in(folder).expect("a temporary folder");
    let page = profile.path().join("page.html");
    // A frame is as narrow as it is told to be; a window of Chromium's is not.
    let frame = html.replace('&', "&amp;").replace('"', "&quot;");
    let script = "onload = () => {
        const page = document.querySelector('iframe').contentDocument;
        const drawn = [...page.images].filter((one) => one.complete && one.naturalWidth > 0).length;
        const { scrollWidth, scrollHeight } = page.documentElement;
        document.title = `laid out ${scrollWidth} ${scrollHeight} ${drawn} ${page.images.length - drawn}`;
    }";
    let outer = format!(
        "<!DOCTYPE html><title>none</title><script>{script}</script><iframe width=\"{width}\" height=\"800\" style=\"border:0\" srcdoc=\"{frame}\"></iframe>"
    );
    fs::write(&page, outer).expect("the page can be written");
    let mut chromium = tokio::process::Command::new(binaries::system("chromium"));
    chromium
        .args(["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"])
        .args(["--disable-background-networking", "--disable-component-update", "--disable-sync"])
        // Containers give shared memory of 64 MB.
        .args(["--disable-dev-shm-usage", "--dump-dom"])
        .arg(format!("--user-data-dir={}", profile.path().join("profile").display()))
        .arg(format!("file://{}", page.display()))
        .stdin(Stdio::null())
        .kill_on_drop(true);
    let done = tokio::time::timeout(TIMEOUT, chromium.output()).await;
    let done = done.unwrap_or_else(|_| panic!("Chromium did not end within {TIMEOUT:?}")).expect("Chromium starts");
    let dom = String::from_utf8_lossy(&done.stdout);
    let title = Regex::new(r"<title>laid out (\d+) (\d+) (\d+) (\d+)</title>").expect("an expression");
    let Some(found) = title.captures(&dom) else {
        panic!("Chromium has not laid the page out ({}): {}", done.status, String::from_utf8_lossy(&done.stderr));
    };
    let number = |at: usize| found[at].parse::<u32>().expect("a number");
    let count = |at: usize| usize::try_from(number(at)).expect("a small number");
    LaidOut { width: number(1), height: number(2), pictures: count(3), broken: count(4) }
}
