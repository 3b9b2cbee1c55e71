//! Command lines as the engines really write them.

use super::*;

fn argv(line: &[&str]) -> Argv {
    Argv::parse(line.join("\0").as_bytes(), false)
}

fn recognise(comm: &str, line: &[&str]) -> Option<(String, String)> {
    let argv = argv(line);
    let engine = Engines::default().recognise(&Engines::default().program(comm, &argv), &argv)?;
    Some((engine.name, engine.pipeline))
}

fn name(comm: &str, line: &[&str]) -> String {
    Engines::default().program(comm, &argv(line)).name
}

fn task_name(engine: &str, comm: &str, line: &[&str]) -> Option<String> {
    let argv = argv(line);
    Engines::default().task_name(engine, &Engines::default().program(comm, &argv), &argv)
}

#[test]
fn engines_are_known_by_what_their_interpreter_runs() {
    for (comm, line, engine, pipeline) in [
        // Snakemake 9.27
        ("snakemake", vec!["/v/bin/python3", "/v/bin/snakemake", "--cores", "1"], "snakemake", ""),
        (
            "snakemake",
            vec!["/v/bin/python3", "/v/bin/snakemake", "-s", "/p/rna-seq/workflow/Snakefile"],
            "snakemake",
            "rna-seq",
        ),
        ("python3.11", vec!["python3.11", "-m", "snakemake", "--snakefile=qc.smk", "-c2"], "snakemake", "qc.smk"),
        ("python3", vec!["/v/bin/python3", "-u", "/v/bin/snakemake", "-s", "./Snakefile"], "snakemake", "Snakefile"),
        // Nextflow 26.10: the last line of its launcher
        (
            "java",
            vec![
                "/usr/bin/java",
                "--add-opens=java.base/java.lang=ALL-UNNAMED",
                "-Dfile.encoding=UTF-8",
                "-XX:+TieredCompilation",
                "-jar",
                "/root/.nextflow/framework/26.10.3/nextflow-26.10.3-one.jar",
                "run",
                "-profile",
                "docker",
                "nf-core/rnaseq",
                "--input",
                "samples.csv",
            ],
            "nextflow",
            "nf-core/rnaseq",
        ),
        // Nextflow 22: capsule
        (
            "java",
            vec![
                "java",
                "-Xmx4g",
                "-classpath",
                "/root/.nextflow/a.jar:/b.jar",
                "nextflow.cli.Launcher",
                "-log",
                "x",
                "run",
                "./wf/main.nf",
                "-resume",
            ],
            "nextflow",
            "wf",
        ),
        (
            "java",
            vec![
                "java",
                "-cp",
                "a.jar",
                "nextflow.cli.Launcher",
                "run",
                "https://me:ghp_0123456789abcdef@github.com/nextflow-io/hello?x=1",
            ],
            "nextflow",
            "nextflow-io/hello",
        ),
        // cwltool 3.3
        (
            "cwltool",
            vec!["/v/bin/python3", "/v/bin/cwltool", "--outdir", "/tmp/o", "/p/count.cwl#main", "--text", "a.txt"],
            "cwltool",
            "count.cwl",
        ),
        ("python3", vec!["python3", "-m", "cwltool", "w.cwl", "job.yml"], "cwltool", "w.cwl"),
        (
            "toil-cwl-runner",
            vec!["/v/bin/python", "/v/bin/toil-cwl-runner", "--jobStore", "/j", "w.cwl"],
            "toil",
            "w.cwl",
        ),
        (
            "argoexec",
            vec!["/var/run/argo/argoexec", "emissary", "--loglevel", "info", "--", "bash", "/argo/staging/script"],
            "argo",
            "",
        ),
        ("slurmstepd", vec!["/usr/sbin/slurmstepd"], "slurm", ""),
    ] {
        assert_eq!(recognise(comm, &line), Some((engine.to_owned(), pipeline.to_owned())), "{line:?}");
    }
}

#[test]
fn what_looks_like_an_engine_and_drives_nothing_is_none() {
    for (comm, line) in [
        ("bash", vec!["bash", "/usr/local/bin/nextflow", "run", "hello"]),
        ("java", vec!["java", "-jar", "/x/nextflow-26.10.3-one.jar", "log"]),
        ("java", vec!["java", "-jar", "/x/picard.jar", "run"]),
        ("python3", vec!["python3", "-m", "snakemake", "--target-jobs", "runny:", "--mode", "subprocess"]),
        ("snakemake", vec!["/v/bin/python3", "/v/bin/snakemake", "--version"]),
        ("python3", vec!["python3", "-c", "import snakemake"]),
        ("vi", vec!["vi", "snakemake"]),
        ("argoexec", vec!["argoexec", "wait"]),
        ("bash", vec!["-bash"]),
    ] {
        assert_eq!(recognise(comm, &line), None, "{line:?}");
    }
}

