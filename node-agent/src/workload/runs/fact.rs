//! What is learnt about runs besides their sums. Plain data.

/// One thing learnt. Runs go by the number that their task ids bear.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fact {
    /// A process drives a run.
    RunBegan {
        /// Its number.
        run: u32,
        /// Identifies it on this node and in this boot. Several numbers may share one: the steps of a Slurm job do.
        id: String,
        /// The engine's name on the wire.
        engine: String,
        /// Empty if the command line does not tell it.
        pipeline: String,
        /// Begin, in nanoseconds since boot.
        started_ns: u64,
        /// How the run's tasks are called if nothing else names them.
        step: Option<String>,
    },
    /// The run was none after all: the process became another program.
    RunWasNone {
        /// Its number.
        run: u32,
    },
    /// The process that drives it ended.
    RunEnded {
        /// Its number.
        run: u32,
        /// In nanoseconds since boot.
        at_ns: u64,
        /// As wait(2) gives it.
        wait_status: u32,
    },
    /// Its numbers, cumulative.
    RunCounted {
        /// Its number.
        run: u32,
        /// Tasks begun.
        started: u64,
        /// Tasks ended.
        ended: u64,
        /// Of these, other than with exit code 0.
        failed: u64,
    },
    /// A task's first process was forked.
    TaskBegan {
        /// The task.
        id: u64,
        /// In nanoseconds since boot.
        started_ns: u64,
    },
    /// A task's first process runs this program.
    TaskRuns {
        /// The task.
        id: u64,
        /// The program.
        program: String,
        /// It only starts others.
        is_wrapper: bool,
        /// The engine started it for itself: it is no task.
        is_helper: bool,
    },
    /// A command line names the task.
    TaskNamed {
        /// The task.
        id: u64,
        /// Its name.
        name: String,
    },
    /// A task's first process ended.
    TaskEnded {
        /// The task.
        id: u64,
        /// In nanoseconds since boot.
        at_ns: u64,
        /// As wait(2) gives it.
        wait_status: u32,
    },
}
