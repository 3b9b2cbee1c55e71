//! Runs on the wire.

use super::{Run, Runs, Task};
use crate::{
    model::Measured,
    workload::{Activity, activity::to_wire},
};
use heartbeat::wire;

impl Runs {
    /// As the contract has it.
    #[must_use]
    pub fn to_wire(&self, measured: Measured) -> Vec<wire::Run> {
        self.iter()
            .map(|(id, listed, tasks)| {
                run(id, listed, tasks.map(|(id, of)| task(id, of, measured)).collect(), measured)
            })
            .collect()
    }
}

fn row(key: &str, top_command: &str, activity: &Activity, measured: Measured) -> wire::WorkloadActivity {
    wire::WorkloadActivity {
        class: wire::Class::Workload.into(),
        key: key.to_owned(),
        top_command: top_command.to_owned(),
        ..to_wire(activity, measured)
    }
}

fn run(id: &str, run: &Run, tasks: Vec<wire::Task>, measured: Measured) -> wire::Run {
    let [tasks_started, tasks_ended, tasks_failed] = run.counts();
    wire::Run {
        id: id.to_owned(),
        engine: run.engine.clone(),
        pipeline: run.pipeline.clone(),
        workload: super::super::row_key(&run.workload),
        started_boottime_ns: run.started_ns,
        ended_boottime_ns: run.ended_ns,
        wait_status: run.wait_status.filter(|_| run.ended_ns.is_some()),
        activity: Some(row("", &run.caption.name, &run.activity, measured)),
        tasks,
        tasks_started,
        tasks_ended,
        tasks_failed,
    }
}

fn task(id: u64, task: &Task, measured: Measured) -> wire::Task {
    wire::Task {
        id,
        name: task.name().to_owned(),
        started_boottime_ns: task.started_ns,
        ended_boottime_ns: task.ended_ns,
        wait_status: task.wait_status,
        activity: Some(row("", &task.caption.name, &task.activity, measured)),
        tools: task.tools.iter().map(|(name, activity)| row(name, name, activity, measured)).collect(),
    }
}
