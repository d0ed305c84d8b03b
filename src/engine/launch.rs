//! Clusters described by a launcher: a job step of Slurm, or an Indexed Job of Kubernetes. Each
//! becomes the text of a [cluster file](super::cluster_file), which is parsed like any other, and
//! the number of this process in it.
//!
//! | variable | meaning | when not given |
//! |---|---|---|
//! | `WEBTWIN_KEY` | the key, in the form of a key file | needed by more than one process |
//! | `WEBTWIN_WORKERS` | worker threads of each process | Slurm: `SLURM_CPUS_PER_TASK`, else one; Kubernetes: the processors of the container |
//! | `WEBTWIN_DEADLINE` | as in a cluster file | `5m`: nodes and pods start one after the other |
//! | `WEBTWIN_PORT` | port; several processes of a node take the next ones | Slurm: of the step's number; Kubernetes: 4100 |
//! | `WEBTWIN_PROCESSES`, `WEBTWIN_SERVICE` | Kubernetes: `completions` of the job, its `subdomain` | needed |

use std::fmt::Write;
use std::path::Path;

use super::cluster_file::{ClusterLayout, MAX_WORKERS};
use webtwin_base::error::{Error, Result};

/// Deadline for processes that a launcher starts.
const DEADLINE: &str = "5m";

/// Launcher that describes the cluster in environment variables, instead of a cluster file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Launcher {
    /// `srun`: each process is a task of a job step.
    Slurm,
    /// An Indexed Job with a headless service: each process is a pod.
    Kubernetes,
}

impl Launcher {
    /// Returns the launcher called `name`, if there is one.
    pub fn named(name: &str) -> Option<Launcher> {
        match name {
            "slurm" => Some(Launcher::Slurm),
            "kubernetes" => Some(Launcher::Kubernetes),
            _ => None,
        }
    }

    /// Returns the cluster that environment variables describe, and the number of this process in
    /// it. `variable` returns the value of a variable, except for the key, which is read from the
    /// environment directly.
    ///
    /// # Errors
    /// Returns [`Error::Usage`] if a variable is missing or has an impossible value, and
    /// [`Error::Setting`] under the conditions of a cluster file.
    pub fn cluster(self, variable: impl Fn(&str) -> Option<String>) -> Result<(ClusterLayout, usize)> {
        let variables = Variables { launcher: self, get: &variable };
        let (process, workers, addresses) = match self {
            Launcher::Slurm => variables.slurm()?,
            Launcher::Kubernetes => variables.kubernetes()?,
        };
        let deadline = variable("WEBTWIN_DEADLINE").unwrap_or(DEADLINE.into());
        let mut text = format!("workers = {workers}\ndeadline = {deadline:?}\n");
        if addresses.len() > 1 {
            text += "key_env = \"WEBTWIN_KEY\"\n";
            for address in &addresses {
                writeln!(text, "[[process]]\naddress = {address:?}").expect("writing to a string cannot fail");
            }
        }
        let cluster = ClusterLayout::parse(&text, self.name(), Path::new(""))?;
        cluster.check_process(process)?;
        Ok((cluster, process))
    }

    fn name(self) -> &'static str {
        match self {
            Launcher::Slurm => "slurm",
            Launcher::Kubernetes => "kubernetes",
        }
    }
}

/// Number of this process, number of workers of each process, and addresses of all processes.
type Described = (usize, usize, Vec<String>);

struct Variables<'v> {
    launcher: Launcher,
    get: &'v dyn Fn(&str) -> Option<String>,
}

