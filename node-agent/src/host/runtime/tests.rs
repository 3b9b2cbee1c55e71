//! The helper's questions against sources that answer as published, or as they should not. The helper process itself is this test's own program in
//! the scenario `containers`; here its questions are asked in a thread.

use super::*;
use super::{
    report::{Answer, Failure, Source},
    serve::ask,
};
use std::{io, net::TcpListener, os::unix::net::UnixListener, sync::mpsc};

/// Gives every stream the same bytes, and blanks for ever after them if `is_endless`; tells which lines began the requests.
fn serve_bytes(
    streams: impl Iterator<Item = impl io::Read + io::Write> + Send + 'static,
    answer: &'static [u8],
    is_endless: bool,
) -> mpsc::Receiver<String> {
    let (tell, told) = mpsc::channel();
    thread::spawn(move || {
        for mut stream in streams {
            let mut request = [0; 4096];
            let received = stream.read(&mut request).unwrap_or(0);
            let text = String::from_utf8_lossy(&request[..received]).into_owned();
            let _ = tell.send(text.lines().next().unwrap_or_default().to_owned());
            let _ = stream.write_all(answer);
            while is_endless && stream.write_all(&[b' '; 65_536]).is_ok() {}
        }
    });
    told
}

fn server(answer: &'static [u8], is_endless: bool) -> (String, mpsc::Receiver<String>) {
    let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap_or_else(|error| panic!("{error}"));
    let address = listener.local_addr().unwrap_or_else(|error| panic!("{error}"));
    let streams = std::iter::from_fn(move || listener.accept().ok()).map(|(stream, _)| stream);
    (format!("http://{address}"), serve_bytes(streams, answer, is_endless))
}

fn local_server(
    folder: &Path,
    name: &str,
    answer: &'static [u8],
    is_endless: bool,
) -> (PathBuf, mpsc::Receiver<String>) {
    let socket = folder.join(name);
    let listener = UnixListener::bind(&socket).unwrap_or_else(|error| panic!("{error}"));
    let streams = std::iter::from_fn(move || listener.accept().ok()).map(|(stream, _)| stream);
    (socket, serve_bytes(streams, answer, is_endless))
}

fn asked(options: &Options) -> Vec<Answer> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.unwrap_or_else(|error| panic!("{error}")).block_on(ask(options))
}

fn outcome(answers: Vec<Answer>) -> Result<Vec<Container>, Failure> {
    let [answer] = <[Answer; 1]>::try_from(answers).unwrap_or_else(|all| panic!("{all:?}"));
    answer.outcome
}

fn kubelet(url: String) -> Options {
    Options { enabled: true, kubelet_url: Some(url), ..Options::default() }
}

#[test]
fn kubelet_is_asked_for_its_pods_and_for_nothing_else() {
    const ANSWER: &[u8] = concat!(
        "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Type: application/json\r\n\r\n",
        include_str!("testdata/pods.json")
    )
    .as_bytes();
    let (url, requests) = server(ANSWER, false);
    let found = outcome(asked(&kubelet(url))).unwrap_or_default();
    assert_eq!(found.len(), 6);
    assert_eq!(requests.try_iter().collect::<Vec<_>>(), ["GET /pods HTTP/1.1"]);
}

