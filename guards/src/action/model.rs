//! Every interleaving of two processes that may crash or stand still at any time, one node, one approver, and a provider whose answers may be lost: looked
//! at one by one, through the transitions that the product uses.

use std::collections::{HashMap, HashSet, VecDeque};

use super::{Event, State};

type Next = fn(State, Event) -> Option<State>;

/// One process, as far as it remembers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
struct Process {
    /// Of the action, as it took it.
    epoch: u8,
    /// It has written that the call leaves, and its deadline is not over.
    may_send: bool,
    /// The call has left, and whether the provider took it; it waits for the answer.
    sent: Option<bool>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct World {
    is_approved: bool,
    works: bool,
    /// The database knows of the work.
    work_is_known: bool,
    is_stopped: bool,
    /// Its state and its epoch.
    action: Option<(State, u8)>,
    /// The epoch that asked the node, and what it answered: whether nobody works there.
    asked: Option<u8>,
    answer: Option<bool>,
    is_fresh: bool,
    processes: [Process; 2],
    calls: u8,
    /// What was wrong at the moment at which it was written that the call leaves.
    is_wrong: bool,
}

const BEGIN: World = World {
    is_approved: true,
    works: false,
    work_is_known: false,
    is_stopped: false,
    action: None,
    asked: None,
    answer: None,
    is_fresh: false,
    processes: [Process { epoch: 0, may_send: false, sent: None }; 2],
    calls: 0,
    is_wrong: false,
};

/// So often an action changes hands at most, so that there is an end.
const MOST_EPOCHS: u8 = 4;

impl World {
    /// An event, if the process still holds the action and the event can happen.
    fn told(self, process: usize, event: Event, next: Next) -> Option<Self> {
        let (state, epoch) = self.action?;
        if self.processes[process].epoch != epoch {
            return None;
        }
        let state = next(state, event)?;
        Some(Self { action: Some((state, epoch)), ..self })
    }

    /// Everything that may happen next.
    fn after(self, next: Next) -> Vec<Self> {
        let mut all = Vec::new();
        // Outside.
        if !self.is_stopped {
            all.push(Self { works: true, ..self });
        }
        if self.works {
            all.push(Self { work_is_known: true, ..self });
        }
        all.push(Self { is_approved: false, ..self });
        if self.asked.is_some() && self.answer.is_none() && !self.is_stopped {
            all.push(Self {
                answer: Some(!self.works),
                is_fresh: true,
                work_is_known: self.work_is_known || self.works,
                ..self
            });
        }
        let late = self.processes.map(|process| Process { may_send: false, ..process });
        all.push(Self { is_fresh: false, processes: late, ..self });
        for process in 0..2 {
            self.of_process(process, next, &mut all);
        }
        all
    }