impl Variables<'_> {
    fn slurm(&self) -> Result<Described> {
        let process = self.number("SLURM_PROCID")?;
        let tasks: usize = self.number("SLURM_STEP_NUM_TASKS")?;
        let (hosts, per_node) = (self.text("SLURM_STEP_NODELIST")?, self.text("SLURM_STEP_TASKS_PER_NODE")?);
        let nodes = hosts_of(&hosts).ok_or_else(|| self.variable_error("SLURM_STEP_NODELIST", &hosts))?;
        let counts = counts_of(&per_node).ok_or_else(|| self.variable_error("SLURM_STEP_TASKS_PER_NODE", &per_node))?;
        if counts.len() != nodes.len() || counts.iter().sum::<usize>() != tasks {
            return Err(self.variable_error("SLURM_STEP_TASKS_PER_NODE", &per_node));
        }
        // Addresses are assigned to tasks in block order, so tasks of another distribution would
        // have wrong addresses.
        let order = (self.get)("SLURM_DISTRIBUTION").unwrap_or("block".into());
        if counts.iter().any(|&count| count > 1) && !order.starts_with("block") {
            return Err(Error::Usage(format!(
                "--cluster slurm: tasks of one node are numbered by {order:?}; start them with srun \
                 --distribution=block"
            )));
        }
        let workers = match self.given("WEBTWIN_WORKERS")? {
            Some(workers) => workers,
            None => self.given("SLURM_CPUS_PER_TASK")?.unwrap_or(1),
        };
        // Jobs and steps that share a node should get different ports. All are below the range of
        // ephemeral ports.
        let port = match self.given("WEBTWIN_PORT")? {
            Some(port) => port,
            None => {
                let (job, step): (usize, usize) = (self.number("SLURM_JOB_ID")?, self.number("SLURM_STEP_ID")?);
                20_000 + job % 250 * 40 + step % 40
            }
        };
        let address = |(node, &count): (String, &usize)| {
            (0..count).map(|place| format!("{node}:{}", port + place)).collect::<Vec<_>>()
        };
        Ok((process, workers, nodes.into_iter().zip(&counts).flat_map(address).collect()))
    }

    fn kubernetes(&self) -> Result<Described> {
        let (process, processes): (usize, usize) =
            (self.number("JOB_COMPLETION_INDEX")?, self.number("WEBTWIN_PROCESSES")?);
        if !(1..=MAX_WORKERS).contains(&processes) {
            return Err(self.variable_error("WEBTWIN_PROCESSES", &processes.to_string()));
        }
        let cores = || std::thread::available_parallelism().map_or(1, |cores| cores.get());
        let workers = self.given("WEBTWIN_WORKERS")?.unwrap_or_else(cores);
        if processes == 1 {
            return Ok((process, workers, Vec::new()));
        }
        let (pod, service) = (self.text("HOSTNAME")?, self.text("WEBTWIN_SERVICE")?);
        let job = pod.strip_suffix(&format!("-{process}")).ok_or_else(|| self.variable_error("HOSTNAME", &pod))?;
        let port: u16 = self.given("WEBTWIN_PORT")?.unwrap_or(4100);
        Ok((process, workers, (0..processes).map(|index| format!("{job}-{index}.{service}:{port}")).collect()))
    }

    fn text(&self, name: &str) -> Result<String> {
        (self.get)(name).ok_or_else(|| {
            let launched = match self.launcher {
                Launcher::Slurm => "start the processes with srun",
                Launcher::Kubernetes => "start the processes as an Indexed Job, as in cluster-config/launch/",
            };
            Error::Usage(format!("--cluster {}: {name} is not set; {launched}", self.launcher.name()))
        })
    }

    fn number<N: std::str::FromStr>(&self, name: &str) -> Result<N> {
        let text = self.text(name)?;
        text.parse().map_err(|_| self.variable_error(name, &text))
    }

    /// Returns the number in a variable, or `None` if the variable is not set.
    fn given<N: std::str::FromStr>(&self, name: &str) -> Result<Option<N>> {
        (self.get)(name).map(|_| self.number(name)).transpose()
    }

    fn variable_error(&self, name: &str, value: &str) -> Error {
        Error::Usage(format!(
            "--cluster {}: {name} is {value:?}, which does not describe a cluster; check how the job is launched",
            self.launcher.name()
        ))
    }
}

/// Parses a Slurm host list, such as `login,rack[1-2]n[08-10,12]`. Returns `None` if it is
/// malformed.
fn hosts_of(list: &str) -> Option<Vec<String>> {
    let mut hosts = Vec::new();
    let (mut depth, mut from) = (0, 0);
    for (at, byte) in list.bytes().chain([b',']).enumerate() {
        match byte {
            b'[' => depth += 1,
            b']' => depth -= 1,
            b',' if depth == 0 => {
                hosts.extend(expanded(&list[from..at])?);
                from = at + 1;
            }
            _ => {}
        }
        if !(0..=1).contains(&depth) || hosts.len() > MAX_WORKERS {
            return None;
        }
    }
    (depth == 0).then_some(hosts)
}

