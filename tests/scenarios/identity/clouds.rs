//! Machines of a cloud, attested by what EC2, STS and Google say of them.

use super::*;

const ACCOUNT: &str = "123456789012";
const INSTANCE: &str = "i-0123456789abcdef0";

fn instance(id: &str) -> Identity {
    Identity {
        account: ACCOUNT.into(),
        region: "eu-central-1".into(),
        instance: id.into(),
        instance_type: "m5.large".into(),
        life_cycle: "on-demand".into(),
    }
}

fn start_on(imds: &Imds, folder: &Path, sweeper: &Sweeper, secret: &Path) -> Agent {
    let config = format!(
        "sweeper_url = \"{}\"\njoin_token_file = \"{}\"\nidentity = \"aws\"\ninterval = \"300ms\"\n",
        sweeper.url(),
        secret.display()
    );
    Agent::start(folder, &config, &[("AWS_EC2_METADATA_SERVICE_ENDPOINT", &imds.url())])
}

/// A shell command of a process of the machine without any right.
async fn as_nobody(script: &str) -> Output {
    let mut command = tokio::process::Command::new("setpriv");
    command.args(["--reuid=65534", "--regid=65534", "--clear-groups", "--inh-caps=-all", "sh", "-ec", script]);
    command.output().await.expect("setpriv (package util-linux) and curl start")
}

