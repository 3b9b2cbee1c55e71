//! How a sweep gets on: bars on a terminal, nothing elsewhere.

use crate::{
    inventory::{self, Kind, Scope},
    sweep::Progress,
    work_unit::WorkUnit,
};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::time::Duration;

/// One line on standard error that goes away when the sweep ends. indicatif draws nothing if that is no terminal.
pub(super) struct Bar(ProgressBar);

impl Bar {
    pub(super) fn new() -> Self {
        let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr());
        bar.set_style(style("{spinner} {msg}"));
        bar.set_message("looking for credentials");
        bar.enable_steady_tick(Duration::from_millis(120));
        Self(bar)
    }

    pub(super) fn end(&self) {
        self.0.finish_and_clear();
    }
}

/// How far a command is: so many of so many. It goes away when it is dropped, after an error too.
pub(super) struct Count(ProgressBar);

impl Count {
    pub(super) fn new(what: &'static str, total: usize) -> Self {
        let total = u64::try_from(total).unwrap_or(u64::MAX);
        let bar = ProgressBar::with_draw_target(Some(total), ProgressDrawTarget::stderr());
        bar.set_style(style("{spinner} {msg} {wide_bar} {pos}/{len}"));
        bar.set_message(what);
        Self(bar)
    }

    pub(super) fn one_more(&self) {
        self.0.inc(1);
    }
}

impl Drop for Count {
    fn drop(&mut self) {
        self.0.finish_and_clear();
    }
}

fn style(template: &str) -> ProgressStyle {
    // The templates are constants of this file; a wrong one would show the default bar.
    ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar())
}

impl inventory::Progress for Bar {
    fn scopes(&self, total: usize) {
        self.0.set_style(style("{spinner} reading regions {wide_bar} {pos}/{len}  {msg}"));
        self.0.set_length(u64::try_from(total).unwrap_or(u64::MAX));
        self.0.set_position(0);
    }

    fn page(&self, scope: &Scope, kind: Kind, listed: usize) {
        self.0.set_message(format!("{} {}: {listed} more {}", scope.account, scope.region, kind.names().1));
    }

    fn scope_done(&self, scope: &Scope) {
        self.0.set_message(format!("{} {}", scope.account, scope.region));
        self.0.inc(1);
    }
}

impl Progress for Bar {
    fn machines(&self, total: usize) {
        self.0.set_message(format!("judging {total} machines"));
    }

    fn waits_for(&self, unit: &WorkUnit, owner: &str) {
        self.0.set_message(format!("{owner} is sweeping {unit}; waiting for it"));
    }
}
