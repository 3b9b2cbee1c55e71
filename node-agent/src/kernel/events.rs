//! What the kernel tells about runs while it happens: programs that may be engines, tasks that begin and end.
//!
//! A thread of its own waits for events (it sleeps in `poll` while there are none) and acts at once: it says which candidates are runs, and
//! names what interpreters run, so that their time is counted under that name. Events are rare by budget: at most 64 interpreters a second, and
//! 512 tasks with three or four events each between two samples. What was lost is counted, and healed by a scan of
//! `/proc` at the next sample.

use super::{
    command_line::{argv, cmdline},
    error::ObjectError,
    lineage::Lineages,
};
use crate::{
    model::{comm_bytes, comm_text},
    workload::{
        engines::{Argv, Engine, Engines, Program as Runnable, Runs as What, script, slurm},
        runs::Fact,
    },
};
use aya::maps::{Map, MapData, RingBuf};
use node_agent_ebpf::runs::{Event, OTHERS, Program, event, role, run_of};
use std::{
    collections::HashMap,
    os::{fd::AsRawFd as _, unix::net::UnixStream},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

/// Most facts that wait for a sample.
const MAX_FACTS: usize = 8_192;

const PROGRAM_BYTES: usize = size_of::<Program>();
const EVENT_BYTES: usize = size_of::<Event>();

/// A process that drives a run.
#[derive(Clone, Debug)]
struct Known {
    pid: u32,
    engine: String,
    started_ns: u64,
    /// It has not said yet which step it drives.
    is_untitled: bool,
    is_over: bool,
    /// Tasks that lived already when the run was found. The programs count from there on, and nobody writes over what they count.
    adopted: u64,
}

struct Inner {
    ring: RingBuf<MapData>,
    lineages: Lineages,
    engines: Engines,
    known: HashMap<u32, Known>,
    facts: Vec<Fact>,
    lost_facts: u64,
    losses_seen: u64,
    /// Who lives is not known.
    must_scan: bool,
    /// Runs are not followed.
    is_off: bool,
}

/// What the thread has learnt. Dropping this ends the thread, but waits for nothing: it may hang in the `/proc` of a process that does.
pub struct Watcher {
    inner: Arc<Mutex<Inner>>,
    /// The thread ends when this side is gone.
    _stop: UnixStream,
}

impl Watcher {
    /// Fills the maps from the rules, looks at who lives, and waits for events from here on.
    ///
    /// # Errors
    /// If a map cannot be used or the thread does not start.
    pub fn start(maps: &mut HashMap<String, Map>, engines: Engines) -> Result<Self, ObjectError> {
        let ring = maps.remove("EVENTS").ok_or(ObjectError::Incomplete("EVENTS"))?.try_into()?;
        let mut lineages = Lineages::take(maps)?;
        lineages.watch(&engines)?;
        lineages.refill()?;
        let mut inner = Inner {
            ring,
            lineages,
            engines,
            known: HashMap::new(),
            facts: Vec::new(),
            lost_facts: 0,
            losses_seen: 0,
            must_scan: false,
            is_off: false,
        };
        inner.scan_processes();
        let (stop, stopped) = UnixStream::pair().map_err(ObjectError::Watcher)?;
        let fd = inner.ring.as_raw_fd();
        let inner = Arc::new(Mutex::new(inner));
        let shared = Arc::clone(&inner);
        let (ready, has_begun) = std::sync::mpsc::channel();
        std::thread::Builder::new()
            .name("runs".to_owned())
            .spawn(move || {
                crate::privileges::drop_in_this_thread();
                drop(ready);
                while wait(fd, &stopped) {
                    lock(&shared).drain();
                }
            })
            .map_err(ObjectError::Watcher)?;
        // Rights belong to threads: the others look at this one's when they have dropped their own.
        let _: Result<(), _> = has_begun.recv();
        Ok(Self { inner, _stop: stop })
    }

    /// What was learnt since the last sample. `is_needed` says of which runs somebody still speaks.
    pub fn read(&self, is_needed: impl Fn(u32) -> bool) -> Vec<Fact> {
        let mut inner = lock(&self.inner);
        inner.drain();
        inner.heal();
        inner.count(is_needed);
        std::mem::take(&mut inner.facts)
    }

    /// Goes by other rules from here on. What they no longer know as an engine stays one until it ends.
    ///
    /// # Errors
    /// If the map of watched programs has no room for them.
    pub fn take_over(&self, engines: Engines) -> Result<(), ObjectError> {
        let mut inner = lock(&self.inner);
        inner.lineages.watch(&engines)?;
        inner.engines = engines;
        Ok(())
    }

    /// Nothing is followed from here on: who exits now is not seen to. Once programs are attached again, the next sample
    /// looks at who lives.
    pub fn forget(&self) {
        let mut inner = lock(&self.inner);
        inner.drain();
        inner.lineages.clear();
        let runs: Vec<u32> = inner.known.drain().map(|(run, _)| run).collect();
        for run in runs {
            inner.learn(Fact::RunWasNone { run });
        }
        inner.must_scan = true;
    }

    /// Whether runs are followed from here on. The programs know it already.
    pub fn follow(&self, is_on: bool) {
        if !is_on {
            self.forget();
        }
        lock(&self.inner).is_off = !is_on;
    }

    /// What was lost, by name: none of it hides activity.
    #[must_use]
    pub fn drops(&self) -> Vec<(&'static str, u64)> {
        let inner = lock(&self.inner);
        let mut drops = inner.lineages.losses();
        drops.push(("detail_run_facts", inner.lost_facts));
        drops
    }
}

/// A panic elsewhere leaves no half-made state that matters: facts are whole.
fn lock(inner: &Mutex<Inner>) -> MutexGuard<'_, Inner> {
    inner.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Sleeps until there are events; `false` once the other side is gone.
fn wait(ring: libc::c_int, stopped: &UnixStream) -> bool {
    let mut fds = [ring, stopped.as_raw_fd()].map(|fd| libc::pollfd { fd, events: libc::POLLIN, revents: 0 });
    // SAFETY: two descriptors that outlive the call.
    let ready = unsafe { libc::poll(fds.as_mut_ptr(), 2, -1) };
    // An interrupted call is taken as a reason to look.
    fds[1].revents == 0 && (ready >= 0 || std::io::Error::last_os_error().kind() == std::io::ErrorKind::Interrupted)
}

/// One record of the ring buffer.
enum Told {
    Program(Box<Program>),
    Event(Event),
    /// Of no length that this agent knows.
    Nothing,
}

fn told(ring: &mut RingBuf<MapData>) -> Option<Told> {
    let item = ring.next()?;
    let bytes: &[u8] = &item;
    Some(match bytes.len() {
        // SAFETY: the record holds exactly one Program, which is plain integers; no alignment is asked for.
        PROGRAM_BYTES => Told::Program(Box::new(unsafe { bytes.as_ptr().cast::<Program>().read_unaligned() })),
        // SAFETY: as above.
        EVENT_BYTES => Told::Event(unsafe { bytes.as_ptr().cast::<Event>().read_unaligned() }),
        _ => Told::Nothing,
    })
}

impl Inner {
    fn learn(&mut self, fact: Fact) {
        if self.facts.len() < MAX_FACTS {
            self.facts.push(fact);
        } else {
            self.lost_facts = self.lost_facts.saturating_add(1);
        }
    }

    fn drain(&mut self) {
        while let Some(told) = told(&mut self.ring) {
            match told {
                _ if self.is_off => {}
                Told::Program(program) => self.program(&program),
                Told::Event(event) => self.happened(&event),
                Told::Nothing => {}
            }
        }
    }

    fn happened(&mut self, told: &Event) {
        let run = run_of(told.task_id);
        match told.kind {
            event::TASK_BEGAN => {
                self.ask_title(run);
                self.learn(Fact::TaskBegan { id: told.task_id, started_ns: told.start_boottime_ns });
            }
            event::TASK_ENDED => {
                self.learn(Fact::TaskEnded {
                    id: told.task_id,
                    at_ns: told.boottime_ns,
                    wait_status: told.wait_status,
                });
            }
            event::RUN_ENDED => {
                if let Some(known) = self.known.get_mut(&run) {
                    known.is_over = true;
                    self.learn(Fact::RunEnded { run, at_ns: told.boottime_ns, wait_status: told.wait_status });
                }
            }
            _ => {}
        }
    }

    /// A program was started by a process of a run, or by one that may drive a run.
    fn program(&mut self, told: &Program) {
        let argv = argv(told);
        let program = self.engines.program(&comm_text(&told.comm), &argv);
        let Event { pid, start_boottime_ns: start, task_id, .. } = told.event;
        let run = run_of(task_id);
        let engine = self.engines.recognise(&program, &argv);
        let is_known = self.known.contains_key(&run);
        let may_be_engine = self.known.get(&run).is_none_or(|known| known.engine == script::NAME);
        match engine {
            Some(engine) if told.event.role == role::ENGINE && !is_known => self.begin(run, pid, start, engine),
            Some(engine) if may_be_engine => {
                // What it started as a script was no task of the engine that it is now.
                if told.event.role == role::ENGINE && self.known.remove(&run).is_some() {
                    self.lineages.forget_run(run);
                    self.learn(Fact::RunWasNone { run });
                }
                self.promote(pid, start, engine);
            }
            _ if is_known => {}
            _ => match script::pipeline(&program) {
                Some(pipeline) => {
                    let engine = Engine { name: script::NAME.to_owned(), pipeline };
                    if told.event.role == role::ENGINE {
                        self.begin(run, pid, start, engine);
                    } else {
                        self.promote(pid, start, engine);
                    }
                }
                None if told.event.role == role::ENGINE => {
                    self.lineages.forget_run(run);
                    self.lineages.forget_process(pid);
                }
                None => {}
            },
        }
        self.name_tool(pid, start, &told.comm, &program);
        self.name_task(told, &program, &argv);
    }

    fn name_tool(&mut self, pid: u32, start: u64, comm: &[u8], program: &Runnable) {
        let name = comm_bytes(program.name.as_bytes());
        let is_other = matches!(program.runs, What::Script(_) | What::Module(_) | What::Jar(_) | What::Class(_));
        if is_other && name != comm {
            self.lineages.name_tool(pid, start, name);
        }
    }

    fn name_task(&mut self, told: &Program, program: &Runnable, argv: &Argv) {
        let id = told.event.task_id;
        let Some(known) = self.known.get(&run_of(id)) else { return };
        if told.event.role == role::ENGINE || id & u64::from(OTHERS) == u64::from(OTHERS) {
            return;
        }
        let named = self.engines.task_name(&known.engine, program, argv);
        let is_helper = self.engines.is_helper(&known.engine, &program.name);
        if told.event.role == role::ROOT {
            let is_wrapper = script::is_wrapper(&program.name);
            self.learn(Fact::TaskRuns { id, program: program.name.clone(), is_wrapper, is_helper });
        }
        if let Some(name) = named {
            self.learn(Fact::TaskNamed { id, name });
        }
    }

    fn begin(&mut self, run: u32, pid: u32, started_ns: u64, engine: Engine) {
        let is_untitled = engine.name == slurm::NAME;
        let known = Known { pid, engine: engine.name.clone(), started_ns, is_untitled, is_over: false, adopted: 0 };
        self.known.insert(run, known);
        if is_untitled {
            return self.ask_title(run);
        }
        let id = format!("{pid}-{started_ns}");
        self.learn(Fact::RunBegan { run, id, engine: engine.name, pipeline: engine.pipeline, started_ns, step: None });
    }

    /// Gives a process that lives already, and its descendants, a run of their own.
    fn promote(&mut self, pid: u32, started_ns: u64, engine: Engine) {
        let Some((run, tasks)) = self.lineages.begin_run(pid, started_ns, engine.name == script::NAME) else { return };
        self.begin(run, pid, started_ns, engine);
        if let Some(known) = self.known.get_mut(&run) {
            known.adopted = u64::try_from(tasks.len()).unwrap_or(u64::MAX);
        }
        for (id, started_ns) in tasks {
            self.learn(Fact::TaskBegan { id, started_ns });
        }
    }

    /// A `slurmstepd` writes over its command line which step it drives, once it knows.
    fn ask_title(&mut self, run: u32) {
        let Some(known) = self.known.get_mut(&run).filter(|known| known.is_untitled) else { return };
        let title = cmdline(known.pid).and_then(|argv| slurm::step_of_title(argv.get(0)?));
        let Some(slurm::Step { job, step }) = title else { return };
        known.is_untitled = false;
        let (engine, started_ns) = (known.engine.clone(), known.started_ns);
        let id = format!("{}:{job}", slurm::NAME);
        self.learn(Fact::RunBegan { run, id, engine, pipeline: String::new(), started_ns, step: Some(step) });
    }

    /// Looks at who lives, if events were lost.
    fn heal(&mut self) {
        if self.is_off {
            return;
        }
        let losses = self.lineages.lost_programs();
        if losses > self.losses_seen || self.must_scan {
            self.losses_seen = losses;
            self.scan_processes();
        }
        let untitled: Vec<u32> =
            self.known.iter().filter(|(_, known)| known.is_untitled).map(|(run, _)| *run).collect();
        untitled.into_iter().for_each(|run| self.ask_title(run));
    }

    /// Looks at every process once: an engine or script that no event told about gets its run.
    fn scan_processes(&mut self) {
        let strangers;
        (strangers, self.must_scan) = self.lineages.strangers();
        for (pid, started_ns) in strangers {
            let (Some(argv), Some(comm)) = (cmdline(pid), std::fs::read(format!("/proc/{pid}/comm")).ok()) else {
                continue;
            };
            let comm = comm_bytes(comm.strip_suffix(b"\n").unwrap_or(&comm));
            let program = self.engines.program(&comm_text(&comm), &argv);
            let of = self.lineages.run_of(pid);
            let may_begin = of.and_then(|run| self.known.get(&run)).is_none_or(|known| known.engine == script::NAME);
            let engine = self.engines.recognise(&program, &argv).filter(|_| may_begin);
            let script = || {
                let pipeline = script::pipeline(&program).filter(|_| of.is_none())?;
                Some(Engine { name: script::NAME.to_owned(), pipeline })
            };
            if let Some(engine) = engine.or_else(script) {
                self.promote(pid, started_ns, engine);
                self.name_tool(pid, started_ns, &comm, &program);
            }
        }
    }

    /// Tells how many tasks each run had, and forgets the runs that nobody speaks of any more.
    fn count(&mut self, is_needed: impl Fn(u32) -> bool) {
        let _ = self.lineages.refill();
        let runs: Vec<(u32, u64)> = self.known.iter().map(|(run, known)| (*run, known.adopted)).collect();
        for (run, adopted) in runs {
            if let Some(counts) = self.lineages.counts(run) {
                let (started, ended, failed) = (counts.started.saturating_add(adopted), counts.ended, counts.failed);
                self.learn(Fact::RunCounted { run, started, ended, failed });
            }
            let is_over = self.known.get(&run).is_some_and(|known| known.is_over);
            let was_told = !self.facts.iter().any(|fact| matches!(fact, Fact::RunBegan { run: of, .. } if *of == run));
            if is_over && was_told && !is_needed(run) {
                self.known.remove(&run);
                self.lineages.forget_run(run);
            }
        }
        self.lineages.forget_unknown(|run| self.known.contains_key(&run));
    }
}