#[test]
fn interpreters_show_what_they_run() {
    for (comm, line, expected) in [
        ("python3", vec!["python3", "align.py", "-c", "x"], "align.py"),
        ("python3", vec!["python3", "-u", "-W", "ignore", "-Xdev", "/p/align.py"], "align.py"),
        ("python3", vec!["python3", "-m", "http.server", "80"], "http.server"),
        ("python3", vec!["python3", "-bum", "tool.__main__"], "tool"),
        ("python3", vec!["python3", "-c", "print(1)"], "python3"),
        ("python3", vec!["python3", "-"], "python3"),
        ("python3", vec!["/v/python3", "/p/.snakemake/scripts/tmpoh20ecec.align.py"], "align.py"),
        ("bash", vec!["bash", "-euo", "pipefail", "/p/run.sh", "x"], "run.sh"),
        ("bash", vec!["bash", "-o", "errexit", "--norc", "run.sh"], "run.sh"),
        ("bash", vec!["bash", "-ec", "run.sh"], "bash"),
        ("bash", vec!["-bash"], "bash"),
        ("sh", vec!["/bin/sh", "--", "-x.sh"], "-x.sh"),
        ("perl", vec!["perl", "-w", "-I", "lib", "count.pl"], "count.pl"),
        ("perl", vec!["perl", "-ne", "print"], "perl"),
        ("R", vec!["/usr/lib/R/bin/exec/R", "--no-echo", "--no-restore", "--file=plot.R"], "plot.R"),
        ("Rscript", vec!["Rscript", "--vanilla", "plot.R"], "plot.R"),
        ("java", vec!["java", "-Xmx8g", "-jar", "/opt/picard.jar", "MarkDuplicates"], "picard.jar"),
        ("java", vec!["java", "-cp", "a:b", "-Dx=y", "org.example.hellbender.Main"], "hellbender.Main"),
        ("java", vec!["java", "@args", "--add-opens", "a/b=c", "org.example.Aligner"], "Aligner"),
        ("java", vec!["java", "-version"], "java"),
        ("samtools", vec!["samtools", "sort", "x.py"], "samtools"),
        ("x", vec![], "x"),
    ] {
        assert_eq!(name(comm, &line), expected, "{line:?}");
    }
}

#[test]
fn tasks_are_named_where_a_command_line_does() {
    let snakemake = ["python3", "-m", "snakemake", "--target-jobs", "bwa_map:sample=A", "--mode", "subprocess"];
    let group = ["python3", "-m", "snakemake", "--target-jobs", "a:", "b:", "--cores", "1"];
    for (engine, comm, line, expected) in [
        ("snakemake", "python3", snakemake.to_vec(), Some("bwa_map:sample=A")),
        ("snakemake", "python3", group.to_vec(), Some("a: +1")),
        ("snakemake", "python3", vec!["python3", "/p/.snakemake/scripts/tmpoh20ecec.align.py"], Some("align.py")),
        ("snakemake", "bash", vec!["/bin/bash", "-c", "set -euo pipefail; bwa mem --token x"], None),
        ("nextflow", "bash", vec!["/bin/bash", "-ue", "/w/work/ab/cdef0123456789/.command.sh"], Some("ab/cdef01")),
        ("nextflow", "bash", vec!["/bin/bash", "-ue", ".command.run"], None),
        ("nextflow", "bash", vec!["/bin/bash", "-ue", "/w/work/ab/../.command.sh"], None),
        ("cwltool", "wc", vec!["wc", "-l", "/tmp/x"], None),
    ] {
        assert_eq!(task_name(engine, comm, &line).as_deref(), expected, "{line:?}");
    }
}

#[test]
fn steps_of_slurm_are_read_from_titles_and_cgroups() {
    let step = |job: &str, step: &str| Some(slurm::Step { job: job.to_owned(), step: step.to_owned() });
    assert_eq!(slurm::step_of_title(b"slurmstepd: [17.batch]\0\0"), step("17", "batch"));
    assert_eq!(slurm::step_of_title(b"slurmstepd: [17_3.0]"), step("17_3", "0"));
    assert_eq!(slurm::step_of_title(b"/usr/sbin/slurmstepd\0"), None);
    assert_eq!(slurm::step_of_title(b"slurmstepd: [\x1b.0]"), None);
    assert_eq!(slurm::step_of_cgroup("/slurm/uid_0/job_17/step_0/task_0"), step("17", "0"));
    let v2 = "/system.slice/slurmstepd.scope/job_17/step_batch/user/task_0";
    assert_eq!(slurm::step_of_cgroup(v2), step("17", "batch"));
    assert_eq!(slurm::step_of_cgroup("/slurm/uid_0/job_17"), step("17", ""));
    assert_eq!(slurm::step_of_cgroup("/user.slice/job_17/step_0"), None);
}

#[test]
fn only_files_are_scripts() {
    let pipeline = |comm: &str, line: &[&str]| script::pipeline(&Engines::default().program(comm, &argv(line)));
    assert_eq!(pipeline("nightly.sh", &["/bin/bash", "./nightly.sh"]).as_deref(), Some("nightly.sh"));
    assert_eq!(pipeline("bash", &["bash", "/dev/fd/3"]), None);
    assert_eq!(pipeline("bash", &["bash", "-c", "x"]), None);
    assert_eq!(pipeline("bash", &["bash"]), None);
    assert_eq!(pipeline("true", &["true"]), None);
}

mod any_bytes {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn no_command_line_breaks_anything_or_leaves_unescaped(comm in "\\PC{0,15}", bytes in prop::collection::vec(any::<u8>(), 0..600), cut: bool) {
            for first in ["python3", "bash", "java", "R", "x"] {
                let mut line = first.as_bytes().to_vec();
                line.push(0);
                line.extend_from_slice(&bytes);
                let argv = Argv::parse(&line, cut);
                let engines = Engines::default();
                let program = engines.program(&comm, &argv);
                let engine = engines.recognise(&program, &argv).map(|engine| engine.pipeline);
                for engine_name in ["snakemake", "nextflow"] {
                    let task = engines.task_name(engine_name, &program, &argv);
                    for text in [&engine, &task, &script::pipeline(&program)].into_iter().flatten() {
                        prop_assert!(!text.contains(char::is_control));
                        prop_assert!(text.len() <= 3 * argv::MAX_TEXT_BYTES);
                    }
                }
            }
        }
    }
}
