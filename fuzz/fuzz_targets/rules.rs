//! The rules parser on any bytes: it must neither panic nor run away, and what it accepts must keep the guardrails.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|file: &[u8]| {
    match workload_rules::parse(file) {
        Err(error) => assert!(error.line >= 1 && error.column >= 1 && !error.to_string().contains(char::is_control)),
        Ok(rules) => {
            let (judged, guardrail) = (&rules.housekeeping, &workload_rules::built_in().housekeeping);
            for never in ["sh", "bash", "python3", "python3.11", "perl", "java", "R", "node", "sudo", "snakemake"] {
                assert!(!judged.names.contains(never));
                assert!(!judged.name_prefixes.iter().any(|prefix| never.starts_with(prefix.as_str())));
            }
            assert!(judged.name_prefixes.iter().chain(&judged.excluded_cgroup_prefixes).all(|prefix| prefix.len() >= 3));
            assert!(judged.names.iter().all(|name| !name.is_empty() && !name.contains('/')));
            assert!(judged.first_personal_uid <= 1_000);
            assert!(judged.excluded_cgroups.is_superset(&guardrail.excluded_cgroups));
            assert!(judged.excluded_cgroup_prefixes.is_superset(&guardrail.excluded_cgroup_prefixes));
            // A pattern of the file on a path of the file: matching is the parser's other half.
            let text = String::from_utf8_lossy(file);
            let segments: Vec<&str> = text.split(['/', '\n', '"']).take(64).collect();
            for (start, pattern) in
                (0..segments.len()).flat_map(|start| rules.attribution.iter().map(move |one| (start, one)))
            {
                if let Some(captures) = pattern.path.fits(&segments, start) {
                    let _ = pattern.id(&captures);
                }
            }
        }
    }
});
