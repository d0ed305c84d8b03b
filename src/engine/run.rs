//! Execution of a program on every worker of a cluster.
//!
//! All processes end in the same way. Any failure - an error that a worker returns, a panic, a peer
//! that dies, freezes or damages its bytes - stops the run on every process with one error, which
//! [`run`] returns everywhere. The workers unwind in order, so that temporary files are removed.
//! Only a process whose workers do not notice the end within seconds is terminated.

use std::net::{Shutdown, TcpStream};
use std::sync::Arc;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;

use timely::communication::allocator::zero_copy::initialize::{CommsGuard, initialize_networking_from_sockets};
use timely::communication::allocator::{AllocatorBuilder, ProcessBuilder};
use timely::communication::initialize::Hooks;
use timely::worker::Worker;
use timely::{CommunicationConfig, WorkerConfig};

use super::buffers::{ANY_LENGTH, need, refill};
use super::cluster_file::ClusterLayout;
use super::heartbeat::Heartbeat;
use super::identity::Identity;
use super::interrupt;
use super::link::{self, PeerLink};
use super::net::{Board, Net, ProcessState};
use super::panics::contain;
use super::rendezvous::{Meeting, meet};
use webtwin_base::error::{Error, Result};
use webtwin_base::open_files;
use webtwin_base::threads;

/// Runs `program` on all workers of process number `process`, together with the other processes of
/// `cluster`. Returns the results of this process's workers, in order.
///
/// Processes only run together if their `job_digest` is equal.
///
/// # Errors
/// Returns the error that ended the run, from any worker of any process. It is the same on all
/// processes that can still be reached. A panic of `program` is returned as [`Error::Invariant`].
///
/// # Panics
/// Never panics. But if a worker does not return within 5 seconds after the run has ended (see
/// [`Net::check`]), the process prints the error and exits with its exit code.
pub fn run<T: Send + 'static>(
    cluster: &ClusterLayout,
    process: usize,
    job_digest: [u8; 32],
    program: impl Fn(&mut Net) -> Result<T> + Send + Sync + 'static,
) -> Result<Vec<T>> {
    cluster.check_process(process)?;
    run_as(cluster, &Identity::new(cluster, process, job_digest), program)
}

/// Runs `program` like [`run`], for a process with this `identity`. Its list of addresses may
/// differ from those of the other processes.
fn run_as<T: Send + 'static>(
    cluster: &ClusterLayout,
    identity: &Identity,
    program: impl Fn(&mut Net) -> Result<T> + Send + Sync + 'static,
) -> Result<Vec<T>> {
    let heartbeat = Heartbeat::start(cluster.deadline)?;
    let state = heartbeat.state();
    interrupt::note(identity.process as usize, cluster.processes(), &state);
    let results = contain(|| run_together(cluster, identity, &heartbeat, program)).and_then(|result| result);
    if let Err(error) = &results {
        heartbeat.stop(error.clone());
    }
    drop(heartbeat);
    state.check()?;
    results
}

fn run_together<T: Send + 'static>(
    cluster: &ClusterLayout,
    identity: &Identity,
    heartbeat: &Heartbeat,
    program: impl Fn(&mut Net) -> Result<T> + Send + Sync + 'static,
) -> Result<Vec<T>> {
    let (builders, network, strangers) = connect(cluster, identity, heartbeat)?;
    let shared = ProcessState {
        stop: heartbeat.state(),
        process: identity.process as usize,
        processes: cluster.processes(),
        workers: cluster.workers,
        strangers,
        traffic: Arc::default(),
        board: Board::default(),
    };
    let work = move |worker: &mut Worker| work(worker, &shared, &program);
    threads::check_memory_for(cluster.workers)?;
    let workers = timely::execute::execute_from(builders, Box::new(()), WorkerConfig::default(), work)
        .map_err(Error::NoThread)?;
    let results: Vec<Result<T>> = workers
        .join()
        .into_iter()
        .map(|joined| joined.unwrap_or_else(|panic| Err(Error::Invariant(format!("a worker ended with {panic}")))))
        .collect();
    network.end(heartbeat)?;
    results.into_iter().collect()
}

