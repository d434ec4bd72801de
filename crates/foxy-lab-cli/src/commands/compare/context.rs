//! Describes a trial of `foxy compare` (one proxy under one workload), and the settings that all
//! trials share.

use super::scenario::Scenario;
use crate::peers::Peer;
use foxy_cli::terminal::{self, Level};
use foxy_lab::Origin;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;

pub struct TrialContext {
    /// The folder that contains a folder for each proxy.
    pub folder: PathBuf,
    pub origin: Origin,
    pub quick: bool,
    pub time: Duration,
    pub clients: usize,
    /// Rates, in requests per second, of extra runs that measure latency.
    pub rates: Vec<u32>,
    pub seed: u64,
    pub interrupted: Arc<AtomicBool>,
    pub said: AtomicBool,
}

impl TrialContext {
    /// Whether a signal asked the command to stop. The first call after the signal prints a
    /// message, because the removal of a proxy's files can take long.
    pub fn is_stopping(&self, name: &str) -> bool {
        let stopping = self.interrupted.load(Relaxed);
        if stopping && !self.said.swap(true, Relaxed) {
            terminal::report(Level::Info, &format!("stopping {name} and removing its files"));
        }
        stopping
    }
}

pub struct Trial<'a> {
    pub peer: Peer,
    pub program: &'a Path,
    pub scenario: Scenario,
    pub repeat: u32,
    pub label: String,
}
