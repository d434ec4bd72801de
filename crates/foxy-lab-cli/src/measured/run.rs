//! Runs a storage scheme in a folder of a real file system until all writes are on disk. Then reads
//! all records again, without the page cache.

use super::Missing;
use crate::folder::PREFIX;
use foxy_base::clock;
use foxy_cli::disk_helper::{AUFS_THREADS, helper};
use foxy_cli::temporary::Temporary;
use foxy_device::{BlockingDevice, DeviceSettings, OpKind, Preference, Root, Traced, open_device};
use foxy_lab::simulation::storage::operation::Operations;
use foxy_lab::simulation::storage::operation::left_on_disk;
use foxy_lab::simulation::storage::runs::{self, DeviceCounts, Place, SimulationPlan, Watch};
use foxy_lab::simulation::storage::sizing::FewerBuffers;
use foxy_schemes::UfsMapping;
use foxy_schemes::{PreferredDevice, SchemeName};
use rustix::fs::Advice;
use std::fs::File;
use std::io;
use std::path::Path;

/// foxy waits for the helper process of the scheme diskd if this number of operations is pending.
/// Squid's diskd calls this limit Q2.
const HELPER_LIMIT: usize = 72;

pub struct Measured {
    pub gets: u64,
    pub rate: f64,
    /// The number of created files. It leaves out attempts that failed because a directory was
    /// missing.
    pub creates: u64,
    pub counts: DeviceCounts,
    pub syncs: u64,
    pub lost: u64,
    /// Numbers of locality buffers (write buffers, one for each origin server): how many fit into
    /// the store, and how many were requested. `None` if the store has room for all buffers.
    pub fewer_buffers: Option<FewerBuffers>,
}

pub struct ReadAgain {
    pub rate: f64,
    /// The number of reads that found no record. In a run at a small scale, the store is so small
    /// that a large record displaces several others.
    pub lost: u64,
}

pub struct Run<'a> {
    folder: Temporary,
    plan: SimulationPlan,
    at_once: usize,
    operations: &'a Operations,
    watch: &'a Watch,
}

impl<'a> Run<'a> {
    pub fn new(
        base: &Path,
        scheme: SchemeName,
        seed: u64,
        operations: &'a Operations,
        watch: &'a Watch,
    ) -> Self {
        let folder = Temporary::new(base.join(format!("{PREFIX}{}-{scheme}", std::process::id())));
        let at_once = match scheme.row().device {
            PreferredDevice::Threads | PreferredDevice::Helper => AUFS_THREADS,
            PreferredDevice::Any | PreferredDevice::Blocking => 1,
        };
        let plan = SimulationPlan::of(scheme, seed);
        Self { folder, plan, at_once, operations, watch }
    }

    pub fn with_mapping(mut self, mapping: UfsMapping) -> Self {
        self.plan.scheme_settings.ufs_mapping = mapping;
        self
    }

    pub fn write(&self) -> Result<Measured, Missing> {
        let root = self.root()?;
        self.sync()?;
        let traced =
            Traced::new(device(&root, self.plan.scheme).map_err(|error| self.failed(&error))?, 0);
        let trace = traced.trace();
        let place = Place::Real(Box::new(traced));
        let result =
            runs::run_at_once(&self.plan, self.at_once, self.operations, place, self.watch);
        let result = result.map_err(Missing::from)?;
        let written = clock::monotonic();
        self.sync()?;
        let took = result.took.unwrap_or_default() + clock::monotonic().since(written);
        Ok(Measured {
            gets: result.gets,
            rate: result.gets as f64 / took.as_secs_f64().max(1e-9),
            creates: result.counts.creates - trace.counts().of(OpKind::Create).failed,
            counts: result.counts,
            syncs: trace.counts().of(OpKind::Sync).finished,
            lost: result.outcome.lost,
            fewer_buffers: result.fewer_buffers,
        })
    }

    pub fn read_again(&self) -> Result<ReadAgain, Missing> {
        let root = self.root()?;
        self.sync()?;
        forget(self.folder.path()).map_err(|error| self.failed(&error))?;
        let device = device(&root, self.plan.scheme).map_err(|error| self.failed(&error))?;
        let reads = left_on_disk(self.operations, self.plan.seed);
        let outcome =
            runs::read_again(&self.plan, self.at_once, self.operations, &reads, device, self.watch);
        let outcome = outcome.map_err(Missing::from)?;
        let rate = outcome.operations as f64 / outcome.took.as_secs_f64().max(1e-9);
        Ok(ReadAgain { rate, lost: outcome.lost })
    }

    fn root(&self) -> Result<Root, Missing> {
        Root::open(self.folder.path()).map_err(Missing::impossible)
    }

    fn failed(&self, error: &io::Error) -> Missing {
        Missing::impossible(format!("{}: {error}", self.folder.path().display()))
    }

    fn sync(&self) -> Result<(), Missing> {
        let directory = File::open(self.folder.path()).map_err(|error| self.failed(&error))?;
        rustix::fs::syncfs(&directory).map_err(|error| self.failed(&error.into()))
    }
}

fn forget(folder: &Path) -> io::Result<()> {
    for entry in std::fs::read_dir(folder)? {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            forget(&entry.path())?;
        } else {
            rustix::fs::fadvise(File::open(entry.path())?, 0, None, Advice::DontNeed)?;
        }
    }
    Ok(())
}

fn device(root: &Root, scheme: SchemeName) -> io::Result<Box<dyn BlockingDevice>> {
    let preference = match scheme.row().device {
        PreferredDevice::Helper => return Ok(Box::new(helper(root, HELPER_LIMIT)?)),
        PreferredDevice::Any => Preference::Fastest,
        PreferredDevice::Threads => Preference::Threads,
        PreferredDevice::Blocking => Preference::Blocking,
    };
    let settings =
        DeviceSettings { preference, threads: AUFS_THREADS, ..DeviceSettings::default() };
    open_device(root, settings).map(|(device, _)| device)
}
