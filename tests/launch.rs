use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};

use crate::support::ports::reserved_address;
use crate::support::program::{cluster_file, fail, files, stderr_text, succeed, webtwin};

const CRAWL: &str = "synth://?pages=300&seed=7";
const KEY: &str = "0123456789abcdef0123456789abcdef";

#[test]
fn the_tasks_of_a_step_of_slurm_are_the_processes_of_a_run() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name).to_str().unwrap().to_string();
    succeed(&["run", "--input", CRAWL, "--workers", "1", "--output", &at("one")]);
    let address = reserved_address();
    let port = address.rsplit_once(':').unwrap().1;
    let tasks = ["0", "1"].map(|task| {
        webtwin(&["run", "--input", CRAWL, "--cluster", "slurm", "--output", &at("two")])
            .env("SLURM_PROCID", task)
            .env("SLURM_STEP_NUM_TASKS", "2")
            .env("SLURM_STEP_NODELIST", "localhost")
            .env("SLURM_STEP_TASKS_PER_NODE", "2")
            .env("SLURM_CPUS_PER_TASK", "2")
            .env("WEBTWIN_PORT", port)
            .env("WEBTWIN_KEY", KEY)
            .spawn()
            .unwrap()
    });
    for task in tasks {
        let output = task.wait_with_output().unwrap();
        assert!(output.status.success(), "{}", stderr_text(&output));
    }
    assert!(files(&at("one")) == files(&at("two")));
}

#[test]
fn checkpoints_are_local_if_results_go_to_a_store() {
    for yaml in ["launch", "schedule"] {
        let path = format!("{}/cluster-config/{yaml}/kubernetes.yaml", env!("CARGO_MANIFEST_DIR"));
        let text = std::fs::read_to_string(path).unwrap();
        let has = |argument: &str| text.lines().any(|line| line.trim().starts_with(&format!("- --{argument}")));
        let records = has("resume") || has("retries") && !has("state=");
        assert!(has("output=s3://") && (!records || has("records=")), "{yaml}");
    }
}

#[test]
fn pod_waits_for_names_until_the_deadline_and_reports_the_missing_ones() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("out").to_str().unwrap().to_string();
    let mut pod = webtwin(&["run", "--input", CRAWL, "--cluster", "kubernetes", "--output", &out]);
    pod.env("JOB_COMPLETION_INDEX", "1").env("HOSTNAME", "job-1").env("WEBTWIN_PROCESSES", "2");
    pod.env("WEBTWIN_SERVICE", "nobody.invalid").env("WEBTWIN_KEY", KEY).env("WEBTWIN_DEADLINE", "500ms");
    let output = pod.output().unwrap();
    assert_eq!(output.status.code(), Some(7), "{}", stderr_text(&output));
    let words = ["process 0 at job-0.nobody.invalid:4100 (", "and that DNS resolves it) did not join"];
    assert!(words.iter().all(|words| stderr_text(&output).contains(words)), "{}", stderr_text(&output));
}

#[test]
fn cluster_needs_a_process_number_unless_the_environment_has_it() {
    let stderr_text = fail(&["run", "--input", CRAWL, "--output", "none", "--cluster", "cluster-config/local.toml"], 2);
    assert!(stderr_text.contains("add --process N"), "{stderr_text}");
    let stderr_text = fail(&["run", "--input", CRAWL, "--output", "none", "--cluster", "slurm", "--process", "0"], 2);
    assert!(stderr_text.contains("is set by the environment"), "{stderr_text}");
    let stderr_text = fail(&["check", "--cluster", "slurm"], 2);
    assert!(stderr_text.contains("SLURM_PROCID is not set; start the processes with srun"), "{stderr_text}");
}

#[test]
fn a_run_is_started_on_the_hosts_of_a_cluster_file_over_a_shell() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name).to_str().unwrap().to_string();
    let cluster = cluster_file(folder.path(), 1, &[(); 2].map(|()| reserved_address()));
    // A replacement for ssh that ignores the host.
    std::fs::write(at("shell"), "shift\nexec sh -c \"$1\"\n").unwrap();
    let launched = |more: &[&str]| {
        Command::new("cluster-config/launch/ssh")
            .args([&[&cluster[..]], more].concat())
            .env("SSH", format!("sh {}", at("shell")))
            .env("WEBTWIN", env!("CARGO_BIN_EXE_webtwin"))
            .stdin(Stdio::null())
            .process_group(0)
            .output()
            .unwrap()
    };
    let out = at("it's out");
    let output = launched(&["--input", CRAWL, "--output", &out]);
    assert!(output.status.success(), "{}", stderr_text(&output));
    succeed(&["run", "--input", CRAWL, "--workers", "1", "--output", &at("one")]);
    assert!(files(&at("one")) == files(&out));
    let again = launched(&["--input", CRAWL, "--output", &out]);
    assert_eq!(again.status.code(), Some(4), "{}", stderr_text(&again));
}
