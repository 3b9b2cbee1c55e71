//! In which state tasks are. Plain data.

/// How many of some tasks (threads) are in which state.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct States {
    /// On a CPU, or waiting for one.
    pub running: u32,
    /// Waiting for something, and a signal can wake them; or with nothing to do, where they are the kernel's.
    pub sleeping: u32,
    /// Waiting for something, mostly storage, and no signal wakes them (D).
    pub uninterruptible: u32,
    /// Stopped by a signal or a debugger.
    pub stopped: u32,
    /// Held by a cgroup's freezer.
    pub frozen: u32,
}

/// Of version 2's freezer: it holds the task once that waits where a signal reaches it. What else is there says that it is held.
const TRAP_FREEZE: u32 = 1 << 23;

/// Bits of `__state`: <https://github.com/torvalds/linux/blob/v6.12/include/linux/sched.h#L98-L150>
mod bit {
    pub(super) const UNINTERRUPTIBLE: u32 = 0x2;
    /// `TASK_STOPPED` and `TASK_TRACED`.
    pub(super) const STOPPED: u32 = 0x4 | 0x8;
    /// It waits, but for nothing that is to come soon: an idle thread of the kernel.
    pub(super) const NO_LOAD: u32 = 0x400;
    pub(super) const NEW: u32 = 0x800;
    pub(super) const RTLOCK_WAIT: u32 = 0x1000;
    /// From Linux 6.1 on.
    pub(super) const FROZEN: u32 = 0x8000;
}

impl States {
    /// Counts one task; `freezer` is what the freezers say of it.
    pub fn count(&mut self, state: u32, freezer: u32) {
        let has = |bits: u32| state & bits != 0;
        let is_held = freezer == TRAP_FREEZE && state != 0 && !has(bit::UNINTERRUPTIBLE);
        let is_held = is_held || freezer & !TRAP_FREEZE != 0;
        let place = if is_held || has(bit::FROZEN) {
            &mut self.frozen
        } else if has(bit::STOPPED) {
            &mut self.stopped
        } else if has(bit::RTLOCK_WAIT) || (has(bit::UNINTERRUPTIBLE) && !has(bit::NO_LOAD)) {
            &mut self.uninterruptible
        } else if state == 0 || has(bit::NEW) {
            &mut self.running
        } else {
            &mut self.sleeping
        };
        *place = place.saturating_add(1);
    }

    /// Adds what was counted elsewhere.
    pub fn add(&mut self, other: &Self) {
        let Self { running, sleeping, uninterruptible, stopped, frozen } = *other;
        self.running = self.running.saturating_add(running);
        self.sleeping = self.sleeping.saturating_add(sleeping);
        self.uninterruptible = self.uninterruptible.saturating_add(uninterruptible);
        self.stopped = self.stopped.saturating_add(stopped);
        self.frozen = self.frozen.saturating_add(frozen);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_state_has_its_place() {
        let none = States::default();
        const FLAG: u32 = 0x0001_0000;
        for (state, freezer, expected) in [
            (0, 0, States { running: 1, ..none }),
            (0x800, 0, States { running: 1, ..none }),
            (0x1, 0, States { sleeping: 1, ..none }),
            (0x2001, 0, States { sleeping: 1, ..none }),
            (0x402, 0, States { sleeping: 1, ..none }),
            (0x40, 0, States { sleeping: 1, ..none }),
            (0x2, 0, States { uninterruptible: 1, ..none }),
            (0x102, 0, States { uninterruptible: 1, ..none }),
            (0x1000, 0, States { uninterruptible: 1, ..none }),
            (0x104, 0, States { stopped: 1, ..none }),
            (0x8, 0, States { stopped: 1, ..none }),
            (0x8000, 0, States { frozen: 1, ..none }),
            (0x1, TRAP_FREEZE, States { frozen: 1, ..none }),
            (0x104, TRAP_FREEZE, States { frozen: 1, ..none }),
            (0, TRAP_FREEZE, States { running: 1, ..none }),
            (0x2, FLAG, States { frozen: 1, ..none }),
            (0x2, TRAP_FREEZE, States { uninterruptible: 1, ..none }),
        ] {
            let mut states = none;
            states.count(state, freezer);
            assert_eq!(states, expected, "{state:#x}");
        }
    }
}
