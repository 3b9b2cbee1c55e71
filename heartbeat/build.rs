//! Turns `proto/heartbeat.proto` into Rust with `protox`, so that no system `protoc` is needed; and into a table of what each message takes in
//! memory (`src/decoded_size.rs`).

use std::{env, fmt::Write as _, fs, path::Path};

// https://github.com/protocolbuffers/protobuf/blob/v29.0/src/google/protobuf/descriptor.proto#L233-L281
const REPEATED: i32 = 3;
const TEXT: i32 = 9;
const MESSAGE: i32 = 11;
const BYTES: i32 = 12;

/// A message's name, and of its fields those that bring memory of their own: number, and the message if it is one.
type Described = (String, Vec<(i32, Option<String>)>);

fn main() {
    println!("cargo:rerun-if-changed=proto/heartbeat.proto");
    let descriptors = protox::compile(["heartbeat.proto"], ["proto"]).unwrap_or_else(|error| panic!("{error}"));
    let mut messages: Vec<Described> = Vec::new();
    for message in descriptors.file.iter().flat_map(|file| &file.message_type) {
        assert!(
            message.nested_type.is_empty(),
            "{}: a message inside a message has no place in the table",
            message.name()
        );
        let fields = message.field.iter().filter_map(|field| {
            let (kind, is_repeated) = (field.r#type?, field.label == Some(REPEATED));
            let type_name = field.type_name().rsplit('.').next().unwrap_or_default().to_owned();
            match kind {
                MESSAGE => Some((field.number(), Some(type_name))),
                TEXT | BYTES => Some((field.number(), None)),
                _ => {
                    assert!(
                        !is_repeated,
                        "{}.{}: a list of numbers has no place in the table",
                        message.name(),
                        field.name()
                    );
                    None
                }
            }
        });
        messages.push((message.name().to_owned(), fields.collect::<Vec<_>>()));
    }
    let out = env::var_os("OUT_DIR").expect("cargo names a folder");
    fs::write(Path::new(&out).join("messages.rs"), table(&messages)).unwrap_or_else(|error| panic!("{error}"));

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

/// Rust's text of the table: each message's size, and of its fields those that bring memory of their own.
fn table(messages: &[Described]) -> String {
    let index_of = |name: &str| messages.iter().position(|(of, _)| of == name);
    assert_ends(messages, "Envelope", messages.len());
    let mut text = format!("static MESSAGES: [Message; {}] = [\n", messages.len());
    for (name, fields) in messages {
        let fields = fields.iter().map(|(number, child)| match child {
            Some(child) => {
                let index = index_of(child).unwrap_or_else(|| panic!("{name}: {child} is no message of this file"));
                format!("({number}, Content::Message({index}))")
            }
            None => format!("({number}, Content::Text)"),
        });
        let fields = fields.collect::<Vec<_>>().join(", ");
        writeln!(text, "    Message {{ bytes: size_of::<crate::wire::{name}>(), fields: &[{fields}] }},")
            .expect("text has room");
    }
    let envelope = index_of("Envelope").expect("the contract has an envelope");
    text + "];\n" + &format!("const ENVELOPE: usize = {envelope};\n")
}

/// That no message holds itself, at any depth: what counts them calls itself for each.
fn assert_ends(messages: &[Described], name: &str, most: usize) {
    assert!(most > 0, "{name} holds itself");
    for (_, fields) in messages.iter().filter(|(of, _)| of == name) {
        fields
            .iter()
            .filter_map(|(_, child)| child.as_deref())
            .for_each(|child| assert_ends(messages, child, most - 1));
    }
}
