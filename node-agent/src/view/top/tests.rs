//! What is on the screen, letter by letter, and what the keys do.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use super::*;
use crate::view::samples;
use ratatui::{Terminal, backend::TestBackend};

fn screen(samples: u64) -> Screen {
    let mut screen = Screen::default();
    for number in 1..=samples {
        screen.sample(samples::heartbeat(number));
    }
    screen
}

fn shown(screen: &mut Screen, width: u16, height: u16) -> String {
    let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
    terminal.draw(|frame| screen.draw(frame)).unwrap();
    terminal.backend().to_string()
}

#[test]
fn eighty_by_twenty_four_shows_workloads() {
    insta::assert_snapshot!(shown(&mut screen(2), 80, 24));
}

#[test]
fn runs_are_shown_with_tasks_and_tools() {
    let mut screen = screen(2);
    screen.obey(Command::NextPane);
    insta::assert_snapshot!(shown(&mut screen, 100, 24));
}

#[test]
fn the_rest_of_the_machine_and_the_help_have_pages() {
    let mut screen = screen(2);
    screen.obey(Command::Show(Pane::Machine));
    insta::assert_snapshot!(shown(&mut screen, 100, 28));
    screen.obey(Command::Help);
    insta::assert_snapshot!(shown(&mut screen, 100, 24));
}

#[test]
fn before_the_first_interval_it_says_so_and_the_first_one_shows_rows() {
    assert!(shown(&mut screen(0), 80, 24).contains("measuring the first interval"));
    let first = shown(&mut screen(1), 120, 24);
    assert!(first.contains("bwa docker 3f2a9c1b7d5e") && first.contains("not measured"), "{first}");
}

#[test]
fn any_size_is_drawn() {
    for (width, height) in [(1, 1), (10, 3), (40, 10), (79, 9), (300, 120)] {
        for pane in [Pane::Workloads, Pane::Runs, Pane::Machine] {
            let mut screen = screen(2);
            screen.obey(Command::Show(pane));
            screen.obey(Command::Scroll(i32::MAX));
            shown(&mut screen, width, height);
        }
    }
}

#[test]
fn the_order_is_the_one_that_was_chosen() {
    let mut screen = screen(2);
    let first = |screen: &Screen| screen.rows(screen.view.as_ref().unwrap())[0].command.clone();
    assert_eq!(first(&screen), "bwa");
    // A waiting row of no CPU time comes first once waiting is asked for.
    screen.view.as_mut().unwrap().workloads[1].run_queue = Some(9.0);
    let late = screen.view.as_ref().unwrap().workloads[1].command.clone();
    screen.obey(Command::NextSort);
    assert_eq!(first(&screen), late);
    for _ in 1..SORTS.len() {
        screen.obey(Command::NextSort);
    }
    assert_eq!(first(&screen), "bwa", "the orders come round");
}

#[test]
fn a_frozen_screen_stays_and_measures_on() {
    let mut screen = screen(2);
    screen.obey(Command::Freeze);
    let before = screen.view.clone();
    screen.sample(samples::heartbeat(50));
    assert_eq!(screen.view, before);
    assert!(shown(&mut screen, 80, 24).contains("FROZEN"));
    screen.obey(Command::Freeze);
    screen.sample(samples::heartbeat(51));
    let seconds = screen.view.as_ref().unwrap().seconds;
    assert!(
        (seconds - 1.0).abs() < 1e-9,
        "the difference is that of the last interval, not of the frozen time: {seconds}"
    );
}

#[test]
fn only_workloads_leaves_out_the_rest_and_q_ends() {
    let mut screen = screen(2);
    assert_eq!(screen.rows(screen.view.as_ref().unwrap()).len(), 4);
    screen.obey(Command::OnlyWorkloads);
    assert_eq!(screen.rows(screen.view.as_ref().unwrap()).len(), 1);
    assert!(screen.obey(Command::Help) && !screen.obey(Command::Quit));
}
