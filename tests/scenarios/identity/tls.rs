//! Who the sweeper is: it shows a certificate, and goes on with another one without a restart.

use super::{SITE, TIMEOUT, open, start, stored, until_more_are_stored};
use lab::{agent::Agent, certificates::Certificates, sweeper::Sweeper, wait};
use reqwest::tls::TlsInfo;
use std::{fs, time::Duration};
use tokio::{io::AsyncReadExt as _, net::TcpStream, time::timeout};

/// The certificate that is shown to a new connection.
async fn shown(sweeper: &Sweeper) -> Vec<u8> {
    let answer = sweeper.client().get(format!("{}/healthz", sweeper.url())).send().await.unwrap();
    assert!(answer.status().is_success());
    answer.extensions().get::<TlsInfo>().unwrap().peer_certificate().unwrap().to_vec()
}

async fn metric(sweeper: &Sweeper) -> String {
    let metrics = sweeper.metrics().await;
    metrics.lines().find(|line| line.starts_with("tls_refused_total")).unwrap().to_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_sweeper_speaks_tls_and_shows_a_renewed_certificate_without_a_restart() {
    let scratch = tempfile::tempdir().unwrap();
    let certificates = Certificates::make(&scratch.path().join("tls"));
    let sweeper = Sweeper::start_with_tls(&scratch.path().join("sweeper"), SITE, &certificates).await;
    let store = open(&sweeper).await;

    // Whoever knows the authority sends; whoever does not sends nothing, its token least of all.
    let stranger =
        start(&scratch.path().join("stranger"), &sweeper, &format!("join_token = \"{}\"", sweeper.join_token()));
    wait::until("the stranger to refuse the certificate", TIMEOUT, || async {
        stranger.log().contains("certificate").then_some(())
    })
    .await;
    assert_eq!(stored(&store).await, 0, "{}", stranger.log());
    drop(stranger);
    let config = format!(
        "sweeper_url = \"{}\"\njoin_token = \"{}\"\nidentity = \"host\"\ninterval = \"300ms\"\n",
        sweeper.url(),
        sweeper.join_token()
    );
    let authority = certificates.authority();
    let known = [("SSL_CERT_FILE", authority.to_str().unwrap())];
    let _agent = Agent::start(&scratch.path().join("agent"), &config, &known);
    until_more_are_stored("heartbeats over TLS", &store).await;

    // Whoever says nothing keeps nobody out, and is hung up on; plain HTTP is not served.
    let mut silent = TcpStream::connect(("127.0.0.1", sweeper.port())).await.unwrap();
    let plain = reqwest::get(format!("http://127.0.0.1:{}/healthz", sweeper.port())).await;
    assert!(plain.is_err(), "{plain:?}");
    let first = shown(&sweeper).await;
    let hung_up = timeout(Duration::from_secs(30), silent.read(&mut [0; 1])).await;
    assert!(matches!(hung_up, Ok(Ok(0) | Err(_))), "{hung_up:?}");

    certificates.renew();
    let renewed = || async { Some(shown(&sweeper).await).filter(|now| *now != first) };
    let second = wait::until("the renewed certificate", TIMEOUT, renewed).await;
    until_more_are_stored("heartbeats after the renewal", &store).await;
    assert_eq!(metric(&sweeper).await, "tls_refused_total 0", "certificate and key were never half renewed");

    // Half a renewal: the certificate of another key.
    let other = Certificates::make(&scratch.path().join("other"));
    fs::copy(other.certificate(), certificates.certificate()).unwrap();
    let refused = || async { (metric(&sweeper).await == "tls_refused_total 1").then_some(()) };
    wait::until("the pair to be refused", TIMEOUT, refused).await;
    assert!(sweeper.log().contains("this certificate is shown further on"), "{}", sweeper.log());
    assert_eq!(shown(&sweeper).await, second);
    until_more_are_stored("heartbeats after the refusal", &store).await;
}

#[tokio::test]
async fn a_sweeper_whose_certificate_cannot_be_used_does_not_start_and_says_why() {
    let scratch = tempfile::tempdir().unwrap();
    let certificates = Certificates::make(&scratch.path().join("tls"));
    let (certificate, key) = (certificates.certificate(), certificates.key());
    let sweeper = Sweeper::prepare(&scratch.path().join("sweeper"), SITE, &[]);
    let said = async |certificate: &str, key: &str| {
        let mut command = tokio::process::Command::from(sweeper.command());
        command.env("SWEEPER_API__TLS_CERTIFICATE", certificate).env("SWEEPER_API__TLS_KEY", key);
        let output = timeout(TIMEOUT, command.arg("serve").output()).await.unwrap().unwrap();
        assert!(!output.status.success());
        String::from_utf8(output.stderr).unwrap()
    };
    let (certificate, key) = (certificate.to_str().unwrap(), key.to_str().unwrap());
    for (certificate, key, why) in [
        ("/nowhere.crt", key, "`api.tls_certificate` names a PEM file"),
        (certificate, "/nowhere.key", "`api.tls_key` names a PEM file"),
        (certificate, certificate, "`api.tls_key` names a PEM file"),
        (key, key, "cannot be used"),
    ] {
        let said = said(certificate, key).await;
        assert!(said.contains(why), "{certificate} {key}: {said}");
    }
}