    fn of_process(self, process: usize, next: Next, all: &mut Vec<Self>) {
        let me = self.processes[process];
        let with = |world: Self, me: Process| {
            let mut processes = world.processes;
            processes[process] = me;
            Self { processes, ..world }
        };
        // It ends at any time, and remembers nothing.
        all.push(with(self, Process::default()));
        match self.action {
            None if self.is_approved => {
                all.push(with(
                    Self { action: Some((State::Claimed, 1)), ..self },
                    Process { epoch: 1, ..Process::default() },
                ));
            }
            // The other one, or itself before a crash, was not heard of for too long.
            Some((state, epoch)) if me.epoch != epoch && epoch < MOST_EPOCHS && !state.is_final() => {
                if let Some(state) = next(state, Event::TakenOver) {
                    let taken =
                        Self { action: Some((state, epoch + 1)), asked: None, answer: None, is_fresh: false, ..self };
                    all.push(with(taken, Process { epoch: epoch + 1, ..Process::default() }));
                }
            }
            _ => {}
        }
        if me.may_send {
            // It may stand still for as long as its deadline lasts: it looks at nothing but that once more.
            for is_taken in [true, false] {
                let sent = Self { calls: self.calls + 1, is_stopped: is_taken, ..self };
                all.push(with(sent, Process { sent: Some(is_taken), may_send: false, ..me }));
            }
        }
        let told = |event| self.told(process, event, next);
        if let Some(is_taken) = me.sent {
            let heard = |world| with(world, Process { sent: None, ..me });
            let answer = if is_taken { Event::Accepted } else { Event::Rejected };
            all.extend([answer, Event::Lost].into_iter().filter_map(told).map(heard));
            return;
        }
        if !me.may_send {
            all.extend(told(Event::NotSent));
        }
        if self.action.is_some_and(|(state, _)| state == State::Claimed) {
            // By the dry run.
            all.extend([Event::DryRunAccepted, Event::Rejected].into_iter().filter_map(told));
        }
        all.extend(told(Event::Asked).map(|world| Self {
            asked: Some(me.epoch),
            answer: None,
            is_fresh: false,
            ..world
        }));
        // One transaction: all guards, and the state.
        let passes = self.is_approved
            && self.asked == Some(me.epoch)
            && self.answer == Some(true)
            && self.is_fresh
            && !self.work_is_known;
        if passes {
            let commit = |world| {
                with(
                    Self { is_wrong: !self.is_approved || self.work_is_known, ..world },
                    Process { may_send: true, ..me },
                )
            };
            all.extend(told(Event::MayAct).map(commit));
        } else {
            all.extend(told(Event::Refused));
        }
        // Looked into: longer than any deadline, so that no call of before can leave later.
        let nobody_sends = self.processes.iter().all(|process| !process.may_send);
        if self.is_stopped {
            all.extend(told(Event::Ended));
        } else if nobody_sends {
            all.extend(told(Event::TimedOut));
        }
    }
}

/// Every world that can be reached, each with those that follow; the first one that breaks a promise.
fn explore(next: Next) -> Result<HashMap<World, Vec<World>>, (World, &'static str)> {
    let mut seen: HashMap<World, Vec<World>> = HashMap::new();
    let mut waiting = VecDeque::from([BEGIN]);
    while let Some(world) = waiting.pop_front() {
        if seen.contains_key(&world) {
            continue;
        }
        if world.calls > 1 {
            return Err((world, "two calls for one approval"));
        }
        if world.is_wrong {
            return Err((world, "a call without approval, or after work was known"));
        }
        if let Some((State::Voided, _)) = world.action
            && world.calls > 0
        {
            return Err((world, "called, and said to be voided"));
        }
        if let Some((State::Failed, _)) = world.action
            && world.processes.iter().any(|process| process.may_send)
        {
            return Err((world, "said to have failed while the call may still leave"));
        }
        let after = world.after(next);
        waiting.extend(after.iter().copied());
        seen.insert(world, after);
    }
    Ok(seen)
}

#[test]
fn one_approval_is_one_call_at_most_whatever_crashes_and_whenever() {
    let all = explore(State::next).unwrap_or_else(|(world, why)| panic!("{why}: {world:#?}"));
    assert!(all.len() > 1_000, "{} worlds", all.len());
    let called = all.keys().filter(|world| world.calls == 1).count();
    let done = all.keys().filter(|world| matches!(world.action, Some((State::Done, _)))).count();
    assert!(called > 100 && done > 100, "{called} {done}: it is carried out where nothing speaks against it");
    for state in State::ALL {
        assert!(all.keys().any(|world| world.action.is_some_and(|(is, _)| is == state)), "{state:?} is never reached");
    }
}

#[test]
fn no_action_stays_half_done() {
    let all = explore(State::next).unwrap_or_else(|(world, why)| panic!("{why}: {world:#?}"));
    let is_over = |world: &World| world.action.is_none_or(|(state, _)| state.is_final());
    let mut ends: HashSet<World> = all.keys().filter(|world| is_over(world)).copied().collect();
    loop {
        let more: Vec<World> = all
            .iter()
            .filter(|(world, after)| !ends.contains(*world) && after.iter().any(|one| ends.contains(one)))
            .map(|(world, _)| *world)
            .collect();
        if more.is_empty() {
            break;
        }
        ends.extend(more);
    }
    // Where it has changed hands as often as is looked at, nobody is left to take it up.
    let is_cut = |world: &World| world.action.is_some_and(|(_, epoch)| epoch == MOST_EPOCHS);
    let stuck = all.keys().find(|world| !ends.contains(*world) && !is_cut(world));
    assert_eq!(stuck, None);
}

/// What the search is worth: each of these faults is found.
#[test]
fn a_fault_in_a_transition_is_found() {
    fn calls_again(state: State, event: Event) -> Option<State> {
        match (state, event) {
            (State::Calling, Event::TakenOver) => Some(State::Claimed),
            _ => state.next(event),
        }
    }
    fn forgets_a_lost_answer(state: State, event: Event) -> Option<State> {
        match (state, event) {
            (State::Calling, Event::Lost) => Some(State::Claimed),
            _ => state.next(event),
        }
    }
    fn voids_what_left(state: State, event: Event) -> Option<State> {
        match (state, event) {
            (State::Calling, Event::Lost) => Some(State::Voided),
            _ => state.next(event),
        }
    }
    for (fault, why) in [
        (calls_again as Next, "said to have failed while the call may still leave"),
        (forgets_a_lost_answer, "called, and said to be voided"),
        (voids_what_left, "called, and said to be voided"),
    ] {
        assert_eq!(explore(fault).err().map(|(_, why)| why), Some(why));
    }
}

#[test]
fn what_cannot_happen_changes_nothing() {
    let events = [
        Event::DryRunAccepted,
        Event::Asked,
        Event::MayAct,
        Event::Refused,
        Event::NotSent,
        Event::Accepted,
        Event::Rejected,
        Event::Lost,
        Event::Ended,
        Event::TimedOut,
        Event::TakenOver,
    ];
    for state in State::ALL {
        assert_eq!(State::from_word(state.as_str()), Some(state));
        for event in events {
            assert!(!state.is_final() || state.next(event).is_none(), "{state:?} {event:?}");
            // Only what every guard has let through is called.
            let is_called = state.next(event) == Some(State::Calling);
            assert_eq!(is_called, (state, event) == (State::Asking, Event::MayAct), "{state:?} {event:?}");
        }
    }
    assert_eq!(State::from_word("planned"), None);
}
