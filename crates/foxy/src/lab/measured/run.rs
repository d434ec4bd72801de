//! One measured run: a scheme in a folder of a real file system, until all that it wrote is on the disk.

use crate::lab::temporary::Temporary;
use crate::serve::disk::{AUFS_THREADS, helper};
use foxy_base::clock;
use foxy_device::{BlockingDevice, DeviceSettings, OpKind, Preference, Root, Traced, open_device};
use foxy_lab::sim::operation::Operations;
use foxy_lab::sim::runs::{self, DeviceCounts, Place, Plan, Watch};
use foxy_store::SchemeName;
use foxy_store::schemes::DeviceWish;
use std::fs::File;
use std::path::Path;

/// Squid's Q2: operations the helper may have before foxy waits for it.
const HELPER_LIMIT: usize = 72;

/// What a run came to.
pub struct Measured {
    /// URL-gets.
    pub gets: u64,
    /// URL-gets a second, until all is on the disk.
    pub rate: f64,
    /// Files created; a creation that failed for want of its directory, and was tried again, is none.
    pub creates: u64,
    /// What the store asked of its device.
    pub counts: DeviceCounts,
    /// Syncs among that, those at opening included.
    pub syncs: u64,
    /// URL-reads that did not find what was written.
    pub lost: u64,
}

/// Runs a scheme at 75 % utilization on the device it is meant for, in a new folder in `base` that is removed.
///
/// # Errors
/// Why it came to nothing, in a few words.
pub fn run(
    base: &Path,
    scheme: SchemeName,
    seed: u64,
    operations: &Operations,
    watch: &Watch,
) -> Result<Measured, String> {
    let folder = Temporary::new(base.join(format!("foxy-figure-{}-{scheme}", std::process::id())));
    let root = Root::open(folder.path()).map_err(|error| error.to_string())?;
    let failed = |error: std::io::Error| format!("{}: {error}", base.display());
    let sync = || -> Result<(), String> {
        let directory = File::open(folder.path()).map_err(failed)?;
        rustix::fs::syncfs(&directory).map_err(|error| failed(error.into()))
    };
    sync()?;
    let traced = Traced::new(device(&root, scheme).map_err(failed)?, 0);
    let trace = traced.trace();
    let at_once = match scheme.row().device {
        DeviceWish::Threads | DeviceWish::Helper => AUFS_THREADS,
        DeviceWish::Any | DeviceWish::Blocking => 1,
    };
    let plan = Plan { scheme, utilization: 0.75, seed };
    let place = Place::Real(Box::new(traced));
    let result = runs::run_at_once(&plan, at_once, operations, place, watch);
    let result = result.map_err(|error| error.to_string())?;
    let written = clock::monotonic();
    sync()?;
    let took = result.outcome.took + clock::monotonic().since(written);
    Ok(Measured {
        gets: result.gets,
        rate: result.gets as f64 / took.as_secs_f64().max(1e-9),
        creates: result.counts.creates - trace.counts().of(OpKind::Create).failed,
        counts: result.counts,
        syncs: trace.counts().of(OpKind::Sync).finished,
        lost: result.outcome.lost,
    })
}

fn device(root: &Root, scheme: SchemeName) -> std::io::Result<Box<dyn BlockingDevice>> {
    let preference = match scheme.row().device {
        DeviceWish::Helper => return Ok(Box::new(helper(root, HELPER_LIMIT)?)),
        DeviceWish::Any => Preference::Fastest,
        DeviceWish::Threads => Preference::Threads,
        DeviceWish::Blocking => Preference::Blocking,
    };
    let settings = DeviceSettings { preference, threads: AUFS_THREADS, ..DeviceSettings::default() };
    open_device(root, settings).map(|(device, _)| device)
}