/// A join for the machine with a key of its own and the machine's signed document, but without a join secret.
async fn join_without_a_secret(sweeper: &Sweeper, node: &str, pkcs7: &str) -> Problem {
    let client = reqwest::Client::new();
    let challenge = client.post(format!("{}{CHALLENGE_PATH}", sweeper.url())).json(&json!({ "node_id": node }));
    let challenge: Value = challenge.send().await.unwrap().json().await.unwrap();
    assert_eq!(challenge["evidence"], json!(["aws_iid"]), "{challenge}");
    let pair = Ed25519KeyPair::generate().unwrap();
    let proof = json!({
        "public_key": hex::encode(pair.public_key()), "challenge": challenge["challenge"], "audience": sweeper.url(),
        "evidence": { "kind": "aws_iid", "pkcs7": pkcs7 },
    });
    let body = json!({ "node_id": node, "boot_id": uuid::Uuid::new_v4(), "hostname": "h", "agent_version": "0.1.0", "proof": proof });
    let body = body.to_string();
    let join = client.post(format!("{}{JOIN_PATH}", sweeper.url())).header("content-type", "application/json");
    let join = join.header(SIGNATURE_HEADER, hex::encode(pair.sign(&signed_text(body.as_bytes()))));
    join.body(body).send().await.unwrap().json().await.unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn an_instance_is_attested_by_its_document_and_a_process_that_reads_it_is_not() {
    let scratch = tempfile::tempdir().unwrap();
    fs::set_permissions(scratch.path(), fs::Permissions::from_mode(0o755)).unwrap();
    let certificates = scratch.path().join("certificates");
    fs::create_dir(&certificates).unwrap();
    let signer = Arc::new(Signer::generate());
    fs::write(certificates.join("eu-central-1.pem"), signer.certificate_pem()).unwrap();
    let site =
        format!("{SITE}[identity]\naccounts = [\"{ACCOUNT}\"]\naws_certificates = \"{}\"\n", certificates.display());
    let sweeper = Sweeper::start(&scratch.path().join("sweeper"), &site, &[]).await;
    let store = open(&sweeper).await;
    let secret = scratch.path().join("join-token");
    fs::write(&secret, sweeper.join_token()).unwrap();
    fs::set_permissions(&secret, fs::Permissions::from_mode(0o600)).unwrap();
    let imds = Imds::start_signed(instance(INSTANCE), Arc::clone(&signer));
    let folder = scratch.path().join("agent");

    // The machine has not joined yet, and a process on it comes first: it reads the document, but not the join secret.
    let url = imds.url();
    let read = as_nobody(&format!(
        "token=$(curl -sf -X PUT -H 'X-aws-ec2-metadata-token-ttl-seconds: 60' {url}/latest/api/token)\n\
         curl -sf -H \"X-aws-ec2-metadata-token: $token\" {url}/latest/dynamic/instance-identity/rsa2048"
    ))
    .await;
    assert!(read.status.success(), "{read:?}");
    let document = String::from_utf8(read.stdout).unwrap();
    let denied = as_nobody(&format!("cat {}", secret.display())).await;
    assert!(String::from_utf8_lossy(&denied.stderr).contains("Permission denied"), "{denied:?}");
    let id = format!("aws:{ACCOUNT}:eu-central-1:{INSTANCE}");
    let refused = join_without_a_secret(&sweeper, &id, &document).await;
    assert_eq!((refused.status, refused.kind.as_str()), (401, "join_secret_required"), "{refused:?}");
    assert!(sweeper.json(&["nodes"]).await.as_array().unwrap().is_empty());

    let mut agent = start_on(&imds, &folder, &sweeper, &secret);
    until_more_are_stored("heartbeats of the instance", &store).await;
    let node = the_node(&sweeper).await;
    let told = (&node["node"], &node["attestation"], &node["attested"]);
    assert_eq!(told, (&id.as_str().into(), &"aws_iid".into(), &true.into()), "{node}");
    let table = String::from_utf8(sweeper.run(&["nodes"]).await.stdout).unwrap();
    assert!(table.contains("aws_iid"), "{table}");

    // It has joined: neither the document nor the key's file lets that process in, and the node stays undisputed.
    let denied = as_nobody(&format!("cat {}", folder.join("state/node-key").display())).await;
    assert!(String::from_utf8_lossy(&denied.stderr).contains("Permission denied"), "{denied:?}");
    assert_eq!(join_without_a_secret(&sweeper, &id, &document).await.kind, "join_secret_required");
    assert!(the_node(&sweeper).await["disputed_since"].is_null());

    // A machine whose metadata service EC2 does not stand behind.
    let forged = Imds::start_signed(instance("i-0fedcba9876543210"), Arc::new(Signer::generate()));
    let mut forger = start_on(&forged, &scratch.path().join("forger"), &sweeper, &secret);
    wait::until("the forger to be refused", TIMEOUT, || async {
        forger.log().contains("evidence_forged").then_some(())
    })
    .await;
    forger.stop().await;
    assert_eq!(the_node(&sweeper).await["node"], node["node"], "it is no node");

    // With the join secret stolen as well, another agent on the machine is refused, and it is told.
    let mut thief = start_on(&imds, &scratch.path().join("thief"), &sweeper, &secret);
    wait::until("the thief to be refused", TIMEOUT, || async { thief.log().contains("key_mismatch").then_some(()) })
        .await;
    thief.stop().await;
    let disputed = the_node(&sweeper).await;
    assert!(disputed["disputed_since"].is_string() && disputed["key"] == node["key"], "{disputed}");
    until_more_are_stored("heartbeats of the instance, still", &store).await;
    agent.stop().await;
}

/// The session of a role as EC2 makes it for an instance: it has the instance's id as its name.
async fn session(moto: &Moto, role: &str, instance: &str) -> Session {
    let arn = format!("arn:aws:iam::{ACCOUNT}:role/{role}");
    let call = [("Action", "AssumeRole"), ("Version", "2011-06-15"), ("RoleArn", &arn), ("RoleSessionName", instance)];
    let answer = moto.query("sts", "eu-central-1", &call).await;
    let said = |name: &str| {
        let (_, rest) = answer.split_once(&format!("<{name}>")).unwrap();
        rest.split('<').next().unwrap().to_owned()
    };
    Session {
        role: role.to_owned(),
        access_key_id: said("AccessKeyId"),
        secret_access_key: said("SecretAccessKey"),
        token: said("SessionToken"),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_instance_is_attested_by_the_role_that_the_inventory_shows_on_it_and_by_no_other() {
    let scratch = tempfile::tempdir().unwrap();
    let moto = Moto::start(&scratch.path().join("moto")).await;
    let ids =
        moto.run("eu-central-1", &[aws::Instance { count: Some(2), ..aws::Instance::named("m5.large", "a") }]).await;
    let profile = [("Action", "CreateInstanceProfile"), ("Version", "2010-05-08"), ("InstanceProfileName", "batch")];
    moto.query("iam", "us-east-1", &profile).await;
    let associate = [
        ("Action", "AssociateIamInstanceProfile"),
        ("Version", "2016-11-15"),
        ("InstanceId", &ids[0]),
        ("IamInstanceProfile.Name", "batch"),
    ];
    moto.query("ec2", "eu-central-1", &associate).await;

    let site = "[aws]\nenabled = \"yes\"\nregions = [\"eu-central-1\"]\n[pricing]\nsource = \"none\"\n[sweep]\nschedule = \"0 0 0 1 1 *\"\n";
    let environment = moto.environment();
    let environment = environment.iter().map(|(key, value)| (key.as_str(), value.as_str())).collect::<Vec<_>>();
    let mut sweeper = Sweeper::start(&scratch.path().join("sweeper"), site, &environment).await;
    sweeper.stop().await;
    let identity = format!("[identity]\naudience = \"{}\"\nevidence = [\"aws_sts\"]\n", sweeper.url());
    fs::write(sweeper.folder().join("sweeper.toml"), format!("{site}{identity}")).unwrap();
    sweeper.start_again().await;
    let store = open(&sweeper).await;
    sweeper.sweep().await;
    let secret = scratch.path().join("join-token");
    fs::write(&secret, sweeper.join_token()).unwrap();

    // Another session name, and another role than the profile's: AWS knows both sessions, and neither is this machine's.
    for (folder, session, refusal) in [
        ("other", session(&moto, "batch", &ids[1]).await, "foreign_instance"),
        ("role", session(&moto, "admin", &ids[0]).await, "foreign_role"),
    ] {
        let imds = Imds::start_with_role(instance(&ids[0]), session);
        let mut agent = start_on(&imds, &scratch.path().join(folder), &sweeper, &secret);
        wait::until(refusal, TIMEOUT, || async { agent.log().contains(refusal).then_some(()) }).await;
        agent.stop().await;
    }
    // A machine without an instance profile.
    let imds = Imds::start_with_role(instance(&ids[1]), session(&moto, "batch", &ids[1]).await);
    let mut agent = start_on(&imds, &scratch.path().join("none"), &sweeper, &secret);
    wait::until("foreign_role", TIMEOUT, || async { agent.log().contains("foreign_role").then_some(()) }).await;
    agent.stop().await;
    assert!(sweeper.json(&["nodes"]).await.as_array().unwrap().is_empty());

    let imds = Imds::start_with_role(instance(&ids[0]), session(&moto, "batch", &ids[0]).await);
    let mut agent = start_on(&imds, &scratch.path().join("agent"), &sweeper, &secret);
    until_more_are_stored("heartbeats of the instance", &store).await;
    let node = the_node(&sweeper).await;
    assert!(node["attestation"] == "aws_sts" && node["attested"] == true, "{node}");
    agent.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_compute_engine_instance_is_attested_by_a_token_for_this_sweeper_and_not_for_another() {
    let scratch = tempfile::tempdir().unwrap();
    let gce = Gce::start().await;
    let keys = scratch.path().join("keys.json");
    fs::write(&keys, gce.keys()).unwrap();
    let mut sweeper = Sweeper::start(&scratch.path().join("sweeper"), SITE, &[]).await;
    sweeper.stop().await;
    let identity = format!(
        "[identity]\naudience = \"{}\"\naccounts = [\"{}\"]\ngoogle_keys = \"{}\"\n",
        sweeper.url(),
        gce.project(),
        keys.display()
    );
    fs::write(sweeper.folder().join("sweeper.toml"), format!("{SITE}{identity}")).unwrap();
    sweeper.start_again().await;
    let store = open(&sweeper).await;
    let start = |folder: &str, url: &str| {
        let config = format!(
            "sweeper_url = \"{url}\"\njoin_token = \"{}\"\nidentity = \"gcp\"\ninterval = \"300ms\"\n",
            sweeper.join_token()
        );
        Agent::start(&scratch.path().join(folder), &config, &[("GCE_METADATA_HOST", gce.host())])
    };
    // The same sweeper under another name: what is signed for that name is of no use under this one.
    let mut other = start("other", &sweeper.url().replace("127.0.0.1", "localhost"));
    wait::until("the other audience", TIMEOUT, || async { other.log().contains("wrong_audience").then_some(()) }).await;
    other.stop().await;
    let mut agent = start("agent", &sweeper.url());
    until_more_are_stored("heartbeats of the instance", &store).await;
    let node = the_node(&sweeper).await;
    let told = (&node["node"], &node["attestation"], &node["attested"]);
    assert_eq!(told, (&gce.node().into(), &"gcp_token".into(), &true.into()), "{node}");
    agent.stop().await;
}