/// Expands one item of a host list. The leftmost numbers vary slowest.
fn expanded(item: &str) -> Option<Vec<String>> {
    let Some((prefix, list)) = item.split_once('[') else {
        return (!item.is_empty()).then(|| vec![item.into()]);
    };
    let (ranges, suffix) = list.split_once(']')?;
    let ends = match suffix.is_empty() {
        true => vec![String::new()],
        false => expanded(suffix)?,
    };
    let mut hosts = Vec::new();
    for range in ranges.split(',') {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
        let (from, to): (usize, usize) = (first.parse().ok()?, last.parse().ok()?);
        // Checked before the range is expanded, so that a huge range allocates nothing.
        if !digits(first)
            || !digits(last)
            || from > to
            || to - from >= MAX_WORKERS
            || (to - from + 1) * ends.len() > MAX_WORKERS - hosts.len()
        {
            return None;
        }
        let numbers = (from..=to).map(|number| format!("{prefix}{number:0width$}", width = first.len()));
        hosts.extend(numbers.flat_map(|host| ends.iter().map(move |end| format!("{host}{end}"))));
    }
    Some(hosts)
}

/// Parses a Slurm list of counts: `2(x3),1` becomes 2, 2, 2, 1. Returns `None` if it is malformed.
fn counts_of(list: &str) -> Option<Vec<usize>> {
    let mut counts = Vec::new();
    for item in list.split(',') {
        let (count, times) = match item.split_once("(x") {
            Some((count, times)) => (count, times.strip_suffix(')')?.parse().ok()?),
            None => (item, 1),
        };
        let count: usize = count.parse().ok().filter(|count| (1..=MAX_WORKERS).contains(count))?;
        if times > MAX_WORKERS - counts.len() {
            return None;
        }
        counts.extend(std::iter::repeat_n(count, times));
    }
    Some(counts)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn described(launcher: Launcher, variables: &[(&str, &str)]) -> Result<Described> {
        let get =
            |name: &str| variables.iter().rev().find(|variable| variable.0 == name).map(|pair| pair.1.to_string());
        let variables = Variables { launcher, get: &get };
        match launcher {
            Launcher::Slurm => variables.slurm(),
            Launcher::Kubernetes => variables.kubernetes(),
        }
    }

    const STEP: [(&str, &str); 7] = [
        ("SLURM_PROCID", "3"),
        ("SLURM_STEP_NUM_TASKS", "5"),
        ("SLURM_STEP_NODELIST", "n[09-10],big"),
        ("SLURM_STEP_TASKS_PER_NODE", "2(x2),1"),
        ("SLURM_CPUS_PER_TASK", "8"),
        ("SLURM_JOB_ID", "1234"),
        ("SLURM_STEP_ID", "0"),
    ];

    #[test]
    fn tasks_of_a_step_are_processes_in_the_order_of_its_nodes() {
        let (process, workers, addresses) = described(Launcher::Slurm, &STEP).unwrap();
        assert_eq!((process, workers), (3, 8));
        assert_eq!(addresses, ["n09:29360", "n09:29361", "n10:29360", "n10:29361", "big:29360"]);
    }

    #[test]
    fn rejects_invalid_step_variables_with_their_names() {
        for (variable, part) in [
            (("SLURM_PROCID", "x"), "SLURM_PROCID is \"x\""),
            (("SLURM_STEP_NODELIST", "n[09-"), "SLURM_STEP_NODELIST"),
            (("SLURM_STEP_TASKS_PER_NODE", "2(x3)"), "SLURM_STEP_TASKS_PER_NODE"),
            (("SLURM_STEP_NUM_TASKS", "4"), "SLURM_STEP_TASKS_PER_NODE"),
            (("SLURM_DISTRIBUTION", "cyclic"), "--distribution=block"),
        ] {
            let error = described(Launcher::Slurm, &[&STEP[..], &[variable]].concat()).unwrap_err();
            assert!(error.to_string().contains(part) && error.exit_code() == 2, "{error}");
        }
        let error = described(Launcher::Slurm, &[]).unwrap_err();
        assert!(error.to_string().ends_with("SLURM_PROCID is not set; start the processes with srun"), "{error}");
    }

    #[test]
    fn pods_of_a_job_are_processes_by_their_index() {
        let pod = [
            ("JOB_COMPLETION_INDEX", "1"),
            ("WEBTWIN_PROCESSES", "3"),
            ("WEBTWIN_SERVICE", "webtwin"),
            ("WEBTWIN_WORKERS", "8"),
            ("HOSTNAME", "crawl-2026-1"),
        ];
        let (process, workers, addresses) = described(Launcher::Kubernetes, &pod).unwrap();
        assert_eq!((process, workers), (1, 8));
        assert_eq!(addresses, [0, 1, 2].map(|n| format!("crawl-2026-{n}.webtwin:4100")));
        let foreign = described(Launcher::Kubernetes, &[&pod[..], &[("HOSTNAME", "other")]].concat());
        assert!(foreign.unwrap_err().to_string().contains("HOSTNAME is \"other\""));
        let single_process =
            described(Launcher::Kubernetes, &[&pod[..], &[("WEBTWIN_PROCESSES", "1")]].concat()).unwrap();
        assert!(single_process.2.is_empty());
    }

    #[test]
    fn a_cluster_of_one_process_needs_neither_key_nor_address() {
        let variables = |name: &str| {
            let step = [("SLURM_PROCID", "0"), ("SLURM_STEP_NUM_TASKS", "1"), ("SLURM_STEP_TASKS_PER_NODE", "1")];
            let job = [("SLURM_STEP_NODELIST", "n1"), ("SLURM_JOB_ID", "7"), ("SLURM_STEP_ID", "1")];
            step.iter().chain(&job).find(|pair| pair.0 == name).map(|pair| pair.1.to_string())
        };
        let (cluster, process) = Launcher::Slurm.cluster(variables).unwrap();
        assert_eq!((cluster.processes(), cluster.workers, process), (1, 1, 0));
    }

    #[test]
    fn host_lists_follow_slurms_format() {
        let hosts = |list| hosts_of(list).map(|hosts| hosts.join(" "));
        assert_eq!(hosts("localhost").unwrap(), "localhost");
        assert_eq!(hosts("a,b").unwrap(), "a b");
        assert_eq!(hosts("n[1-3,7]").unwrap(), "n1 n2 n3 n7");
        assert_eq!(hosts("n[008-011].x,m").unwrap(), "n008.x n009.x n010.x n011.x m");
        assert_eq!(hosts("r[1-2]n[1-2]").unwrap(), "r1n1 r1n2 r2n1 r2n2");
        for malformed in [
            "",
            ",",
            "n[",
            "n]",
            "n[]",
            "n[1",
            "n[2-1]",
            "n[1-2-3]",
            "n[+1-2]",
            "n[[1]]",
            "n[1-99999]",
            "n[0-18446744073709551615]",
        ] {
            assert_eq!(hosts(malformed), None, "{malformed}");
        }
        assert_eq!(counts_of("2(x3),1").unwrap(), [2, 2, 2, 1]);
        for malformed in ["", "0", "2(x", "2(x3", "x", "1(x99999)"] {
            assert_eq!(counts_of(malformed), None, "{malformed}");
        }
    }

    proptest! {
        #[test]
        fn no_list_makes_the_reader_panic(list in "[a-c0-9,\\[\\]-]{0,24}", counts in "[0-9(x),]{0,12}") {
            let _ = hosts_of(&list);
            let _ = counts_of(&counts);
        }

        #[test]
        fn list_expands_the_numbers_in_brackets(from in 0usize..2000, more in 0usize..50, width in 1usize..5) {
            let list = format!("n[{from:0width$}-{}]", from + more);
            let plain: Vec<_> = (from..=from + more).map(|n| format!("n{n:0width$}")).collect();
            prop_assert_eq!(hosts_of(&list), Some(plain));
        }
    }
}