#[test]
fn ecs_is_asked_for_its_tasks_and_for_nothing_else() {
    let (url, requests) = server(b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n{\"Tasks\": []}", false);
    let answers = asked(&Options { enabled: true, ecs_url: Some(url), ..Options::default() });
    assert_eq!(outcome(answers), Ok(Vec::new()));
    assert_eq!(requests.try_iter().collect::<Vec<_>>(), ["GET /v1/tasks HTTP/1.1"]);
}

#[test]
fn docker_is_asked_for_what_runs_and_for_nothing_else() {
    const ANSWER: &[u8] = b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Type: application/json\r\n\r\n\
        [{\"Id\": \"9581a69a761a557fbfce1d0f6745e4af5b9dbfb86b6b2c5c4df156f1a5932ff1\", \"Names\": [\"/db\"], \"Image\": \"mysql\", \"ImageID\": \"sha256:1\"}]";
    let folder = tempfile::tempdir().unwrap_or_else(|error| panic!("{error}"));
    let (socket, requests) = local_server(folder.path(), "docker", ANSWER, false);
    let docker = |socket| Options { enabled: true, docker_socket: Some(socket), ..Options::default() };
    let found = outcome(asked(&docker(socket))).unwrap_or_default();
    assert_eq!(found.iter().map(|one| (one.name.as_str(), one.owner.as_str())).collect::<Vec<_>>(), [("db", "")]);
    assert_eq!(requests.try_iter().collect::<Vec<_>>(), ["GET /containers/json HTTP/1.1"]);
    for (name, answer, is_endless) in [
        ("old", &b"HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n"[..], false),
        ("other", b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n{}", false),
        ("endless", b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n[", true),
    ] {
        let (socket, _requests) = local_server(folder.path(), name, answer, is_endless);
        assert!(matches!(outcome(asked(&docker(socket))), Err(Failure::Broken(_))), "{name}");
    }
    assert!(matches!(outcome(asked(&docker(folder.path().join("none")))), Err(Failure::Absent(_))));
}

#[test]
fn an_answer_that_is_refused_endless_or_something_else_is_named_and_bounded() {
    const ENDLESS: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\r\n{";
    for (answer, is_endless, expected) in [
        (&b"HTTP/1.1 401 Unauthorized\r\nConnection: close\r\n\r\n"[..], false, "Denied"),
        (b"HTTP/1.1 403 Forbidden\r\nConnection: close\r\n\r\n", false, "Denied"),
        (b"HTTP/1.1 302 Found\r\nLocation: http://169.254.169.254/\r\nConnection: close\r\n\r\n", false, "status 302"),
        (b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n<html>", false, "cannot be read"),
        (b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n{\"kind\": \"Status\"}", false, "no list of pods"),
        (ENDLESS, true, "bytes and more"),
    ] {
        let (url, _requests) = server(answer, is_endless);
        let failure = format!("{:?}", outcome(asked(&kubelet(url))));
        assert!(failure.contains(expected), "{expected}: {failure}");
    }
}

#[test]
fn a_source_that_never_answers_is_abandoned_and_does_not_hold_up_another() {
    let silent = TcpListener::bind(("127.0.0.1", 0)).unwrap_or_else(|error| panic!("{error}"));
    let url = silent.local_addr().map(|address| format!("http://{address}")).ok();
    let (ecs_url, _requests) = server(b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n{\"Tasks\": []}", false);
    let answers = asked(&Options { enabled: true, kubelet_url: url, ecs_url: Some(ecs_url), ..Options::default() });
    assert_eq!(answers.iter().map(|answer| answer.source).collect::<Vec<_>>(), [Source::Kubelet, Source::Ecs]);
    assert!(format!("{:?}", answers[0].outcome).contains("5 s"), "{:?}", answers[0]);
    assert_eq!(answers[1].outcome, Ok(Vec::new()));
}

#[test]
fn where_nobody_listens_the_source_is_absent() {
    let closed = TcpListener::bind(("127.0.0.1", 0)).and_then(|listener| listener.local_addr());
    let address = closed.unwrap_or_else(|error| panic!("{error}"));
    assert!(matches!(outcome(asked(&kubelet(format!("http://{address}")))), Err(Failure::Absent(_))));
    let folder = tempfile::tempdir().unwrap_or_else(|error| panic!("{error}"));
    let cri = |socket| Options { enabled: true, cri_socket: Some(socket), ..Options::default() };
    assert!(matches!(outcome(asked(&cri(folder.path().join("none.sock")))), Err(Failure::Absent(_))));
    let socket = folder.path().join("gone.sock");
    drop(UnixListener::bind(&socket));
    assert!(matches!(outcome(asked(&cri(socket))), Err(Failure::Absent(_))));
}

#[test]
fn a_socket_that_speaks_no_grpc_or_never_stops_is_no_runtime() {
    let folder = tempfile::tempdir().unwrap_or_else(|error| panic!("{error}"));
    for (name, answer, is_endless) in
        [("other", &b"HTTP/1.1 400 Bad Request\r\n\r\n"[..], false), ("endless", b"", true)]
    {
        let (socket, _requests) = local_server(folder.path(), name, answer, is_endless);
        let answers = asked(&Options { enabled: true, cri_socket: Some(socket), ..Options::default() });
        assert!(matches!(outcome(answers), Err(Failure::Broken(_))), "{name}");
    }
}

#[test]
fn nobody_is_asked_unless_it_is_switched_on() {
    let (url, requests) = server(b"HTTP/1.1 200 OK\r\n\r\n", false);
    let mut containers = Containers::start(&Options { enabled: false, kubelet_url: Some(url), ..Options::default() });
    containers.begin();
    let mut capabilities = Capabilities::default();
    containers.state(&mut capabilities);
    assert_eq!(capabilities.status("containers"), Some(Status::NotApplicable));
    assert!(capabilities.to_wire()[0].reason.contains("switched off"));
    assert_eq!(requests.try_iter().count(), 0);
}

#[test]
fn a_runtime_is_looked_for_only_where_nobody_is_named() {
    let found = |options: Options| options.or_what_is_found(|socket| socket.ends_with("crio.sock")).cri_socket;
    assert_eq!(found(Options::default()), Some("/run/crio/crio.sock".into()));
    assert_eq!(found(kubelet("http://127.0.0.1:10255".to_owned())), None);
    assert_eq!(Options::default().or_what_is_found(|_| false).cri_socket, None);
    let both = Options::default().or_what_is_found(|_| true);
    assert_eq!(both.cri_socket, Some("/run/containerd/containerd.sock".into()));
    assert_eq!(both.docker_socket, Some("/run/docker.sock".into()));
    assert_eq!(kubelet("http://127.0.0.1:10255".to_owned()).or_what_is_found(|_| true).docker_socket, None);
}

#[test]
fn the_helper_is_told_what_the_agent_was_told() {
    #[derive(clap::Parser)]
    struct Line {
        #[command(flatten)]
        options: Options,
    }
    let options = Options {
        enabled: false,
        cri_socket: Some("/run/a b.sock".into()),
        kubelet_url: Some("https://10.0.0.17:10250".to_owned()),
        kubelet_token_file: Some("/token".into()),
        kubelet_ca_file: Some("/ca".into()),
        ecs_url: Some("http://127.0.0.1:51678".to_owned()),
        docker_socket: Some("/run/docker.sock".into()),
        host_root: Some("/host".into()),
    };
    for options in [options, Options::default()] {
        let line = std::iter::once("node-agent".into()).chain(options.to_arguments());
        let read = <Line as clap::Parser>::try_parse_from(line).map(|line| line.options);
        assert_eq!(read.ok(), Some(options));
    }
}
