//! Modules import downwards only: no circle between the top-level ones of a crate, tests of theirs included.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::Path,
};

/// Which module imports which, and in which file first.
type Imports = BTreeMap<String, BTreeMap<String, String>>;

/// What follows `crate::` in a source text: one name, or each first name of a group.
fn imported(text: &str) -> BTreeSet<String> {
    let name = |text: &str| text.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect::<String>();
    let code: String =
        text.lines().map(|line| line.split("//").next().unwrap_or_default()).collect::<Vec<_>>().join("\n");
    let mut found = BTreeSet::new();
    for (at, prefix) in code.match_indices("crate::") {
        let after = &code[at + prefix.len()..];
        let Some(group) = after.strip_prefix('{') else {
            found.insert(name(after));
            continue;
        };
        let (mut depth, mut first) = (1_usize, String::new());
        for c in group.chars() {
            match c {
                '{' => depth += 1,
                '}' => depth -= 1,
                _ => {}
            }
            if depth == 1 && c != '}' {
                first.push(c);
            }
            if depth == 0 {
                break;
            }
        }
        found.extend(first.split(',').map(|one| name(one.trim())));
    }
    found
}

fn add(imports: &mut Imports, module: &str, path: &Path) {
    if path.is_dir() {
        let files = fs::read_dir(path).unwrap().map(|entry| entry.unwrap().path());
        files.for_each(|file| add(imports, module, &file));
    } else if path.extension().is_some_and(|kind| kind == "rs") {
        for other in imported(&fs::read_to_string(path).unwrap()) {
            imports.get_mut(module).unwrap().entry(other).or_insert_with(|| path.display().to_string());
        }
    }
}

/// The top-level modules below a crate's `src`, by what they import of each other.
fn imports_of(src: &Path) -> Imports {
    let parts: Vec<_> = fs::read_dir(src).unwrap().map(|entry| entry.unwrap().path()).collect();
    let module = |path: &Path| path.file_stem().unwrap().to_str().unwrap().to_owned();
    let parts = || parts.iter().map(|path| (module(path), path)).filter(|(name, _)| name != "lib" && name != "main");
    let mut imports: Imports = parts().map(|(name, _)| (name, BTreeMap::new())).collect();
    parts().for_each(|(name, path)| add(&mut imports, &name, path));
    let modules: BTreeSet<String> = imports.keys().cloned().collect();
    for (name, others) in &mut imports {
        others.retain(|other, _| other != name && modules.contains(other));
    }
    imports
}

/// The way from `module` back to one that is on it already.
fn circle(imports: &Imports, module: &str, way: &mut Vec<String>, done: &mut BTreeSet<String>) -> Option<Vec<String>> {
    if let Some(begin) = way.iter().position(|one| one == module) {
        return Some(way[begin..].iter().cloned().chain([module.to_owned()]).collect());
    }
    if !done.insert(module.to_owned()) {
        return None;
    }
    way.push(module.to_owned());
    let found = imports[module].keys().find_map(|other| circle(imports, other, way, done));
    way.pop();
    found
}

/// Each import of a circle with its file; `None` where there is no circle.
fn first_circle(imports: &Imports) -> Option<Vec<String>> {
    let mut done = BTreeSet::new();
    let found = imports.keys().find_map(|module| circle(imports, module, &mut Vec::new(), &mut done))?;
    let edge = |pair: &[String]| format!("{} imports {} in {}", pair[0], pair[1], imports[&pair[0]][&pair[1]]);
    Some(found.windows(2).map(edge).collect())
}

#[test]
fn no_module_imports_in_a_circle() {
    // What the test rests on: it finds the modules of each crate, and reads both forms of an import.
    for (of, module, imported) in [
        ("heartbeat", "api", "attestation"),
        ("node-agent", "collect", "host"),
        ("node-agent", "procfs", "model"),
        ("node-agent-ebpf", "aggregate", "identity"),
        ("notifier", "slack", "message"),
        ("model", "resource", "provider"),
        ("model", "plan", "canonical"),
        ("recommender", "rules", "backtest"),
        ("rules", "housekeeping", "container"),
        ("sweeper", "sweep", "reconcile"),
        ("sweeper", "reconcile", "detectors"),
    ] {
        let imports = imports_of(&Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(of).join("src"));
        assert!(imports[module].contains_key(imported), "{of}: {imports:#?}");
        if let Some(circle) = first_circle(&imports) {
            panic!("a circle of imports in {of}:\n{}", circle.join("\n"));
        }
    }
}

#[test]
fn a_circle_is_found_and_named() {
    let src = tempfile::tempdir().unwrap();
    for (file, text) in [
        ("lib.rs", "use crate::a::A;"),
        ("a.rs", "use crate::b::B; // crate::d"),
        ("b/mod.rs", "use std::fmt;\nuse crate::{\n    c::{self, d::D},\n    b::E,\n};"),
        ("c/inner/x.rs", "fn f() { crate::a::f() }"),
        ("d.rs", "use crate::a::A;"),
    ] {
        let path = src.path().join(file);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    let imports = imports_of(src.path());
    let edges = |module: &str| imports[module].keys().cloned().collect::<Vec<_>>();
    assert_eq!([edges("a"), edges("b"), edges("c"), edges("d")], [["b"], ["c"], ["a"], ["a"]]);
    let named = first_circle(&imports).unwrap();
    assert_eq!(named.len(), 3);
    assert!(named[0].starts_with("a imports b in ") && named[0].ends_with("a.rs"), "{named:?}");
    assert!(named[2].starts_with("c imports a in ") && named[2].ends_with("x.rs"), "{named:?}");
    fs::remove_file(src.path().join("c/inner/x.rs")).unwrap();
    assert_eq!(first_circle(&imports_of(src.path())), None);
}
