//! Resources as the history keeps them.

use super::Inventory;
use model::ResourceKey;
use serde::Serialize;
use serde_json::Value;

/// The facts about one resource, ready to be kept and compared.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    /// Which.
    pub id: ResourceKey,
    /// Its facts. Equal facts are equal text: lists have no order at a provider, and are sorted.
    pub json: String,
}

impl Record {
    fn of(id: ResourceKey, facts: &impl Serialize) -> Result<Self, serde_json::Error> {
        let json = serde_json::to_string(&sorted(serde_json::to_value(facts)?))?;
        Ok(Self { id, json })
    }
}

fn sorted(value: Value) -> Value {
    match value {
        Value::Array(values) => {
            let mut values: Vec<Value> = values.into_iter().map(sorted).collect();
            values.sort_by_cached_key(Value::to_string);
            Value::Array(values)
        }
        Value::Object(facts) => facts.into_iter().map(|(name, value)| (name, sorted(value))).collect(),
        other => other,
    }
}

impl Inventory {
    /// All resources. What was measured of them is none: it is another one with each sweep.
    ///
    /// # Errors
    /// If a resource cannot be written as JSON.
    pub fn records(&self) -> Result<Vec<Record>, serde_json::Error> {
        let Self {
            instances,
            volumes,
            addresses,
            snapshots,
            autoscaling_groups,
            batch_compute_environments,
            batch_job_queues,
            batch_jobs,
            ecs_container_instances,
            ecs_tasks,
            usage: _,
            listings: _,
        } = self;
        let mut records = Vec::with_capacity(instances.len() + volumes.len() + addresses.len() + snapshots.len());
        for instance in instances {
            records.push(Record::of(instance.id.clone(), instance)?);
        }
        for volume in volumes {
            records.push(Record::of(volume.id.clone(), volume)?);
        }
        for address in addresses {
            records.push(Record::of(address.id.clone(), address)?);
        }
        for snapshot in snapshots {
            records.push(Record::of(snapshot.id.clone(), snapshot)?);
        }
        for group in autoscaling_groups {
            records.push(Record::of(group.id.clone(), group)?);
        }
        for environment in batch_compute_environments {
            records.push(Record::of(environment.id.clone(), environment)?);
        }
        for queue in batch_job_queues {
            records.push(Record::of(queue.id.clone(), queue)?);
        }
        for job in batch_jobs {
            records.push(Record::of(job.id.clone(), job)?);
        }
        for machine in ecs_container_instances {
            records.push(Record::of(machine.id.clone(), machine)?);
        }
        for task in ecs_tasks {
            records.push(Record::of(task.id.clone(), task)?);
        }
        Ok(records)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::inventory::{AttachedVolume, EcsContainerInstance, sample};

    #[test]
    fn equal_facts_are_equal_text_in_any_order_and_any_other_fact_is_another() {
        let of = |instance| Inventory { instances: vec![instance], ..Inventory::default() }.records().expect("JSON");
        let volume = |id: &str| AttachedVolume { id: id.into(), ..sample::instance().volumes[0].clone() };
        let (mut one, mut other) = (sample::instance(), sample::instance());
        one.volumes = vec![volume("vol-1"), volume("vol-2")];
        other.volumes = vec![volume("vol-2"), volume("vol-1")];
        assert_eq!(of(one.clone()), of(other.clone()));
        other.tags.insert("owner".into(), "genomics".into());
        assert_ne!(of(one)[0].json, of(other)[0].json);
    }

    #[test]
    fn what_changes_at_each_listing_makes_no_other_text() {
        let of = |running| {
            let facts = r#"{"id": "aws:1:r:container-instance/web/a", "arn": "a", "cluster": "web"}"#;
            let machine: EcsContainerInstance = serde_json::from_str(facts).expect("a container instance");
            let machine = EcsContainerInstance { running_tasks: Some(running), ..machine };
            Inventory { ecs_container_instances: vec![machine], ..Inventory::default() }.records().expect("JSON")
        };
        assert_eq!(of(1), of(2));
        assert_eq!(of(1)[0].id.to_string(), "aws:1:r:container-instance/web/a");
    }
}
