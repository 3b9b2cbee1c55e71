//! The laboratory keeps its own promises, so that a failing scenario speaks of the product.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use lab::microvm::{Guest, HOST, MicroVm};
use std::time::{Duration, Instant};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpListener,
};

#[tokio::test]
async fn a_micro_vm_boots_reaches_this_host_and_powers_itself_off() {
    let folder = tempfile::tempdir().unwrap();
    let server = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
    let port = server.local_addr().unwrap().port();
    let started = Instant::now();
    let mut guest = MicroVm::boot(
        folder.path(),
        &Guest::running(&format!(
            "set -e
            say kernel $(uname -r)
            wget -q -O /tmp/answer http://{HOST}:{port}/
            give answer /tmp/answer
            grep -q cgroup2 /proc/mounts
            test -r /sys/kernel/btf/vmlinux
            test -r /sys/kernel/tracing/available_events"
        )),
    );
    let (mut request, _) = server.accept().await.unwrap();
    let _ = request.read(&mut [0; 1024]).await.unwrap();
    request.write_all(b"HTTP/1.0 200 OK\r\n\r\ntwo lines\nof text").await.unwrap();
    drop(request);
    guest.end(Duration::from_secs(120)).await;
    let kernel = guest.said("kernel", Duration::ZERO).await;
    assert!(kernel.ends_with("-cloud-amd64"), "{kernel}");
    assert_eq!(guest.given("answer").unwrap(), "two lines\nof text");
    assert_eq!(guest.given("question"), None);
    assert!(started.elapsed() < Duration::from_secs(120));
}

#[tokio::test]
#[should_panic(expected = "the guest's script failed")]
async fn a_script_that_fails_in_a_micro_vm_fails_its_test() {
    let folder = tempfile::tempdir().unwrap();
    let mut guest = MicroVm::boot(folder.path(), &Guest::running("exit 3"));
    guest.end(Duration::from_secs(120)).await;
}
