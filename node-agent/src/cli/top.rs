//! `node-agent top`: the terminal side of [`crate::view::top`].
//!
//! The terminal is given back as it was, however this ends: by key, by signal, by an error or by a panic. Standard output that
//! is no terminal is refused: `watch` is for that.

use crate::{
    run::clock::Ticker,
    source::{HeartbeatSource as _, SamplerSource},
    view::top::{Command, Pane, Screen},
};
use crossterm::event::{Event, EventStream, KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use futures::StreamExt as _;
use heartbeat::wire;
use std::{
    io::{self, IsTerminal as _},
    time::Duration,
};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

/// There is nobody to show anything to.
#[derive(Debug, thiserror::Error)]
#[error(
    "`top` needs a terminal, and standard {0} is none; `node-agent watch` (with --json for programs) writes lines instead"
)]
pub struct NoTerminal(&'static str);

/// Gives the terminal back when it is dropped.
struct Restored;

impl Drop for Restored {
    fn drop(&mut self) {
        // Not `restore`, which panics where its complaint cannot be written.
        let _ = ratatui::try_restore();
    }
}

/// A sample under way, which gives its source back.
type Sampling = JoinHandle<(SamplerSource, anyhow::Result<wire::Heartbeat>)>;

fn read(mut source: SamplerSource) -> Sampling {
    tokio::task::spawn_blocking(move || {
        let heartbeat = source.next();
        (source, heartbeat)
    })
}

/// Whether there is somebody to show something to.
///
/// # Errors
/// If standard output or input is no terminal.
pub fn has_a_terminal() -> Result<(), NoTerminal> {
    match (io::stdout().is_terminal(), io::stdin().is_terminal()) {
        (false, _) => Err(NoTerminal("output")),
        (_, false) => Err(NoTerminal("input")),
        (true, true) => Ok(()),
    }
}

/// Shows the machine until a key or `stop` ends it.
///
/// # Errors
/// If the terminal cannot be used, or nothing can be measured.
pub async fn top(source: SamplerSource, interval: Duration, stop: CancellationToken) -> anyhow::Result<()> {
    // First, because what fails half-way has already changed the terminal.
    let _restored = Restored;
    let mut terminal = ratatui::try_init()?;
    let mut ticker = Ticker::start(interval)?;
    let mut events = EventStream::new();
    let mut screen = Screen::default();
    let mut idle = Some(source);
    let mut sampling: Option<Sampling> = None;
    loop {
        terminal.draw(|frame| screen.draw(frame))?;
        tokio::select! {
            () = stop.cancelled() => return Ok(()),
            event = events.next() => match event {
                Some(Ok(Event::Key(key))) => {
                    if let Some(command) = command(key)
                        && !screen.obey(command)
                    {
                        return Ok(());
                    }
                }
                Some(Ok(_)) => {}
                // The terminal is gone.
                Some(Err(_)) | None => return Ok(()),
            },
            tick = ticker.tick() => {
                tick?;
                sampling = idle.take().map(read).or(sampling);
            }
            done = finished(&mut sampling) => {
                sampling = None;
                let (source, heartbeat) = done?;
                screen.sample(heartbeat?);
                idle = Some(source);
            }
        }
    }
}

/// Waits for the sample under way; for ever if there is none.
async fn finished(
    sampling: &mut Option<Sampling>,
) -> Result<(SamplerSource, anyhow::Result<wire::Heartbeat>), tokio::task::JoinError> {
    match sampling {
        Some(task) => task.await,
        None => std::future::pending().await,
    }
}

fn command(key: KeyEvent) -> Option<Command> {
    if key.kind == KeyEventKind::Release {
        return None;
    }
    match key.code {
        KeyCode::Char('c' | 'd') if key.modifiers.contains(KeyModifiers::CONTROL) => Some(Command::Quit),
        KeyCode::Char('q') | KeyCode::Esc => Some(Command::Quit),
        KeyCode::Tab => Some(Command::NextPane),
        KeyCode::Char('1') => Some(Command::Show(Pane::Workloads)),
        KeyCode::Char('2') => Some(Command::Show(Pane::Runs)),
        KeyCode::Char('3') => Some(Command::Show(Pane::Machine)),
        KeyCode::Char('s') => Some(Command::NextSort),
        KeyCode::Char('w') => Some(Command::OnlyWorkloads),
        KeyCode::Char(' ') => Some(Command::Freeze),
        KeyCode::Char('?' | 'h') => Some(Command::Help),
        KeyCode::Up | KeyCode::Char('k') => Some(Command::Scroll(-1)),
        KeyCode::Down | KeyCode::Char('j') => Some(Command::Scroll(1)),
        KeyCode::PageUp => Some(Command::Scroll(-10)),
        KeyCode::PageDown => Some(Command::Scroll(10)),
        KeyCode::Home => Some(Command::Scroll(-i32::MAX)),
        KeyCode::End => Some(Command::Scroll(i32::MAX)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_person_finds_the_way_out() {
        let press = |code, modifiers| command(KeyEvent::new(code, modifiers));
        for (code, modifiers) in [
            (KeyCode::Char('q'), KeyModifiers::NONE),
            (KeyCode::Esc, KeyModifiers::NONE),
            (KeyCode::Char('c'), KeyModifiers::CONTROL),
            (KeyCode::Char('d'), KeyModifiers::CONTROL),
        ] {
            assert_eq!(press(code, modifiers), Some(Command::Quit));
        }
        assert_eq!(press(KeyCode::Char('x'), KeyModifiers::NONE), None);
    }
}
