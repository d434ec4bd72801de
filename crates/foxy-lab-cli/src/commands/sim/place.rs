//! The places in which `foxy sim` runs storage schemes: memory, null (nothing is stored), a
//! modelled disk, or a folder. In a folder, each run has a temporary sub-folder. The next run
//! removes sub-folders that killed runs left.

use crate::folder::{SIM_PREFIX, remove_leftovers};
use crate::folder::{claim, store_lock, words};
use foxy_base::ByteSize;
use foxy_cli::failure::Failure;
use foxy_cli::temporary::Temporary;
use foxy_device::{DeviceSettings, DiskProfile, Preference, Root, open_device};
use foxy_lab::simulation::storage::operation::Operations;
use foxy_lab::simulation::storage::runs::{
    self, Place, RunError, RunResult, SimulationPlan, Watch,
};
use foxy_lab::simulation::storage::sizing::paper_disk;
use foxy_schemes::PreferredDevice;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

pub enum Where {
    Memory,
    Null,
    Mechanical(Box<DiskProfile>),
    Folder(PathBuf),
}

static NEXT: AtomicU64 = AtomicU64::new(0);

impl Where {
    /// `read_ahead` is the number of bytes that the modelled file system reads ahead, if the user
    /// gives it.
    pub fn named(name: &str, scale: f64, read_ahead: Option<ByteSize>) -> Result<Self, Failure> {
        Ok(match name {
            "memory" => Self::Memory,
            "null" => Self::Null,
            "mechanical" => {
                let mut profile = Box::new(paper_disk(scale));
                if let Some(bytes) = read_ahead {
                    profile.system.read_ahead = bytes.0;
                }
                Self::Mechanical(profile)
            }
            _ if read_ahead.is_some() => {
                return Err(Failure::Unusable(
                    "--read-ahead needs --device mechanical; other devices have their own \
                     read-ahead"
                        .into(),
                ));
            }
            path if Path::new(path).is_dir() => Self::Folder(path.into()),
            _ => {
                return Err(Failure::Unusable(format!(
                    "--device {name}: no such device; use memory, null, mechanical, or an existing \
                     folder"
                )));
            }
        })
    }

    /// Returns how many runs may take place at the same time. A folder allows one run. In memory or
    /// on a modelled disk, all runs together may use half of the machine's memory.
    pub fn threads(&self, cores: usize, memory: Option<ByteSize>, stored: u64) -> usize {
        match self {
            Self::Folder(_) => 1,
            Self::Null => cores,
            Self::Memory | Self::Mechanical(_) => {
                let fit = memory.map_or(u64::MAX, |memory| memory.0 / 2 / stored.max(1));
                cores.min(usize::try_from(fit).unwrap_or(usize::MAX)).max(1)
            }
        }
    }

    pub fn title(&self) -> String {
        match self {
            Self::Memory => "memory (counts only, no time)".into(),
            Self::Null => {
                "null (counts operations, models no time; reads do not return what was written)"
                    .into()
            }
            Self::Mechanical(_) => "a modelled ST15150W disk, simulated in virtual time".into(),
            Self::Folder(path) => format!("{}, measured", path.display()),
        }
    }

    /// Locks the folder, and removes files that killed runs left. The caller must call this method
    /// before the first run.
    pub fn claim(&self) -> Result<Option<File>, Failure> {
        let Self::Folder(path) = self else { return Ok(None) };
        let claimed = claim("--device", path)?;
        if let Ok(_lock) = store_lock(path) {
            remove_leftovers(path);
        }
        Ok(claimed)
    }

    pub fn run(
        &self,
        plan: &SimulationPlan,
        operations: &Operations,
        watch: &Watch,
    ) -> Result<RunResult, String> {
        let place = match self {
            Self::Memory => Place::Memory,
            Self::Null => Place::Null,
            Self::Mechanical(profile) => Place::Model(profile.clone()),
            Self::Folder(path) => return run_in(path, plan, operations, watch),
        };
        runs::run(plan, operations, place, watch).map_err(|error| error.to_string())
    }
}

fn run_in(
    base: &Path,
    plan: &SimulationPlan,
    operations: &Operations,
    watch: &Watch,
) -> Result<RunResult, String> {
    if watch.stop.load(Relaxed) {
        return Err(RunError::Stopped.to_string());
    }
    let _lock = store_lock(base).map_err(|error| words(&error))?;
    let number = NEXT.fetch_add(1, Relaxed);
    let folder = Temporary::new(base.join(format!("{SIM_PREFIX}{}-{number}", std::process::id())));
    let root = Root::open(folder.path()).map_err(|error| words(&error))?;
    let needed = if plan.scheme.row().has_utilization() {
        runs::settings(plan, operations).store.size
    } else {
        operations.disk
    };
    if let Some(free) = root.free_bytes().filter(|&free| free < needed) {
        return Err(format!(
            "the disk is full: {} are free, {} are needed",
            ByteSize(free),
            ByteSize(needed)
        ));
    }
    let preference = match plan.scheme.row().device {
        PreferredDevice::Any => Preference::Fastest,
        PreferredDevice::Threads => Preference::Threads,
        PreferredDevice::Blocking | PreferredDevice::Helper => Preference::Blocking,
    };
    let opened = open_device(&root, DeviceSettings { preference, ..DeviceSettings::default() });
    let (device, _) =
        opened.map_err(|error| format!("cannot start a thread for the disk: {error}"))?;
    runs::run(plan, operations, Place::Real(device), watch).map_err(|error| error.to_string())
}