/// Runs the program on one worker. Its error ends the run on all workers.
fn work<T>(worker: &mut Worker, shared: &ProcessState, program: &impl Fn(&mut Net) -> Result<T>) -> Result<T> {
    need(ANY_LENGTH);
    let program = || {
        let mut net = Net::new(worker, shared);
        let result = program(&mut net)?;
        net.end().map(|()| result)
    };
    let result = contain(program).and_then(|result| result);
    if let Err(error) = &result {
        shared.stop.stop(error.clone());
    }
    // All workers have received the rows of the last dataflows, but not all have received the last
    // progress messages. So the remaining steps are still made here.
    let ended = contain(|| {
        while worker.has_dataflows() && !shared.stop.is_stopped() {
            worker.step_or_park(Some(Duration::from_millis(20)));
        }
        for dataflow in worker.installed_dataflows() {
            worker.drop_dataflow(dataflow);
        }
    });
    if let Err(error) = ended {
        shared.stop.stop(error);
    }
    result
}

/// Threads and sockets between this process and the others. Empty for a single process.
struct Network {
    comms: Option<CommsGuard>,
    sockets: Vec<TcpStream>,
}

impl Network {
    /// Waits until all processes have sent and received everything. If the run was stopped, returns
    /// without waiting.
    fn end(mut self, heartbeat: &Heartbeat) -> Result<()> {
        let Some(comms) = self.comms.take() else { return heartbeat.check() };
        let (send, ended) = channel();
        if heartbeat.check().is_ok() {
            threads::start(move || {
                drop(comms);
                let _ = send.send(());
            })?;
        } else {
            // timely's threads may wait for a peer forever, so they are left to end with the
            // process.
            std::mem::forget(comms);
        }
        loop {
            let waited = ended.recv_timeout(Duration::from_millis(20));
            let checked = heartbeat.check();
            if checked.is_err() {
                self.sockets.iter().for_each(|socket| drop(socket.shutdown(Shutdown::Both)));
                return checked;
            }
            match waited {
                Ok(()) => return Ok(()),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => {
                    return Err(Error::Invariant("a network thread ended with a panic".into()));
                }
            }
        }
    }
}

fn connect(
    cluster: &ClusterLayout,
    identity: &Identity,
    heartbeat: &Heartbeat,
) -> Result<(Vec<AllocatorBuilder>, Network, usize)> {
    let workers = cluster.workers;
    if cluster.processes() == 1 {
        let config = if workers == 1 { CommunicationConfig::Thread } else { CommunicationConfig::Process(workers) };
        let (builders, _) = config.try_build().map_err(Error::Invariant)?;
        return Ok((builders, Network { comms: None, sockets: Vec::new() }, 0));
    }

    open_files::raise_limit(cluster.processes() - 1)?;
    let process = identity.process as usize;
    let Meeting { sockets: connections, strangers } = meet(cluster, identity, heartbeat)?;
    let broken = |cause: std::io::Error| {
        Error::PeerLost(format!("a connection broke before the run began: {cause}; start all processes again"))
    };
    let mut sockets = Vec::new();
    let mut links = Vec::new();
    for (peer, connection) in connections.into_iter().enumerate() {
        links.push(match connection {
            None => None,
            Some((socket, session)) => {
                sockets.push(socket.try_clone().map_err(broken)?);
                let name = format!("process {peer} at {} (data connection)", cluster.addresses[peer]);
                Some(PeerLink::new(socket, &session, (process, peer), &name, heartbeat.state()).map_err(broken)?)
            }
        });
    }
    link::watch(&links, cluster.deadline, heartbeat.state())?;
    let hooks = Hooks { refill: refill(), ..Hooks::default() };
    let local = ProcessBuilder::new_typed_vector(workers, hooks.refill.clone(), hooks.spill.clone());
    let (builders, comms) =
        initialize_networking_from_sockets(local, links, process, workers, hooks).map_err(broken)?;
    let builders = builders.into_iter().map(AllocatorBuilder::Tcp).collect();
    Ok((builders, Network { comms: Some(comms), sockets }, strangers))
}

#[cfg(test)]
mod tests;
