//! ECS's introspection: `GET /v1/tasks` names the containers of this instance's tasks. ◇
//!
//! Shape: <https://docs.aws.amazon.com/AmazonECS/latest/developerguide/ecs-agent-introspection.html>, and newer agents add the image:
//! <https://github.com/aws/amazon-ecs-agent/blob/v1.86.0/ecs-agent/introspection/v1/response.go>. It tells no service and no scheduling strategy, and a task's family is what
//! its owner likes it to be. So it names tasks, and no task is housekeeping by it.

use super::report::Container;
use serde::Deserialize;

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Tasks {
    tasks: Option<Vec<Task>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Task {
    arn: String,
    family: String,
    version: String,
    containers: Option<Vec<Described>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Described {
    /// Empty until the container was made.
    #[serde(default)]
    docker_id: String,
    name: String,
    #[serde(default)]
    image: String,
}

/// The containers of all tasks.
///
/// # Errors
/// If it is not what ECS's agent answers.
pub(super) fn containers(body: &[u8]) -> Result<Vec<Container>, String> {
    let tasks: Tasks =
        serde_json::from_slice(body).map_err(|error| format!("its list of tasks cannot be read: {error}"))?;
    Ok(tasks.tasks.unwrap_or_default().into_iter().flat_map(of_task).collect())
}

fn of_task(task: Task) -> Vec<Container> {
    // `arn:aws:ecs:REGION:ACCOUNT:task/CLUSTER/ID`; the cluster came in 2018.
    let mut parts = task.arn.rsplit('/');
    let id = parts.next().unwrap_or_default().to_owned();
    let cluster = parts.next().filter(|part| !part.contains(':')).unwrap_or_default().to_owned();
    let made = task.containers.unwrap_or_default().into_iter();
    made.map(|one| Container {
        id: one.docker_id,
        name: one.name,
        pod: format!("{}:{}", task.family, task.version),
        pod_uid: id.clone(),
        namespace: cluster.clone(),
        owner: format!("Task/{id}"),
        image: one.image,
        is_ephemeral: false,
    })
    .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As AWS's documentation shows it; the account and the cluster are placeholders there.
    const PUBLISHED: &str = r#"{"Tasks": [{"Arn": "arn:aws:ecs:us-west-2:012345678910:task/default/example5-58ff-46c9-ae05-543f8example",
        "DesiredStatus": "RUNNING", "KnownStatus": "RUNNING", "Family": "hello_world", "Version": "8",
        "Containers": [
            {"DockerId": "9581a69a761a557fbfce1d0f6745e4af5b9dbfb86b6b2c5c4df156f1a5932ff1", "DockerName": "ecs-hello_world-8-mysql-fcae8ac8f9f1d89d8301", "Name": "mysql",
             "CreatedAt": "2023-10-08T20:09:11.44527186Z", "StartedAt": "2023-10-08T20:09:11.44527186Z", "ImageID": "sha256:2ae34abc2ed0a22e280d17e13f9c01aaf725688b09b7a1525d1a2750e2c0d1de"},
            {"DockerId": "bf25c5c5b2d4dba68846c7236e75b6915e1e778d31611e3c6a06831e39814a15", "DockerName": "ecs-hello_world-8-wordpress-e8bfddf9b488dff36c00", "Name": "wordpress"}]}]}"#;

    #[test]
    fn what_aws_publishes_is_read() {
        let found = containers(PUBLISHED.as_bytes()).unwrap_or_default();
        assert_eq!(found.len(), 2);
        assert_eq!(
            found[0],
            Container {
                id: "9581a69a761a557fbfce1d0f6745e4af5b9dbfb86b6b2c5c4df156f1a5932ff1".to_owned(),
                name: "mysql".to_owned(),
                pod: "hello_world:8".to_owned(),
                pod_uid: "example5-58ff-46c9-ae05-543f8example".to_owned(),
                namespace: "default".to_owned(),
                owner: "Task/example5-58ff-46c9-ae05-543f8example".to_owned(),
                image: String::new(),
                is_ephemeral: false,
            }
        );
        let before_2018 = PUBLISHED.replace("task/default/", "task/");
        assert_eq!(containers(before_2018.as_bytes()).unwrap_or_default()[0].namespace, "");
    }

    #[test]
    fn no_task_is_an_answer_and_anything_else_is_none() {
        assert_eq!(containers(br#"{"Tasks": []}"#), Ok(Vec::new()));
        assert_eq!(containers(br#"{"Tasks": null}"#), Ok(Vec::new()));
        for wrong in ["", "[]", "{\"Tasks\": [{}]}", "<html>"] {
            assert!(containers(wrong.as_bytes()).is_err(), "{wrong}");
        }
    }
}
