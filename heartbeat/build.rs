//! Turns `proto/heartbeat.proto` into Rust with `protox`, so that no system `protoc` is needed.

fn main() {
    println!("cargo:rerun-if-changed=proto/heartbeat.proto");
    let descriptors = protox::compile(["heartbeat.proto"], ["proto"]).unwrap_or_else(|error| panic!("{error}"));
    let with_name = |of: &str| format!("#[serde(serialize_with = \"crate::json::{of}\")]");
    prost_build::Config::new()
        .type_attribute(".", "#[derive(serde::Serialize)]")
        .field_attribute("WorkloadActivity.class", with_name("class"))
        .field_attribute("Listener.class", with_name("class"))
        .field_attribute("PeerGroup.class", with_name("class"))
        .field_attribute("PeerGroup.protocol", with_name("protocol"))
        .field_attribute("WorkloadName.container", "#[serde(skip_serializing_if = \"Option::is_none\")]")
        .field_attribute("Coverage.source", with_name("source"))
        .field_attribute("Capability.status", with_name("capability_status"))
        .compile_fds(descriptors)
        .unwrap_or_else(|error| panic!("proto/heartbeat.proto: {error}"));
}
