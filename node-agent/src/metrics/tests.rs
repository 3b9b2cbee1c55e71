#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use super::*;
use crate::view::samples;
use families::{MAX_LABEL_BYTES, MAX_WORKLOADS};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

#[test]
fn a_heartbeat_is_written_as_openmetrics() {
    let exposition = Exposition::default();
    assert_eq!(exposition.text(), "# EOF\n");
    exposition.update(&samples::heartbeat(2));
    insta::assert_snapshot!(exposition.text());
}

#[test]
fn what_was_not_measured_has_no_sample_and_what_was_has_one() {
    let exposition = Exposition::default();
    let of = |counters| wire::Heartbeat { counters: Some(counters), ..wire::Heartbeat::default() };
    exposition.update(&of(wire::HostCounters::default()));
    assert!(!exposition.text().contains("_host_rdma") && !exposition.text().contains("_peak_"));
    exposition.update(&of(wire::HostCounters {
        rdma_received_bytes: Some(5),
        rdma_sent_bytes: Some(7),
        memory_used_peak_bytes: Some(9),
        ..wire::HostCounters::default()
    }));
    let text = exposition.text();
    for line in [
        "cloudsweeper_host_rdma_bytes_total{direction=\"received\"} 5.0",
        "cloudsweeper_host_rdma_bytes_total{direction=\"sent\"} 7.0",
        "cloudsweeper_host_memory_used_peak_bytes 9.0",
    ] {
        assert!(text.lines().any(|found| found == line), "{line}: {text}");
    }
}

fn row(key: &str, cpu_ns: u64) -> wire::WorkloadActivity {
    wire::WorkloadActivity {
        class: wire::Class::Workload.into(),
        key: key.to_owned(),
        cpu_ns: Some(cpu_ns),
        ..wire::WorkloadActivity::default()
    }
}

fn cpu_of(exposition: &Exposition, workload: &str) -> Option<f64> {
    let start =
        format!("cloudsweeper_workload_cpu_seconds_total{{class=\"workload\",kind=\"\",workload=\"{workload}\"}} ");
    exposition.text().lines().find_map(|line| line.strip_prefix(&start)?.parse().ok())
}

#[test]
fn the_number_of_series_is_bounded_and_no_counter_runs_backwards() {
    let exposition = Exposition::default();
    let rows = |from: usize, to: usize, cpu_ns: u64| (from..to).map(|n| row(&format!("/{n:04}"), cpu_ns)).collect();
    let heartbeat = |workloads| wire::Heartbeat { workloads, ..wire::Heartbeat::default() };
    exposition.update(&heartbeat(rows(0, 500, 1_000_000_000)));
    let series = exposition.text().lines().filter(|line| line.starts_with("cloudsweeper_workload_cpu_seconds")).count();
    assert_eq!(series, MAX_WORKLOADS + 1);
    let overflow = cpu_of(&exposition, "overflow").unwrap();
    assert!((overflow - 372.0).abs() < 1e-6, "{overflow}");
    // Half of those with series of their own are gone; who was in the overflow row stays there, somebody new gets a series.
    let mut workloads: Vec<_> = rows(64, 500, 2_000_000_000);
    workloads.push(row("/new", 5));
    exposition.update(&heartbeat(workloads));
    assert!((cpu_of(&exposition, "overflow").unwrap() - 744.0).abs() < 1e-6);
    assert!(cpu_of(&exposition, "/new").is_some() && cpu_of(&exposition, "/0001").is_none());
    assert!(cpu_of(&exposition, "/0200").is_none());
}

#[test]
fn a_hostile_name_stays_inside_its_label() {
    let exposition = Exposition::default();
    let hostile = "/a\"} 1\ncloudsweeper_workload_cpu_seconds_total{x=\"\\\u{1b}[2J\u{202e}";
    let workloads = vec![row(hostile, 1), row(&"y".repeat(4_000), 1)];
    exposition.update(&wire::Heartbeat { workloads, ..wire::Heartbeat::default() });
    let text = exposition.text();
    assert!(!text.contains(|c| c != '\n' && heartbeat::text::is_hidden(c)));
    let lines = text.lines().filter(|line| line.starts_with("cloudsweeper_workload_cpu_seconds")).collect::<Vec<_>>();
    assert_eq!(lines.len(), 2, "{text}");
    assert!(lines[0].contains(r#"workload="/a\"} 1\\u{a}cloudsweeper_"#), "{}", lines[0]);
    assert!(lines[1].len() < MAX_LABEL_BYTES + 120, "{}", lines[1]);
}

async fn ask(address: SocketAddr, request: &str) -> String {
    let mut stream = tokio::net::TcpStream::connect(address).await.unwrap();
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    answer
}

#[tokio::test]
async fn the_port_answers_one_question_and_refuses_the_others() {
    let listener = listen("127.0.0.1:0".parse().unwrap()).await.unwrap();
    let address = listener.local_addr().unwrap();
    let exposition = Arc::new(Exposition::default());
    exposition.update(&samples::heartbeat(1));
    tokio::spawn(serve(listener, exposition, Arc::default()));
    let answer = ask(address, "GET /metrics HTTP/1.1\r\nhost: x\r\n\r\n").await;
    assert!(
        answer.starts_with("HTTP/1.1 200") && answer.contains(OPENMETRICS) && answer.ends_with("# EOF\n"),
        "{answer}"
    );
    assert!(ask(address, "GET / HTTP/1.1\r\nhost: x\r\n\r\n").await.starts_with("HTTP/1.1 404"));
    assert!(ask(address, "POST /metrics HTTP/1.1\r\nhost: x\r\n\r\n").await.starts_with("HTTP/1.1 405"));
    assert!(ask(address, "nonsense\r\n\r\n").await.starts_with("HTTP/1.1 400"));
}
