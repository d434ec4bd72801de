//! Runs one trial of `foxy compare`: starts a proxy with an empty cache, measures it under one
//! workload, and removes it.

use super::context::{Trial, TrialContext};
use super::measured::MeasuredProxy;
use super::wisconsin;
use crate::fault::FaultKind;
use crate::mounts::{FileSystem, LoopMount};
use crate::peers::control_group::{ControlGroup, Limit};
use crate::peers::up::Start;
use crate::peers::{Description, Plan, ready};
use foxy_cli::temporary::Temporary;
use foxy_lab::load::options::{LoadOptions, Mode, Stop};
use foxy_report::Record;
use foxy_workload::{Model, Objects, Popularity};
use std::net::SocketAddr;
use std::path::Path;

/// The number of bytes that stay free on the proxy's disk until the fault `disk-full` fills the
/// disk.
const ROOM_BESIDE: u64 = 256 << 20;

pub struct TrialFindings {
    pub records: Vec<Record>,
    pub plan: Plan,
    pub notes: Vec<String>,
}

pub fn run(trial: &Trial, context: &TrialContext) -> Result<TrialFindings, String> {
    let disk = small_disk(trial, context)?;
    let base = disk.as_ref().map_or(&*context.folder, LoopMount::folder);
    let folder = Temporary::new(base.join(trial.peer.name));
    let mut description = describe(trial, context, folder.path());
    let mut notes = Vec::new();
    let limit =
        trial.scenario.limit.and_then(|limit| match ControlGroup::new(Limit::Memory(limit)) {
            Ok(limit) => Some(limit),
            Err(why) => {
                notes.push(format!("{}: memory was not limited: {why}", trial.scenario.name));
                None
            }
        });
    let (peer, host) = (&trial.peer, context.origin.address());
    let start = Start {
        peer,
        program: trial.program,
        name: peer.name,
        host,
        workload: trial.scenario.name,
        limit: limit.as_ref(),
        interrupted: &context.interrupted,
    };
    let started = start.start(&mut description, peer.plan);
    context.is_stopping(peer.name);
    let (mut running, plan) = started?;
    let target = description.listen;
    let result = match load_options(trial, context, target) {
        Some(options) => {
            let measured = MeasuredProxy { trial, context, options, cache: description.cache() };
            measured.all(&mut running, &mut notes)
        }
        None => wisconsin::measure(trial, context, &mut running, target),
    };
    let ended = running.ended();
    running.stop();
    match (result, ended) {
        (_, Some(status)) => Err(format!(
            "{} ended during the run ({status}): {}",
            trial.peer.name,
            running.last_words()
        )),
        (Ok(records), None) => Ok(TrialFindings { records, plan, notes }),
        (Err(error), None) => Err(error),
    }
}

/// Creates a small file system for a trial (one proxy under one workload) with the fault
/// `disk-full`. Returns `None` for other trials.
fn small_disk(trial: &Trial, context: &TrialContext) -> Result<Option<LoopMount>, String> {
    if trial.scenario.fault != Some(FaultKind::DiskFull) {
        return Ok(None);
    }
    let size = trial.scenario.disk(context.quick).0 + ROOM_BESIDE;
    let mount = LoopMount::new(&context.folder, FileSystem::Ext4, "noatime", size);
    mount.map(Some).map_err(|reason| format!("{}: no disk to be full: {reason}", trial.peer.name))
}

fn describe(trial: &Trial, context: &TrialContext, folder: &Path) -> Description {
    Description {
        folder: folder.to_path_buf(),
        beside: Vec::new(),
        listen: ready::ANYWHERE,
        origin: context.origin.address(),
        papers: None,
        disk: trial.scenario.disk(context.quick),
        memory: trial.scenario.memory,
        holding: trial.scenario.holding,
        store: None,
        cores: std::thread::available_parallelism().map_or(1, usize::from),
    }
}

fn load_options(trial: &Trial, context: &TrialContext, target: SocketAddr) -> Option<LoadOptions> {
    let workload = trial.scenario.workload(context.quick)?;
    let stop = match workload.objects() {
        Some(Objects { popularity: Popularity::AllNew, objects, .. }) => Stop::Requests(*objects),
        _ => Stop::After(trial.scenario.times * context.time),
    };
    let seed = context.seed.wrapping_add(u64::from(trial.repeat));
    let mode = Mode::Reverse { host: context.origin.address().to_string() };
    let pace = trial.scenario.pace(&workload);
    let clients = match &workload.model {
        Model::Table3(knobs) => knobs.clients as usize,
        Model::Objects(_) | Model::PolyMix4(_) | Model::Trace(_) => context.clients,
    };
    let time_limit = trial.scenario.time_limit;
    Some(LoadOptions {
        clients,
        stop,
        pace,
        seed,
        time_limit,
        ..LoadOptions::new(target, mode, workload)
    })
}
